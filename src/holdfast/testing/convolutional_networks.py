"""Small networks of convolutions that are awkward for one memory layout or another.

All take `(batch, 3, 16, 16)` to 10 classes: with one channel, the layouts are one and the same.
"""

import torch
from torch import nn


class GroupNormCall(nn.Module):
    """GroupNorm as a function, with weights that belong to no layer."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Normalise two groups of channels."""
        return nn.functional.group_norm(inputs, 2)


def convolutional_networks() -> dict[str, nn.Module]:
    """Name -> network in evaluation mode, its statistics away from the defaults."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        networks: dict[str, nn.Module] = {
            "few channels": _network(4, nn.Conv2d(4, 3, 3, padding=1), 3),
            "1x1 with a stride, few channels": _network(4, nn.Conv2d(4, 8, 1, stride=2, bias=False), 8),
            "1x1 with a stride": _network(16, nn.Conv2d(16, 12, 1, stride=2, bias=False), 12),
            "1x1": _network(4, nn.Conv2d(4, 8, 1), 8),
            "strides": _network(4, nn.Conv2d(4, 8, 3, stride=(2, 3)), 8),
            "dilation": _network(4, nn.Conv2d(4, 8, 3, dilation=2), 8),
            "groups": _network(4, nn.Conv2d(4, 8, 3, groups=4), 8),
            "groups, 1x1 with a stride": _network(8, nn.Conv2d(8, 8, 1, stride=2, groups=4), 8),
            "transposed": _network(4, nn.ConvTranspose2d(4, 6, 2, stride=2), 6),
            "transposed, 1x1 with a stride": _network(8, nn.ConvTranspose2d(8, 4, 1, stride=2), 4),
            "GroupNorm": _network(4, nn.Sequential(nn.GroupNorm(2, 4), nn.Conv2d(4, 6, 3)), 6),
            "GroupNorm as a function": _network(4, nn.Sequential(GroupNormCall(), nn.Conv2d(4, 6, 3)), 6),
            "pooled and shuffled": _network(
                4, nn.Sequential(nn.MaxPool2d(3, 2, 1), nn.Conv2d(4, 8, 3), nn.PixelShuffle(2), nn.Upsample(8)), 2
            ),
        }
        for network in networks.values():
            network.train()
            network(torch.rand(16, 3, 16, 16))
            network.eval()
    return networks


def _network(before: int, middle: nn.Module, after: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, before, 3, padding=1),
        nn.BatchNorm2d(before),
        nn.ReLU(),
        middle,
        nn.BatchNorm2d(after),
        nn.ReLU(),
        nn.Conv2d(after, 16, 3, padding=1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )
