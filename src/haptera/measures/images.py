"""What can be said of every image alone, and what tells one image from another, so that two outputs can be paired."""

import numpy as np
import pandas as pd
from scipy.special import log_softmax, logsumexp

from haptera.outputs import Outputs

SAMPLE = "sample"
"""The column of a stream that shows images again: which one it is."""


def image_names(outputs: Outputs) -> pd.Index:
    """Return what tells one image from another.

    Images are the same where their ids are. In a stream that shows images again and again an id is a place in the
    stream, so there the sample, shift and severity say which image it is.
    """
    if SAMPLE not in outputs.context:
        return pd.Index(outputs.ids)
    columns = [outputs.context[key] for key in (SAMPLE, "shift", "severity") if key in outputs.context]
    return pd.MultiIndex.from_arrays(columns)


def scores_of(outputs: Outputs) -> dict[str, np.ndarray]:
    """Return what can be said of every image alone: measure -> `(images,)`."""
    scores: dict[str, np.ndarray] = {}
    if outputs.targets is not None and outputs.targets.ndim == 1:
        scores["accuracy"] = outputs.correct().astype(float)
    if "logits" in outputs.arrays and np.isfinite(outputs.logits).all():
        chances = log_softmax(outputs.logits.astype(float), axis=1)
        scores["confidence"] = np.exp(chances.max(1))
        if "accuracy" in scores:
            size = chances.shape[1]
            accepted = np.eye(size, dtype=bool) if outputs.accepted is None else outputs.accepted
            scores["negative_log_likelihood"] = -logsumexp(
                np.where(accepted[outputs.targets], chances, -np.inf), axis=1
            )
    return scores
