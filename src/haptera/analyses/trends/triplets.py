"""Triplets: how often three models are right together, counted for all of them, and the six events that follow.

Source: "Why do classifier accuracies show linear trends under distribution shift?", definition 1: of three models, the
six ways in which some but not all are right. For each model the others are compared on the examples that it gets right,
or wrong, whichever are fewer: one matrix product of zeros and ones, in float32 while its sums are exact. The rest is
inclusion and exclusion.
Cost: at most models³ x examples / 6 multiplications, in BLAS; 4 bytes for each triplet, 1 for each model and example.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from haptera.errors import HapteraError

EVENTS = ("1", "2", "3", "12", "13", "23")
"""The six events of a triplet, named after the models that are right, as the source names their probabilities."""
EXACT_IN_FLOAT32 = 2**24


@dataclass(frozen=True, eq=False)
class Counts:
    """How often models are right, alone, in pairs and in triplets.

    Attributes:
        examples: how many there are.
        pair: `(models, models)`; on the diagonal each model alone.
        triple: `(triplets,)`, in the order of `itertools.combinations(range(models), 3)`.
        kept: `(triplets,)`, which of them count; None for all.
    """

    examples: int
    pair: np.ndarray
    triple: np.ndarray
    kept: np.ndarray | None = None

    @property
    def models(self) -> int:
        """How many there are."""
        return len(self.pair)

    @property
    def events(self) -> int:
        """How many there are: six for each triplet."""
        return len(EVENTS) * (len(self.triple) if self.kept is None else int(self.kept.sum()))

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Places of the models `(3, triplets)` and counts of events `(6, triplets)`, one first model at a time."""
        start = 0
        for places in places_of_triplets(self.models):
            i = places[0]
            all_right = self.triple[start : start + len(i)]
            if self.kept is not None:
                own = self.kept[start : start + len(i)]
                places, all_right = places[:, own], all_right[own]
            start += len(i)
            i, j, k = places
            ij, ik, jk = (self.pair[pair] - all_right for pair in ((i, j), (i, k), (j, k)))
            single = self.pair.diagonal()[places] - all_right
            alone = single - np.stack([ij + ik, ij + jk, ik + jk])
            yield places, np.concatenate([alone, [ij, ik, jk]])

    def without(self, model: int) -> "Counts":
        """All triplets without one of the models."""
        kept = [(places != model).all(0) for places in places_of_triplets(self.models)]
        pair = np.delete(np.delete(self.pair, model, 0), model, 1)
        return Counts(self.examples, pair, self.triple[np.concatenate(kept)])

    def with_ends(self, low: int, middle: np.ndarray, high: int) -> "Counts":
        """The triplets of two models with each of some others, which are all that a line through the two needs."""
        wanted = np.zeros(self.models, bool)
        wanted[middle] = True
        kept = [
            (places == low).any(0) & (places == high).any(0) & wanted[places].any(0)
            for places in places_of_triplets(self.models)
        ]
        return replace(self, kept=np.concatenate(kept))


def count_triplets(correct: np.ndarray) -> Counts:
    """Count, for every model, pair and triplet, the examples on which all of them are right.

    Args:
        correct: `(models, examples)`, whether each model is right.

    >>> count_triplets(np.array([[1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1]], bool)).triple.tolist()
    [1]
    """
    pair = count_pairs(correct)
    correct = correct.astype(bool, copy=False)
    models, examples = correct.shape
    if models < 3:
        raise HapteraError(f"there are {models} models; at least three make a triplet")
    triple = []
    for i in range(models - 2):
        often = 2 * pair[i, i] > examples
        upper = np.triu_indices(models - i - 1, 1)
        together = _products(correct[i + 1 :, np.flatnonzero(correct[i] != often)])[upper]
        triple.append((pair[i + 1 :, i + 1 :][upper] - together if often else together).astype(np.int32))
    return Counts(examples, pair, np.concatenate(triple))


def count_pairs(correct: np.ndarray) -> np.ndarray:
    """`(models, models)`, on how many examples both models are right; `correct` is `(models, examples)`."""
    correct = np.asarray(correct)
    if correct.ndim != 2 or not correct.shape[1]:
        raise HapteraError(f"correct has shape {correct.shape}; (models, examples) was expected")
    if correct.dtype != bool and not np.isin(correct, (0, 1)).all():
        raise HapteraError("correct holds other values than 0 and 1")
    return _products(correct.astype(bool, copy=False))


def _products(correct: np.ndarray) -> np.ndarray:
    floats: np.ndarray = correct.astype(np.float32 if correct.shape[1] < EXACT_IN_FLOAT32 else np.float64)
    return (floats @ floats.T).astype(np.int64)


def places_of_triplets(models: int) -> Iterator[np.ndarray]:
    """`(3, triplets)` for each first model, in the order of `itertools.combinations(range(models), 3)`."""
    for i in range(models - 2):
        j, k = np.stack(np.triu_indices(models - i - 1, 1)) + i + 1
        yield np.stack([np.full_like(j, i), j, k])
