"""Analysis: everything that two sides can say about the line, each part by a measure of its own, when it is asked for.

With accuracies alone there are lines, with intervals over models, and robustness without any: how sure it is that a
model is off the line depends on n, the number of examples. With n there are intervals over examples; and where it is
known who is right on which example, similarity, closeness and guarantees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from haptera.analyses.trends import TrendSettings, page
from haptera.analyses.trends import findings as answers
from haptera.analyses.trends.reasons import Reasons
from haptera.analyses.trends.robustness import LINES, fit_draws, place, prediction, robustness
from haptera.analyses.trends.side import Sides, standard_models
from haptera.analyses.trends.verdict import YES, Verdict, judge, judge_without
from haptera.analyses.trends.wedge import Wedge
from haptera.analysis import Analysis
from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError, unknown
from haptera.statistics.intervals import wilson
from haptera.statistics.line import FITS, SCALE, LineFit, compare_fits, fit
from haptera.statistics.resample import Draws, interval, over_examples, over_models
from haptera.words import shorten

BEST = "best"
PLACED, FEWEST_TO_PLACE = 3, 3
BUDGET = 2_000_000
"""Draws x models at most: more models are drawn less often, down to 200 times."""
FEW_DRAWS, MUCH_WORK = 200, 200_000
"""Fits that are found in rounds are drawn less often, down to 200 times, when draws x models are more than that."""


@dataclass(frozen=True, eq=False)
class Trends(TrendSettings, Reasons, Analysis):
    """Why accuracies on two sets of data fall on a line, and which model leaves it; `TrendSettings` has the settings.

    Attributes:
        sides: the two, joined.
        placed: models to place among the others; by default those furthest from the line, if they are off it.
        wedge: to be tested; None for the narrowest that holds all events.
    """

    kind: ClassVar[str] = "trends"
    definitions: ClassVar[Mapping[str, str]] = answers.DEFINITIONS
    headline = answers.headline
    findings = answers.findings
    sections = page.sections
    sides: Sides
    placed: Sequence[str] = ()
    wedge: Wedge | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.fit not in (BEST, *LINES):
            raise unknown("fit", self.fit, (BEST, *LINES))
        for name in self.placed:
            if name not in self.models:
                raise unknown("model", name, self.models)
        if self.baseline is not None and self.baseline not in self.models:
            raise unknown("baseline", self.baseline, self.models)
        if len(np.unique(self.accuracies[0][self.seen])) < 2:
            raise HapteraError(
                f"{self.sides.reference.source}: all models have the same accuracy, "
                f"{self.accuracies[0][self.seen][0]:g}; no line "
                "goes through them"
            )
        if self.fit in FITS and SCALE[self.fit] != "linear" and (ends := self.unplaced):
            raise HapteraError(f"{ends[0]}; a {self.fit} fit needs n, the number of examples, to move it inside")
        check_number("share", self.share, above=0, most=1)
        check_whole_number("draws", self.draws)

    @property
    def title(self) -> str:
        """Return the names of both sets."""
        return f"Trends: {self.sides.reference.name} and {self.sides.shifted.name}"

    @property
    def settings(self) -> dict[str, Any]:
        """Return what was asked."""
        sides = {"reference": self.sides.reference.source, "shifted": self.sides.shifted.source}
        asked = {name: getattr(self, name) for name in TrendSettings.__dataclass_fields__}
        return sides | asked | {"wedge": "the narrowest" if self.wedge is None else str(self.wedge)}

    @property
    def models(self) -> tuple[str, ...]:
        """Their names."""
        return self.sides.reference.models

    @property
    def accuracies(self) -> tuple[np.ndarray, np.ndarray]:
        """Return accuracies on the reference and on shifted data, each `(models,)`."""
        return self.sides.reference.accuracy, self.sides.shifted.accuracy

    @property
    def unplaced(self) -> list[str]:
        """Return a sentence for each side with accuracies of 0 or 1 that nothing says how far to move inside."""
        return [
            f"{side.source}: {shorten(side.at_the_ends)} with an accuracy of 0 or 1 "
            f"{'is' if len(side.at_the_ends) == 1 else 'are'} not on probit or logit axes"
            for side in (self.sides.reference, self.sides.shifted)
            if side.n is None and side.at_the_ends
        ]

    @cached_property
    def notes(self) -> list[str]:
        """What a reader must know: how the sides were joined, what was moved, and what is missing."""
        return answers.notes(self)

    @property
    def drawn(self) -> int:
        """How often examples and models are drawn."""
        return min(self.draws, max(FEW_DRAWS, BUDGET // len(self.models)))

    @property
    def _shape(self) -> dict[str, Any]:
        """What every fit is told."""
        sizes = (self.sides.reference.n, self.sides.shifted.n)
        shape = {"switch": self.switch, "joined": self.joined, "n": sizes}
        return shape if self.seen.all() else shape | {"weights": self.seen.astype(float)}

    @cached_property
    def seen(self) -> np.ndarray:
        """`(models,)`, which of them the line is fitted to: the standard models, or else all."""
        return standard_models(self.sides, self.standard)

    @cached_property
    def lines(self) -> dict[str, LineFit]:
        """Name of a fit -> the fit; without those for which there are too few models."""
        enough = (
            len(np.unique(self.accuracies[0][self.seen])) > 3 or self.fit == "two_piece"
        )  # whoever asks is told why not
        kinds = [kind for kind in FITS if enough or kind != "two_piece"]
        kinds = [kind for kind in kinds if SCALE[kind] == "linear" or not self.unplaced]
        return {kind: fit(*self.accuracies, kind, **self._shape) for kind in kinds}

    @cached_property
    def over(self) -> dict[str, Draws]:
        """`examples`, where n is known, and `models` -> draws."""
        found: dict[str, Draws] = {}
        settings: dict[str, Any] = {"draws": self.drawn, "seed": self.seed}
        if self.sides.sized:
            both = (self.sides.reference, self.sides.shifted)
            samples = [(side.accuracy, side.n) if side.correct is None else side.correct for side in both]
            found["examples"] = over_examples(*samples, paired=self.sides.paired, **settings)
        return found | {"models": over_models(*self.accuracies, **settings, among=self.seen)}

    @property
    def sampled(self) -> Draws | None:
        """Other examples, by which the intervals of robustness are found; None where n is not known."""
        return self.over.get("examples")

    @cached_property
    def slopes(self) -> dict[str, dict[str, list[float]]]:
        """Fit -> what was drawn, `examples` or `models` -> both ends of the interval of its slope."""
        return {
            kind: {over: self._slope(fitted, draws) for over, draws in self.over.items()}
            for kind, fitted in self.lines.items()
        }

    def _slope(self, fitted: LineFit, draws: Draws) -> list[float]:
        if fitted.line.fit in ("chebyshev", "robust", "robust_probit"):
            draws = draws.first(max(FEW_DRAWS, MUCH_WORK // len(self.models)))
        slopes = fit_draws(fitted, draws, self._shape).line.slope
        return [float(end) for end in interval(fitted.line.slope, slopes, draws.units)]

    @cached_property
    def fits(self) -> pd.DataFrame:
        """Return what `compare_fits` does, with intervals of the slope: `slope_low_examples` and so on."""
        frame = compare_fits(*self.accuracies, self.models, kinds=list(self.lines), **self._shape)
        for over in self.over:
            frame[[f"slope_low_{over}", f"slope_high_{over}"]] = [self.slopes[kind][over] for kind in frame["fit"]]
        return frame

    @cached_property
    def best(self) -> str:
        """The fit that predicts left-out models best."""
        return str(self.fits["fit"].iloc[0])

    @cached_property
    def line(self) -> str:
        """The fit that robustness is measured from."""
        return next(kind for kind in self.fits["fit"] if kind in LINES) if self.fit == BEST else self.fit

    @cached_property
    def verdict(self) -> Verdict:
        """Whether there is a line."""
        return judge(*self.accuracies, self.line, **self._judged)

    @cached_property
    def verdict_without(self) -> Verdict | None:
        """The same without the models that are far from it, where there is none with them."""
        if self.verdict.word == YES:
            return None
        return judge_without(*self.accuracies, self.models, self.verdict, **self._judged)

    @property
    def _judged(self) -> dict[str, Any]:
        draws = self.sampled
        if draws is not None and self.line in ("robust", "robust_probit"):
            draws = draws.first(max(FEW_DRAWS, MUCH_WORK // len(self.models)))
        return {"draws": draws} | self._shape

    @cached_property
    def robustness(self) -> pd.DataFrame:
        """Return what `robustness` returns."""
        settings = {"draws": self.sampled, "baseline": self.baseline} | self._shape
        return robustness(*self.accuracies, self.models, kind=self.line, **settings)

    @cached_property
    def points(self) -> pd.DataFrame:
        """Each model: accuracies with Wilson's intervals, robustness, and its name beside it, if it is off the line."""
        rows = self.robustness.set_index("model").loc[list(self.models)].reset_index()
        for side, name in zip(self.sides, ("reference", "shifted"), strict=True):
            ends = np.full((len(rows), 2), np.nan)
            if side.n is not None:
                ends = np.array([wilson(a * n, int(n)) for a, n in zip(side.accuracy, side.n, strict=True)])
            rows[[f"{name}_low", f"{name}_high"]] = ends
        shown = {*self.places.get("model", []), *self.outliers[:PLACED]}
        return rows.assign(beside=rows["model"].where(rows["model"].isin(shown), None), seen=self.seen)

    def prediction(self, at: np.ndarray, over: str = "models") -> pd.DataFrame:
        """The line at some accuracies, as `prediction` returns it."""
        return prediction(*self.accuracies, at, self.over[over], self.line, **self._shape)

    @cached_property
    def places(self) -> pd.DataFrame:
        """The models to place, as `place` returns them."""
        names = list(self.placed)
        if not names and len(self.models) > FEWEST_TO_PLACE:
            off = self.robustness[(self.robustness["effective_low"] > 0) | (self.robustness["effective_high"] < 0)]
            names = off["model"].loc[off["effective"].abs().sort_values(ascending=False).index[:PLACED]].tolist()
        counts = self.events.counts if self.events else None
        return place(names, self.robustness, pairs=self.pairs, counts=counts, models=self.models, wedge=self.wedge)
