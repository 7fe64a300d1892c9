"""Draws and their intervals: what they are drawn from, and how often they hold the truth."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from haptera.analyses.trends.robustness import prediction
from haptera.statistics.line import fit
from haptera.statistics.resample import interval, over_examples, over_models
from haptera.theory.known_models import ProbitModels


def test_examples_are_drawn_with_replacement_for_all_models_alike():
    correct = np.random.default_rng(0).random((4, 300)) < 0.6
    correct[1] = ~correct[0]
    draws = over_examples(correct, correct[:, :100], draws=400, seed=1)
    assert draws.reference.shape == draws.shifted.shape == (400, 4)
    assert draws.reference[:, 0] + draws.reference[:, 1] == pytest.approx(np.ones(400))  # the same examples
    assert draws.reference.mean(0) == pytest.approx(correct.mean(1), abs=0.01)
    assert draws.reference.std(0) == pytest.approx(np.sqrt(correct.mean(1) * (1 - correct.mean(1)) / 300), rel=0.15)
    assert (draws.weights == 1).all()


def test_a_draw_is_a_whole_number_of_examples():
    draws = over_examples(np.eye(3, 7, dtype=bool), np.eye(3, 7, dtype=bool), draws=50)
    assert draws.reference * 7 == pytest.approx(np.round(draws.reference * 7))


def test_paired_sides_are_drawn_together():
    correct = np.random.default_rng(1).random((3, 200)) < 0.5
    together, apart = (over_examples(correct, correct, draws=20, paired=paired) for paired in (True, False))
    assert np.array_equal(together.reference, together.shifted)
    assert not np.array_equal(apart.reference, apart.shifted)


def test_the_same_seed_draws_the_same():
    correct = np.random.default_rng(2).random((3, 50)) < 0.5
    first, again, other = (over_examples(correct, correct, draws=5, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(first.reference, again.reference)
    assert not np.array_equal(first.reference, other.reference)


def test_accuracies_alone_get_binomial_counts():
    x = np.array([0.2, 0.5, 0.9])
    draws = over_examples((x, 400), (x, np.array([100, 200, 300])), draws=2000)
    assert draws.reference.std(0) == pytest.approx(np.sqrt(x * (1 - x) / 400), rel=0.1)
    assert draws.shifted.std(0) == pytest.approx(np.sqrt(x * (1 - x) / [100, 200, 300]), rel=0.1)


def test_models_are_drawn_as_whole_weights():
    draws = over_models(np.full(9, 0.5), np.full(9, 0.4), draws=30)
    assert (draws.weights.sum(1) == 9).all()
    assert draws.units == 9
    assert draws.first(10).weights.shape == (10, 9)


def test_an_interval_is_made_of_the_middle_draws():
    drawn = np.random.default_rng(3).normal(2.0, 1.0, (40_000, 2))
    low, high = interval(np.full(2, 2.0), drawn)
    assert low == pytest.approx(np.full(2, 2 - 1.96), abs=0.05)
    assert high == pytest.approx(np.full(2, 2 + 1.96), abs=0.05)


def test_a_bias_of_the_draws_is_taken_back():
    drawn = np.random.default_rng(4).normal(0.5, 1.0, (40_000, 1))  # each draw adds .5, as noise adds to the estimate
    low, high = interval(np.zeros(1), drawn)
    assert (low[0] + high[0]) / 2 == pytest.approx(-0.5, abs=0.05)


def test_few_units_reach_further_out_and_missing_draws_are_left_out():
    drawn = np.random.default_rng(5).normal(0.0, 1.0, (20_000, 1))
    wide = interval(np.zeros(1), drawn, units=5)
    assert wide[1][0] > interval(np.zeros(1), drawn)[1][0] + 0.5
    gaps = np.where(np.arange(20_000)[:, None] % 2, drawn, np.nan)
    assert interval(np.zeros(1), gaps)[1] == pytest.approx(interval(np.zeros(1), drawn)[1], abs=0.1)
    assert np.isnan(interval(np.zeros(1), np.full((5, 1), np.nan))[0]).all()


def test_a_prediction_is_the_line_with_room_for_its_error_and_for_new_models():
    models = ProbitModels(np.linspace(-0.3, 1.6, 25), gains=np.random.default_rng(0).normal(0, 0.1, 25))
    x, y = models.accuracies
    found = prediction(x, y, [0.5, 0.7], over_models(x, y), "probit")
    assert found["line"].to_numpy() == pytest.approx(fit(x, y, "probit").line(np.array([0.5, 0.7])))
    assert (found["new_low"] < found["low"]).all()
    assert (found["low"] < found["line"]).all()
    assert (found["line"] < found["high"]).all()
    assert (found["high"] < found["new_high"]).all()


REPETITIONS, DRAWS = 1000, 400


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "probit", "robust_probit"])
def test_intervals_over_examples_hold_what_more_examples_would_show(kind):
    generator = np.random.default_rng(0)
    slopes, robust = [], []
    for seed in range(REPETITIONS):
        models = ProbitModels(generator.uniform(-0.3, 1.6, 15), gains=generator.normal(0, 0.1, 15))
        reference, shifted = models.correct(1000, 800, seed)
        n = 1000, 800
        found, truth = fit(reference.mean(1), shifted.mean(1), kind, n=n), fit(*models.accuracies, kind)
        draws = over_examples(reference, shifted, draws=DRAWS, seed=seed)
        again = fit(draws.reference, draws.shifted, kind, n=n)
        low, high = interval(found.line.slope, again.line.slope)
        slopes.append(low <= truth.line.slope <= high)
        low, high = interval(found.left_out, again.left_out)
        robust.append((low <= truth.left_out) & (truth.left_out <= high))
    assert 0.93 <= np.mean(slopes) <= 0.97
    assert 0.93 <= np.mean(robust) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("size", [12, 40])
def test_intervals_over_models_hold_what_more_models_would_show(size):
    generator = np.random.default_rng(1)
    slopes, lines, new = [], [], []
    at = np.array([0.5, 0.7, 0.85])
    for seed in range(REPETITIONS):
        u = generator.uniform(-0.3, 1.6, size + 1)
        x, y = ndtr(u), ndtr(0.9 * u - 0.3 + generator.normal(0, 0.05, size + 1))
        draws = over_models(x[1:], y[1:], draws=DRAWS, seed=seed)
        found, again = fit(x[1:], y[1:], "probit"), fit(x[1:], y[1:], "probit", weights=draws.weights)
        low, high = interval(found.line.slope, again.line.slope, draws.units)
        slopes.append(low <= 0.9 <= high)
        low, high = interval(found.line(at), again.line(at), draws.units)
        truth = ndtr(0.9 * ndtri(at) - 0.3)
        lines.append((low <= truth) & (truth <= high))
        room = prediction(x[1:], y[1:], x[:1], draws, "probit").iloc[0]
        new.append(room["new_low"] <= y[0] <= room["new_high"])
    assert 0.93 <= np.mean(slopes) <= 0.97
    assert 0.92 <= np.mean(lines) <= 0.97
    assert 0.92 <= np.mean(new) <= 0.98
