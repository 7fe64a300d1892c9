"""Shift: a frozen dataclass, callable on a batch of images in [0, 1].

The base owns `__call__`: it checks, keeps severity 0 the identity, deals out randomness by sample and clamps;
a shift writes only `apply`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final
from zlib import crc32

import torch

from holdfast.errors import HoldfastError
from holdfast.shifts.random import SampleRandom

MAX_SEVERITY = 5.0


@dataclass(frozen=True)
class Shift(ABC):
    """One way in which images change, at one severity."""

    severity: float

    name: ClassVar[str]

    def __post_init__(self) -> None:
        if isinstance(self.severity, bool) or not isinstance(self.severity, int | float):
            raise HoldfastError(f"severity of {self.name} is {self.severity!r}; a number from 0 to 5 was expected")
        if not 0 <= self.severity <= MAX_SEVERITY:
            raise HoldfastError(f"severity of {self.name} is {self.severity}; it must be from 0 to {MAX_SEVERITY:g}")
        object.__setattr__(self, "severity", float(self.severity))

    @abstractmethod
    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """`(batch, channels, height, width)` to the same; the base clamps to [0, 1]."""

    @final
    def __call__(
        self, images: torch.Tensor, ids: torch.Tensor | Sequence[int] | None = None, seed: int = 0
    ) -> torch.Tensor:
        """Shift a batch.

        Args:
            images: `(batch, channels, height, width)`, floating point in [0, 1].
            ids: `(batch,)`, one number per sample; the same number gives the same randomness. 0, 1, ... by default.
            seed: another seed, other randomness.
        """
        check_images(images, self.name)
        numbers = torch.arange(len(images)) if ids is None else torch.as_tensor(ids, dtype=torch.int64).cpu()
        if numbers.shape != (len(images),):
            raise HoldfastError(f"{self.name} got ids of shape {tuple(numbers.shape)} for {len(images)} images")
        if self.severity == 0 or not len(images):
            return images.clone()
        random = SampleRandom(numbers, seed, salt=crc32(self.name.encode()))
        shifted = self.apply(images, random)
        if shifted.shape != images.shape:
            raise HoldfastError(f"{self.name} made {tuple(shifted.shape)} out of {tuple(images.shape)}")
        return shifted.to(images.dtype).clamp_(0, 1)


def check_images(images: torch.Tensor, name: str) -> None:
    """Refuse anything but a batch of floating point images in [0, 1]."""
    if not isinstance(images, torch.Tensor) or images.ndim != 4:
        found = tuple(images.shape) if isinstance(images, torch.Tensor) else type(images).__name__
        raise HoldfastError(f"{name} takes a tensor (batch, channels, height, width), found {found}")
    if not images.is_floating_point():
        raise HoldfastError(f"{name} takes floating point images in [0, 1], found {images.dtype}; divide by 255?")
    if not images.numel():
        return
    low, high = (float(bound) for bound in torch.aminmax(images))
    if not (low >= 0 and high <= 1):  # also false for NaN
        values = "NaN" if low != low else f"values from {low:g} to {high:g}"
        raise HoldfastError(f"{name} takes images in [0, 1], found {values}")


def interpolate(severity: float, constants: Sequence[float]) -> float:
    """The constant at any severity: linear between the six knots at 0, 1, ..., 5.

    >>> interpolate(1.5, (0, 1, 2, 3, 4, 6))
    1.5
    """
    below = min(int(severity), len(constants) - 2)
    share = severity - below
    return constants[below] * (1 - share) + constants[below + 1] * share
