"""Evidence: does a model answer better after a change of its inputs, more than the choice of images can explain?

What is compared is the log-likelihood of the right answer, image by image, each side at the temperature that suits it
best: accuracy alone would need thousands of images, and without the temperature a change that merely makes a model less
sure would look like a better one.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from scipy.stats import ttest_1samp

from haptera.analyses.preflight.sample import Sample

SURE = 0.001
"""The chance of being wrong that a verdict from a test may have, at most."""
LEAST = 0.02
"""Nats for each image; less is not worth a sentence."""
TEMPERATURES = np.geomspace(0.05, 50, 61)


@dataclass(frozen=True)
class Gain:
    """How much better the answers are after a change.

    Attributes:
        before: accuracy.
        after: accuracy.
        nats: log-likelihood of the right answer, after minus before, a mean over images.
        p_value: the chance of such a gain where the change does nothing.
    """

    before: float
    after: float
    nats: float
    p_value: float

    def clear(self, tries: int = 1) -> bool:
        """Say whether it is better beyond doubt, as the best of so many that were tried."""
        return self.nats > LEAST and self.p_value < SURE / tries and self.after >= self.before


def gain(sample: Sample, before: np.ndarray, after: np.ndarray) -> Gain | None:
    """Compare two passes over the same labelled images; None without labels."""
    old, new = sample.accuracy(before), sample.accuracy(after)
    if old is None or new is None or len(sample) < 2:
        return None
    more = likelihoods(sample, after) - likelihoods(sample, before)
    p_value = ttest_1samp(more, 0.0, alternative="greater").pvalue if more.std() > 0 else float(more.mean() <= 0)
    return Gain(old, new, float(more.mean()), float(p_value))


def likelihoods(sample: Sample, logits: np.ndarray) -> np.ndarray:
    """Return the log-likelihood of the right answer of each image, `(images,)`, at the best temperature for all."""
    if not np.isfinite(logits).all():
        return np.full(len(logits), np.log(1e-6))
    assert sample.targets is not None
    outputs = logits.shape[1]
    if sample.classes is None:
        accepted = np.eye(outputs, dtype=bool)[sample.targets]
    else:
        accepted = sample.classes.matrix(outputs)[sample.targets]
        logits = logits[:, sample.classes.columns(outputs)]
    scaled = (logits - logits.max(1, keepdims=True)).astype(float)
    best = max((_at(scaled / t, accepted) for t in TEMPERATURES), key=lambda values: float(values.mean()))
    return best


def _at(logits: np.ndarray, accepted: np.ndarray) -> np.ndarray:
    right = logsumexp(np.where(accepted, logits, -np.inf), axis=1)
    likelihood: np.ndarray = np.maximum(right - logsumexp(logits, axis=1), np.log(1e-6))
    return likelihood
