"""The synthetic data has the latents and the noise of chapter 7."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression

from haptera.errors import HapteraError
from haptera.recordings.synthetic import NOISES, sessions, synthetic


def test_latents_have_the_printed_moments():
    made = synthetic(40_000, neurons=10, seed=3)
    near = np.abs(made.label - 1.0) < 0.05
    latent = made.latent[near]
    assert latent.mean(0) == pytest.approx([1.0, 2 * np.sin(1.0)], abs=0.1)
    assert latent.var(0) == pytest.approx([0.6 - 0.3 * np.sin(1), 0.3 * np.sin(1)], rel=0.2)
    assert (made.label.min() > 0, made.label.max() < 2 * np.pi) == (True, True)


def test_rates_are_bounded_and_follow_the_latent_alone():
    made = synthetic(500, neurons=20)
    assert made.rates.min() >= np.exp(-2.2)
    assert made.rates.max() <= np.exp(2.2)
    again = synthetic(500, neurons=20, noise="gaussian")
    assert np.array_equal(made.rates, again.rates)
    assert not np.array_equal(made.rates, synthetic(500, neurons=20, seed=1).rates)


@pytest.mark.parametrize("noise", NOISES)
def test_noise_has_the_mean_and_spread_it_should(noise):
    made = synthetic(3_000, neurons=40, noise=noise)
    assert np.isfinite(made.signal).all()
    assert made.signal.min() >= 0
    off = made.signal - made.rates
    high = made.rates > 5  # where nothing is cut off at zero
    spread = {"gaussian": 1.0, "uniform": (1 / 3) ** 0.5, "laplace": 2**0.5}
    if noise in spread:
        assert off[high].std() == pytest.approx(spread[noise], rel=0.05)
    if noise == "poisson":
        assert off.mean() == pytest.approx(0, abs=0.01)
        assert (off[high] ** 2).mean() == pytest.approx(made.rates[high].mean(), rel=0.05)
        assert np.array_equal(made.signal, made.signal.round())


def test_refractory_counts_are_those_of_simulated_intervals():
    generator = np.random.default_rng(0)
    rates = np.repeat([[20.0, 110.0, 200.0]], 4000, axis=0)  # their mean is 110, so they are Hertz
    counts = NOISES["refractory"](rates, np.random.default_rng(1))
    for column, rate in enumerate(rates[0]):
        ends = np.cumsum(generator.exponential(1 / rate, (4000, 110)) + 0.010, axis=1)
        simulated = (ends <= 1.0).sum(1)
        assert counts[:, column].mean() == pytest.approx(simulated.mean(), rel=0.02)
        assert counts[:, column].std() == pytest.approx(simulated.std(), rel=0.06)


def test_linear_baselines_reach_what_the_prototype_reached():
    scores = {"counts": [], "roots": []}
    for seed in range(3):
        made = synthetic(6_000, seed=seed)
        for name, signal in (("counts", made.signal), ("roots", np.sqrt(made.signal))):
            embedding = PCA(2, random_state=0).fit(signal[:4800]).transform(signal)
            line = LinearRegression().fit(embedding[:4800], made.latent[:4800])
            scores[name].append(line.score(embedding[4800:], made.latent[4800:]))
    assert np.mean(scores["counts"]) == pytest.approx(0.768, abs=0.04)
    assert np.mean(scores["roots"]) == pytest.approx(0.858, abs=0.04)


def test_sessions_differ_in_neurons_and_share_the_law_of_the_latent():
    made = sessions((30, 50), samples=6_000, step=0.5)
    assert [each.signal.shape for each in made] == [(6_000, 30), (6_000, 50)]
    assert not np.array_equal(made[0].label, made[1].label)
    for each in made:
        assert (each.label.min() >= 0, each.label.max() <= 2 * np.pi) == (True, True)
        assert np.abs(np.diff(each.label)).max() < 0.5 * 6  # it walks
        near = np.abs(each.label - 2.0) < 0.2
        assert each.latent[near].mean(0) == pytest.approx([2.0, 2 * np.sin(2.0)], abs=0.15)
    again = sessions((30, 50), samples=6_000, step=0.5)
    assert np.array_equal(made[1].signal, again[1].signal)


def test_it_is_a_recording_too_and_mistakes_are_errors():
    assert synthetic(100, 8).recording().label("c").kind == "continuous"
    with pytest.raises(HapteraError, match="unknown noise 'poison'; did you mean 'poisson'"):
        synthetic(100, 8, "poison")
    with pytest.raises(HapteraError, match="at least 2 of 4"):
        synthetic(100, 3)
