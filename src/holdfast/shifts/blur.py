"""Blur: what lens and motion take away.

Source: the corruptions of ImageNet-C; widths are for 224 pixels and scale with the shorter side.
The kernel is cut at 4 standard deviations and edges are repeated, as scipy's filter does in mode "nearest".
Cost: two matrix products per channel.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch

from holdfast.shifts.base import Knots, Shift, knots
from holdfast.shifts.random import SampleRandom


@dataclass(frozen=True)
class GaussianBlur(Shift):
    """Convolves with a normal kernel."""

    name: ClassVar[str] = "gaussian_blur"
    tables: ClassVar[Mapping[str, Knots]] = {
        "imagenet": knots(0, 1, 2, 3, 4, 6),
        "cifar": knots(0, 0.4, 0.6, 0.7, 0.8, 1),
    }

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """Blur along the rows, then along the columns."""
        (sigma,) = self.constants()
        return gaussian_filter(images, sigma * self.scale(images))


def gaussian_filter(images: torch.Tensor, sigma: float) -> torch.Tensor:
    """`(batch, channels, height, width)` convolved with a normal kernel of width `sigma` pixels, edges repeated.

    Written as two products with a banded matrix, which on a CPU is several times faster than a convolution.
    """
    rows, columns = (_filter_matrix(side, sigma).to(images) for side in images.shape[-2:])
    return rows @ images @ columns.T


@lru_cache(maxsize=64)
def _filter_matrix(side: int, sigma: float) -> torch.Tensor:
    """`(side, side)`, row i holds the weights with which pixel i sees the others."""
    radius = int(4 * sigma + 0.5)
    offsets = torch.arange(-radius, radius + 1)
    kernel = torch.exp(-0.5 * (offsets / max(sigma, 1e-9)).double() ** 2)
    seen = (torch.arange(side)[:, None] + offsets).clamp(0, side - 1)
    weights = (kernel / kernel.sum()).expand(side, -1)
    return torch.zeros(side, side, dtype=torch.float64).scatter_add_(1, seen, weights).float()
