"""Pieces that the small networks share."""

import torch
from torch import nn

from holdfast.errors import unknown


class Normalise(nn.Module):
    """Images in [0, 1] to values around 0; part of every model, so that nobody has to remember it."""

    def __init__(self, mean: float = 0.5, std: float = 0.5) -> None:
        super().__init__()
        self.mean, self.std = mean, std

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(x − mean) / std."""
        return (images - self.mean) / self.std


def norm_layer(kind: str, channels: int) -> nn.Module:
    """A normalisation layer by name: `batch`, `group` or `none`."""
    if kind == "batch":
        return nn.BatchNorm2d(channels)
    if kind == "group":
        return nn.GroupNorm(min(4, channels), channels)
    if kind == "none":
        return nn.Identity()
    raise unknown("norm", kind, ["batch", "group", "none"])
