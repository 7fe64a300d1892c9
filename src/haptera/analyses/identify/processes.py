"""Processes: latents whose law is known, mixed into observations by a network that can be inverted.

Source: thesis chapter 6, "Validation of theoretical claim", and appendix E: 10 latents on the sphere, in the unit box
or in all of space; a network of three square layers with leaky ReLU of slope .2, each layer the best conditioned of
25,000 matrices of uniform entries with columns of length 1.
Cost: the condition numbers of 25,000 small matrices for each layer, once for a seed.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from haptera.analyses.identify.laws import SPACES, Law, Uniform, read_law
from haptera.errors import HapteraError, unknown

SLOPE = 0.2
TRIED = 25_000


@dataclass(frozen=True, eq=False)
class Mixing:
    """Layers with leaky ReLU between them.

    Attributes:
        weights: `(inputs, outputs)` of each layer, with at least as many outputs.
        slope: of the leaky ReLU below zero.
    """

    weights: tuple[np.ndarray, ...]
    slope: float = SLOPE

    @classmethod
    def draw(cls, widths: "list[int]", random: np.random.Generator, tried: int = TRIED) -> "Mixing":
        """Layers of these widths, each the best conditioned of some.

        Args:
            widths: of latents, of the layers, of observations; none smaller than the one before.
            random: draws the weights.
            tried: matrices of which the best conditioned is taken.
        """
        if any(b < a for a, b in pairwise(widths)):
            raise HapteraError(f"widths are {widths}; a layer narrower than the one before cannot be inverted")
        return cls(tuple(_well_conditioned(a, b, random, tried) for a, b in pairwise(widths)))

    def __call__(self, latents: np.ndarray) -> np.ndarray:
        """Observations `(count, outputs)` of latents `(count, inputs)`."""
        values = latents
        for place, weight in enumerate(self.weights):
            values = values @ weight
            if place < len(self.weights) - 1:
                values = np.where(values < 0, self.slope * values, values)
        return values

    def inverse(self, observations: np.ndarray) -> np.ndarray:
        """The latents back."""
        values = observations
        for place in reversed(range(len(self.weights))):
            if place < len(self.weights) - 1:
                values = np.where(values < 0, values / self.slope, values)
            values = values @ np.linalg.pinv(self.weights[place])
        return values

    @property
    def condition(self) -> float:
        """The largest condition number of a layer."""
        return max(float(np.linalg.cond(weight)) for weight in self.weights)


@dataclass(frozen=True, eq=False)
class Process:
    """Pairs of latents, and what they look like.

    Attributes:
        space: `sphere`, `box` or `unbounded`.
        marginal: law of a latent, around the pole of the sphere, the middle of the box or 0.
        conditional: law of its positive, around it.
        dimensions: of the latents.
        seed: of the mixing network.
        tried: matrices of which each of its layers is the best conditioned.
    """

    space: str
    marginal: Law
    conditional: Law
    dimensions: int = 4
    seed: int = 0
    tried: int = TRIED

    def __post_init__(self) -> None:
        if self.space not in SPACES:
            raise unknown("space", self.space, SPACES)
        if self.dimensions < 2:
            raise HapteraError(f"dimensions is {self.dimensions}; at least 2 was expected")
        self.pairs(1, np.random.default_rng(0))  # says so if a law does not live in the space

    @classmethod
    def read(cls, text: str, dimensions: int = 4, seed: int = 0) -> "Process":
        """Read `space/marginal/conditional`.

        >>> Process.read("box/uniform/laplace=0.05").conditional
        GeneralisedNormal(scale=0.05, beta=1.0)
        """
        parts = text.split("/")
        if len(parts) != 3:
            raise HapteraError(
                f"the process is {text!r}; space/marginal/conditional expected, as in sphere/uniform/vmf=10"
            )
        return cls(parts[0], read_law(parts[1]), read_law(parts[2]), dimensions, seed)

    @property
    def mixing(self) -> Mixing:
        """The network, drawn when first used; processes that differ in their laws alone share it."""
        return _square_mixing(self.dimensions, self.seed, self.tried)

    def latents(self, count: int, random: np.random.Generator) -> np.ndarray:
        """Draw latents from the marginal, `(count, dimensions)`."""
        return self.marginal.draw(self.space, np.broadcast_to(self._centre, (count, self.dimensions)), random)

    def pairs(self, count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Latents and their positives."""
        first = self.latents(count, random)
        return first, self.conditional.draw(self.space, first, random)

    def mass_from_uniform(self, count: int = 20_000, seed: int = 0) -> float:
        """The mass to be moved to make the marginal uniform (figure 6.2): half of its L₁ distance, E_p max(0, 1 − u/p).

        Args:
            count: latents by which it is estimated; its standard error is at most ½/√count.
            seed: of them.
        """
        if self.space == "unbounded":
            raise HapteraError("unbounded space has no uniform law to compare with")
        points = self.latents(count, np.random.default_rng(seed))
        centres = np.broadcast_to(self._centre, points.shape)
        uniform = Uniform().log_density(self.space, points, centres)
        own = self.marginal.log_density(self.space, points, centres)
        return float(np.maximum(0.0, -np.expm1(np.minimum(uniform - own, 0.0))).mean())

    @property
    def _centre(self) -> np.ndarray:
        if self.space == "sphere":
            return np.eye(1, self.dimensions)[0]
        return np.full(self.dimensions, 0.5 if self.space == "box" else 0.0)


@lru_cache(maxsize=64)
def _square_mixing(dimensions: int, seed: int, tried: int) -> Mixing:
    return Mixing.draw([dimensions] * 4, np.random.default_rng([seed, 6]), tried)


def _well_conditioned(inputs: int, outputs: int, random: np.random.Generator, tried: int) -> np.ndarray:
    best, least = np.empty(0), np.inf
    for start in range(0, tried, 500):
        matrices = random.uniform(-1, 1, (min(500, tried - start), inputs, outputs))
        matrices /= np.linalg.norm(matrices, axis=1, keepdims=True)
        conditions = np.linalg.cond(matrices)
        place = int(conditions.argmin())
        if conditions[place] < least:
            best, least = matrices[place], float(conditions[place])
    return best
