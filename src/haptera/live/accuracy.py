"""Accuracy without labels, in a window, with an interval; corrected by labels that arrive late.

With a labelled profile and known corruptions, a mean of the estimators that these favour tells it
(`haptera.live.estimators`); with labels alone, thresholded confidence, without an interval; without labels, mean
confidence is all there is.
Labels correct it by prediction-powered inference (Angelopoulos et al. 2023): what answers on labelled images had
promised is taken off and what was true put in its place; the weight λ of the promise is chosen as in PPI++. The
estimate without labels and the one with labels are then averaged by the inverse squares of their standard errors; the
one without labels is taken to be at least as uncertain as it is seen to be off.
The profile is of the model as it was. An adapter that learns makes confidences its own; what is told without labels is
then off by what that changes, until labels correct it. Labels speak for the window only while it is like the images
that they belong to: where what answers promise differs, the difference counts as an error of the labels. After a change
`begin` leaves out of the window, and of the labels, what came before it.
Cost: some microseconds for a batch. Holds a number for each image of the window and two for each label.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from haptera.checks import check_number, check_whole_number
from haptera.correctness import correct
from haptera.errors import HapteraError
from haptera.live.estimators import Clean, Estimator, choose_estimator, make_estimator, normal_quantile
from haptera.live.profile import Profile

FEWEST = 20
"""Labels below which they do not speak."""


@dataclass(frozen=True)
class AccuracyEstimate:
    """The accuracy on the images of a window.

    Attributes:
        value: NaN where nothing can be told.
        low: the lower end of the interval; 0 where there is none.
        high: the upper end; 1 where there is none.
        source: what it comes from: `labels`, `predicted`, `predicted and labels`, `confidence` or `nothing`.
        labels: how many labels took part.
        images: in the window.
        method: the name of the estimator behind a prediction, such as `plane of doubt and size`.
    """

    value: float
    low: float
    high: float
    source: str
    labels: int
    images: int
    method: str


class Accuracy:
    """The accuracy of what a model says, in a window of its last images.

    Args:
        profile: the reference; with labels and known corruptions it gives an interval. None: confidence alone.
        window: images.
        level: of the interval.
        label_window: labels that count, the last so many.

    Attributes:
        estimators: whether the size of the shift is known -> what tells accuracy without labels; empty without labels
            in the profile.
    """

    def __init__(
        self, profile: Profile | None = None, *, window: int = 1000, level: float = 0.9, label_window: int = 1000
    ) -> None:
        check_whole_number("window", window, what="a number of images")
        check_whole_number("label_window", label_window, what="a number of labels")
        check_number("level", level, above=0, below=1, what="a share")
        self.level, self.window, self.label_window = level, window, label_window
        self._threshold, self.estimators = _prepare(profile)
        self._confidences, self._labels = np.zeros(0), np.zeros((0, 2))
        self._size = float("nan")

    def update(self, logits: np.ndarray, size: float | None = None) -> None:
        """Add a batch of outputs.

        Args:
            logits: `(images, classes)` of the model that is served.
            size: of the shift in the window (`Place.size`), where it is known.
        """
        self._confidences = np.concatenate([self._confidences, _confidence(logits)])[-self.window :]
        self._size = float("nan") if size is None else float(size)

    def label(self, logits: np.ndarray, targets: np.ndarray) -> None:
        """Add labels that arrived late.

        Args:
            logits: `(labels, classes)`, what the served model had said about these images.
            targets: `(labels,)`, their classes.
        """
        targets = np.asarray(targets)
        if targets.shape != (len(logits),):
            raise HapteraError(
                f"targets have shape {targets.shape}; ({len(logits)},), one for each answer, was expected"
            )
        right = correct(np.asarray(logits), targets).astype(float)
        own = np.column_stack([self._promise(_confidence(logits)), right])
        self._labels = np.concatenate([self._labels, own])[-self.label_window :]

    def begin(self, images: int) -> None:
        """Let the window begin with the last images, since what came before them is other data; forget the labels.

        Args:
            images: at least one stays.
        """
        self._confidences = self._confidences[-max(images, 1) :]
        self.forget_labels()

    def forget_labels(self) -> None:
        """Leave the labels so far aside, since they belong to other data than what comes now."""
        self._labels = np.zeros((0, 2))

    def estimate(self) -> AccuracyEstimate:
        """Return the accuracy in the window."""
        known, labels = self._confidences[np.isfinite(self._confidences)], len(self._labels)
        if not len(known) and labels < FEWEST:
            return AccuracyEstimate(float("nan"), 0.0, 1.0, "nothing", 0, 0, "")
        value, deviation, method = self._predict(known) if len(known) else (float("nan"), float("inf"), "")
        source = "predicted" if self.estimators else "confidence"
        if labels >= FEWEST:
            own, spread = self._by_labels(known)
            deviation = max(deviation, np.sqrt(max((value - own) ** 2 - spread**2, 0.0)) if len(known) else np.inf)
            weight = 1.0 if np.isinf(deviation) else deviation**2 / (deviation**2 + spread**2)
            value = own if weight == 1.0 else (1 - weight) * value + weight * own
            deviation, source = spread * np.sqrt(weight), "labels" if weight == 1.0 else "predicted and labels"
        half = normal_quantile(self.level) * deviation
        low, high = (0.0, 1.0) if np.isinf(half) else (max(float(value - half), 0.0), min(float(value + half), 1.0))
        used = labels if labels >= FEWEST else 0
        return AccuracyEstimate(float(np.clip(value, 0, 1)), low, high, source, used, len(self._confidences), method)

    def state(self) -> dict[str, Any]:
        """Return everything that changes, as plain numbers, texts, lists, dictionaries and NumPy arrays."""
        return {"confidences": self._confidences.copy(), "labels": self._labels.copy(), "size": self._size}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, to the same numbers."""
        confidences, labels = np.asarray(state["confidences"], float), np.asarray(state["labels"], float)
        if confidences.ndim != 1 or labels.ndim != 2 or labels.shape[1] != 2:
            raise HapteraError(
                f"the state has shapes {confidences.shape}, {labels.shape}; (n,) and (m, 2) were expected"
            )
        self._confidences, self._labels = confidences[-self.window :], labels[-self.label_window :]
        self._size = float("nan") if state["size"] is None else float(state["size"])

    def _promise(self, confidences: np.ndarray) -> np.ndarray:
        """Return what each answer promises: that it is right, or the chance that it is."""
        return confidences if self._threshold is None else (confidences >= self._threshold).astype(float)

    def _predict(self, confidences: np.ndarray) -> tuple[float, float, str]:
        """Return the accuracy without labels, its standard error and how it was told."""
        mean = float(confidences.mean())
        if self._threshold is None:
            return mean, float("inf"), "average confidence"
        features = {"confidence": mean, "doubt": float((confidences < self._threshold).mean()), "size": self._size}
        estimator = self.estimators[bool(np.isfinite(self._size))]
        value = estimator.accuracy(features)
        return value, estimator.deviation(value, len(confidences), self.level), estimator.name

    def _by_labels(self, confidences: np.ndarray) -> tuple[float, float]:
        """Return the accuracy with labels, and its standard error."""
        promise, right = self._labels.T
        n, images = len(right), max(len(confidences), 1)
        own = self._promise(confidences)
        spread = float(own.var()) if len(own) else 0.0
        power = float(np.cov(promise, right)[0, 1] / (spread * (1 + n / images))) if spread > 0 else 0.0
        power = float(np.clip(power, 0.0, 1.0))
        value = float(right.mean()) + (power * float(own.mean() - promise.mean()) if len(own) else 0.0)
        floor = 0.02 * 0.98  # so that labels that are all right do not make anybody sure
        variance = max(float((right - power * promise).var()), floor) / n + power**2 * spread / images
        if len(own):  # labels of images whose answers promise something else speak for other data
            apart = float(own.mean() - promise.mean())
            variance += max(apart**2 - spread / images - float(promise.var()) / n, 0.0)
        return float(np.clip(value, 0, 1)), float(np.sqrt(variance))


