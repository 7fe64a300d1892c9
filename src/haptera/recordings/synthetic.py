"""Synthetic recordings with known latents: those of chapter 7, and sessions that share them.

Source: thesis chapter 7, methods, "Artificial Spiking Dataset", after Zhou and Wei (2020). A label c, uniform on
[0, 2π); a latent with mean (c, 2 sin c) and variances (.6 − .3 |sin c|, .3 |sin c|); zeros up to the number of
neurons; four RealNVP blocks of two coupling layers, permutations between blocks; rates exp(2.2 tanh); noise.
Where the text leaves it open, networks are drawn as Keras does (Glorot, no bias), and refractory counts are those of
one second. Laplace and t noise, of which the text does not speak, are added to the rates with scale 1.

`sessions` differ in their neurons and share the law of the latent; there c walks, so that time means something as well.
Cost: 15,000 samples of 100 neurons take about a second.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import gammainc

from haptera.errors import HapteraError, unknown
from haptera.recordings.label import Label
from haptera.recordings.recording import Recording

BLOCKS, LAYERS = 4, 2
GAIN, SCALE = 2.2, 0.1
LARGEST = 1000.0
RATE, REFRACTORY, SECONDS = 110.0, 0.010, 1.0


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A recording and the truth behind it.

    Attributes:
        signal: `(samples, neurons)`, noisy.
        label: `(samples,)`, from 0 to 2π.
        latent: `(samples, 2)`.
        rates: `(samples, neurons)`, before noise.
    """

    signal: np.ndarray
    label: np.ndarray
    latent: np.ndarray
    rates: np.ndarray

    def recording(self) -> Recording:
        """Return a recording with the signal `spikes` and the label `c`."""
        return Recording({"spikes": self.signal}, {"c": Label(self.label, "continuous")}, source="synthetic data")


def synthetic(samples: int = 15_000, neurons: int = 100, noise: str = "poisson", seed: int = 0) -> Synthetic:
    """The data of figure 7.1 b, or with another noise those of extended data figure 1.

    Args:
        samples: how many, each independent of the others.
        neurons: how many.
        noise: poisson, gaussian, uniform, refractory, laplace or t.
        seed: of everything.
    """
    generator = np.random.default_rng(seed)
    return _from_label(generator.uniform(0, 2 * np.pi, samples), neurons, noise, generator)


def sessions(
    neurons: Sequence[int] = (60, 80, 100), samples: int = 4_000, seed: int = 0, *, step: float = 0.15
) -> list[Synthetic]:
    """Sessions with their own neurons and walks, and the same law of the latent.

    Args:
        neurons: of each session.
        samples: of each session.
        seed: of everything.
        step: standard deviation of the steps of c, which is reflected at 0 and 2π.
    """
    made = []
    for place, count in enumerate(neurons):
        generator = np.random.default_rng([seed, place])
        walk = generator.uniform(0, 2 * np.pi) + np.cumsum(generator.normal(0, step, samples))
        made.append(_from_label(2 * np.pi - np.abs(np.mod(walk, 4 * np.pi) - 2 * np.pi), count, "poisson", generator))
    return made


def _from_label(c: np.ndarray, neurons: int, noise: str, generator: np.random.Generator) -> Synthetic:
    if noise not in NOISES:
        raise unknown("noise", noise, NOISES)
    if neurons < 4 or len(c) < 2:
        raise HapteraError(f"{len(c)} samples of {neurons} neurons were asked for; at least 2 of 4 are needed")
    bend = np.abs(np.sin(c))
    mean = np.column_stack([c, 2 * np.sin(c)])
    latent = mean + generator.standard_normal(mean.shape) * np.sqrt(np.column_stack([0.6 - 0.3 * bend, 0.3 * bend]))
    rates = np.exp(GAIN * np.tanh(_mix(latent, neurons, generator)))
    return Synthetic(NOISES[noise](rates, generator).astype(np.float32), c, latent, rates)


def _mix(latent: np.ndarray, neurons: int, generator: np.random.Generator) -> np.ndarray:
    """An invertible map of the latent, filled up with zeros."""
    values = np.concatenate([latent, np.zeros((len(latent), neurons - latent.shape[1]))], axis=1)
    for layer in range(BLOCKS * LAYERS):
        if layer and layer % LAYERS == 0:
            values = values[:, generator.permutation(neurons)]
        kept, moved = values[:, : neurons // 2], values[:, neurons // 2 :]
        wide = neurons // 4
        *inner, last = _network([kept.shape[1], wide, wide, 2 * moved.shape[1]], generator)
        hidden = kept
        for weights in inner:
            hidden = np.maximum(hidden @ weights, 0)
        scale, shift = np.split(hidden @ last, 2, axis=1)
        # Halves change places, so that the next layer moves what this one kept.
        values = np.concatenate([moved * np.exp(SCALE * np.tanh(scale)) + shift, kept], axis=1)
    return values


def _network(widths: Sequence[int], generator: np.random.Generator) -> list[np.ndarray]:
    """Weights by Glorot and Bengio (2010), uniform."""
    ends = [(a, b, np.sqrt(6 / (a + b))) for a, b in pairwise(widths)]
    return [generator.uniform(-limit, limit, (a, b)) for a, b, limit in ends]


def _add_noise(draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]) -> Callable:
    """Noise added to the rates; nothing falls below zero."""
    return lambda rates, generator: (rates + draw(generator, rates.shape)).clip(0, LARGEST)


def _refractory(rates: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Spikes in a second whose intervals are exponential plus 10 ms, drawn from their exact distribution.

    There are n spikes or more if n intervals fit: P = P(Gamma(n) ≤ rate (1 − .01 n)), which falls with n; the count is
    the largest n for which it exceeds a uniform number. Bisection finds it for all samples at once.
    """
    hertz = rates * (RATE / rates.mean())
    uniform = generator.uniform(size=rates.shape)
    most = int(SECONDS / REFRACTORY)
    low, high = np.zeros(rates.shape, np.int64), np.full(rates.shape, most)
    while (low < high).any():
        middle = (low + high + 1) // 2
        fits = gammainc(np.maximum(middle, 1), hertz * np.maximum(SECONDS - REFRACTORY * middle, 0)) > uniform
        low, high = np.where(fits & (low < high), middle, low), np.where(fits | (low >= high), high, middle - 1)
    return low


NOISES: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "poisson": lambda rates, generator: generator.poisson(rates),
    "gaussian": _add_noise(lambda generator, shape: generator.normal(0, 1, shape)),
    "uniform": _add_noise(lambda generator, shape: generator.uniform(0, 2, shape)),
    "refractory": _refractory,
    "laplace": _add_noise(lambda generator, shape: generator.laplace(0, 1, shape)),
    "t": _add_noise(lambda generator, shape: generator.standard_t(2, shape)),
}
