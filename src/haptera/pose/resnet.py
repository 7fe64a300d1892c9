"""ResNet as a backbone of keypoints: dilated to a stride of 16 or 8, with BatchNorm or GroupNorm.

Source: He et al. (2016), with the stride in the 3x3 convolution of a bottleneck. Where the stride of a stage would go
beyond `output_stride`, it is 1 and later 3x3 convolutions are dilated instead, as the first one of that stage is not.
Parameters are named as the usual checkpoints name them (`layer1.0.conv1.weight`), so weights of DeepLabCut load; its
networks called `resnet50_gn` have GroupNorm of 32 groups, and so no statistics that BatchNorm could estimate anew.
Cost: that of the network.
"""

from typing import Any

import torch
from torch import nn

from haptera.errors import HapteraError, unknown

DEPTHS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
NAMES = [f"resnet{depth}{norm}" for depth in DEPTHS for norm in ("", "_gn")]
GROUPS = 32


class Residual(nn.Module):
    """Two 3x3 convolutions, or a bottleneck of three, around which the input is carried."""

    expansion: int

    def __init__(self, inputs: int, planes: int, stride: int, dilation: int, deep: bool, norm: Any) -> None:
        super().__init__()
        outputs = planes * (4 if deep else 1)

        def wide(channels: int, step: int, apart: int) -> nn.Conv2d:
            return nn.Conv2d(channels, planes, 3, step, apart, apart, bias=False)

        if deep:
            self.conv1, self.bn1 = nn.Conv2d(inputs, planes, 1, bias=False), norm(planes)
            self.conv2, self.bn2 = wide(planes, stride, dilation), norm(planes)
            self.conv3, self.bn3 = nn.Conv2d(planes, outputs, 1, bias=False), norm(outputs)
        else:
            self.conv1, self.bn1 = wide(inputs, stride, dilation), norm(planes)
            self.conv2, self.bn2 = wide(planes, 1, dilation), norm(planes)
        self.deep = deep
        self.downsample: nn.Module | None = None
        if stride > 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), norm(outputs))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """`(batch, channels, height, width)`."""
        features = self.bn2(self.conv2(self.bn1(self.conv1(inputs)).relu()))
        if self.deep:
            features = self.bn3(self.conv3(features.relu()))
        return (features + (inputs if self.downsample is None else self.downsample(inputs))).relu()


class ResNetFeatures(nn.Module):
    """The last feature map of a ResNet.

    Args:
        name: such as `resnet50` or `resnet50_gn`.
        output_stride: 32, 16 or 8.

    Attributes:
        channels: of the map.
        stride: of the map.
    """

    def __init__(self, name: str = "resnet50", output_stride: int = 16) -> None:
        super().__init__()
        if name not in NAMES:
            raise unknown("ResNet", name, NAMES)
        if output_stride not in (8, 16, 32):
            raise HapteraError(f"output_stride is {output_stride}; 8, 16 or 32 was expected")
        depth = int(name.removeprefix("resnet").removesuffix("_gn"))
        deep = depth >= 50

        def norm(channels: int) -> nn.Module:
            return nn.GroupNorm(GROUPS, channels) if name.endswith("_gn") else nn.BatchNorm2d(channels)

        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), norm(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        inputs, reached, dilation, before = 64, 4, 1, 1
        for stage, blocks in enumerate(DEPTHS[depth]):
            stride = 1 if stage == 0 else 2
            if reached >= output_stride:
                dilation, stride = dilation * stride, 1
            reached *= stride
            layers = []
            for block in range(blocks):
                layers.append(Residual(inputs, 64 * 2**stage, 1 if block else stride, before, deep, norm))
                inputs, before = 64 * 2**stage * (4 if deep else 1), dilation
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layers))
        self.channels, self.stride = inputs, output_stride

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """`(batch, 3, height, width)` to `(batch, channels, height / stride, width / stride)`."""
        features = self.maxpool(self.bn1(self.conv1(images)).relu())
        for stage in range(4):
            features = self.get_submodule(f"layer{stage + 1}")(features)
        return features
