"""Stability: in how many random halves of the examples an edge is found again, and from which share on to trust it.

Source: Meinshausen and Bühlmann, "Stability selection" (2010), with the complementary pairs and the bound of Shah and
Samworth, "Variable selection with error control" (2013), theorem 2. From each of B pairs of disjoint halves the q
classes that say most about a class are chosen (`forward.choose`), in both halves; an edge's share is taken over all 2B.
If at least τ of them must agree, the edges kept that are found less often than a class drawn at random (with a
probability below θ = q/p, p the candidates) number at most C(τ, B) q²/p for each class in expectation, where their
shares have one mode; C is 1 / 2(2τ − 1 − 1/2B) up to τ = 3/4, 4(1 − τ + 1/2B) / (1 + 1/B) above. Without the mode it
is 1 / (2τ − 1), which is `worst`.
Where the code differs: examples are put into `GROUPS` groups at random, once, and a half is one half of the groups.
Each pair is still a random pair of halves, all that the proofs need, and one pass over the logits serves all of them.
Cost: a second moment for each group, and for each half their sum and a forward selection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.sparse import coo_array, csr_array

from haptera.analyses.dependencies.forward import choose
from haptera.analyses.dependencies.second_moment import Precision, SecondMoment
from haptera.errors import HapteraError

GROUPS = 8
ROWS = 256
"""Rows of a group that wait before they are added: a few at a time would cost more than their product."""
SPARSE = 4
"""At most one candidate in so many is chosen in a half, so that being chosen says something."""


class GroupMoments:
    """Second moments of groups of examples, gathered from batches.

    Args:
        groups: how many.
    """

    def __init__(self, groups: int) -> None:
        precision = Precision()  # of all
        self.moments = [SecondMoment(precision=precision) for _ in range(groups)]
        self._waiting: list[list[tuple[np.ndarray, np.ndarray | None]]] = [[] for _ in range(groups)]

    def add(self, logits: np.ndarray, onto: np.ndarray | None, labels: np.ndarray) -> None:
        """Add a batch; `labels` says to which group each row belongs."""
        for group in np.unique(labels):
            rows = labels == group
            self._waiting[group].append((logits[rows], None if onto is None else onto[rows]))
            if sum(len(part) for part, _ in self._waiting[group]) >= ROWS:
                self._flush(group)

    def finish(self) -> list[SecondMoment]:
        """Return the moments of all groups."""
        for group in range(len(self.moments)):
            self._flush(group)
        return self.moments

    def _flush(self, group: int) -> None:
        waiting, self._waiting[group] = self._waiting[group], []
        if waiting:
            logits, others = zip(*waiting, strict=True)
            onto = None if others[0] is None else np.concatenate(others)
            self.moments[group].add(np.concatenate(logits), onto)


@dataclass(frozen=True, eq=False)
class Stability:
    """How often each edge was found in halves of the examples.

    Attributes:
        shares: `(targets, classes)`, the share of halves in which a class was chosen for a target.
        chosen: q, how many were chosen for each target in a half.
        candidates: p, of how many.
        pairs: B.
        allowed: the expected number of false edges for each class that `cutoff` allows.
    """

    shares: csr_array
    chosen: int
    candidates: int
    pairs: int
    allowed: float

    @classmethod
    def of(
        cls, moments: Sequence[SecondMoment], count: int, resamples: int = 50, allowed: float = 0.1, seed: int = 0
    ) -> "Stability":
        """Choose classes again in pairs of halves.

        Args:
            moments: of groups of examples, each example in one of them.
            count: the most classes to choose for each target.
            resamples: halves, two for each pair.
            allowed: the expected number of false edges for each class.
            seed: of the pairs.
        """
        groups = len(moments)
        if groups < 2:
            raise HapteraError(f"there are {groups} groups of examples; at least 2 were expected for two halves")
        left_out = moments[0].left_out()
        targets, classes = len(left_out), len(moments[0].matrix())
        candidates = classes - bool((left_out >= 0).any())
        chosen = max(min(count, candidates // SPARSE), 1)
        generator, pairs = np.random.default_rng(seed), max(resamples // 2, 1)
        halves = _halves(groups, pairs, generator)
        halves += [[group for group in range(groups) if group not in half] for half in halves]
        found = [choose(*_sum([moments[group] for group in half]), left_out, chosen) for half in halves]
        order = np.concatenate(found, axis=1)
        rows, places = np.nonzero(order >= 0)
        ones = np.full(len(rows), 1 / (2 * pairs))
        shares = coo_array((ones, (rows, order[rows, places])), shape=(targets, classes)).tocsr()
        shares.data = np.round(shares.data * 2 * pairs) / (2 * pairs)
        return cls(csr_array(shares), chosen, candidates, pairs, allowed)

    @property
    def cutoff(self) -> float:
        """The smallest share from which on false edges are as few as allowed; 1 where no share is enough."""
        return cutoff(self.allowed, self.chosen, self.candidates, self.pairs)

    @property
    def false_edges(self) -> float:
        """The expected number of false edges for each class at the cut-off, at most."""
        return false_edges(self.cutoff, self.chosen, self.candidates, self.pairs)

    @property
    def stable(self) -> csr_array:
        """`(targets, classes)`, the shares that reach the cut-off, the others left out."""
        kept = self.shares.copy()
        kept.data = np.where(kept.data >= self.cutoff - 1e-9, kept.data, 0.0)
        kept.eliminate_zeros()
        return kept

    def order(self) -> np.ndarray:
        """`(targets, places)`, the stable classes of each target; -1 for a place that is not used."""
        stable = self.stable
        counts = np.diff(stable.indptr)
        order = np.full((len(counts), max(int(counts.max(initial=0)), 1)), -1)
        order[np.arange(order.shape[1]) < counts[:, None]] = stable.indices
        return order


def false_edges(share: float, chosen: int, candidates: int, pairs: int) -> float:
    """Return the bound of theorem 2 on false edges for each class when `share` of the halves must agree.

    >>> round(false_edges(0.9, chosen=5, candidates=999, pairs=25), 4)
    0.0116
    """
    if share > 0.75:
        constant = 4 * (1 - share + 1 / (2 * pairs)) / (1 + 1 / pairs)
    else:
        constant = 1 / (2 * (2 * share - 1 - 1 / (2 * pairs)))
    return constant * chosen**2 / candidates


def worst(share: float, chosen: int, candidates: int) -> float:
    """Return the bound of Meinshausen and Bühlmann, which supposes nothing about the distribution of shares."""
    return chosen**2 / candidates / (2 * share - 1)


def cutoff(allowed: float, chosen: int, candidates: int, pairs: int) -> float:
    """Return the smallest share, in steps of one half, with at most `allowed` false edges for each class; else 1."""
    theta = chosen / candidates
    least = 0.5 + max(1 / pairs, min(theta**2, 1 / (2 * pairs) + 0.75 * theta**2))
    steps = np.arange(1, 2 * pairs + 1) / (2 * pairs)
    fits = [each for each in steps if each >= least - 1e-12 and false_edges(each, chosen, candidates, pairs) <= allowed]
    return float(fits[0]) if fits else 1.0


def _halves(groups: int, pairs: int, generator: np.random.Generator) -> list[list[int]]:
    """Return one half of the groups for each pair, each another as long as there are others."""
    size = groups // 2
    every = [list(half) for half in combinations(range(groups), size) if 2 * size < groups or 0 in half]
    places = [generator.permutation(len(every)) for _ in range(-(-pairs // len(every)))]
    return [every[place] for place in np.concatenate(places)[:pairs]]


def _sum(moments: Sequence[SecondMoment]) -> tuple[np.ndarray, np.ndarray]:
    """Return C and the right sides of several groups together; their scale does not matter to a choice."""
    matrix = _added([moment.within for moment in moments])
    if moments[0].cross is None:
        return matrix, matrix
    return matrix, np.ascontiguousarray(_added([moment.cross for moment in moments]).T)


def _added(parts: Sequence[np.ndarray | None]) -> np.ndarray:
    """Return the sum of arrays, with no more memory than one of them takes."""
    first, *others = [part for part in parts if part is not None]
    total = first.copy()
    for part in others:
        total += part
    return total
