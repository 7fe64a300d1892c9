"""Distances of statistics: closed forms, optimal transport on samples, invariances, and a test that keeps its level."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.stats import ks_2samp, multivariate_normal

from haptera.analyses.diagnosis import shift_size as size
from haptera.analyses.diagnosis.shift_size import ks_p_value, mmd, mmd_p_value
from haptera.errors import HapteraError
from haptera.statistics.moments import Moments

RANDOM = np.random.default_rng(0)


def pair(mean, sd):
    return np.array([float(mean)]), np.array([float(sd) ** 2])


def covariance(seed, d=3):
    root = np.random.default_rng(seed).normal(size=(d, d))
    return root @ root.T + 0.3 * np.eye(d)


def images(n, shift=0.0, scale=1.0, seed=0, channels=(3, 2)):
    """Moments of n made-up images of 16 positions in two layers."""
    random = np.random.default_rng(seed)
    layers = {}
    for k, c in enumerate(channels):
        values = random.normal(0.5 * k + shift, scale * (1 + k), (n, c, 16))
        layers[f"layer{k}"] = np.stack([values.mean(2), (values**2).mean(2)], 1)
    return Moments.of_images(layers, 50)


def test_wasserstein_is_optimal_transport_between_samples():
    random = np.random.default_rng(0)
    one, two = np.sort(random.normal(0, 1, 200_000)), np.sort(random.normal(1.5, 2, 200_000))
    assert size.wasserstein(pair(0, 1), pair(1.5, 2))[0] == pytest.approx(((one - two) ** 2).mean(), rel=0.02)


def test_normalised_wasserstein_is_divided_by_the_source_variance():
    assert size.normalised_wasserstein(pair(1, 2), pair(4, 1))[0] == pytest.approx(((4 - 1) ** 2 + (2 - 1) ** 2) / 4)


def test_jeffreys_is_the_mean_of_both_divergences_on_samples():
    random = np.random.default_rng(1)
    p, q = multivariate_normal(0, 1), multivariate_normal(0.7, 1.5**2)
    x, y = random.normal(0, 1, 400_000), random.normal(0.7, 1.5, 400_000)
    expected = ((p.logpdf(x) - q.logpdf(x)).mean() + (q.logpdf(y) - p.logpdf(y)).mean()) / 2
    assert size.jeffreys(pair(0, 1), pair(0.7, 1.5))[0] == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("distance", [size.wasserstein, size.normalised_wasserstein, size.jeffreys])
def test_zero_where_equal_and_only_there(distance):
    assert distance(pair(1, 2), pair(1, 2))[0] == 0
    assert distance(pair(0, 0), pair(0, 0))[0] == 0
    for other in (pair(1, 2.1), pair(1.1, 2)):
        assert distance(pair(1, 2), other)[0] > 0


def test_wasserstein_and_jeffreys_are_symmetric_and_the_normalised_one_is_not():
    one, two = pair(0, 1), pair(1, 3)
    assert size.wasserstein(one, two) == size.wasserstein(two, one)
    assert size.jeffreys(one, two) == pytest.approx(size.jeffreys(two, one))
    assert size.normalised_wasserstein(one, two) != size.normalised_wasserstein(two, one)


def test_full_distances_of_diagonal_covariances_are_sums_of_the_diagonal_ones():
    means, variances = np.random.default_rng(2).uniform(0.5, 2, (2, 2, 4))
    source, target = (means[0], variances[0]), (means[1], variances[1])
    arguments = (means[0], np.diag(variances[0]), means[1], np.diag(variances[1]))
    assert size.full_wasserstein(*arguments) == pytest.approx(size.wasserstein(source, target).sum())
    assert size.full_normalised_wasserstein(*arguments) == pytest.approx(
        size.normalised_wasserstein(source, target).sum()
    )
    assert size.full_jeffreys(*arguments) == pytest.approx(size.jeffreys(source, target).sum())


@pytest.mark.long
def test_full_wasserstein_is_optimal_transport_between_samples():
    random = np.random.default_rng(3)
    a, b = covariance(1, 2), covariance(2, 2)
    one, two = random.multivariate_normal([0, 0], a, 1200), random.multivariate_normal([1, -1], b, 1200)
    cost = ((one[:, None] - two[None]) ** 2).sum(2)
    rows, columns = linear_sum_assignment(cost)
    found = size.full_wasserstein(one.mean(0), np.cov(one.T), two.mean(0), np.cov(two.T))
    assert found == pytest.approx(cost[rows, columns].mean(), rel=0.1)


def test_turning_both_sides_changes_no_full_distance():
    a, b, turn = covariance(1), covariance(2), np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
    m, n = np.array([0.0, 1, 2]), np.array([1.0, 1, -1])
    for distance in (size.full_wasserstein, size.full_normalised_wasserstein, size.full_jeffreys):
        turned = distance(turn @ m, turn @ a @ turn.T, turn @ n, turn @ b @ turn.T)
        assert turned == pytest.approx(distance(m, a, n, b))


def test_a_singular_covariance_is_named():
    with pytest.raises(HapteraError, match="singular"):
        size.full_jeffreys(np.zeros(2), np.zeros((2, 2)), np.zeros(2), np.eye(2))


def test_groups_pool_to_the_moments_of_all_images():
    values = np.random.default_rng(5).normal(2, 3, (37, 4, 9))
    moments = Moments.of_images({"a": np.stack([values.mean(2), (values**2).mean(2)], 1)}, 10)
    mean, var = moments.pool()
    assert mean == pytest.approx(values.mean((0, 2)))
    assert var == pytest.approx(values.var((0, 2)))
    assert moments.images.sum() == 37


def test_the_profile_has_each_layer_in_order_and_the_size_is_the_mean_of_roots():
    reference, data = images(80), images(80, shift=1.0, seed=1)
    profile = size.shift_profile(reference, data)
    assert profile["layer"].tolist() == ["layer0", "layer1"]
    (m0, v0), (m1, v1) = reference.pool(), data.pool()
    by_hand = ((m0 - m1) ** 2 + (np.sqrt(v0) - np.sqrt(v1)) ** 2) / v0
    roots = [np.sqrt(by_hand[:3].mean()), np.sqrt(by_hand[3:].mean())]
    assert profile["normalised"].tolist() == pytest.approx(roots)
    assert size.shift_size(reference, data) == pytest.approx(np.mean(roots))


def test_a_clear_shift_is_found_and_none_is_not_invented():
    reference = images(200)
    assert size.shift_test(reference, images(60, shift=0.5, seed=1), 200).p_value < 0.01
    p = [size.shift_test(images(60, seed=2 * s), images(60, seed=2 * s + 1), 100).p_value for s in range(40)]
    assert np.mean(np.array(p) < 0.1) < 0.3
    assert np.mean(p) > 0.3


@pytest.mark.parametrize(("reference", "data"), [(400, 50), (50, 400), (70, 130)])
def test_false_alarms_keep_their_rate_whatever_the_numbers_of_images(reference, data):
    p = [size.shift_test(images(reference, seed=2 * s), images(data, seed=2 * s + 1), 60).p_value for s in range(80)]
    assert np.mean(np.array(p) < 0.1) < 0.2
    assert np.mean(p) == pytest.approx(0.5, abs=0.12)


def test_groups_have_one_size_and_merge_without_loss():
    moments = images(210)  # at most 50 groups: 52 of 4 and one of 2 would be too many, so 26 of 8 and one of 2
    assert moments.images.tolist() == [8] * 26 + [2]
    first, second = moments.merge(16)
    assert len(first) == len(second) == 13
    assert first.mean(0) == pytest.approx(moments.first[:26].mean(0))
    assert second[0] == pytest.approx(moments.second[:2].mean(0))


def test_too_few_images_for_a_test_are_told():
    with pytest.raises(HapteraError, match="two groups of 8 images"):
        size.shift_test(images(400), images(12))


def test_known_statistics_are_tested_by_halves_of_the_data():
    known = Moments.of_statistics({"layer0": (np.zeros(3), np.ones(3)), "layer1": (np.full(2, 0.5), np.full(2, 4.0))})
    assert size.shift_test(known, images(200, shift=1.0), 200).p_value < 0.01
    assert size.shift_test(known, images(200), 200).p_value > 0.01


def test_moments_of_other_layers_are_refused():
    with pytest.raises(HapteraError, match="cannot be compared"):
        size.shift_size(images(10), images(10, channels=(3,)))


def with_dead_channels(n, shift=0.0, seed=0, rare=0.0):
    """Moments of n images in one layer of 8 channels: 4 live ones, 3 dead, 1 that fires on a share of the images."""
    random = np.random.default_rng(seed)
    values = np.zeros((n, 8, 16))
    values[:, :4] = random.normal(shift, 1, (n, 4, 16))
    values[:, 5] = 3.0 + random.normal(0, 1e-7, (n, 16))
    values[random.random(n) < rare, 7] = 0.01
    return Moments.of_images({"layer": np.stack([values.mean(2), (values**2).mean(2)], 1)}, 50)


@pytest.mark.parametrize("rare", [0.0, 0.01])
def test_dead_channels_hide_no_shift_and_invent_none(rare):
    reference, same = with_dead_channels(200, rare=rare), with_dead_channels(200, seed=1, rare=rare)
    found = size.shift_test(reference, with_dead_channels(200, shift=0.5, seed=1, rare=rare), 200)
    assert np.isfinite([found.size, found.chance, found.ratio]).all()
    assert found.p_value < 0.01
    assert found.ratio > 3
    assert size.shift_test(reference, same, 200).p_value > 0.05


def test_the_profile_leaves_dead_channels_out_and_counts_them():
    reference, data = with_dead_channels(100), with_dead_channels(100, shift=0.5, seed=1)
    row = size.shift_profile(reference, data).iloc[0]
    (m0, v0), (m1, v1) = reference.pool(), data.pool()
    by_hand = ((m0 - m1) ** 2 + (np.sqrt(v0) - np.sqrt(v1)) ** 2)[:4] / v0[:4]
    assert (row["channels"], row["dead"]) == (8, 4)
    assert row["normalised"] == pytest.approx(np.sqrt(by_hand.mean()))
    assert size.shift_size(reference, data) == pytest.approx(np.sqrt(by_hand.mean()))
    assert np.isfinite(row["jeffreys"])


def test_a_channel_that_comes_to_life_is_a_shift_of_finite_size():
    reference, data = with_dead_channels(100), with_dead_channels(100, seed=1)
    data.first[:, 6], data.second[:, 6] = 2.0, 4.5  # dead in the reference
    assert np.isfinite(size.shift_size(reference, data))
    assert size.shift_size(reference, data) > 5 * size.shift_size(reference, with_dead_channels(100, seed=1))


def test_images_that_never_vary_are_told():
    constant = Moments.of_images({"layer": np.zeros((20, 2, 3))}, 10)
    with pytest.raises(HapteraError, match="none of the 3 channels of 1 layers varies"):
        size.shift_test(constant, constant)


def test_chance_is_the_median_over_divisions_computed_one_by_one():
    reference, data = images(24, seed=3), images(16, seed=4)
    found = size.shift_test(reference, data, divisions=7, seed=5)
    first, second = (np.concatenate([getattr(reference, k), getattr(data, k)]) for k in ("first", "second"))
    random, sizes = np.random.default_rng(5), []
    for _ in range(7):
        chosen = random.permutation(40) < 24
        sides = [
            Moments(reference.names, reference.channels, first[rows], second[rows], np.ones(len(rows)))
            for rows in (np.flatnonzero(chosen), np.flatnonzero(~chosen))
        ]
        sizes.append(size.shift_size(*sides))
    assert found.chance == pytest.approx(np.median(sizes))
    assert found.p_value == pytest.approx((1 + sum(s >= found.size for s in sizes)) / 8)


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
