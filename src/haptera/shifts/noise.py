"""Noise: the sensor's own disturbances, and noise of one norm, the yardstick of relative stability.

Source: the corruptions of ImageNet-C and CIFAR-C as in thesis chapter 2, constants in the classes, between severities
linear (appendix C). Differs: repeatable per sample. Normal noise ends at 4.2 standard deviations (`shifts.random`); the
others are exact to the 24 bits of their uniform deviates. Noise of one norm, η, uniform on a sphere, is equation (4) of
"Relative stability toward diffeomorphisms indicates performance in deep nets". It is not a shift: images with it are
not clipped, for then its norm would depend on the image.
Cost: a pass over the images and 2 to 3 ns per random value; shot noise as `shifts.poisson` says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar
from zlib import crc32

import torch

from haptera.shifts.base import Knots, Shift, knots
from haptera.shifts.poisson import NOISELESS, poisson_counts
from haptera.shifts.random import SampleRandom

ROUNDING = 16
"""Times the precision of the numbers, relative to what changes: a change of less than that is rounding."""


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


@dataclass(frozen=True)
class ShotNoise(Shift):
    """Counts photons: full brightness is c of them on average. The constant is 1 / c, the light of one photon."""

    name: ClassVar[str] = "shot_noise"
    tables: ClassVar[Mapping[str, Knots]] = {
        "imagenet": knots(0, 1 / 60, 1 / 25, 1 / 12, 1 / 5, 1 / 3),
        "cifar": knots(0, 1 / 500, 1 / 250, 1 / 100, 1 / 75, 1 / 50),
    }

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """Poisson(x c) / c."""
        (photon,) = self.constants()
        if photon * NOISELESS <= 1:
            return images.clone()
        return poisson_counts(images, 1 / photon, random).mul_(photon)


@dataclass(frozen=True)
class ImpulseNoise(Shift):
    """Replaces a share of all values, of every channel by itself: half of them by 1, half by 0."""

    name: ClassVar[str] = "impulse_noise"
    tables: ClassVar[Mapping[str, Knots]] = {
        "imagenet": knots(0, 0.03, 0.06, 0.09, 0.17, 0.27),
        "cifar": knots(0, 0.01, 0.02, 0.03, 0.05, 0.07),
    }

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """Deviates in the outer shares of [−1, 1) push a value far out of range, and the base clamps it."""
        (amount,) = self.constants()
        deviates = random.uniform(images.shape[1:]).mul_(2).sub_(1)
        pushes = torch.nn.functional.hardshrink(deviates, 1 - amount)  # 0 inside; outside at least 0.73 in size
        return torch.add(images, pushes.to(images), alpha=4)


@dataclass(frozen=True)
class SpeckleNoise(Shift):
    """Adds normal noise in proportion to the value it falls on."""

    name: ClassVar[str] = "speckle_noise"
    tables: ClassVar[Mapping[str, Knots]] = {
        "imagenet": knots(0, 0.15, 0.2, 0.35, 0.45, 0.6),
        "cifar": knots(0, 0.06, 0.1, 0.12, 0.16, 0.2),
    }

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """x + x σ n."""
        (sigma,) = self.constants()
        return torch.addcmul(images, images, random.normal(images.shape[1:]).to(images), value=sigma)


def sphere_noise(images: torch.Tensor, radius: float, ids: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """η for each of `(batch, ...)` images, of norm `radius`; given by the seed and the sample's id alone."""
    random = SampleRandom(ids, seed, salt=crc32(b"sphere_noise"))
    noise = random.normal(images.shape[1:]).to(images.device, torch.promote_types(images.dtype, torch.float32))
    norms = noise.flatten(1).double().norm(dim=1).to(noise.dtype)
    return (noise * (radius / norms).reshape(-1, *[1] * (images.ndim - 1))).to(images.dtype)


def squared_changes(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """`(batch,)`, ‖after − before‖² of `(batch, ...)`, in double precision; 0 where it is rounding and nothing else.

    >>> one = torch.ones(1, 3)
    >>> squared_changes(one, one + 1e-6).tolist(), squared_changes(one, one + 0.5).tolist()
    ([0.0], [0.75])
    """
    squares = (after - before).flatten(1).square().sum(1, dtype=torch.float64)
    norms = before.flatten(1).square().sum(1, dtype=torch.float64)
    precision = torch.finfo(before.dtype).eps
    return torch.where(squares > (ROUNDING * precision) ** 2 * norms, squares, 0.0)
