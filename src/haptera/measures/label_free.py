"""Accuracy without labels: what the probabilities of one model say about it, by the estimators that people use.

A `Reference` is what a model says about labelled data; its `estimates` are the accuracies on new data without labels.
The logits `(images, classes)` may be logarithms of probabilities.

- average confidence: the mean of the largest probability (no reference needed).
- difference of confidences (Guillory et al. 2021): reference accuracy less the fall of the mean confidence.
- thresholded confidence, ATC (Garg et al. 2022): the share of images above the confidence, or the negative entropy,
  that as many reference images are above as are right.
- confidence optimal transport, COT (Lu et al. 2023): one less the cost of moving the predicted probabilities to classes
  that are as frequent as on the reference; the cost of a class is one less its probability. It knows what the others do
  not: a model that answers with one class only cannot be right. In groups of 1,000 images, each an assignment problem.
- nuclear norm (Deng et al. 2023): of the matrix of probabilities, over its largest value; confident and spread over
  classes. MaNo (Xie et al. 2024): the fourth norm of the normalised logits, here from 0 (all classes alike) to 1 (one
  class each). The sources correlate both scores with accuracy; here their fall since the reference is taken from the
  accuracy there, as for confidences. The nuclear norm depends on how many images there are, the more the more classes
  there are, so that both sides are looked at in groups of the same size.

All of them fail where a model is confidently wrong; `haptera trends --unlabelled`, `haptera diagnose` and a guard's
profile say how far off they were on shifts that are known.
Cost: that of the softmax; COT n² to n³ in groups of 1,000 (a tenth of a second each), the nuclear norm a small
singular value decomposition. Those by means cost nothing along a stream: what each image adds to them is known at once.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_softmax

from haptera.correctness import correct
from haptera.errors import HapteraError

if TYPE_CHECKING:
    from haptera.data import Classes

GROUP = 1000
"""Images that are assigned to classes at once, and at most those that a nuclear norm is of."""
GROUPS = 8
"""The most groups that a nuclear norm is the mean of."""
POWER = 4
BY_MEANS = (
    "average confidence", "difference of confidences", "thresholded confidence", "thresholded entropy", "MaNo",
)  # fmt: skip
"""Estimators that need means over images alone."""
NUCLEAR, TRANSPORT = "nuclear norm", "optimal transport"
ESTIMATES = (*BY_MEANS[:4], TRANSPORT, NUCLEAR, BY_MEANS[4])
"""Names of all estimators."""


@dataclass(frozen=True, eq=False)
class Reference:
    """What a model says about labelled data without a shift.

    Attributes:
        accuracy: there.
        scores: `(images, 3)`, of the answers (`scores_of`).
        likely: `(at most GROUP x GROUPS, classes)`, probabilities of images in random order.
        shares: `(classes,)`, how frequent they are; None leaves optimal transport out.
        columns: of the outputs that are looked at; None for all.
    """

    accuracy: float
    scores: np.ndarray
    likely: np.ndarray
    shares: np.ndarray | None = None
    columns: np.ndarray | None = None
    _norms: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, outputs: np.ndarray, targets: np.ndarray, classes: "Classes | None" = None) -> "Reference":
        """Return the reference of outputs and targets.

        Args:
            outputs: `(images, outputs)`; an answer that is not a number is wrong, and not looked at.
            targets: `(images,)`.
            classes: how targets relate to the outputs; None if target i is output i.
        """
        outputs, targets = np.asarray(outputs), np.asarray(targets)
        if outputs.ndim != 2 or len(targets) != len(outputs) or not len(outputs):
            raise HapteraError(f"there are {len(targets)} targets for {len(outputs)} images of the reference")
        right, columns, own = correct(outputs, targets, classes), None, targets
        if classes is not None:
            columns = classes.columns(outputs.shape[1])
            accepted = classes.matrix(outputs.shape[1])[targets]
            own = np.where(accepted, outputs[:, columns], -np.inf).argmax(1)
            outputs = outputs[:, columns]
        shares = np.bincount(own, minlength=outputs.shape[1]) / len(own)
        return cls.of_answers(outputs, float(right.mean()), shares, columns)

    @classmethod
    def of_answers(
        cls,
        logits: np.ndarray,
        accuracy: float,
        shares: np.ndarray | None = None,
        columns: np.ndarray | None = None,
    ) -> "Reference":
        """Return the reference of logits, all of whose columns are looked at, with this accuracy."""
        likely = probabilities(logits[np.isfinite(logits).all(1)])
        if not len(likely):
            raise HapteraError("the reference has no image whose logits are all numbers")
        order = np.random.default_rng(0).permutation(len(likely))[: GROUP * GROUPS]
        return cls(accuracy, scores_of(likely), likely[order], shares, columns)

    def estimates(self, outputs: np.ndarray) -> dict[str, float]:
        """Name of an estimator -> accuracy on images with these outputs; an answer that is not a number is wrong."""
        finite = np.isfinite(outputs).all(1)
        if not finite.any():
            return dict.fromkeys(self._names, 0.0)
        own = outputs[finite] if self.columns is None else outputs[finite][:, self.columns]
        likely = probabilities(own)
        found = self.by_means(scores_of(likely))
        if self.shares is not None:
            found[TRANSPORT] = _transport(self.shares, likely)
        found[NUCLEAR] = self.nuclear_norm(likely)
        return {name: float(finite.mean()) * found[name] for name in self._names}

    def own_estimates(self) -> dict[str, float]:
        """Name of an estimator -> what it says of the reference itself."""
        found = self.by_means(self.scores) | {NUCLEAR: self.accuracy}
        return found if self.shares is None else found | {TRANSPORT: _transport(self.shares, self.likely)}

    def by_means(self, scores: np.ndarray) -> dict[str, float]:
        """Name of an estimator by means -> accuracy on images with these scores, `(images, 3)`."""
        sure, _, fourth = scores.mean(0).tolist()
        above = scores[:, :2] >= self.thresholds
        told = (
            sure,
            self._less(self._means[0] - sure),
            *(above.mean(0).tolist() if self.accuracy else (0.0, 0.0)),
            self._less(self._mano(self._means[2]) - self._mano(fourth)),
        )
        return dict(zip(BY_MEANS, told, strict=True))

    def nuclear_norm(self, likely: np.ndarray) -> float:
        """Return reference accuracy less the fall of the nuclear norm of the probabilities."""
        images = min(len(likely), len(self.likely), GROUP)
        if images not in self._norms:
            self._norms[images] = _nuclear(self.likely, images)
        return self._less(self._norms[images] - _nuclear(likely, images))

    @cached_property
    def thresholds(self) -> np.ndarray:
        """Confidence and negative entropy that as many reference images are above as are right."""
        found: np.ndarray = np.quantile(self.scores[:, :2], 1 - self.accuracy, axis=0)
        return found

    @cached_property
    def _means(self) -> list[float]:
        found: list[float] = self.scores.mean(0).tolist()
        return found

    @property
    def _names(self) -> list[str]:
        return [name for name in ESTIMATES if name != TRANSPORT or self.shares is not None]

    def _less(self, fall: float) -> float:
        return min(max(self.accuracy - float(fall), 0.0), 1.0)

    def _mano(self, fourth: float) -> float:
        """Return the norm of the normalised logits, from 0 to 1, by the mean of the fourth powers."""
        classes = self.likely.shape[1]
        least, most = 1 / classes, classes ** (-1 / POWER)
        return float((fourth ** (1 / POWER) - least) / (most - least))


def estimate_all(reference: np.ndarray, targets: np.ndarray, logits: np.ndarray) -> dict[str, float]:
    """Name of an estimator -> the accuracy that it predicts.

    Args:
        reference: `(images, classes)`, logits on labelled data.
        targets: `(images,)`.
        logits: `(images, classes)`, on new data.

    >>> sure, unsure = np.array([4.0, 0.0]), np.array([0.1, 0.0])
    >>> new = np.array([sure, sure, unsure, unsure])
    >>> estimate_all(np.array([sure, unsure]), np.array([0, 1]), new)["thresholded confidence"]
    0.5
    """
    reference, logits = np.asarray(reference), np.asarray(logits)
    if reference.ndim != 2 or logits.ndim != 2 or reference.shape[1] != logits.shape[1]:
        raise HapteraError(
            f"logits have the shapes {reference.shape} and {logits.shape}; (images, classes) with the same classes "
            "were expected"
        )
    if not len(logits):
        raise HapteraError("there are no images of the new data")
    return Reference.of(reference, targets).estimates(logits)


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Return the softmax, `(images, classes)`."""
    found: np.ndarray = np.exp(log_softmax(np.asarray(logits, float), axis=1))
    return found


