"""Paths: each rule is optimal in its own sense, against all paths of small grids."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptera.errors import HapteraError
from haptera.streams.calibration import RULES, find_path

SAMPLES = 20


def mean_along(counts, samples, path):
    """The mean accuracy of a path."""
    return sum(int(counts[cell]) for cell in path) / (samples * len(path))


def all_paths(grid):
    """Every valid path from every start, by recursion."""

    def onward(path):
        row, column = path[-1]
        if row == 0:
            yield path
            return
        yield from onward([*path, (row - 1, column)])
        if column + 1 < grid:
            yield from onward([*path, (row, column + 1)])

    for start in range(grid):
        yield from onward([(start, 0)])


MATRICES = st.integers(2, 5).flatmap(
    lambda grid: st.lists(st.integers(0, SAMPLES), min_size=grid**2, max_size=grid**2).map(
        lambda values: np.array(values).reshape(grid, grid)
    )
)


@given(MATRICES, st.floats(0, 1))
@settings(max_examples=150, deadline=None)
def test_text_has_the_mean_nearest_the_target_of_all_paths(counts, target):
    found = abs(mean_along(counts, SAMPLES, find_path(counts, SAMPLES, target, "text")) - target)
    best = min(abs(mean_along(counts, SAMPLES, path) - target) for path in all_paths(len(counts)))
    assert found == pytest.approx(best, abs=1e-12)


@given(MATRICES, st.floats(0, 1))
@settings(max_examples=150, deadline=None)
def test_steady_has_the_least_mean_squared_deviation_of_all_paths(counts, target):
    def deviation(path):
        return np.mean([(counts[cell] / SAMPLES - target) ** 2 for cell in path])

    found = deviation(find_path(counts, SAMPLES, target, "steady"))
    assert found == pytest.approx(min(map(deviation, all_paths(len(counts)))), abs=1e-12)


@given(MATRICES, st.floats(0, 1))
@settings(max_examples=150, deadline=None)
def test_code_goes_on_by_the_move_that_keeps_the_mean_of_the_rest_nearer(counts, target):
    def rest(row, column):
        """The public generator's recursion: of the two ways on, the one with the nearer mean, itself included."""
        if row == 0:
            return [(row, column)]
        ways = [rest(row, column + 1)] if column + 1 < len(counts) else []
        paths = [[(row, column), *way] for way in (*ways, rest(row - 1, column))]
        return min(paths, key=lambda path: abs(mean_along(counts, SAMPLES, path) - target))

    paths = [rest(start, 0) for start in range(1, len(counts))]
    best = min(paths, key=lambda path: abs(mean_along(counts, SAMPLES, path) - target))
    assert find_path(counts, SAMPLES, target, "code") == best


def test_code_breaks_ties_towards_more_of_the_second_shift_and_never_starts_clean():
    everywhere_alike = np.full((3, 3), 10)
    assert find_path(everywhere_alike, SAMPLES, 0.5, "code") == [(1, 0), (1, 1), (1, 2), (0, 2)]


@pytest.mark.parametrize("rule", RULES)
@given(counts=MATRICES, target=st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_every_path_starts_moves_and_ends_as_specified(rule, counts, target):
    path = find_path(counts, SAMPLES, target, rule)
    assert path[0][1] == 0
    assert path[-1][0] == 0
    assert all(row > 0 for row, _ in path[:-1])
    for (row, column), (next_row, next_column) in pairwise(path):
        assert (row - next_row, next_column - column) in {(1, 0), (0, 1)}


def test_a_full_grid_is_solved_and_lengths_are_those_published_for_a_hard_target():
    grid = np.add.outer(np.arange(21), np.arange(21)) / 40
    counts = np.round(5000 * 0.76 * (1 - grid) ** 2).astype(int)
    hard = find_path(counts, 5000, 0.02, "steady")
    assert len(hard) == 41  # the only way to stay hard: hold s1 at 5 until s2 is 5 too
    for rule in RULES:
        path = find_path(counts, 5000, 0.34, rule)
        assert abs(mean_along(counts, 5000, path) - 0.34) < 0.02


def test_an_unknown_rule_is_named():
    with pytest.raises(HapteraError, match="unknown rule 'stedy'; did you mean 'steady'"):
        find_path(np.zeros((2, 2), int), 1, 0.5, "stedy")
