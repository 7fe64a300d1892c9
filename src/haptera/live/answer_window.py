"""Window of answers: what estimators of accuracy without labels look at, kept for the last images of a stream.

Estimators by means (`haptera.measures.label_free`) need three numbers of each image, which are computed as it arrives.
The nuclear norm needs the probabilities of the whole window; it is told anew when a quarter of the window is new, and
not at all with more than `MOST_CLASSES` classes, where it would cost more than the model. Optimal transport, an
assignment of every image of the window, always would.
Cost: some tens of microseconds for a batch. Holds a row of probabilities for each image, or three numbers.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from haptera.errors import HapteraError
from haptera.measures.label_free import NUCLEAR, Reference, scores_of

MOST_CLASSES = 100
PARTS = 4
"""How often the nuclear norm is told anew while the window is replaced."""


class AnswerWindow:
    """The answers to the last images.

    Args:
        images: at most so many.
        reference: what the model says about labelled data; None where only confidences are wanted.

    Attributes:
        scores: `(images, 3)`, of each answer (`haptera.measures.label_free.scores_of`) that is a number.
        seen: images of the window, those whose answer is not a number included.
    """

    def __init__(self, images: int, reference: Reference | None = None) -> None:
        self.images, self._reference = images, reference
        classes = 0 if reference is None else reference.likely.shape[1]
        self._classes = classes if classes <= MOST_CLASSES else 0
        self._rows, self._likely = np.zeros((0, 3)), np.zeros((0, self._classes), np.float32)
        self._norm, self._new = float("nan"), 0

    @property
    def seen(self) -> int:
        """How many images there are."""
        return len(self._rows)

    @property
    def scores(self) -> np.ndarray:
        """`(images, 3)` of the answers that are numbers."""
        known = np.isfinite(self._rows[:, 0])
        return self._rows if known.all() else self._rows[known]

    def update(self, logits: np.ndarray) -> None:
        """Add a batch of logits, `(images, classes)`."""
        likely = likelihoods(logits)
        self._rows = np.concatenate([self._rows, scores_of(likely)])[-self.images :]
        if self._classes:
            self._likely = np.concatenate([self._likely, likely.astype(np.float32)])[-self.images :]
            self._new += len(likely)
            part = self.images // PARTS
            if self._new >= part or len(self._rows) < part or np.isnan(self._norm):
                self._tell_norm()

    def begin(self, images: int) -> None:
        """Keep the last images alone."""
        self._rows, self._likely = self._rows[-images:], self._likely[-images:]
        if self._classes:
            self._tell_norm()

    def estimates(self) -> dict[str, float]:
        """Name of an estimator -> accuracy in the window, which has an answer; empty without a reference."""
        if self._reference is None:
            return {}
        found = self._reference.by_means(self.scores)
        return found | {NUCLEAR: self._norm} if self._classes else found

    def state(self) -> dict[str, Any]:
        """Return everything that changes."""
        own = {"scores": self._rows.copy(), "likely": self._likely.copy()}
        return own | {"norm": None if np.isnan(self._norm) else self._norm, "new": self._new}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, to the same numbers."""
        rows, likely = np.asarray(state["scores"], float), np.asarray(state["likely"], np.float32)
        if rows.ndim != 2 or rows.shape[1] != 3 or likely.shape[1:] != (self._classes,):
            wanted = f"(n, 3) and (n, {self._classes})"
            raise HapteraError(f"the state has shapes {rows.shape}, {likely.shape}; {wanted} were expected")
        self._rows, self._likely = rows[-self.images :], likely[-self.images :]
        self._norm = float("nan") if state["norm"] is None else float(state["norm"])
        self._new = int(state["new"])

    def _tell_norm(self) -> None:
        assert self._reference is not None
        known = self._likely[np.isfinite(self._likely).all(1)]
        self._norm = self._reference.nuclear_norm(known.astype(float)) if len(known) else float("nan")
        self._new = 0


def likelihoods(logits: np.ndarray) -> np.ndarray:
    """Return probabilities `(images, classes)`; NaN where a logit is not finite."""
    logits = np.asarray(logits, float)
    if logits.ndim != 2:
        raise HapteraError(f"logits have shape {logits.shape}; (images, classes) was expected")
    known = np.isfinite(logits).all(1, keepdims=True)
    finite = bool(known.all())
    logits = logits if finite else np.where(known, logits, 0.0)
    found = np.exp(logits - logits.max(1, keepdims=True))
    found /= found.sum(1, keepdims=True)
    return found if finite else np.where(known, found, np.nan)
