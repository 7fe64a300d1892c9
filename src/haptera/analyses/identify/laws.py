"""Laws: distributions of latents on the sphere, in a box and in all of space, with exact samplers and densities.

Source: thesis chapter 6 and appendix E. A law is a marginal, around a centre of its own, or a conditional, around
each latent. `Uniform`, `VonMisesFisher` (on the sphere), and the generalised normal law, density ∝ exp(−|x/λ|^β), of
which `laplace` (β = 1) and `normal` (β = 2, σ = λ/√2) are cases. In a box a law is truncated to it, exactly, by its
inverse distribution function, and never clamped, which would heap up points on the sides; on the sphere noise is added
and the sum brought back to length 1. The text says neither.
The vMF sampler is the rejection of Wood (1994), written such that no digits are lost where κ is large.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc, gammaincinv, gammaln, ive

from haptera.errors import HapteraError, unknown

SPACES = ("sphere", "box", "unbounded")


@dataclass(frozen=True)
class Law:
    """Base: what is drawn around centres, in a space."""

    def draw(self, space: str, centres: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """One point for each centre, `(count, dimensions)`."""
        raise NotImplementedError

    def log_density(self, space: str, points: np.ndarray, centres: np.ndarray) -> np.ndarray:
        """Return the log density of each point around its centre, `(count,)`; on the sphere, by area."""
        raise NotImplementedError


@dataclass(frozen=True)
class Uniform(Law):
    """Everywhere alike; on the sphere, or in the box."""

    def draw(self, space: str, centres: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Independent of the centres."""
        if space == "sphere":
            return _unit(random.normal(size=centres.shape))
        if space == "box":
            return random.uniform(size=centres.shape)
        raise HapteraError("a uniform law needs a sphere or a box; there is none in unbounded space")

    def log_density(self, space: str, points: np.ndarray, centres: np.ndarray) -> np.ndarray:
        """Minus the logarithm of the space's size."""
        size = -log_sphere_area(points.shape[1]) if space == "sphere" else 0.0
        return np.full(len(points), size)


