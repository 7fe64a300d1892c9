"""Hold-out streams: data under corruptions that are kept for choosing settings, and under no other."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial

from haptera.batch import Stream
from haptera.catalog import entries, find
from haptera.data import CorruptedImages, Data
from haptera.errors import HapteraError
from haptera.shifts import Shift
from haptera.streams import ContinualOrders, Corruptions, Directory, Repeated
from haptera.words import shorten


def holdout_shifts() -> tuple[type[Shift], ...]:
    """Every shift of the catalog that is kept for choosing settings."""
    return tuple(shift for shift in (find("shifts", name) for name in entries("shifts")) if shift.holdout)


def check_holdout(shifts: Sequence[type[Shift]]) -> list[str]:
    """The names of shifts, all of them hold-out ones."""
    valid = ", ".join(shift.name for shift in holdout_shifts())
    names = []
    for shift in shifts:
        one = shift(1.0)
        if not one.holdout:
            raise HapteraError(
                f"{one.name} is a test corruption; settings are chosen on hold-out ones only, so that the test stays "
                f"a test: {valid}"
            )
        names.append(one.name)
    if not names:
        raise HapteraError(f"no hold-out corruption to choose on; there are: {valid}")
    return names


def check_labels(data: Data | CorruptedImages) -> None:
    """Refuse data without labels: the error decides."""
    first = data.parts[0].data if isinstance(data, CorruptedImages) else data
    if not isinstance(first, Data):
        raise HapteraError(f"tuning takes a data set, found {type(first).__name__}")
    if first.targets is None:
        raise HapteraError(f"{data.name} has no labels; the mean error decides, which needs them")


def only_holdout(data: CorruptedImages, names: Sequence[str], severities: Sequence[float]) -> CorruptedImages:
    """The parts of a corrupted data set that settings may be chosen on."""
    parts = [part for part in data.parts if part.shift in names and part.severity in severities]
    if not parts:
        there = shorten(list(dict.fromkeys(f"{part.shift} {part.severity:g}" for part in data.parts)))
        wanted = ", ".join(names)
        raise HapteraError(f"no hold-out data: {data.name} has none of {wanted} at these severities; it has {there}")
    return CorruptedImages(data.name, parts)


def each_alone(
    data: Data | CorruptedImages, shifts: Sequence[type[Shift]], severities: Sequence[float], batch_size: int, name: str
) -> Stream:
    """Every corruption at every severity with a fresh adapter; those on disk as they are."""
    if isinstance(data, CorruptedImages):
        return Directory(data, batch_size=batch_size, name=name)
    return Corruptions(data, tuple(shifts), tuple(severities), batch_size=batch_size, name=name)


def in_every_order(
    data: Data | CorruptedImages, shifts: Sequence[type[Shift]], severity: float, batch_size: int, steps: int
) -> "EveryOrder":
    """One corruption after the other in every order, each order repeated until so many steps are over."""
    if isinstance(data, CorruptedImages):
        raise HapteraError(f"{data.name} is corrupted already; streams in every order need clean data")
    orders = factorial(len(shifts))
    once = len(shifts) * -(-len(data) // batch_size)
    times = -(-steps // once)
    name = f"holdout in every order, {times:,} times"
    return EveryOrder(data, tuple(shifts), severity, orders, batch_size=batch_size, name=name, times=times)


@dataclass(frozen=True, kw_only=True)
class EveryOrder(ContinualOrders):
    """Several orders, each of them repeated with no reset; each is a part with a fresh adapter."""

    times: int = 1

    def parts(self) -> list[Stream]:
        """One stream per order."""
        return [Repeated(part, self.times, name=self.name) for part in super().parts()]
