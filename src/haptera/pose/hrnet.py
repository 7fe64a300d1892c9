"""HRNet as a backbone of keypoints: branches of strides 4, 8, 16 and 32 that run side by side and mix.

Source: Wang et al. (2020). Parameters are named as the usual checkpoints name them (`stage2.0.branches.0.0.conv1`), so
weights of DeepLabCut load. The map is that of the branch of stride 4, or of all branches made as large, one after the
other. All layers are BatchNorm's, so its statistics can be estimated anew. Cost: that of the network.
"""

import torch
from torch import nn
from torch.nn import functional as F

from haptera.errors import unknown
from haptera.pose.resnet import Residual

WIDTHS = {"hrnet_w18": 18, "hrnet_w32": 32, "hrnet_w48": 48}
MODULES = {2: 1, 3: 4, 4: 3}
"""How many times the branches of a stage mix; the number of the stage is that of its branches."""
BLOCKS = 4


def _conv(inputs: int, outputs: int, kernel: int, stride: int, *more: nn.Module) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), *more)


class Mixing(nn.Module):
    """Four residual blocks in each branch, then every branch becomes the sum of all, brought to its size."""

    def __init__(self, channels: list[int]) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            nn.Sequential(*(Residual(each, each, 1, 1, False, nn.BatchNorm2d) for _ in range(BLOCKS)))
            for each in channels
        )
        self.fuse_layers = nn.ModuleList(
            nn.ModuleList(_bridge(channels, source, target) for source in range(len(channels)))
            for target in range(len(channels))
        )

    def forward(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """From a map of each branch to a map of each branch."""
        maps = [branch(each) for branch, each in zip(self.branches, inputs, strict=True)]
        sums = []
        for bridges in self.fuse_layers:
            parts = [bridge(each) for bridge, each in zip(bridges.children(), maps, strict=True)]
            total = parts[0]
            for part in parts[1:]:
                total = total + part
            sums.append(total.relu())
        return sums


def _bridge(channels: list[int], source: int, target: int) -> nn.Module:
    """Return what brings the map of a branch to the size of another."""
    if source == target:
        return nn.Identity()
    if source > target:
        larger = nn.Upsample(scale_factor=2 ** (source - target), mode="nearest")
        return _conv(channels[source], channels[target], 1, 1, larger)
    steps = []
    for step in range(target - source):
        last = step == target - source - 1
        outputs = channels[target] if last else channels[source]
        steps.append(_conv(channels[source], outputs, 3, 2, *([] if last else [nn.ReLU()])))
    return nn.Sequential(*steps)


class HRNetFeatures(nn.Module):
    """The finest feature map of an HRNet.

    Args:
        name: such as `hrnet_w32`.
        every: put the maps of all branches one after the other, made as large as the finest.

    Attributes:
        channels: of the map.
        stride: of the map.
    """

    stride = 4

    def __init__(self, name: str = "hrnet_w32", every: bool = False) -> None:
        super().__init__()
        if name not in WIDTHS:
            raise unknown("HRNet", name, WIDTHS)
        widths = [WIDTHS[name] * 2**branch for branch in range(4)]
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 3, 2, 1, bias=False), nn.BatchNorm2d(64)
        self.conv2, self.bn2 = nn.Conv2d(64, 64, 3, 2, 1, bias=False), nn.BatchNorm2d(64)
        blocks = [Residual(64 if not block else 256, 64, 1, 1, True, nn.BatchNorm2d) for block in range(BLOCKS)]
        self.layer1 = nn.Sequential(*blocks)
        before = [256]
        for stage, modules in MODULES.items():
            channels = widths[:stage]
            self.add_module(f"transition{stage - 1}", _transition(before, channels))
            self.add_module(f"stage{stage}", nn.ModuleList(Mixing(channels) for _ in range(modules)))
            before = channels
        self.every, self.channels = every, sum(widths) if every else widths[0]

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """`(batch, 3, height, width)` to `(batch, channels, height / 4, width / 4)`."""
        features = self.bn2(self.conv2(self.bn1(self.conv1(images)).relu())).relu()
        maps = [self.layer1(features)]
        for stage, modules in MODULES.items():
            steps = list(self.get_submodule(f"transition{stage - 1}").children())
            maps = [step(maps[min(branch, len(maps) - 1)]) for branch, step in enumerate(steps)]
            for place in range(modules):
                maps = self.get_submodule(f"stage{stage}.{place}")(maps)
        if not self.every:
            return maps[0]
        return torch.cat([maps[0], *(F.interpolate(each, maps[0].shape[2:], mode="bilinear") for each in maps[1:])], 1)


def _transition(before: list[int], channels: list[int]) -> nn.ModuleList:
    """Return what makes the branches of a stage of those before it; a new one comes from the coarsest."""
    steps = nn.ModuleList()
    for branch, outputs in enumerate(channels):
        if branch >= len(before):
            steps.append(nn.Sequential(_conv(before[-1], outputs, 3, 2, nn.ReLU())))
        elif before[branch] != outputs:
            steps.append(_conv(before[branch], outputs, 3, 1, nn.ReLU()))
        else:
            steps.append(nn.Identity())
    return steps