@dataclass(frozen=True)
class VonMisesFisher(Law):
    """Density ∝ exp(κ centreᵀ z) on the sphere."""

    kappa: float

    def __post_init__(self) -> None:
        if not self.kappa >= 0:
            raise HapteraError(f"kappa is {self.kappa}; at least 0 was expected")

    def draw(self, space: str, centres: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """The height above the centre by rejection, the rest uniformly around it."""
        if space != "sphere":
            raise HapteraError(f"a von Mises-Fisher law lives on the sphere; the space is {space}")
        dimensions = centres.shape[1]
        height, across = self._heights(len(centres), dimensions, random)
        sideways = random.normal(size=centres.shape)
        sideways -= (sideways * centres).sum(1, keepdims=True) * centres
        return height[:, None] * centres + across[:, None] * _unit(sideways)

    def _heights(self, count: int, dimensions: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """cos and sin of the angle to the centre; from 1 − cos, which keeps its digits where κ is large."""
        m, kappa = dimensions - 1, self.kappa
        b = m / (2 * kappa + np.hypot(2 * kappa, m))
        gap = 2 * b / (1 + b)  # 1 − x₀
        below = np.empty(count)
        todo = np.arange(count)
        while len(todo):
            beta = random.beta(m / 2, m / 2, len(todo))
            fall = 2 * b * beta / (1 - (1 - b) * beta)  # 1 − w
            share = (gap + (1 - gap) * fall) / (gap * (2 - gap))  # (1 − x₀ w) / (1 − x₀²)
            accepted = kappa * (gap - fall) + m * np.log(share) >= np.log(random.uniform(size=len(todo)))
            below[todo[accepted]] = fall[accepted]
            todo = todo[~accepted]
        return 1 - below, np.sqrt(below * (2 - below))

    def log_density(self, space: str, points: np.ndarray, centres: np.ndarray) -> np.ndarray:
        """κ centreᵀ z minus the logarithm of the normaliser."""
        mean = log_mean_exponential(self.kappa, points.shape[1])
        return self.kappa * (points * centres).sum(1) - mean - log_sphere_area(points.shape[1])


@dataclass(frozen=True)
class GeneralisedNormal(Law):
    """Density ∝ exp(−‖(z − centre)/λ‖^β), the norm that of order β; in the box truncated to it."""

    scale: float
    beta: float = 2.0

    def __post_init__(self) -> None:
        if not (self.scale > 0 and self.beta > 0):
            raise HapteraError(f"scale is {self.scale}, beta {self.beta}; more than 0 was expected")

    def draw(self, space: str, centres: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Each coordinate by itself; on the sphere brought back to length 1."""
        if space == "box":
            low, high = self._cdf(-centres), self._cdf(1 - centres)
            level = low + (high - low) * random.uniform(size=centres.shape)
            # Rounding may leave the box by a last digit.
            return np.clip(centres + self._inverse(level), 0.0, 1.0)
        size = self.scale * random.gamma(1 / self.beta, size=centres.shape) ** (1 / self.beta)
        noise = np.where(random.uniform(size=centres.shape) < 0.5, -size, size)
        return _unit(centres + noise) if space == "sphere" else centres + noise

    def log_density(self, space: str, points: np.ndarray, centres: np.ndarray) -> np.ndarray:
        """Return the log density in the box and in unbounded space; on the sphere it has no closed form."""
        if space == "sphere":
            raise HapteraError("noise that is brought back to the sphere has no density in closed form")
        log_norm = np.log(2 * self.scale) + gammaln(1 + 1 / self.beta)
        each = -(np.abs((points - centres) / self.scale) ** self.beta) - log_norm
        if space == "box":
            each = each - np.log(self._cdf(1 - centres) - self._cdf(-centres))
        return np.asarray(each.sum(1))

    def moment(self, order: float) -> float:
        """E|x|^order of one coordinate around its centre, before any truncation.

        >>> round(laplace(0.05).moment(2.0), 6)  # 2 λ²
        0.005
        """
        share = gammaln((order + 1) / self.beta) - gammaln(1 / self.beta)
        return float(self.scale**order * np.exp(share))

    def _cdf(self, x: np.ndarray) -> np.ndarray:
        return 0.5 + 0.5 * np.sign(x) * gammainc(1 / self.beta, np.abs(x / self.scale) ** self.beta)

    def _inverse(self, level: np.ndarray) -> np.ndarray:
        away = np.abs(2 * level - 1)
        return np.sign(level - 0.5) * self.scale * gammaincinv(1 / self.beta, away) ** (1 / self.beta)


def laplace(scale: float) -> GeneralisedNormal:
    """Density ∝ exp(−‖x‖₁/λ)."""
    return GeneralisedNormal(scale, 1.0)


def normal(sigma: float) -> GeneralisedNormal:
    """Return the normal law of standard deviation σ, before any truncation."""
    return GeneralisedNormal(sigma * np.sqrt(2), 2.0)


LAWS = ("uniform", "vmf", "laplace", "normal", "gennorm")


def read_law(text: str) -> Law:
    """A law as the command line has it: `uniform`, `vmf=10`, `laplace=0.05`, `normal=0.05`, `gennorm=0.05,3`.

    >>> read_law("laplace=0.05")
    GeneralisedNormal(scale=0.05, beta=1.0)
    """
    name, _, numbers = text.partition("=")
    if name not in LAWS:
        raise unknown("law", name, LAWS)
    expected = {"uniform": 0, "gennorm": 2}.get(name, 1)
    try:
        values = [float(one) for one in numbers.split(",")] if numbers else []
    except ValueError as error:
        raise HapteraError(f"{text!r} is not a law; a number after = was expected, as in laplace=0.05") from error
    if len(values) != expected:
        example = {"uniform": "uniform", "gennorm": "gennorm=0.05,3", "vmf": "vmf=10"}.get(name, f"{name}=0.05")
        raise HapteraError(f"{text!r} has {len(values)} numbers, {expected} expected, as in {example}")
    makers = {"vmf": VonMisesFisher, "laplace": laplace, "normal": normal, "gennorm": GeneralisedNormal}
    return Uniform() if name == "uniform" else makers[name](*values)


def log_sphere_area(dimensions: int) -> float:
    """Return the logarithm of the area of the unit sphere in so many dimensions.

    >>> round(float(np.exp(log_sphere_area(2))), 4)  # the circle: 2π
    6.2832
    """
    return float(np.log(2) + dimensions / 2 * np.log(np.pi) - gammaln(dimensions / 2))


def log_mean_exponential(kappa: float, dimensions: int) -> float:
    """log E exp(κ z₁) for z uniform on the sphere: Γ(n/2) (2/κ)^(n/2−1) I_{n/2−1}(κ)."""
    if kappa == 0:
        return 0.0
    order = dimensions / 2 - 1
    return float(gammaln(dimensions / 2) + order * np.log(2 / kappa) + np.log(ive(order, kappa)) + kappa)


def _unit(points: np.ndarray) -> np.ndarray:
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))
