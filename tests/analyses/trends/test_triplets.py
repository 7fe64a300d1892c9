"""Counts of pairs, triplets and events against loops over examples."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from haptera.analyses.trends.triplets import EVENTS, count_triplets
from haptera.errors import HapteraError

matrices = st.tuples(st.integers(3, 6), st.integers(1, 30)).flatmap(lambda shape: arrays(bool, shape))


def events_one_by_one(correct):
    """For each triplet and event, in how many columns exactly these models are right."""
    counts = []
    for triplet in combinations(range(len(correct)), 3):
        for event in EVENTS:
            wanted = tuple(str(place) in event for place in (1, 2, 3))
            counts.append(sum(tuple(correct[list(triplet), column]) == wanted for column in range(correct.shape[1])))
    return counts


@settings(max_examples=60, deadline=None)
@given(matrices)
def test_events_are_those_counted_one_by_one(correct):
    counts = count_triplets(correct)
    found = np.concatenate([events for _, events in counts.blocks()], axis=1)
    assert found.T.ravel().tolist() == events_one_by_one(correct)
    assert counts.events == found.size


def test_places_come_in_the_order_of_combinations():
    counts = count_triplets(np.random.default_rng(0).random((7, 40)) < 0.5)
    places = np.concatenate([places for places, _ in counts.blocks()], axis=1)
    assert list(map(tuple, places.T)) == list(combinations(range(7), 3))


@pytest.mark.parametrize("accuracy", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_rare_and_frequent_successes_are_counted_alike(accuracy):
    correct = np.random.default_rng(1).random((6, 500)) < accuracy
    expected = [int((correct[i] & correct[j] & correct[k]).sum()) for i, j, k in combinations(range(6), 3)]
    assert count_triplets(correct).triple.tolist() == expected


def test_without_a_model_the_counts_are_those_of_the_others():
    correct = np.random.default_rng(2).random((6, 100)) < 0.6
    for model in range(6):
        left, expected = count_triplets(correct).without(model), count_triplets(np.delete(correct, model, 0))
        assert np.array_equal(left.pair, expected.pair)
        assert np.array_equal(left.triple, expected.triple)


@pytest.mark.parametrize(
    ("correct", "message"),
    [
        (np.zeros((2, 5), bool), "2 models; at least three"),
        (np.zeros(5, bool), r"shape \(5,\)"),
        (np.zeros((3, 0), bool), r"shape \(3, 0\)"),
        (np.full((3, 4), 2), "other values than 0 and 1"),
    ],
)
def test_what_is_no_matrix_of_zeros_and_ones_is_refused(correct, message):
    with pytest.raises(HapteraError, match=message):
        count_triplets(correct)
