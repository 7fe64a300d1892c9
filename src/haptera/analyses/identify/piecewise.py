"""Piecewise processes: recordings of which it is known which latents reach which inputs.

Source: thesis chapter 8, definition 2 and appendix G, "Synthetic data design": z1 drives the inputs x1 and x2, z2
drives x2 only; one of the two is observed. The true map of (8.1) therefore has zeros from z2 to x1 and ones elsewhere.
Each part of the inputs is an injective network of its latents (three layers, leaky ReLU, conditioning controlled).
Latents move by Brownian steps, reflected at the sides of a box. The text leaves open the numbers of inputs, the
widths, the size of steps and the box. Here there are 25 inputs in each part, steps have a standard deviation of .3,
and the box goes from −1 to 1: with steps of .1 a walk needs hundreds of samples from one end to the other, so that
20,000 samples see too little of six latents. Layers are as narrow as there are latents but for the last: where they
are wide, what z1 and z2 do to the inputs is all but orthogonal, and the gradient of any encoder shows the map as well
as its inverse does.
Cost: a fraction of a second for 20,000 samples.
"""

from dataclasses import dataclass

import numpy as np

from haptera.analyses.identify.processes import Mixing
from haptera.errors import HapteraError


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
