"""Premises of theorem 2, on data for which they are known to hold or not."""

import numpy as np
import pytest

from haptera.analyses.attribution.assumptions import canonical_correlations, check_assumptions, mixed_derivative
from haptera.contrastive.estimator import ContrastiveEmbedding


def test_canonical_correlations_are_those_of_the_definition():
    generator = np.random.default_rng(0)
    u = generator.normal(size=(4000, 3))
    v = np.column_stack([u[:, 0], 0.6 * u[:, 1] + 0.8 * generator.normal(size=4000), generator.normal(size=4000)])
    found = canonical_correlations(u @ generator.normal(size=(3, 3)), v @ generator.normal(size=(3, 3)))
    assert found == pytest.approx([1.0, 0.6, 0.0], abs=0.06)


def test_an_idle_direction_has_no_correlation():
    u = np.column_stack([np.arange(50.0), np.zeros(50)])
    assert canonical_correlations(u, u).tolist() == pytest.approx([1.0, 0.0])


def test_the_mixed_derivative_is_that_of_a_gaussian():
    generator = np.random.default_rng(1)
    matrix, deviations = np.array([[1.0, 0.5], [0.0, 2.0]]), np.array([0.5, 2.0])
    u = generator.normal(size=(40_000, 2))
    v = u @ matrix.T + deviations * generator.normal(size=u.shape)
    # log p(v|u) = -(v - Bu)ᵀ Σ⁻¹ (v - Bu) / 2 + const, so that ∂²/∂u∂v = Bᵀ Σ⁻¹
    assert np.allclose(mixed_derivative(u, v), matrix.T @ np.diag(deviations**-2), atol=0.05)


def fitted(samples=600, **settings):
    generator = np.random.default_rng(0)
    walk = np.cumsum(generator.normal(size=(samples, 2)), axis=0)
    signal = walk @ generator.normal(size=(2, 6)) + 0.1 * generator.normal(size=(samples, 6))
    settings = {"max_iterations": 60, "batch_size": 128, "learning_rate": 3e-3, "random_state": 0} | settings
    return ContrastiveEmbedding(**settings).fit(signal, walk), signal, walk


def test_a_sphere_loses_a_dimension_and_a_plane_does_not():
    seen = check_assumptions(*fitted(output_dimension=3))
    assert seen.rank == 2
    assert seen.full == 0
    assert "is 2 of 3" in seen.sentence()
    flat = {"model_architecture": "offset1-model-mse", "distance": "euclidean", "positive_in_denominator": True}
    seen = check_assumptions(*fitted(output_dimension=2, **flat))
    assert seen.rank == 2
    assert seen.numbers()["diversity_rank"] == [2]


def test_parts_are_looked_at_one_by_one():
    model, signal, walk = fitted(samples=300, output_dimension=4, max_iterations=5)
    model.set_params(hybrid={"0": [0, 1], "time": [2, 3]}).fit(signal, walk)
    numbers = check_assumptions(model, signal, walk).numbers()
    assert numbers["part_dimensions"] == [2, 2]
    assert len(numbers["derivative_constancy"]) == 2
