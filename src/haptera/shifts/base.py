"""Shift: a frozen dataclass, callable on a batch of images in [0, 1].

The base owns `__call__`: it checks, keeps severity 0 the identity, deals out randomness by sample and clamps;
a shift writes only `apply`.

Each sample has random numbers of its own (`shifts.sample_random`). Images are floats in [0, 1] or bytes; a shift that
has arithmetic of its own for bytes writes `apply_bytes` as well, which agrees with `apply` within one grey level.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import ClassVar, Self, final, overload
from zlib import crc32

import numpy as np
import torch

from haptera.checks import check_number
from haptera.errors import HapteraError, check_keys
from haptera.extras import compiles
from haptera.families import FAMILY, HELD_OUT
from haptera.shifts.pixels import Pixels, read_bytes
from haptera.shifts.sample_random import SampleRandom

MAX_SEVERITY = 5.0
SIDES = {"imagenet": 224, "cifar": 32}

Knots = tuple[tuple[float, ...], ...]
"""The constants of a shift at severities 0, 1, ..., 5."""


@dataclass(frozen=True)
class Shift(ABC):
    """One way in which images change, at one severity.

    Args:
        severity: from 0, the identity, to 5; any number between.
        table: which published constants, by name; `imagenet` or `cifar` for the corruptions.

    Attributes:
        name: as the table of results calls it.
        family: `noise`, `blur`, `weather` or `digital`, as `haptera.families` says; your own shift may name another.
        holdout: kept for choosing settings, not for testing.
        by_default: whether a stream that names no shifts takes it.
        most: the largest severity.
        tables: name -> the constants at severities 0 to 5.
    """

    severity: float
    table: str = field(default="imagenet", kw_only=True)

    name: ClassVar[str]
    family: ClassVar[str] = ""
    holdout: ClassVar[bool] = False
    by_default: ClassVar[bool] = True
    most: ClassVar[float] = MAX_SEVERITY
    tables: ClassVar[Mapping[str, Knots]] = {}

    def __init_subclass__(cls) -> None:
        name = vars(cls).get("name")
        if name in FAMILY:
            cls.family, cls.holdout = FAMILY[name], name in HELD_OUT

    def __post_init__(self) -> None:
        if self.tables:
            check_keys(f"table of {self.name}", [self.table], self.tables)
        object.__setattr__(self, "severity", check_severity(self.severity, self.name, self.most))

    def at(self, severity: float, *, table: str | None = None) -> Self:
        """The same shift at another severity; `shift.at` stands where a stream takes a class of shifts.

        >>> from haptera.shifts import Contrast
        >>> Contrast(2, table="cifar").at(5)
        Contrast(severity=5.0, table='cifar')
        """
        return replace(self, severity=severity, table=self.table if table is None else table)

    def constants(self) -> tuple[float, ...]:
        """The constants at this severity: linear between the knots at severities 0, 1, ..., 5 of the table."""
        knots = self.tables[self.table]
        below = min(int(self.severity), len(knots) - 2)
        share = self.severity - below
        return tuple(one * (1 - share) + two * share for one, two in zip(knots[below], knots[below + 1], strict=True))

    def scale(self, images: torch.Tensor | Pixels) -> float:
        """Return the factor for lengths in pixels, which hold for the side at which a table was published."""
        return min(images.shape[-2:]) / SIDES[self.table]

    def random(self, ids: torch.Tensor | Sequence[int], seed: int) -> SampleRandom:
        """The randomness of samples, which another shift, of another name, does not share."""
        return SampleRandom(ids, seed, salt=crc32(self.name.encode()))

    @abstractmethod
    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """Map `(batch, channels, height, width)` to the same; the base clamps to [0, 1]."""

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels | None:
        """The same on bytes, to within one grey level of it; None, as here, for the way through floats.

        It is called where numba is installed, so that it can import `haptera.shifts.kernels`.
        """
        return None

    @overload
    def __call__(
        self, images: torch.Tensor, ids: torch.Tensor | Sequence[int] | None = None, seed: int = 0
    ) -> torch.Tensor: ...

    @overload
    def __call__(
        self, images: np.ndarray, ids: torch.Tensor | Sequence[int] | None = None, seed: int = 0
    ) -> np.ndarray: ...

    @final
    def __call__(
        self, images: torch.Tensor | np.ndarray, ids: torch.Tensor | Sequence[int] | None = None, seed: int = 0
    ) -> torch.Tensor | np.ndarray:
        """Shift a batch.

        Args:
            images: `(batch, channels, height, width)`, floating point in [0, 1]; or bytes, uint8 in a tensor or a NumPy
                array, with 1 or 3 channels first or last. What is given comes back: bytes in their layout.
            ids: `(batch,)`, one number per sample; the same number gives the same randomness. 0, 1, ... by default.
            seed: another seed, other randomness.
        """
        if are_bytes(images):
            return self._shift_bytes(images, ids, seed)
        check_images(images, self.name)
        assert isinstance(images, torch.Tensor)
        numbers = self._numbers(ids, len(images))
        if self.severity == 0 or not len(images):
            return images.clone()
        shifted = self.apply(images, self.random(numbers, seed))
        if shifted.shape != images.shape:
            raise HapteraError(f"{self.name} made {tuple(shifted.shape)} out of {tuple(images.shape)}")
        return shifted.to(images.dtype).clamp_(0, 1)

    def _shift_bytes(
        self, images: torch.Tensor | np.ndarray, ids: torch.Tensor | Sequence[int] | None, seed: int
    ) -> torch.Tensor | np.ndarray:
        """Shift by kernels where there are some, else through floats; on a GPU always through floats."""
        pixels, numbers = read_bytes(images, self.name), self._numbers(ids, len(images))
        device = images.device if isinstance(images, torch.Tensor) else torch.device("cpu")
        shifted = None
        if self.severity == 0 or not pixels.array.size:
            shifted = replace(pixels, array=pixels.array.copy())
        elif device.type == "cpu" and compiles():
            shifted = self.apply_bytes(pixels, self.random(numbers, seed).fast())
        if shifted is None:
            floats = self.apply(pixels.values().to(device), self.random(numbers, seed))
            shifted = pixels.rounded(floats.clamp_(0, 1).cpu())
        array = shifted.array
        return torch.from_numpy(array).to(device) if isinstance(images, torch.Tensor) else array

    def _numbers(self, ids: torch.Tensor | Sequence[int] | None, count: int) -> torch.Tensor:
        numbers = torch.arange(count) if ids is None else torch.as_tensor(ids, dtype=torch.int64).cpu()
        if numbers.shape != (count,):
            raise HapteraError(f"{self.name} got ids of shape {tuple(numbers.shape)} for {count} images")
        return numbers


MakeShift = Callable[[float], Shift]
"""What makes a shift of a severity: a class of shifts, or `at` of a shift."""


def check_severity(severity: float, name: str, most: float = MAX_SEVERITY) -> float:
    """Refuse anything but a number from 0 to the largest severity; where that is infinite, any finite one."""
    check_number(f"severity of {name}", severity, least=0, most=most, below=inf)
    return float(severity)


def are_bytes(images: object) -> bool:
    """Whether images are uint8, in a tensor or an array."""
    return getattr(images, "dtype", None) in (torch.uint8, np.dtype(np.uint8))


def check_images(images: object, name: str) -> None:
    """Refuse anything but a batch of floating point images in [0, 1]."""
    if isinstance(images, np.ndarray):
        raise HapteraError(
            f"{name} takes arrays of uint8, and tensors of uint8 or floats, found {images.dtype} in an array"
        )
    if not isinstance(images, torch.Tensor) or images.ndim != 4:
        found = tuple(images.shape) if isinstance(images, torch.Tensor) else type(images).__name__
        raise HapteraError(f"{name} takes a tensor (batch, channels, height, width), found {found}")
    if not images.is_floating_point():
        raise HapteraError(
            f"{name} takes floating point images in [0, 1] or uint8, found {images.dtype}; convert it to one of them"
        )
    if not images.numel():
        return
    low, high = (float(bound) for bound in torch.aminmax(images))
    if not (low >= 0 and high <= 1):  # also false for NaN
        values = "NaN" if low != low else f"values from {low:g} to {high:g}"
        raise HapteraError(f"{name} takes images in [0, 1], found {values}")


def knots(**tables: Sequence[float | tuple[float, ...]]) -> Mapping[str, Knots]:
    """Return the constants at severities 0, 1, ..., 5 by the name of their table; plain numbers become tuples of one.

    >>> knots(cifar=(0, 0.5, 1))
    {'cifar': ((0,), (0.5,), (1,))}
    """
    return {
        name: tuple(entry if isinstance(entry, tuple) else (entry,) for entry in entries)
        for name, entries in tables.items()
    }
