"""Recordings with a known map: latents reach the inputs that the map says, and no others."""

import numpy as np
import pytest
from scipy import stats

from haptera.analyses.identify.piecewise import brownian, piecewise
from haptera.errors import HapteraError


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
