"""Object keypoint similarity (OKS): the score of COCO's keypoints, from 0 to 1 for each animal.

Source: the COCO keypoint evaluation: the mean over labelled parts of exp(−d² / 2 s² k²), d the distance in pixels, s²
the area of the object and k = 2σ how precisely a part can be labelled.
"""

import numpy as np

from haptera.errors import HapteraError
from haptera.measures.keypoints import keypoint_distances

SIGMA = 0.1
"""The constant for parts of animals, for which COCO has no published value; the usual choice of DeepLabCut."""


def object_keypoint_similarity(
    predicted: np.ndarray, labelled: np.ndarray, areas: np.ndarray, sigmas: np.ndarray | float = SIGMA
) -> np.ndarray:
    """Return `(frames,)`; NaN for a frame without a label. A labelled part without a prediction has a similarity of 0.

    Args:
        predicted: `(frames, parts, 2)`.
        labelled: `(frames, parts, 2)`, NaN where missing.
        areas: `(frames,)`, of each object in square pixels.
        sigmas: `(parts,)`, or one for all.
    """
    distances = keypoint_distances(predicted, labelled)
    areas = np.asarray(areas, float)
    if areas.shape != (len(distances),) or not (areas > 0).all():
        raise HapteraError(f"areas are {areas.shape}; {len(distances)} positive numbers were expected, one for each")
    deviations = 2 * np.broadcast_to(np.asarray(sigmas, float), distances.shape[1:])
    similar = np.exp(-(distances**2) / (2 * areas[:, None] * deviations**2))
    known = np.isfinite(similar)
    counts = known.sum(1)
    return np.where(counts > 0, np.where(known, similar, 0.0).sum(1) / np.maximum(counts, 1), np.nan)
