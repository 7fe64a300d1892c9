"""Linear centred kernel alignment (CKA): how alike two representations of the same images are, from 0 to 1.

Source: thesis chapter 5, "Similarity analysis", after Kornblith et al. (2019): ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖) of centred
features.
For sets that do not fit in memory, the minibatch form of Nguyen et al. (2021): the unbiased estimate of HSIC by Song et
al. (2012), with kernels XXᵀ and YYᵀ whose diagonals are dropped, summed over batches before the quotient is taken.
Both do not change when features are rotated or all scaled alike; other linear maps change them.
Cost: batch² times features for each representation, and batch² for each pair.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from haptera.errors import HapteraError

LEAST = 4
"""Images in a batch, below which the unbiased estimate does not exist."""


def linear_cka(first: np.ndarray, second: np.ndarray) -> float:
    """CKA of two sets of features `(images, ...)` of the same images, by its definition.

    >>> features = np.random.default_rng(0).normal(size=(20, 5))
    >>> round(linear_cka(features, 3 * features[:, ::-1] + 1), 6)
    1.0
    """
    centred = [part - part.mean(0) for part in _features(first, second, least=2)]
    kernels = [part @ part.T for part in centred]
    norms = [float(np.linalg.norm(kernel)) for kernel in kernels]
    return float((kernels[0] * kernels[1]).sum() / (norms[0] * norms[1])) if min(norms) > 0 else float("nan")


def unbiased_hsic(first: np.ndarray, second: np.ndarray) -> float:
    """The unbiased estimate of HSIC from two kernels `(images, images)`; their diagonals do not matter."""
    n = len(first)
    if n < LEAST or first.shape != (n, n) or second.shape != (n, n):
        raise HapteraError(f"kernels are {first.shape} and {second.shape}; two of the same {LEAST} or more images")
    one, two = (kernel - np.diag(np.diag(kernel)) for kernel in (first, second))
    total = (one * two).sum() + one.sum() * two.sum() / ((n - 1) * (n - 2))
    return float((total - 2 * one.sum(0) @ two.sum(0) / (n - 2)) / (n * (n - 3)))


class MinibatchCKA:
    """CKA between every layer of one network and every layer of another, batch by batch.

    >>> random = np.random.default_rng(0)
    >>> similar = MinibatchCKA()
    >>> for _ in range(5):
    ...     features = random.normal(size=(16, 6))
    ...     similar.add({"a": features}, {"b": features @ np.eye(6)[::-1], "c": random.normal(size=(16, 6))})
    >>> similar.table()["value"].round(1).tolist()[0]
    1.0
    """

    def __init__(self) -> None:
        self._cross: dict[tuple[str, str], float] = {}
        self._own: tuple[dict[str, float], dict[str, float]] = ({}, {})
        self._images = 0

    def add(self, first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]) -> None:
        """Features `(images, ...)` by layer of each network, of the same images."""
        every = _features(*first.values(), *second.values(), least=LEAST)
        kernels = [part @ part.T for part in every]
        ones, twos = dict(zip(first, kernels, strict=False)), dict(zip(second, kernels[len(first) :], strict=True))
        for own, side in zip(self._own, (ones, twos), strict=True):
            for name, kernel in side.items():
                own[name] = own.get(name, 0.0) + unbiased_hsic(kernel, kernel)
        for one, kernel in ones.items():
            for two, other in twos.items():
                self._cross[one, two] = self._cross.get((one, two), 0.0) + unbiased_hsic(kernel, other)
        self._images += len(every[0])

    def table(self) -> pd.DataFrame:
        """`first`, `second`, `value`, `n`: a row for each pair of layers."""
        rows = []
        for (one, two), cross in self._cross.items():
            product = self._own[0][one] * self._own[1][two]
            value = cross / np.sqrt(product) if product > 0 else float("nan")
            rows.append({"first": one, "second": two, "value": value, "n": self._images})
        return pd.DataFrame(rows, columns=["first", "second", "value", "n"])


def _features(*parts: np.ndarray, least: int) -> Sequence[np.ndarray]:
    flat = [np.asarray(part, np.float64).reshape(len(part), -1) for part in parts]
    if len({len(part) for part in flat}) != 1 or len(flat[0]) < least:
        sizes = sorted({len(part) for part in flat})
        raise HapteraError(f"features of {sizes} images; at least {least}, the same for all, were expected")
    return flat
