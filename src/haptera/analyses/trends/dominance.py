"""Dominance: how often a worse model is right where a better one is wrong, and what that says about similarity.

Source: "Why Do Classifier Accuracies Show Linear Trends Under Distribution Shift?", assumption 1, equation (4) and
section 3. Similarity, the share of examples on which both are right or both wrong, is 1 - (µj - µi) - 2 x dominance.
The shares printed there do not all come out of the data, so counts decide here and floats are only shown: four pairs of
the 66 ImageNet models sit at 2,500 of 50,000 exactly, which is not below .05.
Cost: one matrix product, models² x examples.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

import numpy as np
import pandas as pd

from haptera.analyses.trends.triplets import count_pairs
from haptera.checks import check_number
from haptera.errors import HapteraError
from haptera.statistics.intervals import wilson


def dominance(correct: np.ndarray, models: Sequence[str] | None = None) -> pd.DataFrame:
    """One row for each pair of models.

    Args:
        correct: `(models, examples)`, whether each model is right.
        models: their names; by default their places.

    Returns:
        `worse` and `better` (of equal ones, in the order given), the `difference` of their accuracies, `count` and
        `dominance` (worse right, better wrong) with its interval `low` to `high`, `similarity`, the similarity that
        `independent` mistakes would give, and the `excess` of the one over the other; `n`, the examples.

    >>> dominance(np.array([[1, 1, 0, 0], [0, 1, 1, 1]], bool), ["a", "b"])[["worse", "dominance", "similarity"]]
      worse  dominance  similarity
    0     a       0.25        0.25
    """
    pair = count_pairs(correct)
    n = correct.shape[1]
    names = np.array(models if models is not None else [str(i) for i in range(len(pair))], dtype=object)
    if len(names) != len(pair):
        raise HapteraError(f"there are {len(names)} names for {len(pair)} models")
    single = pair.diagonal()
    i, j = np.triu_indices(len(pair), 1)
    turned = single[i] > single[j]
    worse, better = np.where(turned, j, i), np.where(turned, i, j)
    count = single[worse] - pair[worse, better]
    right, other = single[worse] / n, single[better] / n
    both = 1 - (single[better] - single[worse] + 2 * count) / n
    independent = right * other + (1 - right) * (1 - other)
    ends = np.array([wilson(each, n) for each in count.tolist()]).reshape(-1, 2)
    return pd.DataFrame(
        {
            "worse": names[worse],
            "better": names[better],
            "difference": other - right,
            "count": count,
            "dominance": count / n,
            "low": ends[:, 0],
            "high": ends[:, 1],
            "similarity": both,
            "independent": independent,
            "excess": both - independent,
            "n": n,
        }
    )


def share_below(pairs: pd.DataFrame, zeta: float) -> float:
    """The share of pairs whose dominance is below ζ, decided by counts; `pairs` as `dominance` returns them."""
    limit = Fraction(str(zeta))
    return float((pairs["count"] * limit.denominator < pairs["n"] * limit.numerator).mean())


def zeta(pairs: pd.DataFrame, share: float = 1.0) -> float:
    """The least ζ with which assumption 1 holds for a share of the pairs; `pairs` as `dominance` returns them."""
    check_number("share", share, above=0, most=1)
    rank = max(ceil(Fraction(str(share)) * len(pairs)), 1)
    return float(np.sort(pairs["dominance"].to_numpy())[rank - 1])
