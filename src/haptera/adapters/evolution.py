"""CMA-ES: minimise a function of some hundred numbers by its values alone, from normal samples that learn their shape.

Source: Hansen 2016, "The CMA evolution strategy: a tutorial", its algorithm and default constants without negative
weights. A search is a dictionary of numbers and tensors, so that an adapter's state can carry it; samples come from the
generator that is handed over. Eigenvectors are found anew only when the covariance has changed enough, as there (B.2).
Cost: for d numbers, d² products per sample and d³ for eigenvectors, every 1/(10 d (c1 + cµ)) generations.
"""

from dataclasses import dataclass
from functools import cache
from math import ceil, exp, log, sqrt
from typing import Any

import torch

Search = dict[str, Any]


@dataclass(frozen=True)
class Constants:
    """What the tutorial's table 1 makes of the number of dimensions and the size of a generation.

    Attributes:
        weights: of the better half of the samples, the best first; their sum is 1.
        mass: µ_eff, how many samples of equal weight they count for.
        path_share: c_c, of a step in the path that feeds the covariance.
        step_share: c_σ, of a step in the path that feeds the step size.
        rank_one: c_1, of the path in the covariance.
        rank_many: c_µ, of the samples in the covariance.
        damping: d_σ, of the step size.
        expected: length of a standard normal vector.
    """

    weights: tuple[float, ...]
    mass: float
    path_share: float
    step_share: float
    rank_one: float
    rank_many: float
    damping: float
    expected: float


@cache
def constants(d: int, population: int) -> Constants:
    """The default constants."""
    raw = [log((population + 1) / 2) - log(rank) for rank in range(1, population // 2 + 1)]
    weights = tuple(value / sum(raw) for value in raw)
    mass = 1 / sum(weight**2 for weight in weights)
    step_share = (mass + 2) / (d + mass + 5)
    rank_one = 2 / ((d + 1.3) ** 2 + mass)
    return Constants(
        weights=weights,
        mass=mass,
        path_share=(4 + mass / d) / (d + 4 + 2 * mass / d),
        step_share=step_share,
        rank_one=rank_one,
        rank_many=min(1 - rank_one, 2 * (mass - 2 + 1 / mass) / ((d + 2) ** 2 + mass)),
        damping=1 + 2 * max(0.0, sqrt((mass - 1) / (d + 1)) - 1) + step_share,
        expected=sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d)),
    )


def usual_population(d: int) -> int:
    """4 + 3 ln d samples in a generation."""
    return 4 + int(3 * log(d))


def begin_search(mean: torch.Tensor, sigma: float) -> Search:
    """A search around a point `(d,)` with this standard deviation in every direction."""
    d = len(mean)
    return {
        "mean": mean.double(),
        "sigma": sigma,
        "covariance": torch.eye(d, dtype=torch.float64),
        "axes": torch.eye(d, dtype=torch.float64),
        "lengths": torch.ones(d, dtype=torch.float64),
        "path": torch.zeros(d, dtype=torch.float64),
        "steps": torch.zeros(d, dtype=torch.float64),
        "generation": 0,
        "found": 0,
    }


def draw(search: Search, population: int, random: torch.Generator) -> torch.Tensor:
    """Standard normal numbers `(population, d)`; `place` says where in the search they are."""
    return torch.randn(population, len(search["mean"]), generator=random, dtype=torch.float64)


def place(search: Search, drawn: torch.Tensor) -> torch.Tensor:
    """The samples `(population, d)` that are to be tried."""
    return search["mean"] + search["sigma"] * (drawn * search["lengths"]) @ search["axes"].T


def learn(search: Search, drawn: torch.Tensor, values: list[float]) -> Search:
    """The search after a generation, given the values of its samples; smaller ones are better."""
    d, k = drawn.shape[1], constants(drawn.shape[1], len(drawn))
    best = torch.tensor(values, dtype=torch.float64).argsort(stable=True)[: len(k.weights)]
    weights = torch.tensor(k.weights, dtype=torch.float64)
    z = drawn[best]
    y = (z * search["lengths"]) @ search["axes"].T
    step, generation = weights @ y, search["generation"] + 1
    steps = (1 - k.step_share) * search["steps"]
    steps = steps + sqrt(k.step_share * (2 - k.step_share) * k.mass) * search["axes"] @ (weights @ z)
    length = float(steps.norm())
    stalled = length / sqrt(1 - (1 - k.step_share) ** (2 * generation)) >= (1.4 + 2 / (d + 1)) * k.expected
    path = (1 - k.path_share) * search["path"]
    if not stalled:
        path = path + sqrt(k.path_share * (2 - k.path_share) * k.mass) * step
    kept = 1 - k.rank_one - k.rank_many + (k.rank_one * k.path_share * (2 - k.path_share) if stalled else 0.0)
    covariance = kept * search["covariance"] + k.rank_one * torch.outer(path, path)
    covariance += k.rank_many * (y.T * weights) @ y
    new = {
        "mean": search["mean"] + search["sigma"] * step,
        "sigma": search["sigma"] * exp(min(1.0, k.step_share / k.damping * (length / k.expected - 1))),
        "covariance": covariance,
        "path": path,
        "steps": steps,
        "generation": generation,
    }
    if generation - search["found"] >= ceil(1 / (10 * d * (k.rank_one + k.rank_many))):
        squares, axes = torch.linalg.eigh((covariance + covariance.T) / 2)
        axes = axes.contiguous()  # as a file gives it back: rounding depends on the layout
        new |= {"axes": axes, "lengths": squares.clamp_min(1e-20).sqrt(), "found": generation}
    return search | new