def scores_of(likely: np.ndarray) -> np.ndarray:
    """What estimators by means look at, `(images, 3)`: confidence, negative entropy, and the mean of fourth powers."""
    logs = np.log(likely, where=likely > 0, out=np.zeros_like(likely))
    squares = likely * likely
    return np.stack([likely.max(1), (likely * logs).sum(1), (squares * squares).mean(1)], axis=1)


def _transport(shares: np.ndarray, likely: np.ndarray) -> float:
    """Return one less the cost of moving the probabilities to classes as frequent as on the reference."""
    from scipy.optimize import linear_sum_assignment

    total = 0.0
    for group in np.array_split(np.random.default_rng(0).permutation(len(likely)), -(-len(likely) // GROUP)):
        own = likely[group]
        classes = np.repeat(np.arange(len(shares)), _whole(shares, len(group)))
        rows, columns = linear_sum_assignment(-own[:, classes])
        total += float(own[rows, classes[columns]].sum())
    return total / len(likely)


def _whole(shares: np.ndarray, n: int) -> np.ndarray:
    """Whole numbers that add up to n, as near to the shares as they can be."""
    exact = shares * n
    whole = np.floor(exact).astype(int)
    whole[np.argsort(whole - exact, kind="stable")[: n - whole.sum()]] += 1
    return whole


def _nuclear(likely: np.ndarray, images: int) -> float:
    """Return the mean over groups of so many images of their nuclear norm, over its largest value.

    Groups are of images in random order, and overlap where there are not several times as many.
    """
    if len(likely) == images:
        return _norm(likely)
    likely = likely[np.random.default_rng(0).permutation(len(likely))]
    starts = np.linspace(0, len(likely) - images, min(-(-len(likely) // images), GROUPS)).astype(int)
    return float(np.mean([_norm(likely[start : start + images]) for start in starts]))


def _norm(likely: np.ndarray) -> float:
    gram = likely.T @ likely if len(likely) > likely.shape[1] else likely @ likely.T
    values = np.sqrt(np.clip(np.linalg.eigvalsh(gram), 0, None))
    return float(values.sum() / np.sqrt(len(likely) * min(likely.shape)))
