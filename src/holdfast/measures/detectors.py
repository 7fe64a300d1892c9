"""Detectors of a shift that people use today, for comparison: Kolmogorov and Smirnov per feature, and MMD.

Both take features `(images, features)` of the reference and of the data. KS tests each feature and corrects by
Bonferroni (Rabanser et al. 2019); MMD uses a Gaussian kernel of the median distance and permutes the images.
"""

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import ks_2samp


def ks_p_value(reference: np.ndarray, data: np.ndarray) -> float:
    """The smallest p over features, times their number."""
    p = ks_2samp(reference, data, axis=0).pvalue
    return float(min(np.min(p) * reference.shape[1], 1.0))


def mmd(reference: np.ndarray, data: np.ndarray) -> float:
    """The squared MMD between two samples (biased estimate), with a kernel as wide as the median distance."""
    kernel = _kernel(np.concatenate([reference, data]))
    return _mmd(kernel, np.arange(len(kernel)), len(reference))


def mmd_p_value(reference: np.ndarray, data: np.ndarray, permutations: int = 200, seed: int = 0) -> float:
    """The share of divisions of the pooled features whose MMD is at least that of the given one."""
    kernel = _kernel(np.concatenate([reference, data]))
    random, m = np.random.default_rng(seed), len(reference)
    given = _mmd(kernel, np.arange(len(kernel)), m)
    chance = [_mmd(kernel, random.permutation(len(kernel)), m) for _ in range(permutations)]
    return float((1 + sum(value >= given for value in chance)) / (1 + permutations))


def _kernel(pooled: np.ndarray) -> np.ndarray:
    squares = cdist(pooled, pooled, "sqeuclidean")
    width = np.median(squares[np.triu_indices(len(pooled), 1)])
    return np.exp(-squares / max(width, 1e-12))


def _mmd(kernel: np.ndarray, order: np.ndarray, m: int) -> float:
    signs = np.empty(len(order))
    signs[order[:m]], signs[order[m:]] = 1 / m, -1 / (len(order) - m)
    return float(signs @ kernel @ signs)
