"""The best N: bounds against simulation, every limit of appendix A, and the minimum."""

import numpy as np
import pytest

from haptera.adapters.prior import Statistics, best_prior, lower_bound, prior_curve, simulated, upper_bound


def one(mean, sd):
    return Statistics(np.array([float(mean)]), np.array([float(sd) ** 2]))


GRID = [
    (mu, s, t, n, N)
    for mu in (0, 0.5, 2)
    for s in (0.5, 1, 2)
    for t in (0.7, 1)
    for n in (2, 8, 64)
    for N in (0, 1, 16, 256)
]


@pytest.mark.parametrize(("mu", "s", "t", "n", "N"), GRID)
def test_the_expectation_lies_between_the_bounds(mu, s, t, n, N):
    source, target = one(0, s), one(mu, t)
    draws = 20_000
    expected = simulated(source, target, n, N, draws=draws)[0]
    error = 4 * (expected + t**2 / n) / np.sqrt(draws)  # of the simulation itself
    assert lower_bound(source, target, n, N)[0] <= expected + error
    assert expected - error <= upper_bound(source, target, n, N, alpha=1e-3)[0]


@pytest.mark.parametrize("N", [0, 4, 100])
def test_one_image_is_exact(N):
    source, target = one(0.3, 1.5), one(1, 0.8)
    low, high = lower_bound(source, target, 1, N), upper_bound(source, target, 1, N)
    assert low == high
    assert low[0] == pytest.approx(simulated(source, target, 1, N, draws=200_000)[0], rel=0.02)


def test_many_images_leave_no_distance():
    source, target = one(0.3, 1.5), one(1, 0.8)
    assert upper_bound(source, target, 10**7, 16)[0] < 1e-5


def test_an_endless_prior_leaves_the_distance_between_source_and_target():
    source, target = one(0.3, 1.5), one(1, 0.8)
    expected = (1.5 - 0.8) ** 2 + (1 - 0.3) ** 2
    assert lower_bound(source, target, 8, 1e12)[0] == pytest.approx(expected)
    assert upper_bound(source, target, 8, 1e12)[0] == pytest.approx(expected)


@pytest.mark.parametrize("n", [2, 5, 50])
def test_without_prior_and_shift_the_lower_bound_is_the_printed_one(n):
    same = one(0.4, 1.3)
    assert lower_bound(same, same, n, 0)[0] == pytest.approx(2 * 1.3**2 * (1 - np.sqrt(1 - 1 / n)))


@pytest.mark.parametrize(("n", "N"), [(3, 5), (20, 7)])
def test_without_shift_the_lower_bound_is_the_printed_one(n, N):
    same = one(0.4, 1.3)
    printed = (2 * N**2 + 4 * N * n - N + 2 * n**2) / (N + n) ** 2 - 2 * np.sqrt(1 - 1 / (N + n))
    assert lower_bound(same, same, n, N)[0] == pytest.approx(1.3**2 * printed)


def test_the_curve_is_the_mean_over_channels_of_the_normalised_bounds():
    source = Statistics(np.array([0.0, 1.0]), np.array([1.0, 4.0]))
    target = Statistics(np.array([0.5, 3.0]), np.array([2.0, 1.0]))
    curve = prior_curve(source, target, 8, priors=(0, 16))
    by_hand = [
        lower_bound(one(0, 1), one(0.5, np.sqrt(2)), 8, N)[0] / 2 + lower_bound(one(1, 2), one(3, 1), 8, N)[0] / 8
        for N in (0, 16)
    ]
    assert curve["lower"].tolist() == pytest.approx(by_hand)


@pytest.mark.parametrize("bound", ["lower", "upper"])
@pytest.mark.parametrize("n", [1, 4, 64])
def test_the_best_prior_beats_a_fine_grid(n, bound):
    layers = [(one(0, 1), one(0.4, 1.2)), (one(1, 2), one(1.1, 1.5))]
    function = lower_bound if bound == "lower" else upper_bound
    value = lambda N: np.mean([function(s, t, n, N)[0] / s.var[0] for s, t in layers])  # noqa: E731
    best = best_prior(layers, n, bound)
    assert value(best) <= min(value(N) for N in np.geomspace(0.01, 1e4, 400)) * (1 + 1e-4)


def test_without_shift_more_prior_is_always_better():
    assert best_prior([(one(0, 1), one(0, 1))], 8) == float("inf")


def test_a_strong_shift_and_many_images_need_no_prior():
    assert best_prior([(one(0, 1), one(30, 1))], 512) < 0.1


def test_a_nearly_dead_channel_of_the_source_does_not_choose_the_prior():
    mean, var = np.zeros(4), np.ones(4)
    target = Statistics(np.full(4, 0.2), np.full(4, 1.1))
    dead = (
        Statistics(np.append(mean, 0.0), np.append(var, 1e-30)),
        Statistics(np.append(target.mean, 1e-4), np.append(target.var, 1e-12)),
    )
    expected = best_prior([(Statistics(mean, var), target)], 8)
    assert 1 < expected < 1e3
    assert best_prior([dead], 8) == pytest.approx(expected, rel=1e-3)
