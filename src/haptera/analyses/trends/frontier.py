"""Frontier: the narrowest wedges that hold a given share of the events, δ against ν.

Source: "Why do classifier accuracies show linear trends under distribution shift?", section 4, which gives two wedges
found by eye. The narrowest wedge is not a point but a family: a larger ν allows a smaller δ. What corollary 1 (3)
depends on is δ1 + δ2 and the larger of ν1 and ν2, so for each ν = ν1 = ν2 the frontier has the least δ1 + δ2, both in
whole thousandths, and the best of the family is the one with the least bound (3).
An event is above, below or inside the band of ν, and needs a δ2, a δ1 or none; counting how many need how much is
all.
Cost: one pass over the events; in it, for each ν, some operations on the events outside the band of ν.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor

import numpy as np
import pandas as pd

from haptera.analyses.trends.closeness import zip_counts
from haptera.analyses.trends.guarantee import corollary
from haptera.analyses.trends.triplets import Counts
from haptera.analyses.trends.wedge import ROUNDING, Wedge
from haptera.checks import check_number
from haptera.errors import HapteraError

STEPS = 60
PER_UNIT = 1000
LARGEST = 20
"""The δ beyond which a wedge is not worth having."""


def frontier(
    reference: Counts, shifted: Counts, share: float = 1.0, nus: Sequence[float] | None = None
) -> pd.DataFrame:
    """The least δ1 + δ2 for each ν.

    Args:
        reference: counts under P.
        shifted: counts under Q, of the same models in the same order.
        share: of the events, to be inside.
        nus: values of ν = ν1 = ν2; by default from 0 to where δ can be 0, in at most sixty steps.

    Returns:
        `nu`, `delta1`, `delta2` and `bound`, which is (3) for the range of accuracies under P; no row for a ν that
        needs a δ above 20.
    """
    return frontiers(reference, shifted, [share], nus)[share]


def frontiers(
    reference: Counts, shifted: Counts, shares: Sequence[float], nus: Sequence[float] | None = None
) -> dict[float, pd.DataFrame]:
    """The same for several shares, in one pass over the events."""
    for share in shares:
        check_number("share", share, above=0, most=1)
    nu = np.array(_spread(reference, shifted) if nus is None else sorted(nus), dtype=float)
    above, below = _needs(reference, shifted, nu)
    span = float(np.ptp(reference.pair.diagonal())) / reference.examples
    found = {}
    for share in shares:
        allowed = floor((1 - Fraction(str(share))) * reference.events)
        rows: list[dict[str, float]] = []
        for each, over, under in zip(nu.tolist(), above, below, strict=True):
            if nus is None and rows and not rows[-1]["delta1"] + rows[-1]["delta2"]:
                break  # a larger ν gains nothing
            if (deltas := _narrowest(over, under, allowed)) is not None:
                bound = corollary(span, Wedge(*deltas, each, each))
                rows.append({"nu": each, "delta1": deltas[0], "delta2": deltas[1], "bound": bound})
        found[share] = pd.DataFrame(rows, columns=["nu", "delta1", "delta2", "bound"])
    return found


def narrowest(frontier: pd.DataFrame) -> Wedge:
    """The wedge of a frontier with the least bound."""
    if frontier.empty:
        raise HapteraError("no wedge holds these events with these ν")
    best = frontier.nsmallest(1, "bound").iloc[0]
    return Wedge(float(best["delta1"]), float(best["delta2"]), float(best["nu"]), float(best["nu"]))


def _spread(reference: Counts, shifted: Counts) -> list[float]:
    """ν from 0 to the largest |Q(A) - P(A)|, in equal steps of whole ten-thousandths."""
    n, m = reference.examples, shifted.examples
    largest = max(float(np.abs(a / n - b / m).max(initial=0.0)) for a, b in zip_counts(reference, shifted))
    step = max(ceil(largest / STEPS * 10_000), 1)
    return [round(place * step / 10_000, 4) for place in range(ceil(largest * 10_000 / step) + 1)]


def _needs(reference: Counts, shifted: Counts, nu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many events are above, and below, the wedge of each ν `(len(nu), 1 + thousandths)` with that δ."""
    n, m = reference.examples, shifted.examples
    above, below = np.zeros((len(nu), LARGEST * PER_UNIT + 2), np.int64), np.zeros((len(nu), PER_UNIT + 2), np.int64)
    for a, b in zip_counts(reference, shifted):
        p, q = a.ravel() / n, b.ravel() / m
        for needs, outside, sign in ((above, q > p, 1), (below, q < p, -1)):
            left_p, left_q = p[outside], q[outside]
            for place, each in enumerate(nu):
                kept = sign * (left_q - left_p) > each
                left_p, left_q = left_p[kept], left_q[kept]
                with np.errstate(divide="ignore"):
                    delta = sign * ((left_q - sign * each) / left_p - 1)
                wanted = np.minimum(np.ceil(PER_UNIT * delta - ROUNDING), needs.shape[1] - 1).astype(np.int64)
                needs[place] += np.bincount(wanted, minlength=needs.shape[1])
    return _more(above), _more(below)


def _more(needs: np.ndarray) -> np.ndarray:
    """Return how many need more than each δ, given how many need exactly that."""
    return np.cumsum(needs[:, ::-1], axis=1)[:, ::-1][:, 1:]


def _narrowest(above: np.ndarray, below: np.ndarray, allowed: int) -> tuple[float, float] | None:
    """δ1 and δ2 of least sum, with at most so many events outside."""
    upper = np.flatnonzero(above <= allowed)
    # `below` falls with δ1: the first place where it fits in what `above` leaves.
    lower = np.searchsorted(-below, above[upper] - allowed)
    upper, lower = upper[lower < len(below)], lower[lower < len(below)]
    if not len(upper):
        return None
    best = np.argmin(upper + lower)
    return lower[best] / PER_UNIT, upper[best] / PER_UNIT
