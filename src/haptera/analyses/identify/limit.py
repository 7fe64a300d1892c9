"""What the contrastive loss goes to as negatives become many, on a case with a closed form.

Source: thesis theorem 3, (6.3), with Wang and Isola (2020) for the two parts. Latents are uniform on the sphere, pairs
von Mises-Fisher, and the encoder is the right one, h = √κ z. Then

    L − log M + log|Z|  →  H(p(·|z), q_h(·|z))  =  alignment + uniformity + log|Z|
    alignment = −κ A(κ),   uniformity = log E exp(κ zᵀz'),   A(κ) = I_{n/2}(κ) / I_{n/2−1}(κ)

The text does not say how fast. With ρ = E exp(2κ zᵀz') / (E exp(κ zᵀz'))², the gap to the limit is, to first order in
1/M, (ρ + 1)/(2M) from above where the positive is in the sum, and −(ρ − 1)/(2M) from below where it is not.

In a box the same holds by proposition 6 (E.36) for −‖(h(z) − h(z'))/λ‖_β^β with any h, and by theorem 5 the limit is
the cross-entropy of the true conditional and that of h, least where h is right. Latents are uniform in a box of side 1,
conditionals are truncated by it, and so uniformity, ρ and the mean of a pair's distance depend on where a latent lies.
They are means over latents here. Dimensions are independent, so alignment and uniformity are sums over them, and ρ is a
product; each factor is an integral over a grid, good to some 1e-5.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ive

from haptera.analyses.identify.laws import (
    GeneralisedNormal,
    VonMisesFisher,
    log_mean_exponential,
    log_sphere_area,
)
from haptera.errors import HapteraError

Encode = Callable[[np.ndarray], np.ndarray] | None


@dataclass(frozen=True)
class Limit:
    """The two parts of the limit.

    Attributes:
        alignment: −κ E[cos] of a pair.
        uniformity: log of the mean of exp(κ cos) of independent latents.
        log_size: logarithm of the size of the sphere.
        rate: ρ.
        paired_rate: the mean of exp(φ) of a pair over that of independent latents; ρ where the encoder is right.
    """

    alignment: float
    uniformity: float
    log_size: float
    rate: float
    paired_rate: float

    @property
    def cross_entropy(self) -> float:
        """H(p, q_h), the entropy of the conditional where the encoder is right."""
        return self.alignment + self.uniformity + self.log_size

    def gap(self, negatives: int, inside: bool) -> float:
        """Return how far the loss is from its limit, to first order in 1/M."""
        return (self.paired_rate * inside - (self.rate - 1) / 2) / negatives


def contrastive_limit(kappa: float, dimensions: int = 2) -> Limit:
    """The limit for a conditional of concentration κ on the sphere in so many dimensions.

    >>> limit = contrastive_limit(2.0)
    >>> round(limit.cross_entropy, 4), round(limit.gap(1000, inside=True), 5)
    (1.2663, 0.00159)
    """
    order = dimensions / 2 - 1
    cosine = float(ive(order + 1, kappa) / ive(order, kappa))
    uniformity = log_mean_exponential(kappa, dimensions)
    rate = float(np.exp(log_mean_exponential(2 * kappa, dimensions) - 2 * uniformity))
    return Limit(-kappa * cosine, uniformity, log_sphere_area(dimensions), rate, rate)


def box_limit(
    scale: float, exponent: float = 1.0, dimensions: int = 1, *, encode: Encode = None, grid: int = 2000
) -> Limit:
    """The limit for truncated conditionals of a scale and an exponent in a box of side 1.

    Args:
        scale: λ of the conditional.
        exponent: β; 1 is a Laplace law, 2 a normal one with λ = √2 σ.
        dimensions: of the box.
        encode: h, of every dimension by itself; None is the right one.
        grid: midpoints of each integral; many for each scale.

    >>> right, bent = box_limit(0.2), box_limit(0.2, encode=np.square)
    >>> round(right.cross_entropy, 3), round(bent.cross_entropy, 3)
    (-0.386, -0.346)
    """
    if not (scale > 0 and exponent > 0 and dimensions >= 1):
        raise HapteraError(f"scale is {scale}, exponent {exponent}, dimensions {dimensions}; more than 0 was expected")
    points = (np.arange(grid) + 0.5) / grid
    true = _similarity(points[:, None], points, scale, exponent, None)
    law = np.exp(true)
    law /= law.mean(1, keepdims=True)
    similarity = _similarity(points[:, None], points, scale, exponent, encode)
    weights = np.exp(similarity)
    mean = weights.mean(1)
    alignment, uniformity = -float((law * similarity).mean()), float(np.log(mean).mean())
    rate = float(((weights**2).mean(1) / mean**2).mean())
    paired = float(((law * weights).mean(1) / mean).mean())
    return Limit(dimensions * alignment, dimensions * uniformity, 0.0, rate**dimensions, paired**dimensions)


def measured_box_loss(
    scale: float, negatives: int, inside: bool, *, exponent: float = 1.0, dimensions: int = 1, encode: Encode = None,
    draws: int = 20_000, seed: int = 0,
) -> tuple[float, float]:  # fmt: skip
    """L − log M in a box of side 1 by simulation, and its standard error; arguments as in `measured_loss`."""
    random = np.random.default_rng(seed)
    law, losses = GeneralisedNormal(scale, exponent), []
    rows = max(2_000_000 // (negatives * dimensions), 1)
    for start in range(0, draws, rows):
        latents = random.uniform(size=(min(rows, draws - start), dimensions))
        positive = law.draw("box", latents, random)
        others = random.uniform(size=(len(latents), negatives, dimensions))
        near = _similarity(latents, positive, scale, exponent, encode).sum(1)
        total = np.exp(_similarity(latents[:, None], others, scale, exponent, encode).sum(2)).sum(1)
        losses.append(-near + np.log((total + np.exp(near) * inside) / negatives))
    values = np.concatenate(losses)
    return float(values.mean()), float(values.std() / np.sqrt(draws))


def _similarity(first: np.ndarray, second: np.ndarray, scale: float, exponent: float, encode: Encode) -> np.ndarray:
    """φ of every dimension by itself."""
    first, second = (first, second) if encode is None else (encode(first), encode(second))
    return np.asarray(-((np.abs(first - second) / scale) ** exponent))


def measured_loss(
    kappa: float, negatives: int, inside: bool, *, dimensions: int = 2, draws: int = 20_000, seed: int = 0
) -> tuple[float, float]:
    """L − log M + log|Z| by simulation, and its standard error.

    The alignment is taken as it is known, so that only the sum is simulated.

    Args:
        kappa: concentration of pairs.
        negatives: M.
        inside: whether the positive is one of the terms of the sum.
        dimensions: of the space around the sphere.
        draws: references.
        seed: of everything.
    """
    random = np.random.default_rng(seed)
    limit = contrastive_limit(kappa, dimensions)
    pole = np.eye(1, dimensions)
    totals = []
    rows = max(2_000_000 // (negatives * dimensions), 1)
    for start in range(0, draws, rows):
        count = min(rows, draws - start)
        other = random.normal(size=(count, negatives, dimensions))
        cosine = other[..., 0] / np.linalg.norm(other, axis=2)
        total = np.exp(kappa * cosine).sum(1)
        if inside:
            positive = VonMisesFisher(kappa).draw("sphere", np.broadcast_to(pole, (count, dimensions)), random)
            total = total + np.exp(kappa * positive[:, 0])
        totals.append(np.log(total / negatives))
    logs = np.concatenate(totals)
    value = limit.alignment + float(logs.mean()) + limit.log_size
    return value, float(logs.std() / np.sqrt(draws))
