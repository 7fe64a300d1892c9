"""The collapse model: what the text says it does, and its expectations against plain draws."""

import numpy as np
import pytest
from scipy.special import expit

from haptera.theory import collapse


@pytest.fixture(scope="module")
def runs():
    return {condition: collapse.trajectory(condition) for condition in (1, 2)}


def draws(classes, n, seed=0):
    random = np.random.default_rng(seed)
    labels = random.choice([-1.0, 1.0], n)
    noise = random.multivariate_normal([0, 0], classes.covariance, n)
    return labels[:, None] * classes.mean + noise, labels


def test_condition_1_keeps_its_accuracy(runs):
    accuracy = runs[1]["accuracy"].to_numpy()
    assert accuracy[0] == pytest.approx(0.776, abs=0.005)
    assert accuracy[-1] == pytest.approx(0.803, abs=0.005)
    assert accuracy.min() == accuracy[0]


def test_condition_2_rises_and_then_falls_below_its_start(runs):
    run = runs[2].set_index("step")["accuracy"]
    assert run[0] == pytest.approx(0.791, abs=0.005)
    assert run[2000] == pytest.approx(0.813, abs=0.005)
    assert run[60_000] < run[0] - 0.05


@pytest.mark.parametrize("condition", [1, 2])
def test_the_scale_grows_and_the_entropy_falls(runs, condition):
    assert (np.diff(runs[condition]["size"]) > 0).all()
    assert (np.diff(runs[condition]["entropy"]) < 0).all()


@pytest.mark.parametrize("condition", [1, 2])
def test_accuracy_and_entropy_are_those_of_drawn_points(runs, condition):
    weight, _ = collapse.trained()
    points, labels = draws(collapse.corrupted(condition), 300_000)
    points = points / points.std(0)
    for step in (0, 20, -1):
        row = runs[condition].iloc[step]
        z = points @ (weight * [row["scale_1"], row["scale_2"]])
        p = expit(z)
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = np.nan_to_num(-p * np.log(p)) + np.nan_to_num(-(1 - p) * np.log(1 - p))
        assert (np.sign(z) == labels).mean() == pytest.approx(row["accuracy"], abs=0.003)
        assert entropy.mean() == pytest.approx(row["entropy"], abs=0.003)


def test_a_step_is_gradient_descent_on_the_entropy(runs):
    """The first change of scale against a numerical derivative over drawn points."""
    weight, scale = collapse.trained()
    points, _ = draws(collapse.corrupted(2), 300_000, seed=1)
    points = points / points.std(0)

    def entropy(scale):
        p = expit(points @ (weight * scale))
        return (-p * np.log(p) - (1 - p) * np.log(1 - p)).mean()

    gradient = [(entropy(scale + h) - entropy(scale - h)) / 2e-4 for h in 1e-4 * np.eye(2)]
    first, second = (
        collapse.trajectory(2, steps=1, every=1).iloc[k][["scale_1", "scale_2"]].to_numpy(float) for k in (0, 1)
    )
    assert (first - second) / 0.01 == pytest.approx(gradient, abs=2e-3)


def test_training_finds_the_direction_of_the_signal():
    weight, scale = collapse.trained()
    assert weight * scale == pytest.approx((weight * scale)[::-1])  # the classes lie on the diagonal
    assert (weight * scale > 0).all()
