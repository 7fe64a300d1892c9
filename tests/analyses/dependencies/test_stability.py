"""Stability: shares against counting by hand, the bound against noise, and a planted graph against the plain lasso."""

import numpy as np
import pytest
from tests.analyses.dependencies.planted import planted
from tests.analyses.dependencies.test_forward import obvious

from haptera.analyses.dependencies.lasso import keep
from haptera.analyses.dependencies.second_moment import SecondMoment
from haptera.analyses.dependencies.stability import (
    GROUPS,
    GroupMoments,
    Stability,
    _halves,
    cutoff,
    false_edges,
    worst,
)
from haptera.errors import HapteraError


def groups_of(logits: np.ndarray, groups: int = GROUPS, seed: int = 0) -> list[SecondMoment]:
    labels = np.random.default_rng(seed).permutation(len(logits)) % groups
    return [SecondMoment.of(logits[labels == group]) for group in range(groups)]


def test_shares_are_counted_over_both_halves_of_every_pair():
    logits = np.random.default_rng(0).standard_normal((48, 9))
    logits[:, 0] += logits[:, 1] + 0.3 * logits[:, 2]
    labels = np.arange(48) % 4
    moments = [SecondMoment.of(logits[labels == group]) for group in range(4)]
    found = Stability.of(moments, count=5, resamples=6)
    assert (found.chosen, found.candidates, found.pairs) == (2, 8, 3)
    counts = np.zeros((9, 9))
    for half in ([0, 1], [0, 2], [0, 3], [2, 3], [1, 3], [1, 2]):  # all halves there are
        rows = logits[np.isin(labels, half)]
        for target in range(9):
            counts[target, obvious(rows, rows[:, target], target, 2)] += 1
    assert found.shares.toarray() == pytest.approx(counts / 6)


def test_pairs_are_different_halves_of_all_groups():
    halves = _halves(10, 126, np.random.default_rng(0))
    assert len({tuple(half) for half in halves}) == 126
    assert all(len(half) == 5 and 0 in half for half in halves)
    assert len(_halves(4, 8, np.random.default_rng(0))) == 8


def test_groups_gather_what_batches_bring_in_any_order():
    logits = np.random.default_rng(0).standard_normal((1500, 4))
    labels = np.random.default_rng(1).integers(0, 3, 1500)
    gathered = GroupMoments(3)
    for first in range(0, 1500, 70):
        gathered.add(logits[first : first + 70], None, labels[first : first + 70])
    for group, moment in enumerate(gathered.finish()):
        rows = logits[labels == group]
        assert moment.samples == len(rows)
        assert moment.matrix() == pytest.approx(rows.T @ rows / len(rows))


def test_the_bound_is_that_of_theorem_2():
    # By hand: B = 50, q = 10, p = 500. At τ = 0.7, 1 / (2 (0.4 - 0.01)) = 1.28205; at 0.9, 4 (0.1 + 0.01) / 1.02.
    assert false_edges(0.7, 10, 500, 50) == pytest.approx(1.28205 * 0.2, rel=1e-5)
    assert false_edges(0.9, 10, 500, 50) == pytest.approx(0.44 / 1.02 * 0.2)
    assert worst(0.9, 10, 500) == pytest.approx(0.25)
    assert false_edges(0.9, 10, 500, 50) < worst(0.9, 10, 500)
    share = cutoff(0.05, 10, 500, 50)
    assert false_edges(share, 10, 500, 50) <= 0.05 < false_edges(share - 0.01, 10, 500, 50)
    assert cutoff(1e-9, 10, 500, 50) == 1.0


def test_noise_leaves_no_more_stable_edges_than_the_bound():
    """Classes that have nothing to do with one another: every edge is false."""
    kept, bound = [], 0.0
    for seed in range(6):
        logits = np.random.default_rng(seed).standard_normal((200, 40))
        found = Stability.of(groups_of(logits, seed=seed), count=4, resamples=50, allowed=0.2, seed=seed)
        kept.append(found.stable.nnz / 40)
        bound = found.false_edges
    assert bound <= 0.2
    assert np.mean(kept) <= bound
    assert found.shares.nnz > 400  # in any half noise is chosen all the time


@pytest.mark.parametrize("samples", [120, 300, 1000])
def test_stable_edges_are_better_than_the_plain_lassos_at_the_same_number(samples):
    """Of the planted classes' edges: those of the largest share against those of the largest coefficient."""
    precisions = []
    for seed in range(2):
        logits, targets, truth = planted(30, samples, seed=seed)
        stability = Stability.of(groups_of(logits, seed=seed), count=5, seed=seed)
        matrix = SecondMoment.of(logits).matrix()
        plain = np.abs(keep(matrix, matrix, np.arange(30), 3)[1].toarray())
        rows = []
        for scores in (stability.shares.toarray(), plain):
            best = np.argsort(-scores[targets], axis=1, kind="stable")[:, :3]
            rows.append(np.take_along_axis(truth[targets], best, 1).mean())  # as many as planted: precision is recall
        precisions.append(rows)
    ours, theirs = np.mean(precisions, axis=0)
    assert ours > theirs + 0.1
    assert ours > 0.8


def test_what_the_cutoff_keeps_is_nearly_all_planted():
    logits, targets, truth = planted(60, 1500, seed=3)
    stable = Stability.of(groups_of(logits), count=5).stable[targets].toarray() > 0
    assert (stable & truth[targets]).sum() >= 0.9 * truth.sum()
    assert (stable & ~truth[targets]).sum() <= 0.25 * stable.sum()  # siblings made of the same classes count as false


def test_one_group_is_refused():
    with pytest.raises(HapteraError, match="at least 2"):
        Stability.of(groups_of(np.ones((3, 3)), groups=1), count=1)
