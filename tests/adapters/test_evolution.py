"""CMA-ES against the tutorial's loops, on functions whose minimum is known, and in its invariances."""

from math import exp, log, sqrt

import numpy as np
import pytest
import torch

from haptera.adapters.evolution import begin_search, draw, learn, place, usual_population


def minimise(function, start, sigma, generations, seed=0, population=None):
    search = begin_search(torch.tensor(start, dtype=torch.float64), sigma)
    random = torch.Generator().manual_seed(seed)
    for _ in range(generations):
        drawn = draw(search, population or usual_population(len(start)), random)
        search = learn(search, drawn, [float(function(x)) for x in place(search, drawn)])
    return search


def by_hand(function, mean, sigma, generations, population, seed):
    """The algorithm of the tutorial, number by number, with eigenvectors in every generation."""
    d, random = len(mean), torch.Generator().manual_seed(seed)
    raw = [log((population + 1) / 2) - log(i) for i in range(1, population // 2 + 1)]
    w = [value / sum(raw) for value in raw]
    mu = 1 / sum(value**2 for value in w)
    cc, cs = (4 + mu / d) / (d + 4 + 2 * mu / d), (mu + 2) / (d + mu + 5)
    c1 = 2 / ((d + 1.3) ** 2 + mu)
    cmu = min(1 - c1, 2 * (mu - 2 + 1 / mu) / ((d + 2) ** 2 + mu))
    damps = 1 + 2 * max(0, sqrt((mu - 1) / (d + 1)) - 1) + cs
    chi = sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d**2))
    mean, C, pc, ps = np.array(mean), np.eye(d), np.zeros(d), np.zeros(d)
    for g in range(1, generations + 1):
        squares, B = torch.linalg.eigh(torch.tensor(C)) if g > 1 else (torch.ones(d), torch.eye(d).double())
        B, D = B.numpy(), np.sqrt(squares.numpy())
        zs = torch.randn(population, d, generator=random, dtype=torch.float64).numpy()
        ys = [B @ np.diag(D) @ z for z in zs]
        values = [float(function(torch.tensor(mean + sigma * y))) for y in ys]
        ranked = [ys[i] for i in np.argsort(values, kind="stable")][: len(w)]
        yw = sum(a * y for a, y in zip(w, ranked, strict=True))
        ps = (1 - cs) * ps + sqrt(cs * (2 - cs) * mu) * (B @ np.diag(1 / D) @ B.T @ yw)
        h = np.linalg.norm(ps) / sqrt(1 - (1 - cs) ** (2 * g)) < (1.4 + 2 / (d + 1)) * chi
        pc = (1 - cc) * pc + h * sqrt(cc * (2 - cc) * mu) * yw
        C = (1 - c1 - cmu + (not h) * c1 * cc * (2 - cc)) * C + c1 * np.outer(pc, pc)
        for a, y in zip(w, ranked, strict=True):
            C = C + cmu * a * np.outer(y, y)
        mean = mean + sigma * yw
        sigma = sigma * exp(min(1, cs / damps * (np.linalg.norm(ps) / chi - 1)))
    return mean, sigma, C


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("seed", [0, 1])
def test_every_generation_equals_the_tutorial(seed):
    start = [0.5, -1.0, 2.0]
    search = minimise(rosenbrock, start, 0.7, 12, seed, population=8)
    mean, sigma, covariance = by_hand(rosenbrock, start, 0.7, 12, 8, seed)
    assert np.allclose(search["mean"], mean, atol=1e-8)
    assert search["sigma"] == pytest.approx(sigma)
    assert np.allclose(search["covariance"], covariance, atol=1e-8)


def test_a_stretched_bowl_is_followed_to_its_bottom():
    scales = torch.logspace(0, 4, 6, dtype=torch.float64)
    bottom = torch.arange(6, dtype=torch.float64)
    search = minimise(lambda x: (scales * (x - bottom) ** 2).sum(), [0.0] * 6, 1.0, 300)
    assert torch.allclose(search["mean"], bottom, atol=1e-4)


def test_a_bent_valley_is_followed_to_its_end():
    search = minimise(rosenbrock, [0.0] * 4, 0.5, 300, seed=3)
    assert torch.allclose(search["mean"], torch.ones(4, dtype=torch.float64), atol=1e-3)


def test_only_the_order_of_values_matters():
    plain = minimise(rosenbrock, [0.0, 0.0], 1.0, 10)
    bent = minimise(lambda x: torch.log1p(rosenbrock(x)) ** 3, [0.0, 0.0], 1.0, 10)
    assert torch.equal(plain["mean"], bent["mean"])


def test_values_that_are_infinite_come_last():
    search = minimise(lambda x: float("inf") if x[0] > 0 else (x[0] + 2) ** 2, [0.0], 0.5, 60)
    assert float(search["mean"]) == pytest.approx(-2, abs=1e-3)


def test_many_numbers_find_eigenvectors_rarely():
    search = begin_search(torch.zeros(200), 1.0)
    random = torch.Generator().manual_seed(0)
    found = set()
    for _ in range(12):
        drawn = draw(search, usual_population(200), random)
        search = learn(search, drawn, [float((x**2).sum()) for x in place(search, drawn)])
        found.add(search["found"])
    assert 1 < len(found) < 12
    assert usual_population(3 * 768) == 27
