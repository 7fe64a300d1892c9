"""Reasons: why there is a line, as far as it is known who is right on which example; each part when it is asked for.

Similarity (pairs), closeness (events), what both promise (guarantees), and who is unlike all others (outliers).
"""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.trends.dominance import dominance
from haptera.analyses.trends.events import Events, analyse_events
from haptera.analyses.trends.guarantee import Guarantee, corollary, triplet_residuals
from haptera.analyses.trends.own_bound import OwnBound, own_bound, own_bounds, tolerated
from haptera.analyses.trends.robustness import is_dissimilar
from haptera.analyses.trends.side import Sides
from haptera.analyses.trends.triplets import count_triplets
from haptera.analyses.trends.wedge import Wedge
from haptera.statistics.line import LineFit

MOST_MODELS = 150
"""Up to so many models every triplet is tested against proposition 1; of more, those with the worst and the best."""
MOST_IN_PAIRS, MOST_IN_EVENTS = 2000, 500
"""Up to so many models there is a row for each pair, and a count for each triplet."""
FAR = 5.0
"""Standard deviations, found by the median, beyond which a residual makes an outlier, if only accuracies are known."""


class Reasons:
    """The part of `Trends` that asks why."""

    sides: Sides
    wedge: Wedge | None
    share: float
    if TYPE_CHECKING:

        @property
        def models(self) -> tuple[str, ...]: ...  # noqa: D102
        @property
        def accuracies(self) -> tuple[np.ndarray, np.ndarray]: ...  # noqa: D102
        @property
        def lines(self) -> dict[str, LineFit]: ...  # noqa: D102
        @property
        def unplaced(self) -> list[str]: ...  # noqa: D102

    @cached_property
    def pairs(self) -> pd.DataFrame | None:
        """Return what `dominance` returns, on the reference; None for accuracies alone."""
        correct = self.sides.reference.correct
        return None if correct is None or len(correct) > MOST_IN_PAIRS else dominance(correct, self.models)

    @cached_property
    def events(self) -> Events | None:
        """Closeness; None for accuracies alone."""
        reference, shifted = self.sides.reference.correct, self.sides.shifted.correct
        if reference is None or shifted is None or len(reference) > MOST_IN_EVENTS:
            return None
        counts = count_triplets(reference), count_triplets(shifted)
        return analyse_events(self.models, *counts, self.wedge, self.share)

    @cached_property
    def guarantee(self) -> Guarantee | None:
        """What the wedge promises; None where none is known."""
        wedge = self.wedge if self.events is None else self.events.asked.wedge
        if wedge is None:
            return None
        x, y = self.accuracies
        best = float(np.abs(self.lines["chebyshev"].residual).max())
        triplets = triplet_residuals(x, y, wedge, self.models, ends=len(x) > MOST_MODELS)
        return Guarantee(wedge, corollary(float(np.ptp(x)), wedge), best, triplets)

    @cached_property
    def own_bounds(self) -> list[OwnBound]:
        """The exact guarantees at the data's own ζ: for all models, and for each piece of the line of two pieces."""
        if self.events is None:
            return []
        two = self.lines.get("two_piece")
        return own_bounds(self.accuracies, self.events.counts, self.models, two.line.switch if two else None)

    @cached_property
    def asked_bound(self) -> OwnBound | None:
        """The same for all models with the wedge that was asked for; None where none was."""
        if self.events is None or self.wedge is None:
            return None
        return own_bound(self.accuracies, self.events.counts, self.models, wedge=self.wedge)

    @cached_property
    def tolerated(self) -> dict[str, Any] | None:
        """The events outside the wedge that holds most of them, and how many of these a line needs."""
        if self.events is None:
            return None
        return tolerated(self.accuracies[0], self.events.counts, self.models, self.events.most.wedge)

    @cached_property
    def suspects(self) -> list[str]:
        """Those outliers that are right where others are wrong more often than any two others, on either side.

        A file with wrong labels or in another order looks like that.
        """
        pairs = [dominance(side.correct, self.models) for side in self.sides if side.correct is not None]
        return [name for name in self.outliers if any(is_dissimilar(name, each) for each in pairs)]

    @cached_property
    def outliers(self) -> list[str]:
        """Models unlike all others, worst first: by the events they own, or by residuals of a robust line."""
        if self.events is not None:
            return self.events.outliers
        away = self.lines["robust" if self.unplaced else "robust_probit"].away
        size = np.abs(away - np.nanmedian(away))
        far = size > FAR * np.nanmedian(size) / 0.6745
        return [self.models[place] for place in np.argsort(-size, kind="stable") if far[place]]
