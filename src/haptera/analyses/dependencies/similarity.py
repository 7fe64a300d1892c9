"""Similarity of classes that is computed, for the question which dependencies make no sense.

The source cuts dependencies that people find irrational, picked by hand (section 3.3). Without people, two classes are
alike if one is taken for the other, or if the features of their images point the same way:

- `confusion`: with P the mean softmax on the images of each class, Σ_k √(P_ik P_jk), the Bhattacharyya coefficient, 1
  for classes that the network cannot tell apart. Soft, so that a class of fifty images has a value for every other.
- `features`: the cosine of the mean features of two classes, each less the mean of all, and 0 where it is negative.

`wordnet` is in a file of its own. Any other similarity can be given as a matrix.
Cost: one pass over the logits or features.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy.special import softmax

from haptera.errors import HapteraError, unknown
from haptera.files.npz import member, open_npz

KINDS = ("confusion", "features", "wordnet", "none")


def confusion_similarity(
    batches: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray | None]], classes: int
) -> np.ndarray:
    """Return `(classes, classes)` from batches of (anything, logits, targets); 0 for a class without images.

    >>> sure = np.log(np.array([[0.9, 0.1], [0.1, 0.9]]))
    >>> confusion_similarity([(sure, sure, np.array([0, 1]))], 2).round(3).tolist()
    [[1.0, 0.6], [0.6, 1.0]]
    """
    sums, images = np.zeros((classes, classes)), np.zeros(classes)
    for _, logits, targets in batches:
        if targets is None:
            raise HapteraError("similarity by confusion needs targets, and the file has none")
        np.add.at(sums, targets, softmax(np.asarray(logits, np.float64), axis=1))
        images += np.bincount(targets, minlength=classes)
    roots = np.sqrt(sums / np.maximum(images, 1)[:, None])
    return np.clip(roots @ roots.T, 0.0, 1.0)


def feature_similarity(features: np.ndarray, targets: np.ndarray, classes: int) -> np.ndarray:
    """Return `(classes, classes)` from features `(samples, width)`; 0 for a class without images."""
    features = np.asarray(features, np.float64)
    if features.ndim != 2 or len(features) != len(targets):
        raise HapteraError(f"features have shape {features.shape}; ({len(targets)}, width) was expected")
    sums = np.zeros((classes, features.shape[1]))
    np.add.at(sums, targets, features - features.mean(0))
    size = np.linalg.norm(sums, axis=1, keepdims=True)
    means = np.divide(sums, size, out=np.zeros_like(sums), where=size > 0)
    return np.clip(means @ means.T, 0.0, 1.0)


def given_similarity(path: Path, classes: int) -> np.ndarray:
    """Return the array `similarity` of an .npz."""
    with open_npz(path) as file:
        if "similarity" not in file.files:
            raise HapteraError(f"{path} holds {', '.join(file.files) or 'nothing'}; similarity was expected")
        matrix = np.asarray(member(file, "similarity", path), np.float64)
    if matrix.shape != (classes, classes) or not ((matrix >= 0) & (matrix <= 1)).all():
        expected = f"({classes}, {classes}) with values in [0, 1] was expected"
        raise HapteraError(f"{path}: similarity has shape {matrix.shape}; {expected}")
    return matrix


def similarity_file(kind: str) -> Path | None:
    """Return the file that a similarity names; None where it names a kind."""
    if kind in KINDS:
        return None
    if not kind.endswith(".npz"):
        raise unknown("similarity", kind, (*KINDS, "FILE.npz"))
    return Path(kind)