def _prepare(profile: Profile | None) -> tuple[float | None, dict[bool, Estimator]]:
    """Return the threshold of confidence, and the estimators with (True) and without the size of the shift."""
    if profile is None or profile.right is None:
        return None, {}
    known, error, sure = profile.known, float(1 - profile.right.mean()), _confidence(profile.logits)
    if known.threshold is None or known.frame.empty or "error" not in known.frame:
        clean = Clean(error, float(sure.mean()))
        only = Estimator("thresholded confidence", make_estimator("thresholded confidence", known.frame, clean))
        return float(np.quantile(sure, error)), {True: only, False: only}
    clean = Clean(error, float(sure.mean()), float((sure < known.threshold).mean()))
    return known.threshold, {size: choose_estimator(known.frame, clean, known.images, size) for size in (True, False)}


def _confidence(logits: np.ndarray) -> np.ndarray:
    """Return the largest probability of each answer; NaN where a logit is not finite."""
    logits = np.asarray(logits, float)
    if logits.ndim != 2:
        raise HapteraError(f"logits have shape {logits.shape}; (images, classes) was expected")
    known = np.isfinite(logits).all(1)
    found = np.full(len(logits), np.nan)
    if known.any():
        own = logits[known]
        found[known] = 1 / np.exp(own - own.max(1, keepdims=True)).sum(1)
    return found
