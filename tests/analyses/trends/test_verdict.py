"""The verdict: yes where there is a line, no where there is none, too few to say in between; and its two yardsticks."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from haptera.analyses.trends.verdict import FEW, NO, YES, judge, judge_without, sampling_errors
from haptera.statistics.line import fit, r_squared
from haptera.statistics.resample import over_examples
from haptera.theory.known_models import ProbitModels


def trend(models, scatter, seed=0):
    random = np.random.default_rng(seed)
    u = random.uniform(-0.3, 1.6, models)
    return ndtr(u), ndtr(0.9 * u - 0.3 + random.normal(0, scatter, models))


def test_many_models_near_a_line_are_a_line():
    found = judge(*trend(30, 0.05), "probit")
    assert found.word == YES
    assert 0.8 < found.low < found.r2 < found.high
    assert found.left_out < 0.2 * found.without


def test_many_models_all_over_the_place_are_none():
    random = np.random.default_rng(0)
    assert judge(random.uniform(0.3, 0.9, 40), random.uniform(0.2, 0.8, 40), "linear").word == NO


def test_few_models_are_too_few_to_say():
    assert judge(*trend(6, 0.3), "probit").word == FEW
    assert judge(*trend(4, 0.0001), "probit").word == FEW


def test_models_that_differ_by_less_than_sampling_are_too_much_alike_to_say():
    models = ProbitModels(np.full(40, 0.8), noise=0.5)
    correct = models.correct(300, 300)
    sides = [side.mean(1) for side in correct]
    assert judge(*sides, "linear").word == NO
    assert judge(*sides, "linear", draws=over_examples(*correct, draws=200)).word == FEW


def test_without_a_line_is_the_error_of_the_mean_of_the_others():
    x, y = trend(7, 0.1)
    off = [y[place] - np.delete(y, place).mean() for place in range(7)]
    assert judge(x, y, "linear").without == pytest.approx(np.sqrt(np.mean(np.square(off))))


def test_r2_is_on_the_scale_of_the_fit():
    x, y = trend(12, 0.2)
    line = fit(x, y, "probit").line
    assert judge(x, y, "probit").r2 == pytest.approx(r_squared(ndtri(y), ndtri(y) - line.scaled(x)))


def test_what_sampling_alone_gives_is_the_error_of_models_on_the_line_with_other_examples():
    correct = ProbitModels(np.linspace(-0.2, 1.6, 6)).correct(400, 300)
    x, y = (side.mean(1) for side in correct)
    draws = over_examples(*correct, draws=5)
    found = fit(x, y, "probit", n=(400, 300))
    fast = sampling_errors(found, x, y, draws, np.ones(6, bool), {"n": (400, 300)})
    for place in range(5):
        shifted = np.clip(found.line(x) + draws.shifted[place] - y, 0, 1)
        off = []
        for left in range(6):
            others = np.arange(6) != left
            line = fit(draws.reference[place][others], shifted[others], "probit", n=(400, 300)).line
            off.append(shifted[left] - float(line(draws.reference[place][left])))
        assert fast[place] == pytest.approx(np.sqrt(np.mean(np.square(off))))


def test_models_on_a_line_are_no_further_off_than_sampling_and_others_are():
    on = ProbitModels(np.linspace(-0.2, 1.6, 15)).correct(2000, 2000)
    gains = np.random.default_rng(0).normal(0, 0.2, 15)
    off = ProbitModels(np.linspace(-0.2, 1.6, 15), gains=gains).correct(2000, 2000)
    for correct, beyond in ((on, False), (off, True)):
        sides = [side.mean(1) for side in correct]
        found = judge(*sides, "probit", draws=over_examples(*correct, draws=200), n=(2000, 2000))
        assert found.beyond is beyond
        assert (found.left_out > 2 * found.sampling) == beyond


def test_a_line_that_one_model_hides_is_found_without_it():
    x, y = trend(12, 0.03)
    y[4] = 0.02
    names = tuple(f"net-{place}" for place in range(12))
    every = judge(x, y, "probit")
    assert every.word != YES
    again = judge_without(x, y, names, every)
    assert again.aside == ("net-4",)
    assert (again.word, again.models) == (YES, 11)
    clean = judge(*trend(12, 0.5), "probit")
    assert judge_without(*trend(12, 0.5), names, clean) is None


def test_models_of_weight_0_are_not_judged():
    x, y = trend(12, 0.05)
    other = y.copy()
    other[8:] = 0.05
    weights = np.where(np.arange(12) < 8, 1.0, 0.0)
    assert judge(x, other, "probit", weights=weights).numbers == judge(x[:8], y[:8], "probit").numbers
