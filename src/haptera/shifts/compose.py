"""Compose: shifts one after another, as one shift.

Each part draws what it would draw alone with the same ids and seed, so `Compose([a, b])(x)` is `b(a(x))`. A part whose
class comes again gets a seed of its own, hashed from the seed and from how often it came before: two equal noises are
independent. Cost: that of the parts.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Self

import torch

from haptera.errors import HapteraError
from haptera.shifts.base import SampleRandom, Shift, check_severity


@dataclass(frozen=True)
class Compose(Shift):
    """Shifts one after another, each at its own severity and with its own table.

    Its name is that of its parts, `fog+jpeg_compression`, and its severity the largest of theirs, so it is 0 where all
    of them are. The table of results knows no more about it: give streams of composites that differ in anything else
    different names. `at` scales: `Compose([Fog(4), JpegCompression(2)]).at(2)` has fog at 2 and JPEG at 1.

    Args:
        shifts: shifts, the first applied first; those of a `Compose` among them are taken one by one.

    >>> from haptera.shifts import Fog, JpegCompression
    >>> murky = Compose([Fog(2), JpegCompression(3)])
    >>> murky.name, murky.severity
    ('fog+jpeg_compression', 3.0)
    """

    severity: float = field(init=False, repr=False, compare=False)
    table: str = field(init=False, repr=False, compare=False)
    shifts: Sequence[Shift]

    def __post_init__(self) -> None:
        if not isinstance(self.shifts, list | tuple) or not self.shifts:
            raise HapteraError(
                f"Compose takes a list of shifts, such as [Fog(2), JpegCompression(3)]; found {self.shifts!r}"
            )
        parts: list[Shift] = []
        for place, shift in enumerate(self.shifts, 1):
            if not isinstance(shift, Shift):
                found = f"the class {shift.__name__}" if isinstance(shift, type) else repr(shift)
                raise HapteraError(f"shift {place} of Compose is {found}; a shift such as Fog(2) was expected")
            parts += shift.shifts if isinstance(shift, Compose) else (shift,)
        object.__setattr__(self, "shifts", tuple(parts))
        object.__setattr__(self, "severity", max(part.severity for part in parts))
        object.__setattr__(self, "table", "+".join(dict.fromkeys(part.table for part in parts)))

    @property
    def name(self) -> str:  # type: ignore[override]
        """The names of the parts, with a plus between them."""
        return "+".join(part.name for part in self.shifts)

    def at(self, severity: float, *, table: str | None = None) -> Self:
        """The same parts with the largest at this severity and the others in proportion; all at it, if all are at 0."""
        severity = check_severity(severity, self.name, max(part.most for part in self.shifts))
        shares = [part.severity / self.severity if self.severity else 1.0 for part in self.shifts]
        return type(self)(
            [part.at(severity * share, table=table) for part, share in zip(self.shifts, shares, strict=True)]
        )

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """One part after the other, each with the randomness that it has alone, not with this one."""
        before: Counter[str] = Counter()
        for part in self.shifts:
            images = part(images, random.ids, _seed(random.seed, before[part.name]))
            before[part.name] += 1
        return images


def _seed(seed: int, before: int) -> int:
    """The seed itself at first, then hashes of it; `seed + 1` would be what the next seed of a study draws."""
    if not before:
        return seed
    return int.from_bytes(blake2b(f"{seed} {before}".encode(), digest_size=8).digest(), "little")
