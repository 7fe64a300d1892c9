"""Redundancy: known determinants, fifty digits, exactly singular moments, two networks."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptera.analyses.dependencies.redundancy import Redundancy
from haptera.analyses.dependencies.second_moment import SecondMoment
from haptera.errors import HapteraError


def hilbert(size: int) -> np.ndarray:
    return 1 / (np.arange(size)[:, None] + np.arange(size) + 1.0)


def in_fifty_digits(matrix: np.ndarray) -> np.ndarray:
    """det C / det C_−i,−i of the very floats in the matrix."""
    with mpmath.workdps(60):
        exact = mpmath.matrix(matrix.tolist())
        keep = [[place for place in range(len(matrix)) if place != out] for out in range(len(matrix))]
        minors = [mpmath.matrix([[exact[i, j] for j in rest] for i in rest]) for rest in keep]
        return np.array([float(mpmath.det(exact) / mpmath.det(minor)) for minor in minors])


def logits_in_fifty_digits(rows: np.ndarray) -> np.ndarray:
    with mpmath.workdps(60):
        exact = mpmath.matrix(rows.tolist())
        inverse = (exact.T * exact / len(rows)) ** -1
        return np.array([float(1 / inverse[place, place]) for place in range(rows.shape[1])])


def almost_dependent(scale: float) -> np.ndarray:
    rows = np.random.default_rng(0).standard_normal((30, 6))
    rows[:, 5] = rows[:, 0] + rows[:, 1] + scale * rows[:, 5]
    return rows * [1, 1, 1000, 1, 1, 1]


def test_of_the_example_that_can_be_solved_by_hand():
    found = Redundancy.of(SecondMoment.given(np.array([[2.0, 1.0], [1.0, 1.0]])))
    assert found.value == pytest.approx([1.0, 0.5])
    assert found.relative == pytest.approx([0.5, 0.5])
    assert (found.rank, found.reliable.all()) == (2, True)


def test_of_the_third_hilbert_matrix():
    found = Redundancy.of(SecondMoment.given(hilbert(3)))
    assert found.value == pytest.approx([1 / 9, 1 / 192, 1 / 180], rel=1e-12)


@pytest.mark.parametrize("size", range(2, 15))
def test_of_hilbert_matrices_agrees_with_fifty_digits_or_says_that_it_cannot(size):
    found = Redundancy.of(SecondMoment.given(hilbert(size)))
    exact = in_fifty_digits(hilbert(size))
    off = np.abs(found.value - exact) / np.abs(exact)
    assert (off[found.reliable] <= found.uncertainty[found.reliable]).all()
    assert (off[found.reliable] <= 0.01).all()
    assert found.reliable.all() == (size <= 9)
    assert (found.value <= hilbert(size).diagonal()).all()
    assert (found.value >= 0).all()


@pytest.mark.parametrize("scale", [1e-1, 1e-3, 1e-5, 1e-7, 1e-9, 1e-11])
def test_of_almost_dependent_logits_keeps_twice_the_digits_of_their_moment(scale):
    rows = almost_dependent(scale)
    moment = SecondMoment.of(rows)
    from_moment, from_logits = Redundancy.of(moment), Redundancy.of_logits(rows)
    exact = logits_in_fifty_digits(rows)
    off = np.abs(from_logits.value - exact) / exact
    assert (off <= from_logits.uncertainty).all()
    assert from_logits.reliable.all()
    given_moment = in_fifty_digits(moment.matrix())
    off = np.abs(from_moment.value - given_moment) / np.abs(given_moment)
    assert (off[from_moment.reliable] <= 0.01).all()
    assert from_moment.reliable.all() == (scale > 1e-6)


def as_bfloat16(rows):
    return (rows.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)


STORED = {
    "float64": lambda rows: rows,
    "float32": lambda rows: rows.astype(np.float32),
    "float16": lambda rows: rows.astype(np.float16),
    "float16 in float32": lambda rows: rows.astype(np.float16).astype(np.float32),
    "bfloat16 in float32": as_bfloat16,
    "float32 in float64": lambda rows: rows.astype(np.float32).astype(np.float64),
}


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize(("samples", "classes", "rank"), [(200, 30, 10), (3000, 30, 10), (900, 300, 128)])
def test_the_rank_is_that_before_rounding_however_logits_were_stored(stored, samples, classes, rank):
    random = np.random.default_rng(rank)
    logits = STORED[stored](3 * random.normal(size=(samples, rank)) @ random.normal(size=(rank, classes)))
    for found in (Redundancy.of(SecondMoment.of(logits)), Redundancy.of_logits(logits)):
        assert found.rank == rank
        assert found.precision == stored.split()[0]
        assert (found.value == 0).all()
        assert not found.reliable.any()


@pytest.mark.parametrize("stored", STORED)
def test_classes_of_their_own_keep_their_rank_and_redundancy_in_any_format(stored):
    random = np.random.default_rng(0)
    logits = random.normal(size=(2000, 20)) @ (np.eye(20) + 0.1 * random.normal(size=(20, 20)))
    exact, found = Redundancy.of_logits(logits), Redundancy.of(SecondMoment.of(STORED[stored](logits)))
    assert found.rank == 20
    assert found.reliable.all()
    assert found.value == pytest.approx(exact.value, rel=0.01)


def test_a_network_of_512_features_stored_in_half_precision_has_rank_512():
    random = np.random.default_rng(1)
    features = np.maximum(random.normal(size=(2400, 512)), 0).astype(np.float32)
    logits = features @ (random.normal(size=(512, 1000)) / 20).astype(np.float32)
    assert Redundancy.of(SecondMoment.of(logits.astype(np.float16))).rank == 512


def test_whole_numbers_are_exact():
    rows = np.random.default_rng(2).integers(-9, 9, (50, 4)).astype(np.float16)
    assert Redundancy.of(SecondMoment.of(rows)).precision == "exact"
    assert Redundancy.of(SecondMoment.of(rows)).value == pytest.approx(
        Redundancy.of(SecondMoment.of(rows.astype(np.int64))).value
    )


def test_batches_of_logits_give_the_same_as_all_at_once():
    rows = almost_dependent(0.1)
    parts = Redundancy.of_logits(rows[first : first + 4] for first in range(0, 30, 4))
    assert parts.value == pytest.approx(Redundancy.of_logits(rows).value, rel=1e-12)
    assert parts.spectrum == pytest.approx(np.linalg.svd(rows, compute_uv=False) ** 2 / 30, rel=1e-9)


def test_dependent_classes_are_flagged_and_others_keep_their_value():
    rows = almost_dependent(0.0)
    for found in (Redundancy.of(SecondMoment.of(rows)), Redundancy.of_logits(rows)):
        assert found.rank == 5
        assert found.value[[0, 1, 5]].tolist() == [0, 0, 0]
        assert not found.reliable[[0, 1, 5]].any()
        assert (found.null_mass[[0, 1, 5]] > 0.1).all()
        assert found.reliable[[2, 3, 4]].all()
        without = Redundancy.of(SecondMoment.of(rows[:, :5]))
        assert found.value[[2, 3, 4]] == pytest.approx(without.value[[2, 3, 4]], rel=1e-6)
        assert found.null_mass.sum() == pytest.approx(1)


def test_a_zero_logit_and_fewer_samples_than_classes():
    found = Redundancy.of(SecondMoment.of(np.array([[1.0, 0.0, 2.0]])))
    assert found.rank == 1
    assert found.value.tolist() == [0, 0, 0]
    assert np.isfinite(found.relative).all()
    assert Redundancy.of(SecondMoment.of(np.zeros((4, 3)))).rank == 0


@settings(deadline=None, max_examples=100)
@given(
    st.integers(1, 8).flatmap(
        lambda classes: st.lists(
            st.lists(st.integers(-3, 3), min_size=classes, max_size=classes), min_size=1, max_size=12
        )
    )
)
def test_singular_moments_never_give_nan_or_less_than_zero(rows):
    logits = np.array(rows, float)
    rank = np.linalg.matrix_rank(logits)
    for found in (Redundancy.of(SecondMoment.of(logits)), Redundancy.of_logits(logits)):
        assert np.isfinite(found.value).all()
        assert (found.value >= 0).all()
        assert ((found.relative >= 0) & (found.relative <= 1)).all()
        assert ((found.null_mass >= 0) & (found.null_mass <= 1)).all()
        assert found.rank == rank
        for place in range(logits.shape[1]):  # redundant exactly if the rank does not fall without it
            falls = np.linalg.matrix_rank(np.delete(logits, place, 1)) < rank if logits.shape[1] > 1 else rank == 1
            assert (found.value[place] > 0) == falls


@pytest.mark.parametrize("rank", [3, 8])
def test_onto_another_network_is_the_least_error_without_the_own_class(rank):
    generator = np.random.default_rng(1)
    one = generator.standard_normal((80, rank)) @ generator.standard_normal((rank, 8))
    two = one @ generator.standard_normal((8, 8)) + 0.1 * generator.standard_normal((80, 8))
    found = Redundancy.of(SecondMoment.of(one, two))
    for target in range(8):
        rest = np.delete(one, target, 1)
        fitted = rest @ np.linalg.lstsq(rest, two[:, target], rcond=1e-10)[0]
        least = np.mean((two[:, target] - fitted) ** 2)
        assert found.value[target] == pytest.approx(least, rel=1e-6)
    assert found.reliable.all()


def test_onto_itself_leaves_nothing_where_classes_are_dependent():
    rows = almost_dependent(0.0)
    found = Redundancy.of(SecondMoment.of(rows, rows[:, ::-1].copy()))
    assert (found.value >= 0).all()
    assert found.value[:2] == pytest.approx([0, 0], abs=1e-12)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([np.array([[1.0, np.nan]])], "NaN"),
        ([], "empty"),
        ([np.ones((2, 3)), np.ones((2, 2))], "a batch has 2 classes"),
        ([np.ones(3)], r"\(samples, classes\)"),
    ],
)
def test_bad_logits_are_named(rows, message):
    with pytest.raises(HapteraError, match=message):
        Redundancy.of_logits(rows)
