"""The stripe model: the task, the gradient, and that learning features makes the other directions matter less."""

import numpy as np
import pandas as pd
import pytest

from haptera.errors import HapteraError
from haptera.theory.stripes import PLANES, REGIMES, Network, Regime, Stripes, slope, stripes


@pytest.fixture(scope="module")
def frame():
    return stripes((250, 1000), (0,), task=Stripes(hidden=64, epochs=800, tested=1500))


def test_half_of_the_points_lie_between_the_planes():
    x, y = Stripes().points(20_000, np.random.default_rng(0))
    assert y.mean() == pytest.approx(0, abs=0.03)
    assert np.array_equal(y < 0, (x[:, 0] > PLANES[0]) & (x[:, 0] < PLANES[1]))


def test_a_network_at_random_does_not_tell_directions_apart():
    net = Network.at_random(30, 2000, 1.0, np.random.default_rng(0))
    net.first = tuple(np.zeros_like(part) for part in net.parts)  # F itself
    assert Stripes().measure(net, 0)["R"] == pytest.approx(1, abs=0.1)


def test_a_network_that_sees_one_direction_only_has_no_r():
    weights = np.zeros((4, 30), np.float32)
    weights[:, 0] = [1, -1, 2, 3]
    net = Network(weights, np.zeros(4, np.float32), np.array([1, 2, -1, 0.5], np.float32), 1.0)
    net.first = tuple(np.zeros_like(part) for part in net.parts)
    assert Stripes().measure(net, 0)["R"] == pytest.approx(0, abs=1e-9)


def test_one_step_follows_the_gradient_of_the_hinge_loss():
    task = Stripes(d=5, hidden=7, batch_size=40, epochs=1, momentum=0.0)
    regime = Regime(2.0, 0.1)
    generator = np.random.default_rng(3)
    x, y = task.points(40, generator)
    before = Network.at_random(5, 7, 2.0, generator)  # what `train` starts from
    after = task.train(40, regime, 3)

    def loss(parts):
        net = Network(*(part.astype(np.float64) for part in before.parts), 2.0)
        net.parts = parts
        return np.maximum(1 - y * net(x.astype(np.float64)), 0).mean() / 2.0

    exact = [part.astype(np.float64) for part in before.parts]
    for which, place in ((0, (2, 3)), (1, (4,)), (2, (6,))):
        ends = []
        for step in (1e-4, -1e-4):
            moved = [part.copy() for part in exact]
            moved[which][place] += step
            ends.append(loss(moved))
        gradient = (ends[0] - ends[1]) / 2e-4
        change = after.parts[which][place] - before.parts[which][place]
        assert change == pytest.approx(-regime.lr * 7 * gradient, rel=2e-3)  # each unit's share is 1 of 7


def test_features_are_learnt_from_more_points_and_lazily_hardly(frame):
    means = frame.groupby(["regime", "points"])["R"].mean()
    assert means["feature", 1000] < means["feature", 250] / 2 < 0.25
    assert means["lazy", 250] > means["lazy", 1000] > 0.4
    errors = frame.groupby(["regime", "points"])["error"].mean()
    assert errors["feature", 1000] < errors["feature", 250] < errors["lazy", 250]


def test_training_ends_when_no_point_is_within_the_margin(frame):
    features = frame[frame["regime"] == "feature"]
    assert features["fits"].all()
    assert (features["epochs"] < 800).all()


def test_the_slope_is_that_of_log_averages(frame):
    sizes = frame.assign(points=frame["points"].replace({250: 1}).astype(float))
    three = sizes[sizes["points"] == 1].assign(points=2.0, R=lambda rows: rows["R"] / 2)
    four = sizes[sizes["points"] == 1].assign(points=4.0, R=lambda rows: rows["R"] / 4)
    own = pd.concat([sizes[sizes["points"] == 1], three, four])
    assert slope(own[own["regime"] == "feature"]).exponent == pytest.approx(-1)


def test_an_unknown_regime_is_named():
    with pytest.raises(HapteraError, match="unknown regime 'lasy'; did you mean 'lazy'"):
        stripes((10,), (0,), ("lasy",))
    assert set(REGIMES) == {"feature", "lazy"}
