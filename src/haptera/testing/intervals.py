"""The law of intervals: what is called 95 % holds the truth in 93 to 97 % of simulated cases, also for few units.

A case draws data from a world whose truth is known, again and again, and counts how often the interval holds it. Ends
that are NaN are not intervals, so they do not count: a method that cannot cover may return none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from haptera.testing.law import demand

LEAST, MOST = 0.93, 0.97
REPETITIONS = 1000
ERRORS = 3.0
"""How many standard errors of the simulation a share may be outside."""


@dataclass(frozen=True)
class Coverage:
    """How often intervals held the truth.

    Attributes:
        share: of the intervals.
        repetitions: how many times data was drawn and gave an interval.
        missing: how many times it gave none.
    """

    share: float
    repetitions: int
    missing: int

    def within(self, least: float = LEAST, most: float = MOST, errors: float = ERRORS) -> bool:
        """Return whether the share is from `least` to `most`, give or take the error of the simulation."""
        room = [errors * sqrt(end * (1 - end) / max(self.repetitions, 1)) for end in (least, most)]
        return self.repetitions > 0 and least - room[0] <= self.share <= most + room[1]


def coverage(
    interval: Callable[..., tuple[Any, Any]],
    draw: Callable[[np.random.Generator], tuple[Any, ...]],
    truth: Any,
    *,
    repetitions: int = REPETITIONS,
    seed: int = 0,
) -> Coverage:
    """Return how often an interval holds the truth.

    Args:
        interval: makes both ends, numbers or arrays, of what was drawn; NaN where it makes none.
        draw: makes the arguments of `interval`.
        truth: what should lie between the ends; or a function of what was drawn, where it is not always the same.
        repetitions: how many times data is drawn.
        seed: of the data.
    """
    generator = np.random.default_rng(seed)
    shares, missing = [], 0
    for _ in range(repetitions):
        drawn = draw(generator)
        low, high = (np.asarray(end, float) for end in interval(*drawn))
        known = ~(np.isnan(low) | np.isnan(high))
        if not known.any():
            missing += 1
            continue
        true = np.asarray(truth(*drawn) if callable(truth) else truth, float)
        shares.append(float(((low <= true) & (true <= high))[known].mean()))
    return Coverage(float(np.mean(shares)) if shares else np.nan, len(shares), missing)


def check_interval(
    interval: Callable[..., tuple[Any, Any]],
    draw: Callable[[np.random.Generator], tuple[Any, ...]],
    truth: Any,
    *,
    repetitions: int = REPETITIONS,
    seed: int = 0,
    least: float = LEAST,
    most: float = MOST,
) -> Coverage:
    """Raise `Broken` unless an interval covers 93 to 97 %, give or take three standard errors of the simulation.

    Args:
        interval: as in `coverage`.
        draw: likewise.
        truth: likewise.
        repetitions: how many times data is drawn.
        seed: of the data.
        least: the least share; another one for an interval that is not called 95 %.
        most: 1 for an interval that is said to cover at least so much.

    >>> from haptera.statistics.intervals import wilson
    >>> check_interval(wilson, lambda random: (random.binomial(50, 0.3), 50), 0.3).missing
    0
    """
    found = coverage(interval, draw, truth, repetitions=repetitions, seed=seed)
    demand(
        found.within(least, most),
        f"what is called 95 % covers {found.share:.1%} of {found.repetitions} cases, not {least:.0%} to {most:.0%}",
    )
    return found
