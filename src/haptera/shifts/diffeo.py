"""Diffeo: smooth random deformations of maximum entropy, each image with a field of its own.

Source: "Relative stability toward diffeomorphisms indicates performance in deep nets", section 2. The severity is δ,
the root mean square displacement of the centre in pixels; the temperature T follows from the exact sum over modes.
Modes are those of equation (2), τ_u = Σ C_ij sin(iπu) sin(jπv) with Var C_ij = T / (i² + j²), over i² + j² ≤ c².
Differs: the published code draws one field per call, takes T, and keeps the modes √(i² + j²) < c + ½ (rule `reference`,
where `printed` is the text's). Printed formulas, (π³/8)c²T for the norm and (π/4)n²T ln c for the displacement, hold
for large c only (at c = 3 what they call δ = 1 is 1.08); here sums over modes are finite. Fields may fold, which
nothing in the definition forbids: `resample` draws those again, which leaves the smaller fields, and so a smaller δ
than was asked for.
Cost: that of the fields, see `sine_fields`; `resample` looks for folds on at least 64 x 64 places of each field.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, pi
from zlib import crc32

import numpy as np
import torch

from haptera.checks import check_number
from haptera.errors import HapteraError, check_keys
from haptera.shifts.base import SampleRandom, Shift, check_severity
from haptera.shifts.sine_fields import INTERPOLATIONS, SineFields

log = logging.getLogger("haptera")

RULES = ("printed", "reference")
TRIES = 100
SAFE = 0.2
"""The mean of ‖∇τ‖² up to which about nine fields in ten do not fold, at any cutoff; above it, some are looked at."""
LOOKED_AT = 64
ESTIMATED, LOT, LOTS = 1000, 2000, 10
"""Fields from which δ is estimated, to about 2 %, where those that fold are drawn again; drawn in lots, at most ten."""


@dataclass(frozen=True, init=False)
class Diffeo(Shift):
    """Moves pixels by a smooth random field that is zero on the frame.

    Args:
        delta: the severity: by how many pixels the centre moves, root mean square; 1 by default, and it may be above 5.
        cutoff: c; modes with i² + j² ≤ c² are kept. At most the shorter side − 2.
        severity: another name of `delta`, which every shift has.
        temperature: T instead of δ; the severity is then 1 and scales the field, so T grows with its square.
        rule: of the cutoff: `printed`, or `reference` for √(i² + j²) < c + ½ as in the published code.
        interpolation: `bilinear`, or `gaussian`, which blurs a little where nothing moves.
        resample: draw a field again until it does not fold; an error if 100 draws do.
        table: not used; every shift has it.

    >>> images = torch.rand(4, 1, 32, 32)
    >>> deform = Diffeo(delta=1, cutoff=3)
    >>> deform(images, ids=[0, 1, 2, 3], seed=0).shape
    torch.Size([4, 1, 32, 32])
    >>> fields = deform.fields([0, 1, 2, 3], seed=0, height=32, width=32)
    >>> torch.equal(fields.move(images), deform(images))
    True
    """

    cutoff: float
    temperature: float | None
    rule: str
    interpolation: str
    resample: bool

    name = "diffeo"
    family = "deformation"
    by_default = False  # no corruption of ImageNet-C, whose benchmarks are means over these
    most = float("inf")

    def __init__(
        self,
        delta: float | None = None,
        cutoff: float = 3,
        *,
        severity: float | None = None,
        temperature: float | None = None,
        rule: str = "printed",
        interpolation: str = "bilinear",
        resample: bool = False,
        table: str = "imagenet",
    ) -> None:
        if delta is not None and (severity is not None or temperature is not None):
            other = "severity" if severity is not None else "temperature"
            raise HapteraError(f"diffeo got delta and {other}, which say the same; give one of them")
        if temperature is not None:
            temperature = check_severity(temperature, "diffeo, its temperature,", float("inf"))
        check_keys("interpolation of diffeo", [interpolation], INTERPOLATIONS)
        given = delta if delta is not None else severity if severity is not None else 1.0
        values = {"severity": given, "table": table, "cutoff": cutoff, "temperature": temperature, "rule": rule}
        for key, value in (values | {"interpolation": interpolation, "resample": resample}).items():
            object.__setattr__(self, key, value)
        modes(cutoff, rule)  # says what is wrong with a cutoff or rule
        self.__post_init__()

    def heat(self, height: int, width: int) -> float:
        """T for pictures of a size."""
        if self.temperature is not None:
            return self.temperature * self.severity**2
        if height == width == 1:
            raise HapteraError("diffeo got pictures of 1 x 1 pixels, in which nothing can move; it needs larger ones")
        return mode_temperature(self.severity, height, width, self.cutoff, self.rule)

    def delta(self, height: int, width: int) -> float:
        """δ in pixels, of the fields that pictures of a size are moved by.

        The severity itself, unless T was given, or fields that fold are drawn again: the others are smaller.
        """
        return _smaller(self, height, width) if self.resample else self._asked(height, width)

    def _asked(self, height: int, width: int) -> float:
        """δ of all fields, those that fold among them."""
        return displacement(self.heat(height, width), height, width, self.cutoff, self.rule)

    def fields(self, ids: torch.Tensor | Sequence[int], seed: int, height: int, width: int) -> SineFields:
        """The fields that move the images of these ids, to move their masks and keypoints as well."""
        numbers = torch.as_tensor(ids, dtype=torch.int64).cpu()
        return self._drawn(self.random(numbers, seed), height, width)

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """Every image moved by its field."""
        height, width = images.shape[-2:]
        if self.heat(height, width) == 0:
            return images.clone()
        moved = self._drawn(random, height, width).move(images, self.interpolation)
        if not self.resample:
            _warn(self, height, width)
        return moved

    def _drawn(self, random: SampleRandom, height: int, width: int) -> SineFields:
        if self.cutoff > min(height, width) - 2:
            raise HapteraError(
                f"cutoff of diffeo is {self.cutoff:g}, on {height} x {width} pixels; it must be at most the shorter "
                f"side − 2, here {min(height, width) - 2}, since finer waves vanish on the pixels"
            )
        fields = self._fields(random, height, width)
        if not self.resample:
            return fields
        ids, folded = torch.as_tensor(random.ids), fields.folded()
        for attempt in range(1, TRIES):
            if not folded.any():
                break
            again = SampleRandom(ids[folded], random.seed, salt=crc32(f"{self.name} {attempt}".encode()))
            drawn = self._fields(again, height, width)
            fields.coefficients[folded] = drawn.coefficients
            folded[folded.clone()] = drawn.folded()
        if folded.any():
            raise HapteraError(
                f"{int(folded.sum())} of {len(folded)} fields fold in each of {TRIES} draws at delta "
                f"{self._asked(height, width):g} and cutoff {self.cutoff:g} on {height} x {width} pixels; take a "
                "smaller delta"
            )
        return fields

    def _fields(self, random: SampleRandom, height: int, width: int) -> SineFields:
        kept = modes(self.cutoff, self.rule)
        i, j = torch.from_numpy(kept - 1).T
        spread = torch.from_numpy((self.heat(height, width) / (kept**2).sum(1)) ** 0.5).float()
        waves = int(kept.max())
        coefficients = torch.zeros(len(random), 2, waves, waves)
        coefficients[:, :, j, i] = random.normal((2, len(kept))) * spread
        return SineFields(coefficients, height, width)


@lru_cache(maxsize=64)
def _smaller(shift: Diffeo, height: int, width: int) -> float:
    """δ of fields that do not fold; NaN where all do."""
    kept = torch.empty(0)
    for lot in range(LOTS):
        fields = shift._fields(shift.random(range(lot * LOT, (lot + 1) * LOT), 0), height, width)
        kept = torch.cat([kept, fields.centres[~fields.folded()].square().sum(1)])
        if len(kept) >= ESTIMATED:
            break
    return float(kept.mean().sqrt())


@lru_cache(maxsize=64)
def _warn(shift: Diffeo, height: int, width: int) -> None:
    """Say, once for each setting and size, where most fields fold."""
    if gradient_norm(shift.heat(height, width), shift.cutoff, shift.rule) <= SAFE:
        return
    folded = int(shift._fields(shift.random(range(LOOKED_AT), 0), height, width).folded().sum())
    if folded > LOOKED_AT / 2:
        log.warning(
            "%d of %d fields of diffeo fold at delta %.3g and cutoff %g on %d x %d pixels; its fields tell which",
            folded, LOOKED_AT, shift._asked(height, width), shift.cutoff, height, width,
        )  # fmt: skip


@lru_cache(maxsize=64)
def modes(cutoff: float, rule: str = "printed") -> np.ndarray:
    """Return `(modes, 2)`, the pairs (i, j) that a cutoff keeps: i counts half waves across, j down.

    >>> modes(3).tolist()
    [[1, 1], [1, 2], [2, 1], [2, 2]]
    >>> [len(modes(c, "reference")) for c in (3, 5, 15, 30)]
    [6, 19, 172, 703]
    """
    check_keys("rule of the cutoff", [rule], RULES)
    check_number("cutoff", cutoff, above=0, below=inf)
    number = np.arange(1, int(cutoff) + 2)
    i, j = (grid.ravel() for grid in np.meshgrid(number, number, indexing="ij"))
    kept = i**2 + j**2 <= cutoff**2 if rule == "printed" else i**2 + j**2 < (cutoff + 0.5) ** 2
    if not kept.any():
        least = 2**0.5 if rule == "printed" else 2**0.5 - 0.5
        raise HapteraError(f"cutoff {cutoff:g} keeps no mode; it must be above {least:.4g} (the mode i = j = 1)")
    return np.stack([i[kept], j[kept]], axis=1)


@lru_cache(maxsize=64)
def centre_sum(cutoff: float, rule: str = "printed") -> float:
    """Σ 1 / (i² + j²) over odd i and j: the variance of τ_u, and of τ_v, at the centre is T times this.

    >>> round(2 * centre_sum(5), 4)
    1.5111
    """
    odd = modes(cutoff, rule)
    odd = odd[(odd % 2 == 1).all(1)]
    return float((1 / (odd**2).sum(1)).sum())


def displacement(temperature: float, height: int, width: int, cutoff: float, rule: str = "printed") -> float:
    """δ: the root mean square displacement of the centre of a picture, in pixels; (3) without its limit."""
    return float((temperature * centre_sum(cutoff, rule) * ((height - 1) ** 2 + (width - 1) ** 2)) ** 0.5)


def mode_temperature(delta: float, height: int, width: int, cutoff: float, rule: str = "printed") -> float:
    """T for a displacement of `delta` pixels; the inverse of `displacement`."""
    return delta**2 / (centre_sum(cutoff, rule) * ((height - 1) ** 2 + (width - 1) ** 2))


def gradient_norm(temperature: float, cutoff: float, rule: str = "printed") -> float:
    """The mean of ‖∇τ‖², equation (1): (π²/2) T for each mode."""
    return pi**2 / 2 * temperature * len(modes(cutoff, rule))
