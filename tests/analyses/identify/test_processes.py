"""Mixing networks can be inverted; processes have the spaces, the marginals and the maps that they say."""

import numpy as np
import pytest
from scipy import stats

from haptera.analyses.identify.laws import Uniform, VonMisesFisher, laplace, normal
from haptera.analyses.identify.processes import Mixing, Process, brownian, piecewise
from haptera.errors import HapteraError


@pytest.mark.parametrize("widths", [[4, 4, 4, 4], [10, 10, 10, 10], [3, 8, 8, 12]])
def test_a_mixing_network_is_inverted(widths):
    random = np.random.default_rng(0)
    mixing = Mixing.draw(widths, random, tried=500)
    latents = random.normal(size=(1000, widths[0]))
    np.testing.assert_allclose(mixing.inverse(mixing(latents)), latents, atol=1e-5)


def test_more_matrices_tried_are_better_conditioned():
    few, many = (Mixing.draw([10] * 4, np.random.default_rng(0), tried).condition for tried in (1, 2000))
    assert many < few / 2


def test_a_layer_that_loses_latents_is_an_error():
    with pytest.raises(HapteraError, match="cannot be inverted"):
        Mixing.draw([4, 3], np.random.default_rng(0))


def test_mixing_is_not_linear():
    process = Process("box", Uniform(), laplace(0.05))
    latents = process.latents(500, np.random.default_rng(0))
    inputs = np.column_stack([latents, np.ones(500)])
    seen = process.mixing(latents - 0.5)
    left = seen - inputs @ np.linalg.lstsq(inputs, seen, rcond=None)[0]
    assert (left**2).mean() > 1e-3 * seen.var()


def test_a_seed_names_a_process():
    first, again, other = (Process("box", Uniform(), laplace(0.05), seed=seed).mixing.weights for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])


def test_pairs_are_near_each_other_and_in_the_space():
    first, second = Process("box", Uniform(), laplace(0.01)).pairs(2000, np.random.default_rng(0))
    assert np.abs(first - second).mean() == pytest.approx(0.01, rel=0.1)
    assert 0 <= min(first.min(), second.min()) <= max(first.max(), second.max()) <= 1


def test_a_uniform_marginal_needs_no_mass_moved_and_a_concentrated_one_nearly_all():
    assert Process("sphere", Uniform(), VonMisesFisher(1.0)).mass_from_uniform() == 0
    shares = [Process("sphere", VonMisesFisher(k), VonMisesFisher(1.0), 3).mass_from_uniform() for k in (0.1, 1, 1e4)]
    assert shares == sorted(shares)
    assert shares[-1] > 0.99


def test_the_mass_to_move_on_a_line_is_its_integral():
    process = Process("box", normal(0.2), laplace(0.05), 2)
    grid = (np.arange(1000) + 0.5) / 1000
    one = stats.truncnorm(-2.5, 2.5, 0.5, 0.2).pdf(grid)
    expected = np.abs(np.outer(one, one) - 1).mean() / 2
    assert process.mass_from_uniform() == pytest.approx(expected, abs=0.01)


def test_a_process_is_read_and_mistakes_named():
    assert Process.read("sphere/uniform/vmf=10").conditional == VonMisesFisher(10.0)
    for text, message in (
        ("sphere/uniform", "space/marginal/conditional"),
        ("spere/uniform/vmf=1", "did you mean 'sphere'"),
        ("box/uniform/vmf=1", "lives on the sphere"),
        ("unbounded/uniform/normal=1", "needs a sphere or a box"),
    ):
        with pytest.raises(HapteraError, match=message):
            Process.read(text)
    with pytest.raises(HapteraError, match="at least 2"):
        Process("box", Uniform(), laplace(0.05), dimensions=1)


def test_the_map_is_which_inputs_depend_on_which_latents():
    data = piecewise(4000, 2, 2, (6, 8), seed=1)
    assert data.map.shape == (4, 14)
    assert data.map[data.first].all()
    assert not data.map[data.second, :6].any()
    assert data.map[data.second, 6:].all()
    # x1 is a function of z1: samples with all but the same z1 have all but the same x1, whatever z2 is.
    order = np.linalg.norm(data.latents[:, None, :2] - data.latents[None, :40, :2], axis=2)
    np.fill_diagonal(order[:40], np.inf)
    near = order.argmin(0)
    away = np.abs(data.signal[near] - data.signal[:40])
    assert away[:, :6].mean() < 0.2 * away[:, 6:].mean()


def test_latents_walk_in_the_box_and_fill_it():
    walk = brownian(200_000, 2, 0.3, np.random.default_rng(0))
    assert np.abs(walk).max() <= 1
    assert stats.kstest(walk[::100, 0], "uniform", (-1, 2)).pvalue > 1e-4
    inner = np.abs(walk[:-1]).max(1) < 0.1
    assert np.diff(walk, axis=0)[inner].std() == pytest.approx(0.3, rel=0.05)


def test_inputs_have_unit_spread_and_noise_on_request():
    clean, noisy = (piecewise(3000, noise=noise).signal for noise in (0.0, 0.5))
    np.testing.assert_allclose(clean.std(0), 1, rtol=1e-3)
    assert (noisy - clean).std() == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"inputs": (1, 25)}, "at least"), ({"second": 0}, "at least 2 and 1"), ({"step": 0.0}, "more than 0")],
)
def test_a_wrong_number_is_named(settings, message):
    with pytest.raises(HapteraError, match=message):
        piecewise(100, **settings)
