"""Closeness: whether the events that matter keep their probabilities when the data shifts.

Source: "Why do classifier accuracies show linear trends under distribution shift?", definition 1 and section 4: P and
Q are close if Q(A) lies within a wedge around P(A) for the six events A of every triplet of models. The source's
probabilities are estimates, and it says so; here the events that are outside by more than their sampling error are
counted too; so are those with P(A) of .03 and more, for which appendix A finds a narrower wedge.
Cost: some ten operations for each event; memory for one byte per triplet.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

import numpy as np
import pandas as pd

from haptera.analyses.trends.triplets import EVENTS, Counts
from haptera.analyses.trends.wedge import ROUNDING, Curves, Wedge
from haptera.errors import HapteraError
from haptera.statistics.intervals import Z95

Bounds = TypeVar("Bounds", Wedge, Curves)
LARGE = Fraction(3, 100)
"""P(A) from which appendix A of the source calls an event large: only smaller ones need a wide wedge there."""


@dataclass(frozen=True, eq=False)
class Closeness(Generic[Bounds]):
    """How many events lie outside.

    Attributes:
        wedge: the bounds.
        events: how many there are.
        above: how many have too large a Q(A).
        below: how many have too small a Q(A).
        by_triplet: `(triplets,)`, how many of its six are outside.
        clear_by_triplet: `(triplets,)`, how many by more than 1.96 standard errors of Q(A) minus its bound.
        large: how many events have a P(A) of .03 at least.
        large_outside: how many of these are outside.
    """

    wedge: Bounds
    events: int
    above: int
    below: int
    by_triplet: np.ndarray
    clear_by_triplet: np.ndarray
    large: int
    large_outside: int

    @property
    def outside(self) -> int:
        """How many are above or below."""
        return self.above + self.below

    @property
    def clear(self) -> int:
        """How many are outside by more than chance explains."""
        return int(self.clear_by_triplet.sum())

    @property
    def share_inside(self) -> float:
        """The share of events that are neither."""
        return 1 - self.outside / self.events

    @property
    def large_inside(self) -> float:
        """The share of large events that are neither; NaN where there are none."""
        return 1 - self.large_outside / self.large if self.large else float("nan")

    def __str__(self) -> str:
        if not self.outside:
            return f"{self.wedge} holds all {self.events:,} events"
        inside = f"{self.wedge} holds {100 * self.share_inside:.2f} % of {self.events:,} events"
        return f"{inside}, {self.outside:,} are outside, {self.clear:,} by more than chance"


def closeness(reference: Counts, shifted: Counts, bounds: Bounds) -> Closeness[Bounds]:
    """Test every event of every triplet.

    Args:
        reference: counts under P.
        shifted: counts under Q, of the same models in the same order.
        bounds: where Q(A) may lie.
    """
    n, m = reference.examples, shifted.examples
    least, most = bounds.limits(n, m)
    above = below = large = large_outside = 0
    every, clear = [], []
    for a, b in zip_counts(reference, shifted):
        over, under = b > most[a], b < least[a]
        above, below = above + int(over.sum()), below + int(under.sum())
        outside = over | under
        often = is_large(a, n)
        large, large_outside = large + int(often.sum()), large_outside + int((often & outside).sum())
        p, q = a[outside] / n, b[outside] / m
        bound, step = (np.where(over[outside], bounds.upper(at), bounds.lower(at)) for at in (p, p + 1 / n))
        slope = n * (step - bound)  # of the bound, through which the error of P comes in
        error = np.sqrt(q * (1 - q) / m + slope**2 * p * (1 - p) / n)
        every.append(outside.sum(0, dtype=np.uint8))
        outside[outside] = np.abs(q - bound) > Z95 * error
        clear.append(outside.sum(0, dtype=np.uint8))
    by_triplet, clearly = np.concatenate(every), np.concatenate(clear)
    return Closeness(bounds, reference.events, above, below, by_triplet, clearly, large, large_outside)


def is_large(counts: np.ndarray, n: int) -> np.ndarray:
    """Say which counts of n are a share of .03 at least, decided in whole numbers."""
    return counts * LARGE.denominator >= n * LARGE.numerator


def events(reference: Counts, shifted: Counts, models: Sequence[str] | None = None) -> pd.DataFrame:
    """Every event as a row: its three models, which of them are right (`12`: the first two), and P and Q of it."""
    names = np.array(models if models is not None else [str(i) for i in range(reference.models)], dtype=object)
    parts = [
        pd.DataFrame(
            dict(zip(("first", "second", "third"), names[np.tile(places, len(EVENTS))], strict=True))
            | {"right": np.repeat(EVENTS, places.shape[1])}
            | {"p": a.ravel() / reference.examples, "q": b.ravel() / shifted.examples}
        )
        for (places, a), (_, b) in zip(reference.blocks(), shifted.blocks(), strict=True)
    ]
    return pd.concat(parts, ignore_index=True)


def density(reference: Counts, shifted: Counts, bins: int = 150) -> pd.DataFrame:
    """Events in a grid of P(A) by Q(A): the middle `p` and `q` of every cell that is not empty, and its `events`."""
    n, m = reference.examples, shifted.examples
    largest = max(max(a.max() / n, b.max() / m) for a, b in zip_counts(reference, shifted))
    width = max(largest, 1 / n) / bins * (1 + ROUNDING)
    grid = np.zeros(bins * bins, np.int64)
    for a, b in zip_counts(reference, shifted):
        cell = (a / n // width).astype(int) * bins + (b / m // width).astype(int)
        grid += np.bincount(cell.ravel(), minlength=bins * bins)
    filled = np.flatnonzero(grid)
    p, q = (filled // bins + 0.5) * width, (filled % bins + 0.5) * width
    return pd.DataFrame({"p": p, "q": q, "events": grid[filled]})


def zip_counts(reference: Counts, shifted: Counts) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The counts `(6, triplets)` of the same events on both sides, block by block."""
    if reference.models != shifted.models:
        raise HapteraError(f"P has {reference.models} models, Q has {shifted.models}; the same ones were expected")
    return ((a, b) for (_, a), (_, b) in zip(reference.blocks(), shifted.blocks(), strict=True))
