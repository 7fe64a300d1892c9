"""Scenes: every factor changes the picture, smoothly, and pairs are near in their factors."""

import numpy as np
import pytest

from haptera.analyses.identify.laws import normal
from haptera.analyses.identify.scenes import FACTORS, MASK_FACTORS, draw_masks, draw_scenes, nearest_pairs
from haptera.errors import HapteraError


def test_pictures_are_in_range_and_of_the_asked_size():
    made = draw_scenes(np.random.default_rng(0).uniform(size=(20, 6)), pixels=24)
    assert made.shape == (20, 3, 24, 24)
    assert made.dtype == np.float32
    assert 0 <= made.min() < made.max() <= 1


@pytest.mark.parametrize("factor", range(6), ids=FACTORS)
def test_every_factor_changes_the_picture_and_both_of_its_ends_differ(factor):
    middle = np.full((41, 6), 0.4)
    middle[:, factor] = np.linspace(0, 1, 41)
    made = draw_scenes(middle).reshape(41, -1)
    steps = np.linalg.norm(np.diff(made, axis=0), axis=1)
    assert steps.min() > 0
    assert steps.max() < 5 * np.median(steps)  # smooth: no step is a jump
    assert np.linalg.norm(made[-1] - made[0]) > 3 * np.median(steps)


def test_moving_the_object_moves_its_middle():
    left, right = draw_scenes(np.array([[0, 0.5, 0.5, 0.5, 0, 0.5], [1, 0.5, 0.5, 0.5, 0, 0.5]]), 64)
    red = [np.clip(one[0] - one[2], 0, None) for one in (left, right)]
    middle = [float((weight.sum(0) * np.arange(64)).sum() / weight.sum()) / 64 for weight in red]
    assert middle[1] - middle[0] == pytest.approx(0.4, abs=0.02)


def test_pairs_are_as_near_as_the_conditional_and_the_set_allow():
    factors = np.random.default_rng(0).uniform(size=(3000, 6))
    first, second = nearest_pairs(factors, normal(0.02), 500, np.random.default_rng(1))
    away = np.linalg.norm(factors[first] - factors[second], axis=1)
    anyone = np.linalg.norm(factors[first] - factors[np.random.default_rng(2).permutation(3000)[:500]], axis=1)
    assert away.mean() < 0.4 * anyone.mean()


def test_factors_out_of_range_are_named():
    with pytest.raises(HapteraError, match="from 0 to 1"):
        draw_scenes(np.full((1, 6), 2.0))


def test_a_mask_is_where_its_factors_say():
    made = draw_masks(np.array([[0, 0.5, 0.5], [1, 0.5, 0.5], [0.5, 0.5, 0], [0.5, 0.5, 1]]), 64)[:, 0]
    assert made.shape == (4, 64, 64)
    assert 0 <= made.min() < made.max() <= 1
    middle = (made.sum(1) * np.arange(64)).sum(1) / made.sum((1, 2)) / 64
    assert middle[1] - middle[0] == pytest.approx(0.5, abs=0.02)
    area = made.sum((1, 2)) / 64**2
    assert area[2:] == pytest.approx([np.pi * half * half / 2 for half in (0.1, 0.25)], rel=0.1)
    with pytest.raises(HapteraError, match=f"{len(MASK_FACTORS)}. from 0 to 1"):
        draw_masks(np.zeros((2, 6)))
