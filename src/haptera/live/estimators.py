"""Estimators of accuracy without labels: which of them known corruptions favour, and how far off it is on them.

Candidates tell accuracy from three numbers of a window: mean confidence, doubt (the share of answers below the
confidence that as many answers on the reference are below as are wrong), and the size of the shift. They are average
confidence; difference of confidences (Guillory et al. 2021); thresholded confidence (Garg et al. 2022); and planes by
least squares through known corruptions and clean data, in doubt, doubt and confidence, or doubt and size. The first
three are those of `haptera.measures.label_free`; what else there is (optimal transport, nuclear norms) is not a mean
over images and would cost more than the model at every batch.
The threshold comes from the few images that corruptions were tried on. What clean data look like comes from the whole
reference, so that thresholded confidence is right there whatever the chance in the threshold.
Each known corruption is left out in turn, at all severities, so that data in use never choose. With few corruptions the
best of several fits is best by chance, and others err on the other side; so all fits count that are less off, on the
corruptions left out, than every candidate that needs no fit, by the inverse squares of how far off they are. Where no
fit is, the best candidate without one stands alone. How far off the mean is comes from leaving out a corruption
before anything is fitted, chosen or weighted.
The interval takes a new shift to be as far off as the known ones are when left out: errors relative to an offset plus
the predicted rise of the error, root mean square within each corruption, then Student's t over corruptions. It is
approximate: with K corruptions there are K errors to tell from. The sampling error of both sides is added in
quadrature.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pandas as pd
from scipy.stats import norm, t

Features = Mapping[str, np.ndarray]
OFFSET = 0.02
"""The least offset: errors are not told more exactly than that on any shift."""
LITTLE = 0.01
"""Candidates with less than this share of the largest weight are left out."""
PLANES = {
    "line of doubt": ("doubt",),
    "plane of doubt and confidence": ("doubt", "confidence"),
    "plane of doubt and size": ("doubt", "size"),
}


@dataclass(frozen=True)
class Clean:
    """What the model does without a shift.

    Attributes:
        error: share of wrong answers.
        confidence: mean confidence.
        doubt: share of answers below the threshold; by default as many as are wrong, as where it was taken from the
            same images.
    """

    error: float
    confidence: float
    doubt: float | None = None

    def features(self) -> dict[str, float]:
        """Return the three numbers of a window without a shift."""
        doubt = self.error if self.doubt is None else self.doubt
        return {"doubt": doubt, "confidence": self.confidence, "size": 0.0}


@dataclass(frozen=True)
class Estimator:
    """A way to tell errors, and how well it told those of known corruptions.

    Attributes:
        name: of the candidates that it is the mean of.
        predict: from features, arrays of one length, to errors.
        off: mean absolute error on corruptions that were left out; NaN where none is known.
        scale: root mean square error, relative to `offset` and the predicted rise; NaN where none is known.
        offset: added to the predicted rise.
        corruptions: how many there are.
        images: that each was tried on.
        clean: error without a shift.
    """

    name: str
    predict: Callable[[Features], np.ndarray]
    off: float = float("nan")
    scale: float = float("nan")
    offset: float = OFFSET
    corruptions: int = 0
    images: int = 0
    clean: float = 0.0

    def accuracy(self, features: Mapping[str, float]) -> float:
        """Return the accuracy in a window."""
        return 1 - float(self.predict({name: np.array([value]) for name, value in features.items()})[0])

    def deviation(self, accuracy: float, images: int, level: float) -> float:
        """Return the standard error of an accuracy that was told from so many images; infinite where none is known.

        It is the half width of the interval at this level, divided by what a normal distribution has.
        """
        if not self.corruptions or not np.isfinite(self.scale):
            return float("inf")
        rise = max(1 - accuracy - self.clean, 0.0)
        factor = _student(level, self.corruptions) / normal_quantile(level)
        model = self.scale * (self.offset + rise) * factor * np.sqrt(1 + 1 / self.corruptions)
        share = float(np.clip((accuracy * images + 2) / (images + 4), 0.02, 0.98))  # a few images do not make it sure
        return float(np.hypot(model, np.sqrt(share * (1 - share) * (1 / max(images, 1) + 1 / self.images))))


def choose_estimator(known: pd.DataFrame, clean: Clean, images: int, size: bool = True) -> Estimator:
    """Return the mean of the candidates that known corruptions favour.

    Args:
        known: `shift`, `doubt`, `confidence`, `error` and, for planes with it, `size`, several severities each.
        clean: what the model does without a shift.
        images: that each corruption was tried on.
        size: whether the size of the shift will be known.
    """
    usable = [column for column in ("doubt", "confidence", *(("size",) if size else ())) if _complete(known, column)]
    names = candidates(usable)
    shifts, errors = known["shift"].to_numpy(), known["error"].to_numpy(float)
    rows: Features = {"shift": shifts, "error": errors} | {name: known[name].to_numpy(float) for name in usable}
    predicted = _left_out(rows, lambda rest: make_mean(weigh(names, rest, clean), rest, clean))
    weights = weigh(names, rows, clean)
    rise = np.maximum(predicted - clean.error, 0.0)
    offset = max(float(np.median(np.maximum(errors - clean.error, 0.0))), OFFSET)
    relative = np.square((errors - predicted) / (offset + rise))
    return Estimator(
        " and ".join(weights),
        make_mean(weights, rows, clean),
        _mean_by(shifts, np.abs(errors - predicted)),
        float(np.sqrt(_mean_by(shifts, relative))),
        offset,
        len(dict.fromkeys(shifts)),
        images,
        clean.error,
    )


def weigh(names: list[str], known: Features, clean: Clean) -> dict[str, float]:
    """Return candidate -> weight, of those that count; all fits, by the same weight, of fewer than two corruptions."""
    fits = [name for name in names if name in PLANES]
    if len(set(known["shift"])) < 2:
        return dict.fromkeys(fits or names[:1], 1 / max(len(fits), 1))
    off = {}
    for name in names:
        predicted = _left_out(known, partial(make_estimator, name, clean=clean))
        off[name] = max(_mean_by(known["shift"], np.abs(known["error"] - predicted)), 1e-9)
    plain = min((name for name in names if name not in PLANES), key=lambda name: off[name])
    better = [name for name in fits if off[name] < off[plain]] or [plain]
    weights = {name: off[name] ** -2 for name in better}
    most = max(weights.values())
    weights = {name: weight for name, weight in weights.items() if weight >= LITTLE * most}
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


def make_mean(weights: Mapping[str, float], known: Features, clean: Clean) -> Callable[[Features], np.ndarray]:
    """Return the function from features to errors that a weighted mean of candidates is."""
    parts = [(weight, make_estimator(name, known, clean)) for name, weight in weights.items()]
    return lambda features: np.sum([weight * part(features) for weight, part in parts], axis=0)


def candidates(columns: list[str]) -> list[str]:
    """Return the names of the estimators that these columns are enough for."""
    fixed = {"average confidence": "confidence", "difference of confidences": "confidence"}
    fixed |= {"thresholded confidence": "doubt"}
    planes = [name for name, needed in PLANES.items() if set(needed) <= set(columns)]
    return [name for name, needed in fixed.items() if needed in columns] + planes


def make_estimator(name: str, known: Features | pd.DataFrame, clean: Clean) -> Callable[[Features], np.ndarray]:
    """Return the function from features to errors that a candidate is, fitted to known corruptions if need be."""
    if name == "average confidence":
        return lambda features: _inside(1 - features["confidence"])
    if name == "difference of confidences":
        return lambda features: _inside(clean.error + clean.confidence - features["confidence"])
    if name == "thresholded confidence":
        return lambda features: _inside(clean.error - clean.features()["doubt"] + features["doubt"])
    columns = list(PLANES[name])
    fitted = np.column_stack([np.asarray(known[column], float) for column in columns])
    rows = np.vstack([[clean.features()[column] for column in columns], fitted])
    design = np.column_stack([np.ones(len(rows)), rows])
    plane = np.linalg.lstsq(design, np.append(clean.error, np.asarray(known["error"], float)), rcond=None)[0]
    return lambda features: _inside(plane[0] + np.column_stack([features[column] for column in columns]) @ plane[1:])


def _left_out(known: Features, make: Callable[[Features], Callable[[Features], np.ndarray]]) -> np.ndarray:
    """Return the error of every row as what is made of all other corruptions tells it."""
    shifts, predicted = known["shift"], np.empty(len(known["shift"]))
    for shift in dict.fromkeys(shifts):
        own = shifts == shift
        told = make({name: values[~own] for name, values in known.items()})
        predicted[own] = told({name: values[own] for name, values in known.items()})
    return predicted


def _mean_by(shifts: np.ndarray, values: np.ndarray) -> float:
    """Return the mean over corruptions of their means."""
    return float(np.mean([values[shifts == shift].mean() for shift in dict.fromkeys(shifts)]))


@cache
def normal_quantile(level: float) -> float:
    """Return how many deviations an interval of a level has on each side."""
    return float(norm.ppf((1 + level) / 2))


@cache
def _student(level: float, freedom: int) -> float:
    return float(t.ppf((1 + level) / 2, freedom))


def _complete(known: pd.DataFrame, column: str) -> bool:
    return column in known and bool(np.isfinite(known[column].to_numpy(float)).all())


def _inside(errors: np.ndarray) -> np.ndarray:
    return np.clip(errors, 0.0, 1.0)
