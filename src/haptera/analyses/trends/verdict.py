"""The verdict: is there a line, yes, no, or too few to say; and how far off it is, against two yardsticks.

A line is worth the name if it explains four fifths of the spread of accuracies on shifted data or more. Yes, if the
whole 95 % interval of R² is above that; no, if it is below; too few to say, if the interval holds it, or if there are
fewer than five models. R² here is on the scale of the fit, where its interval is exact for normal residuals
(`haptera.statistics.explained`).
The error for left-out models is compared with two others: what one would be off without a line, by taking the mean of
the other models; and what sampling alone gives, if every model were exactly on the line and only the examples were
drawn again. Where a weak line is no further off than sampling gives, the models are too much alike to say.
Where there is no line, or too little to say, the models that are far from the robust line (five standard deviations, by
the median) are set aside, a third at most, and all others are judged again.
Cost: one fit for each draw of examples.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from haptera.analyses.trends.robustness import fit_draws
from haptera.statistics.explained import explained_interval
from haptera.statistics.line import SCALE, SCALES, LineFit, fit, move_inside, r_squared
from haptera.statistics.resample import Draws

YES, NO, FEW = "yes", "no", "too few to say"
LINE = 0.8
"""The share of the spread that a line explains, to be called one."""
FEWEST = 5
FAR, MOST_ASIDE = 5.0, 1 / 3
"""Standard deviations beyond which a model is set aside; and the share of models that may be."""
SURE = 0.975


@dataclass(frozen=True)
class Verdict:
    """Whether there is a line.

    Attributes:
        word: yes, no, or too few to say.
        fit: which line was judged.
        models: how many there are.
        r2: share of the spread that it explains, on the scale of the fit.
        low: lower end of its interval.
        high: upper end.
        left_out: root mean square error for left-out models, in accuracy.
        without: the same for the mean of the other models, without a line.
        sampling: the same that sampling alone gives; NaN where n is not known.
        beyond: whether models are off the line by more than sampling gives; None where n is not known.
        aside: models that were set aside.
    """

    word: str
    fit: str
    models: int
    r2: float
    low: float
    high: float
    left_out: float
    without: float
    sampling: float
    beyond: bool | None
    aside: tuple[str, ...] = ()

    @property
    def numbers(self) -> dict[str, Any]:
        """Return all of it as JSON holds it."""
        own = {name: getattr(self, name) for name in ("fit", "models", "left_out", "beyond")}
        names = {"answer": self.word, "r2": self.r2, "r2_interval": [self.low, self.high], "without_line": self.without}
        sampling = None if np.isnan(self.sampling) else self.sampling
        return names | own | {"sampling_alone": sampling, "set_aside": list(self.aside)}


def judge(
    reference: np.ndarray,
    shifted: np.ndarray,
    kind: str = "probit",
    *,
    draws: Draws | None = None,
    **settings: Any,
) -> Verdict:
    """Say whether accuracies fall on a line.

    Args:
        reference: `(models,)`, accuracies on the reference.
        shifted: `(models,)`, on shifted data.
        kind: of the line, one of `FITS`.
        draws: other examples; without, what sampling alone gives is not known.
        settings: of the line, as `fit` takes them; models of weight 0 are not judged.
    """
    x, y = np.asarray(reference, float), np.asarray(shifted, float)
    weights = settings.get("weights")
    seen = np.ones(len(x), bool) if weights is None else np.asarray(weights) > 0
    found = fit(x, y, kind, **settings)
    r2 = r_squared(*_on_the_scale(found, x, y, seen, settings))
    terms = found.line.coefficients.shape[-1] + (kind == "two_piece" and settings.get("switch") is None)
    models = int(seen.sum())
    low, high = explained_interval(r2, models, terms)
    left_out = _rms(found.left_out[seen])
    without = float(y[seen].std()) * models / max(models - 1, 1)
    sampled = np.full(1, np.nan) if draws is None else sampling_errors(found, x, y, draws, seen, settings)
    beyond = None if draws is None else bool(left_out > np.nanquantile(sampled, SURE))
    word = _word(models, low, high, beyond)
    typical = float(np.sqrt(np.nanmean(sampled**2))) if draws is not None else float("nan")
    return Verdict(word, kind, models, r2, low, high, left_out, without, typical, beyond)


def judge_without(
    reference: np.ndarray, shifted: np.ndarray, models: tuple[str, ...], verdict: Verdict, **settings: Any
) -> Verdict | None:
    """Judge again without the models that are far from the robust line; None where none is, or too many are.

    Args:
        reference: `(models,)`, accuracies on the reference.
        shifted: `(models,)`, on shifted data.
        models: their names.
        verdict: on all of them.
        settings: as for `judge`.
    """
    weights = settings.get("weights")
    seen = np.ones(len(models), bool) if weights is None else np.asarray(weights) > 0
    shape = {name: value for name, value in settings.items() if name != "draws"}
    scale = SCALE[verdict.fit]
    robust = "robust" if scale == "linear" else "robust_probit"
    away = fit(reference, shifted, robust, **shape).away
    size = np.abs(away - np.nanmedian(away[seen]))
    far = seen & (size > FAR * np.nanmedian(size[seen]) / 0.6745)
    if not far.any() or far.sum() > MOST_ASIDE * seen.sum() or (seen & ~far).sum() < FEWEST:
        return None
    again = judge(reference, shifted, verdict.fit, **settings | {"weights": np.where(far, 0.0, seen * 1.0)})
    return replace(again, aside=tuple(models[place] for place in np.argsort(-size) if far[place]))


def sampling_errors(
    found: LineFit, x: np.ndarray, y: np.ndarray, draws: Draws, seen: np.ndarray, settings: Mapping[str, Any]
) -> np.ndarray:
    """The error for left-out models in each draw, if every model were exactly on the line; `(draws,)`."""
    # What was drawn is off what was found as that is off the truth; here the truth is the line.
    on_the_line = np.clip(found.line(move_inside(x, _size(settings, 0))) + (draws.shifted - y), 0, 1)
    again = fit_draws(found, replace(draws, shifted=on_the_line), settings)
    with np.errstate(invalid="ignore"):
        return np.sqrt(np.nanmean(again.left_out[:, seen] ** 2, axis=1))


def _word(models: int, low: float, high: float, beyond: bool | None) -> str:
    if models < FEWEST or not np.isfinite(low):
        return FEW
    if low >= LINE:
        return YES
    return NO if high < LINE and beyond is not False else FEW


def _on_the_scale(
    found: LineFit, x: np.ndarray, y: np.ndarray, seen: np.ndarray, settings: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return values and residuals on the scale of the fit."""
    scale = SCALE[found.line.fit]
    if scale != "linear":
        x, y = move_inside(x, _size(settings, 0)), move_inside(y, _size(settings, 1))
    values = SCALES[scale][0](y)[seen]
    return values, values - found.line.scaled(x)[seen]


def _size(settings: Mapping[str, Any], side: int) -> Any:
    return settings["n"][side] if settings.get("n") else None


def _rms(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(known**2))) if len(known) else float("nan")
