"""Scores of an attribution map against a known one: area under the ROC curve, and average precision.

Source: thesis chapter 8, tables 8.1 and 8.2, which score the latents of one part only (z2). Of several parts each is
scored by itself, since the scale of a latent is arbitrary.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from haptera.errors import HapteraError


@dataclass(frozen=True)
class MapScores:
    """How well a map tells connected inputs from others.

    Attributes:
        auroc: the chance that a connected entry has the larger value; .5 for a map that knows nothing.
        average_precision: mean precision over the connected entries; `connected` for a map that knows nothing.
        connected: the share of entries that are connected.
        n: entries.
    """

    auroc: float
    average_precision: float
    connected: float
    n: int


def map_scores(found: np.ndarray, true: np.ndarray, latents: "slice | list[int] | None" = None) -> MapScores:
    """Score a map.

    Args:
        found: `(latents, inputs)`, larger where connected.
        true: the same shape, 1 or True where connected.
        latents: only these rows; all by default.

    >>> map_scores(np.array([[0.9, 0.2], [0.8, 0.4]]), np.array([[1, 0], [1, 1]])).auroc
    1.0
    """
    found, true = np.asarray(found, float), np.asarray(true, bool)
    if found.shape != true.shape:
        raise HapteraError(f"the maps have shapes {found.shape} and {true.shape}; the same was expected")
    chosen = slice(None) if latents is None else latents
    values, connected = found[chosen].ravel(), true[chosen].ravel()
    if connected.all() or not connected.any():
        what = "every entry" if connected.all() else "no entry"
        raise HapteraError(f"{what} of the known map is connected; there is nothing to tell apart")
    return MapScores(
        float(roc_auc_score(connected, values)),
        float(average_precision_score(connected, values)),
        float(connected.mean()),
        len(values),
    )
