"""Digital: what processing does to an image.

Source: the corruptions of ImageNet-C as in thesis chapter 2. Cost: a pass over the images.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch

from holdfast.shifts.base import Knots, Shift, knots
from holdfast.shifts.random import SampleRandom


@dataclass(frozen=True)
class Contrast(Shift):
    """Pulls every pixel towards the mean of its image and channel."""

    name: ClassVar[str] = "contrast"
    tables: ClassVar[Mapping[str, Knots]] = {
        "imagenet": knots(1, 0.4, 0.3, 0.2, 0.1, 0.05),
        "cifar": knots(1, 0.75, 0.5, 0.4, 0.3, 0.15),
    }

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """(x − mean) c + mean."""
        (factor,) = self.constants()
        return torch.lerp(images.mean((-2, -1), keepdim=True), images, factor)
