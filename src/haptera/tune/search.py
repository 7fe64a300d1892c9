"""What is tried: every combination of a grid, or random draws from it and from ranges."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, isfinite, log
from typing import Any

import numpy as np

from haptera.checks import check_whole_number, is_number
from haptera.errors import HapteraError
from haptera.run.around import AROUND_ADAPTERS
from haptera.run.parts import Spec
from haptera.shifts import Shift

Point = dict[str, Any]
TRIES = 100


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high` to draw from: whole ones if both ends are, others to three digits.

    If both ends are above 0 they are drawn evenly on a logarithmic scale, otherwise evenly.

    >>> Range.parse("1e-5..1e-1")
    Range(low=1e-05, high=0.1)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (is_number(self.low) and is_number(self.high) and -np.inf < self.low < self.high < np.inf):
            raise HapteraError(f"a range from {self.low!r} to {self.high!r}; two numbers, the smaller first, expected")

    @classmethod
    def parse(cls, text: str) -> "Range":
        """Read `1e-5..1e-1`."""
        low, _, high = text.partition("..")
        try:
            return cls(*(int(end) if end.strip().lstrip("+-").isdecimal() else float(end) for end in (low, high)))
        except ValueError as error:
            if isinstance(error, HapteraError):
                raise
            raise HapteraError(f"{text!r} is not a range; two numbers, such as 1e-5..1e-1, were expected") from error

    def draw(self, random: np.random.Generator) -> float:
        """One number."""
        share = float(random.random())
        whole = isinstance(self.low, int) and isinstance(self.high, int)
        low, high = (self.low - 0.5, self.high + 0.5) if whole else (self.low, self.high)
        value = exp(log(low) + share * log(high / low)) if low > 0 else low + share * (high - low)
        value = round(value) if whole else float(f"{value:.3g}")
        return min(max(value, self.low), self.high)


@dataclass(frozen=True)
class Search:
    """What to try, and on what.

    Args:
        grid: setting -> values, simpler ones first: of equally good settings the earlier is chosen. `reset` (every so
            many steps) and `epochs` (offline) are settings of any adapter.
        random: how many points to draw, instead of trying every combination.
        ranges: setting -> the smallest and the largest number to draw; the values of a grid are then drawn too.
        search_seed: of the random points.
        recipe: a name in `RECIPES`.
        shifts: hold-out corruptions; all four by default. A test corruption is refused.
        severities: 1 to 5 by default; one, 5 by default, for the recipe `reset`.
        seeds: of the streams.
        batch_size: 64 by default; several for the recipe `lr`.
        steps: how long the stream of each order is at least, for the recipe `reset`; six times the longest interval.
        keep: what is kept of the outputs of each cell, as a study takes it.
    """

    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    random: int | None = None
    ranges: Mapping[str, Range | tuple[float, float]] = field(default_factory=dict)
    search_seed: int = 0
    recipe: str | None = None
    shifts: Sequence[type[Shift]] | None = None
    severities: Sequence[float] | None = None
    seeds: Sequence[int] = (0,)
    batch_size: int | Sequence[int] | None = None
    steps: int | None = None
    keep: str = "top5"

    @property
    def limits(self) -> dict[str, Range]:
        """The ranges by their settings."""
        return {key: each if isinstance(each, Range) else Range(*each) for key, each in self.ranges.items()}


def read_grid(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Flags such as `lr=1e-4,1e-3`, as a grid."""
    grid: dict[str, list[Any]] = {}
    for text in texts:
        if "=" not in text or not text.partition("=")[0].strip():
            raise HapteraError(f"--grid {text!r}: a setting and its values, such as lr=1e-4,1e-3, were expected")
        for key, found in Spec.parse(f"grid:{text}").arguments.items():
            values = found if isinstance(found, list) else [found]
            if any(value == "" for value in values):
                raise HapteraError(f"--grid {text!r}: a value of {key} is empty")
            if wrong := [value for value in values if isinstance(value, str) and ".." in value]:
                raise HapteraError(f"--grid {text!r}: {wrong[0]} is a range; use --range and --random")
            if key in grid:
                raise HapteraError(f"--grid gives {key!r} twice")
            grid[key] = values
    return grid


def read_ranges(texts: Sequence[str]) -> dict[str, Range]:
    """Flags such as `lr=1e-5..1e-1`, as ranges."""
    ranges: dict[str, Range] = {}
    for text in texts:
        key, equals, rest = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise HapteraError(f"--range {text!r}: a setting and its range, such as lr=1e-5..1e-1, were expected")
        if key in ranges:
            raise HapteraError(f"--range gives {key!r} twice")
        ranges[key] = Range.parse(rest)
    return ranges


def combinations(grid: Mapping[str, Sequence[Any]]) -> list[Point]:
    """Every combination, the last setting changing first.

    >>> combinations({"a": [1, 2], "b": [3, 4]})[:2]
    [{'a': 1, 'b': 3}, {'a': 1, 'b': 4}]
    """
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def draws(count: int, grid: Mapping[str, Sequence[Any]], ranges: Mapping[str, Range], seed: int) -> list[Point]:
    """Different random points, the first ones the same whatever the count; fewer where there are no more."""
    random = np.random.default_rng(seed)
    found: list[Point] = []
    for _ in range(TRIES * count):
        point = {key: values[int(random.integers(len(values)))] for key, values in grid.items()}
        point |= {key: limits.draw(random) for key, limits in ranges.items()}
        if point not in found:
            found.append(point)
        if len(found) == count:
            break
    return found


def points(
    grid: Mapping[str, Sequence[Any]], ranges: Mapping[str, Range], random: int | None, seed: int
) -> list[Point]:
    """All points of a search, at least two."""
    for key, values in grid.items():
        if not isinstance(values, list | tuple):
            raise HapteraError(f"the grid has {values!r} for {key}; a list of values was expected")
        if not values or any(value in values[:place] for place, value in enumerate(values)):
            raise HapteraError(f"the grid has {values!r} for {key}; different values, at least one, were expected")
    if both := [key for key in ranges if key in grid]:
        raise HapteraError(f"{both[0]} has values and a range; give one of them")
    if not grid and not ranges:
        raise HapteraError("nothing to choose from: give --grid, --range with --random, or --recipe")
    if ranges and random is None:
        raise HapteraError("a range is for random search: say how many points with --random")
    if random is not None:
        check_whole_number("random", random, 2, what="a number of points")
    found = combinations(grid) if random is None else draws(random, grid, ranges, seed)
    if len(found) < 2:
        raise HapteraError(f"the grid has one point, {words(found[0])}: there is nothing to choose; give more values")
    return found


def words(point: Mapping[str, Any]) -> str:
    """Return a point in words, such as `lr=0.001, momentum=0.9`."""
    return ", ".join(f"{key}={value}" for key, value in point.items())


def at_edges(tried: Sequence[Point], best: Point) -> list[str]:
    """A sentence for each number of the best point beyond which nothing was tried, though there is something."""
    sentences = []
    for key, value in best.items():
        values = {point[key] for point in tried if is_number(point[key])}
        if not is_number(value) or len(values) < 2:
            continue
        lowest = 1 if isinstance(value, int) and key in (*AROUND_ADAPTERS, "every") else 0
        if value == max(values) and isfinite(value):
            sentences.append(f"{key}={value} is the largest value tried: try larger ones")
        elif value == min(values) and value > lowest:
            sentences.append(f"{key}={value} is the smallest value tried: try smaller ones")
    return sentences
