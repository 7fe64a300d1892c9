"""Live channels: dead ones are left out whatever the scale of a layer, and no variance to divide by is nearly zero."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.statistics.moments import DEAD, FLOOR, live, scale, typical_variance

variances = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30).map(np.array)


@given(variances, st.integers(0, 40), st.floats(1e-6, 1e6))
def test_dead_channels_change_nothing_of_the_others(var, dead, unit):
    with_dead = np.concatenate([var, np.zeros(dead)]) * unit
    assert typical_variance(with_dead) == pytest.approx(typical_variance(var) * unit)
    assert scale(with_dead)[: len(var)] == pytest.approx(scale(var) * unit)
    assert not live(with_dead)[len(var) :].any()


@given(variances)
def test_what_is_divided_by_is_never_below_the_floor_and_never_below_the_variance(var):
    found = scale(var)
    assert (found >= np.minimum(var, found)).all()
    assert (found >= FLOOR * typical_variance(var)).all()


def test_a_channel_that_comes_to_life_on_one_side_counts():
    before, after = np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 1.0, 0.5, DEAD / 10])
    assert live(before, after).tolist() == [True, True, True, False]


def test_a_layer_that_never_varies_has_no_live_channel():
    assert not live(np.zeros(3), np.zeros(3)).any()
    assert np.isinf(scale(np.zeros(3))).all()
