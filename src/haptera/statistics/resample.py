"""Resampling: what the accuracies could have been with other examples, or the line with other models.

Source: the bootstrap (Efron, 1979). Over examples it says how well these models are known, over models how well the
line is; both at once would count the noise of each model twice. All models are drawn with the same examples, so what
they have in common stays in common; where only accuracies and n are known, each gets binomial counts of its own,
which can only widen the interval of a difference. Intervals are bias-corrected percentiles (Efron, 1981), because
noise on the reference flattens a line, once in the data and once more in each draw; their ends are moved out for
small numbers of models as Student's t is (Hesterberg, 2015). His factor √(n / (n − 1)) is left out for fewer than eight
models: draws of so few models vary widely by themselves, and with it a slope's interval holds 97 to 98 % instead of 96.
Cost: draws x models x examples multiplications, in BLAS, and a random number for each draw and example.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from haptera.statistics.intervals import LEVEL

DRAWS = 1000
FEWEST = 5
"""Units; of four models the interval of a line covers 87 %."""
FEW = 8
"""Units from which draws are too narrow by √((n − 1) / n)."""
AT_ONCE = 2**22
Sample = np.ndarray | tuple[np.ndarray, Any]


@dataclass(frozen=True, eq=False)
class Draws:
    """What could have been found another time.

    Attributes:
        reference: `(draws, models)`, accuracies with other examples; `(models,)` where examples stay.
        shifted: likewise.
        weights: `(draws, models)`, how often each model was drawn; `(models,)` where models stay.
        units: how many models were drawn from; infinite where they stay.
    """

    reference: np.ndarray
    shifted: np.ndarray
    weights: np.ndarray
    units: float

    def first(self, draws: int) -> "Draws":
        """Return at most so many of them."""
        parts = (self.reference, self.shifted, self.weights)
        reference, shifted, weights = (part[:draws] if part.ndim > 1 else part for part in parts)
        return Draws(reference, shifted, weights, self.units)


def over_examples(
    reference: Sample, shifted: Sample, *, draws: int = DRAWS, seed: int = 0, paired: bool = False
) -> Draws:
    """Other examples, the same models.

    Args:
        reference: `(models, examples)`, whether each is right; or accuracies `(models,)` and n.
        shifted: likewise.
        draws: how many.
        seed: of the examples.
        paired: whether both have the same examples in the same order, which are then drawn together.
    """
    first, second = np.random.SeedSequence(seed).spawn(2)
    x, y = _draw(reference, draws, first), _draw(shifted, draws, first if paired else second)
    return Draws(x, y, np.ones(x.shape[-1]), float("inf"))


def over_models(
    reference: np.ndarray,
    shifted: np.ndarray,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    among: np.ndarray | None = None,
) -> Draws:
    """Other models from where these came from, the same examples.

    Args:
        reference: accuracies `(models,)`.
        shifted: likewise.
        draws: how many.
        seed: of the draws.
        among: `(models,)`, which of them are drawn; the others have no weight.
    """
    drawn = np.flatnonzero(np.ones(len(reference), bool) if among is None else among)
    weights = np.zeros((draws, len(reference)))
    weights[:, drawn] = np.random.default_rng(seed).multinomial(len(drawn), np.full(len(drawn), 1 / len(drawn)), draws)
    return Draws(np.asarray(reference), np.asarray(shifted), weights, len(drawn))


def _draw(sample: Sample, draws: int, seed: np.random.SeedSequence) -> np.ndarray:
    """Return `(draws, models)`; the same seed and number of examples draw the same examples."""
    generator = np.random.default_rng(seed)
    if isinstance(sample, tuple):
        accuracies, n = np.asarray(sample[0], float), np.broadcast_to(np.asarray(sample[1], np.int64), len(sample[0]))
        return generator.binomial(n, accuracies, (draws, len(n))) / n
    models, n = sample.shape
    right = np.ascontiguousarray(sample.T, dtype=np.float32)
    drawn = np.empty((draws, models))
    times = np.empty((max(AT_ONCE // n, 1), n), np.float32)  # how often each example comes, some draws at once
    for start in range(0, draws, len(times)):
        rows = times[: draws - start]
        for row in rows:
            row[:] = np.bincount(generator.integers(0, n, n), minlength=n)
        drawn[start : start + len(rows)] = rows @ right
    return drawn / n


def interval(
    value: np.ndarray, drawn: np.ndarray, units: float = float("inf"), level: float = LEVEL
) -> tuple[np.ndarray, np.ndarray]:
    """Low and high end of a bias-corrected percentile interval; draws that are NaN are left out.

    Both are NaN for fewer than five units, of which there are too few different draws.

    Args:
        value: `(...)`, what was found.
        drawn: `(draws, ...)`, what was found with other examples or models.
        units: how many were drawn from.
        level: the share of intervals that should hold the truth.
    """
    value = np.asarray(value, float)
    known = np.isfinite(drawn).sum(0)
    with np.errstate(invalid="ignore"):
        smaller = ((drawn < value).sum(0) + 0.5 * (drawn == value).sum(0)) / np.maximum(known, 1)
    bias = ndtri(np.clip(smaller, 0.5 / np.maximum(known, 1), 1 - 0.5 / np.maximum(known, 1)))
    reach = float(-ndtri((1 - level) / 2))
    if units < float("inf"):
        reach = float(stdtrit(units - 1, (1 + level) / 2)) * (sqrt(units / (units - 1)) if units >= FEW else 1)
        known = known if units >= FEWEST else np.zeros_like(known)
    ordered = np.sort(drawn, axis=0)  # NaN last
    return _quantile(ordered, known, ndtr(2 * bias - reach)), _quantile(ordered, known, ndtr(2 * bias + reach))


def _quantile(ordered: np.ndarray, known: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return the quantile of each column at its own share, between neighbours in proportion."""
    place = np.asarray(share * (known - 1))
    low = np.clip(np.floor(place), 0, np.maximum(known - 1, 0)).astype(int)
    high = np.minimum(low + 1, np.maximum(known - 1, 0))
    ends = [np.take_along_axis(ordered, at[None], axis=0)[0] for at in (low, high)]
    found = ends[0] + (ends[1] - ends[0]) * (place - low)
    return np.where(known > 0, found, np.nan)
