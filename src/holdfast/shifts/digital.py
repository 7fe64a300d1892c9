"""Digital: what processing does to an image.

Source: the corruptions of ImageNet-C as in thesis chapter 2. Cost: a pass over the images.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from holdfast.shifts.base import Shift, interpolate
from holdfast.shifts.random import SampleRandom


@dataclass(frozen=True)
class Contrast(Shift):
    """Pulls every pixel towards the mean of its image and channel."""

    name: ClassVar[str] = "contrast"
    factor: ClassVar[tuple[float, ...]] = (1, 0.4, 0.3, 0.2, 0.1, 0.05)

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """(x − mean) c + mean."""
        return torch.lerp(images.mean((-2, -1), keepdim=True), images, interpolate(self.severity, self.factor))
