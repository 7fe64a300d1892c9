"""Detectors of a shift: alarms in their nominal share without one, and power with one."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from haptera.analyses.diagnosis.baselines import ks_p_value, mmd, mmd_p_value

RANDOM = np.random.default_rng(0)


def test_ks_takes_the_smallest_p_value_times_the_number_of_features():
    one, two = RANDOM.normal(size=(40, 5)), RANDOM.normal(0.4, 1, size=(60, 5))
    each = [ks_2samp(one[:, feature], two[:, feature]).pvalue for feature in range(5)]
    assert ks_p_value(one, two) == pytest.approx(min(1, 5 * min(each)))


def test_mmd_is_the_mean_kernel_within_less_that_between():
    one, two = RANDOM.normal(size=(12, 3)), RANDOM.normal(1, 1, size=(9, 3))
    pooled = np.concatenate([one, two])
    squares = [((a - b) ** 2).sum() for i, a in enumerate(pooled) for b in pooled[i + 1 :]]
    width = np.median(squares)

    def mean_kernel(left, right):
        return np.mean([[np.exp(-((a - b) ** 2).sum() / width) for b in right] for a in left])

    expected = mean_kernel(one, one) + mean_kernel(two, two) - 2 * mean_kernel(one, two)
    assert mmd(one, two) == pytest.approx(expected)


@pytest.mark.parametrize("p_value", [ks_p_value, mmd_p_value])
def test_a_shift_is_detected(p_value):
    assert p_value(RANDOM.normal(size=(80, 4)), RANDOM.normal(1, 1, size=(80, 4))) < 0.01


@pytest.mark.parametrize("p_value", [ks_p_value, mmd_p_value])
def test_without_a_shift_alarms_are_rare(p_value):
    draws = [p_value(RANDOM.normal(size=(30, 3)), RANDOM.normal(size=(30, 3))) for _ in range(100)]
    assert np.mean(np.array(draws) < 0.05) <= 0.12


def test_equal_samples_have_no_distance():
    same = RANDOM.normal(size=(20, 3))
    assert mmd(same, same) == pytest.approx(0, abs=1e-12)
    assert mmd_p_value(same, same) == 1
