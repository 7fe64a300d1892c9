"""Poisson regressions find known weights, and decoders that know the tuning find the label."""

import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor

from haptera.analyses.embedding.tuning import decode_glm, poisson_regression
from haptera.errors import HapteraError
from haptera.recordings.label import Label


def test_regressions_are_those_of_scikit_learn():
    generator = np.random.default_rng(0)
    inputs = np.concatenate([np.ones((300, 1)), generator.normal(size=(300, 3))], axis=1)
    counts = generator.poisson(np.exp(inputs @ [0.5, 1.0, -0.7, 0.0])).astype(float)
    peer = PoissonRegressor(alpha=2.0 / 300, solver="newton-cholesky", tol=1e-10).fit(inputs[:, 1:], counts)
    assert np.allclose(poisson_regression(inputs, counts, 2.0), [peer.intercept_, *peer.coef_], atol=1e-5)


def test_a_unit_that_never_fires_has_a_finite_rate():
    inputs = np.concatenate([np.ones((50, 1)), np.eye(50)[:, :3]], axis=1)
    assert np.isfinite(poisson_regression(inputs, np.zeros(50))).all()


def population(kind, samples=900):
    """Units that fire around places of their own, and a label of a kind."""
    generator = np.random.default_rng(1)
    if kind == "angle":
        values = np.mod(np.cumsum(generator.normal(0, 0.2, samples)), 2 * np.pi)
        near = np.cos(values[:, None] - np.arange(8) * np.pi / 4) - 1
    elif kind == "discrete":
        values = generator.integers(0, 3, samples)
        near = -2.0 * (values[:, None] != np.arange(8) % 3)
    else:
        values = generator.uniform(0, 1, (samples, 2))
        places = np.stack(np.meshgrid(np.linspace(0, 1, 4), np.linspace(0, 1, 4)), -1).reshape(-1, 2)
        near = -4 * ((values[:, None] - places) ** 2).sum(2)
    counts = generator.poisson(0.1 + 6 * np.exp(2 * near))
    label = Label.of(values, kind)
    return [(counts[rows], label[rows]) for rows in np.split(np.arange(samples), [500, 600])]


@pytest.mark.parametrize(
    ("kind", "measure", "least"), [("angle", "r2", 0.9), ("discrete", "accuracy", 0.9), ("continuous", "r2", 0.7)]
)
def test_labels_of_every_kind_are_read(kind, measure, least):
    found = decode_glm(*population(kind), windows=(1,))
    scores = found.scores
    assert found.decoder == "glm"
    assert len(found.predicted) == 300
    assert scores["median_error"] < 15 if kind == "angle" else scores[measure] > least


def test_a_signal_that_is_not_counts_is_refused():
    (counts, label), validation, test = population("angle")
    with pytest.raises(HapteraError, match="take counts"):
        decode_glm((counts - 5, label), validation, test)
