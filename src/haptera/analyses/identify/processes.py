"""Processes: latents whose law is known, mixed into observations by a network that can be inverted.

Source: thesis chapter 6, "Validation of theoretical claim", and appendix E: 10 latents on the sphere, in the unit box
or in all of space; a network of three square layers with leaky ReLU of slope .2, each layer the best conditioned of
25,000 matrices of uniform entries with columns of length 1.
Cost: the condition numbers of 25,000 small matrices for each layer, once for a seed.

A piecewise process (chapter 8, definition 2 and appendix G) is a recording of which it is known which latents reach
which inputs: z1 drives the inputs x1 and x2, z2 drives x2 only, so that the true map of (8.1) has
zeros from z2 to x1 and ones elsewhere. Each part of the inputs is an injective network of its latents. Latents move by
Brownian steps, reflected at the sides of a box. The text leaves open the numbers of inputs, the widths, the size of
steps and the box. Here there are 25 inputs in each part, steps have a standard deviation of .3, and the box goes from
−1 to 1: with steps of .1 a walk needs hundreds of samples from one end to the other, so that 20,000 samples see too
little of six latents. Layers are as narrow as there are latents but for the last: where they are wide, what z1 and z2
do to the inputs is all but orthogonal, and the gradient of any encoder shows the map as well as its inverse does.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from haptera.analyses.identify.laws import SPACES, Law, Uniform, read_law
from haptera.analyses.identify.scenes import SEEN
from haptera.errors import HapteraError, unknown

SLOPE = 0.2
TRIED = 25_000
MIXED = "mixed"


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
        seen: how latents are seen: `mixed` by the network, or drawn as `pictures` or `masks`.
    """

    space: str
    marginal: Law
    conditional: Law
    dimensions: int = 4
    seed: int = 0
    tried: int = TRIED
    seen: str = MIXED

    def __post_init__(self) -> None:
        if self.space not in SPACES:
            raise unknown("space", self.space, SPACES)
        if self.seen not in (MIXED, *SEEN):
            raise unknown("way to see latents", self.seen, (MIXED, *SEEN))
        if self.seen != MIXED and (self.space, self.dimensions) != ("box", SEEN[self.seen][0]):
            raise HapteraError(
                f"{self.seen} have {SEEN[self.seen][0]} factors in a box; the process has {self.dimensions} latents "
                f"and the space {self.space} (--dimensions, or dimensions in a file)"
            )
        if self.dimensions < 2:
            raise HapteraError(f"dimensions is {self.dimensions}; at least 2 was expected")
        self.pairs(1, np.random.default_rng(0))  # says so if a law does not live in the space

    @classmethod
    def read(cls, text: str, dimensions: int = 4, seed: int = 0) -> "Process":
        """Read `space/marginal/conditional`, and after another `/` how latents are seen, if not mixed.

        >>> Process.read("box/uniform/laplace=0.05").conditional
        GeneralisedNormal(scale=0.05, beta=1.0)
        """
        parts = text.split("/")
        if len(parts) not in (3, 4):
            raise HapteraError(
                f"the process is {text!r}; space/marginal/conditional expected, as in sphere/uniform/vmf=10"
            )
        laws = read_law(parts[1]), read_law(parts[2])
        return cls(parts[0], *laws, dimensions, seed, seen=parts[3] if len(parts) == 4 else MIXED)

    @property
    def mixing(self) -> Mixing:
        """The network, drawn when first used; processes that differ in their laws alone share it."""
        return _square_mixing(self.dimensions, self.seed, self.tried)

    def observe(self, latents: np.ndarray) -> np.ndarray:
        """Return what is seen of latents: `(count, channels)`, or pictures."""
        return self.mixing(latents) if self.seen == MIXED else SEEN[self.seen][1](latents)

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


@dataclass(frozen=True, eq=False)
class Piecewise:
    """A recording and the truth behind it.

    Attributes:
        signal: x, `(samples, inputs)`.
        latents: z1 then z2, `(samples, latents)`.
        first: the latents of z1.
        second: the latents of z2.
        map: `(latents, inputs)`, True where a latent reaches an input.
    """

    signal: np.ndarray
    latents: np.ndarray
    first: list[int]
    second: list[int]
    map: np.ndarray


def piecewise(
    samples: int = 20_000,
    first: int = 2,
    second: int = 2,
    inputs: tuple[int, int] = (25, 25),
    *,
    step: float = 0.3,
    noise: float = 0.0,
    tried: int = 100,
    seed: int = 0,
) -> Piecewise:
    """A recording of chapter 8.

    Args:
        samples: how many.
        first: latents of z1, which reach all inputs.
        second: latents of z2, which reach x2 only.
        inputs: of x1, at least as many as z1 has latents, and of x2, at least as many as there are latents.
        step: standard deviation of the steps of each latent, in a box from −1 to 1.
        noise: standard deviation of noise on the inputs, in units of each input's own.
        tried: matrices of which each layer of a network is the best conditioned.
        seed: of everything.
    """
    if min(first, second) < 1 or samples < 2:
        raise HapteraError(f"{samples} samples of {first} and {second} latents; at least 2 and 1 each expected")
    if inputs[0] < first or inputs[1] < first + second:
        raise HapteraError(f"inputs are {inputs}; at least ({first}, {first + second}) were expected, to keep latents")
    if not step > 0 or noise < 0:
        raise HapteraError(f"step is {step}, noise {noise}; more than 0, and at least 0, were expected")
    random = np.random.default_rng(seed)
    latents = brownian(samples, first + second, step, random)
    parts = []
    for known, width in ((latents[:, :first], inputs[0]), (latents, inputs[1])):
        network = Mixing.draw([known.shape[1]] * 3 + [width], random, tried)
        parts.append(network(known))
    signal = np.hstack(parts)
    signal = (signal - signal.mean(0)) / signal.std(0)
    signal = signal + noise * random.normal(size=signal.shape)
    true = np.ones((first + second, sum(inputs)), bool)
    true[first:, : inputs[0]] = False
    z1, z2 = list(range(first)), list(range(first, first + second))
    return Piecewise(signal.astype(np.float32), latents, z1, z2, true)


def brownian(samples: int, dimensions: int, step: float, random: np.random.Generator) -> np.ndarray:
    """Independent walks that are reflected at −1 and 1, from a uniform start; uniform at every time."""
    start = random.uniform(-1, 1, dimensions)
    steps = random.normal(0, step, (samples, dimensions))
    steps[0] = 0
    # A walk in a box is one on a line folded up.
    return np.asarray(np.abs(np.mod(start + steps.cumsum(0) + 1, 4) - 2) - 1)
