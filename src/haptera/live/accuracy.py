"""Accuracy without labels, in a window, with an interval; corrected by labels that arrive late.

With a labelled profile and known corruptions, a mean of the estimators that these favour tells it, as in `haptera
diagnose` (`haptera.measures.combination`), of those that keep up with a stream (`haptera.live.answer_window`); with
labels alone, thresholded confidence, without an interval; without labels, mean confidence is all there is.
Labels correct it by prediction-powered inference (Angelopoulos et al. 2023): what answers on labelled images had
promised is taken off and what was true put in its place; the weight λ of the promise is chosen as in PPI++. The
estimate without labels and the one with labels are then averaged by the inverse squares of their standard errors; the
one without labels is taken to be at least as uncertain as it is seen to be off.
The profile is of the model as it was. An adapter that learns makes confidences its own; what is told without labels is
then off by what that changes, until labels correct it. Labels speak for the window only while it is like the images
that they belong to: where what answers promise differs, the difference counts as an error of the labels. After a change
`begin` leaves out of the window, and of the labels, what came before it.
Cost: some tens of microseconds for a batch. Holds two numbers for each label besides the window.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from haptera.checks import check_number, check_whole_number
from haptera.correctness import correct
from haptera.errors import HapteraError
from haptera.live.answer_window import MOST_CLASSES, AnswerWindow, likelihoods
from haptera.live.profile import Profile
from haptera.measures.combination import SIZE, Combination, combine
from haptera.measures.label_free import BY_MEANS, NUCLEAR, Reference
from haptera.statistics.intervals import LEVEL

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
        method: what is behind a prediction: `thresholded confidence`, or the candidate that counts most in the
            combination, such as `line of nuclear norm and others`.
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
        combinations: whether the size of the shift is known -> what tells accuracy without labels; empty without
            labels or known corruptions in the profile.
    """

    def __init__(
        self, profile: Profile | None = None, *, window: int = 1000, level: float = LEVEL, label_window: int = 1000
    ) -> None:
        check_whole_number("window", window, what="a number of images")
        check_whole_number("label_window", label_window, what="a number of labels")
        check_number("level", level, above=0, below=1, what="a share")
        self.level, self.window, self.label_window = level, window, label_window
        self._reference = None if profile is None else profile.labelled
        self.combinations = {} if profile is None or self._reference is None else _combine(profile, self._reference)
        self._window, self._labels = AnswerWindow(window, self._reference), np.zeros((0, 2))
        self._size = float("nan")

    def update(self, logits: np.ndarray, size: float | None = None) -> None:
        """Add a batch of outputs.

        Args:
            logits: `(images, classes)` of the model that is served.
            size: of the shift in the window (`Place.size`), where it is known.
        """
        self._window.update(logits)
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
        own = np.column_stack([self._promise(likelihoods(logits).max(1)), right])
        self._labels = np.concatenate([self._labels, own])[-self.label_window :]

    def begin(self, images: int) -> None:
        """Let the window begin with the last images, since what came before them is other data; forget the labels.

        Args:
            images: at least one stays.
        """
        self._window.begin(max(images, 1))
        self.forget_labels()

    def forget_labels(self) -> None:
        """Leave the labels so far aside, since they belong to other data than what comes now."""
        self._labels = np.zeros((0, 2))

    def estimate(self) -> AccuracyEstimate:
        """Return the accuracy in the window."""
        known, labels = self._window.scores[:, 0], len(self._labels)
        if not len(known) and labels < FEWEST:
            return AccuracyEstimate(float("nan"), 0.0, 1.0, "nothing", 0, 0, "")
        value, deviation, method = self._predict(len(known)) if len(known) else (float("nan"), float("inf"), "")
        source = "confidence" if self._reference is None else "predicted"
        if labels >= FEWEST:
            own, spread = self._by_labels(known)
            deviation = max(deviation, np.sqrt(max((value - own) ** 2 - spread**2, 0.0)) if len(known) else np.inf)
            weight = 1.0 if np.isinf(deviation) else deviation**2 / (deviation**2 + spread**2)
            value = own if weight == 1.0 else (1 - weight) * value + weight * own
            deviation, source = spread * np.sqrt(weight), "labels" if weight == 1.0 else "predicted and labels"
        half = ndtri((1 + self.level) / 2) * deviation
        low, high = (0.0, 1.0) if np.isinf(half) else (max(float(value - half), 0.0), min(float(value + half), 1.0))
        used = labels if labels >= FEWEST else 0
        return AccuracyEstimate(float(np.clip(value, 0, 1)), low, high, source, used, self._window.seen, method)

    def state(self) -> dict[str, Any]:
        """Return everything that changes, as plain numbers, texts, lists, dictionaries and NumPy arrays."""
        return {"window": self._window.state(), "labels": self._labels.copy(), "size": self._size}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, to the same numbers."""
        labels = np.asarray(state["labels"], float)
        if labels.ndim != 2 or labels.shape[1] != 2:
            raise HapteraError(f"the state has labels of shape {labels.shape}; (n, 2) was expected")
        self._window.restore(state["window"])
        self._labels = labels[-self.label_window :]
        self._size = float("nan") if state["size"] is None else float(state["size"])

    def _promise(self, confidences: np.ndarray) -> np.ndarray:
        """Return what each answer promises: that it is right, or the chance that it is."""
        return confidences if self._reference is None else (confidences >= self._reference.thresholds[0]).astype(float)

    def _predict(self, images: int) -> tuple[float, float, str]:
        """Return the accuracy without labels, its standard error and how it was told."""
        if self._reference is None:
            return float(self._window.scores[:, 0].mean()), float("inf"), "average confidence"
        told = self._window.estimates()
        if not self.combinations:
            return told["thresholded confidence"], float("inf"), "thresholded confidence"
        own = self.combinations.get(bool(np.isfinite(self._size)), self.combinations[False])
        value = own.accuracy({**told, SIZE: self._size})
        return value, own.deviation(value, images, self.level), f"{own.candidates[0].name} and others"

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


def _combine(profile: Profile, reference: Reference) -> dict[bool, Combination]:
    """Whether the size of the shift is known -> the combination that known corruptions choose."""
    frame = profile.known.frame
    names = [*BY_MEANS, *((NUCLEAR,) if reference.likely.shape[1] <= MOST_CLASSES else ())]
    if not {"error", *names} <= set(frame):
        return {}
    known = frame[["shift", "holdout", *names]].assign(accuracy=1 - frame["error"], **{SIZE: frame["size"]})
    clean = reference.own_estimates() | {"accuracy": reference.accuracy, SIZE: 0.0}
    sides = {False: known.drop(columns=SIZE)} | ({True: known} if np.isfinite(known[SIZE]).all() else {})
    made = {size: combine(rows, clean, profile.known.images) for size, rows in sides.items()}
    return {size: own for size, own in made.items() if own is not None}
