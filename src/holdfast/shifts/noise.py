"""Noise: the sensor's own disturbances.

Source: the corruptions of ImageNet-C as in thesis chapter 2, constants in the classes, between severities linear
(appendix C). Differs: repeatable per sample. Cost: a pass over the images and about 2 ns per random value.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch

from holdfast.shifts.base import Knots, Shift, knots
from holdfast.shifts.random import SampleRandom


@dataclass(frozen=True)
class GaussianNoise(Shift):
    """Adds normal noise to every pixel and channel.

    >>> images = torch.full((2, 1, 4, 4), 0.5)
    >>> GaussianNoise(severity=3)(images, ids=[10, 11], seed=0).shape
    torch.Size([2, 1, 4, 4])
    """

    name: ClassVar[str] = "gaussian_noise"
    tables: ClassVar[Mapping[str, Knots]] = {
        "imagenet": knots(0, 0.08, 0.12, 0.18, 0.26, 0.38),
        "cifar": knots(0, 0.04, 0.06, 0.08, 0.09, 0.10),
    }

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """x + σ n."""
        (sigma,) = self.constants()
        return random.normal(images.shape[1:]).to(images).mul_(sigma).add_(images)
