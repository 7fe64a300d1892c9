"""Rings are rings, spheres are spheres, and the angle around a ring is found."""

import numpy as np
import pandas as pd
import pytest

from haptera.analyses.embedding.topology import Persistence, betti_numbers, circular_coordinates, persistence
from haptera.errors import HapteraError


def sphere(samples, seed):
    points = np.random.default_rng(seed).normal(size=(samples, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def ring(samples, seed):
    generator = np.random.default_rng(seed)
    angle = generator.uniform(0, 2 * np.pi, samples)
    points = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(samples)]) + 0.1 * generator.normal(
        size=(samples, 3)
    )
    return points / np.linalg.norm(points, axis=1, keepdims=True), angle


def blob(samples, seed):
    return 1.5 * np.random.default_rng(seed).normal(size=(samples, 3))


def test_a_ring_has_one_long_bar_in_h1_and_a_sphere_one_in_h2():
    found = {
        name: persistence(points, points=100)
        for name, points in (("ring", ring(500, 0)[0]), ("sphere", sphere(500, 1)))
    }
    assert found["ring"].longest(1) > 5 * max(found["ring"].longest(1, rank=1), found["ring"].longest(2))
    assert found["sphere"].longest(2) > 3 * max(found["sphere"].longest(1), found["sphere"].longest(2, rank=1))


def test_two_rings_apart_have_two_long_bars_and_a_gap():
    first = ring(300, 0)[0]
    found = persistence(np.concatenate([first, first + 8]), points=100, dimension=1)
    assert found.longest(1, rank=1) > 5 * found.longest(1, rank=2)
    assert found.longest(0, rank=1) > 5 * found.longest(0, rank=2)  # rank 0 is the part that is left


def bars(*lifespans):
    """A diagram with these lifespans in each dimension."""
    rows = [(place, 0.0, life, life) for place, lives in enumerate(lifespans) for life in lives]
    return Persistence(
        pd.DataFrame([(0, 0.0, np.inf, 9.0), *rows], columns=["dimension", "birth", "death", "lifespan"]), 9.0
    )


def test_betti_numbers_count_what_lives_longer_than_any_shuffled_bar():
    null = [bars([0.3], [0.5, 0.1], []), bars([0.4], [0.2], [0.6])]
    assert betti_numbers(bars([0.2, 0.1], [2.0, 0.55, 0.3], [0.2]), null) == (1, 1, 0)
    assert betti_numbers(bars([0.1], [0.1], [0.9]), null) == (1, 0, 1)
    assert betti_numbers(bars([0.45, 0.2], [2.0, 1.0], []), null) == (2, 2, 0)
    assert betti_numbers(bars([0.1], [0.4], []), null) == (1, 0, 0)


def test_the_same_seed_draws_the_same_points():
    points = sphere(1500, 0)
    first, second = (persistence(points, points=50, dimension=1, seed=4) for _ in range(2))
    assert first.bars.equals(second.bars)
    assert (first.bars["lifespan"] >= 0).all()
    assert np.isfinite(first.bars["lifespan"]).all()


def test_circular_coordinates_follow_the_angle():
    points, angle = ring(600, 5)
    found = circular_coordinates(points, points=150)
    assert ((found >= 0) & (found < 2 * np.pi)).all()
    agree = max(np.abs(np.exp(1j * (angle - sign * found)).mean()) for sign in (1, -1))
    assert agree > 0.97  # 1 up to direction and origin, 0 for anything else


def test_what_topology_cannot_do_is_an_error():
    with pytest.raises(HapteraError, match="ten or more"):
        persistence(np.zeros((5, 2)))
    with pytest.raises(HapteraError, match="none was given"):
        betti_numbers(persistence(blob(50, 0), points=30, dimension=1), [])
    with pytest.raises(HapteraError, match="no ring"):
        circular_coordinates(np.arange(20.0)[:, None])


def test_lifespans_do_not_depend_on_the_size_of_the_embedding():
    points = sphere(200, 0)
    small, large = (persistence(scale * points, points=50, dimension=1) for scale in (0.01, 100.0))
    assert np.allclose(small.bars["lifespan"], large.bars["lifespan"], rtol=1e-4)
    with pytest.raises(HapteraError, match="all points of the embedding are the same"):
        persistence(np.ones((50, 3)))
