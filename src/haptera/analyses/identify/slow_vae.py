"""SlowVAE: a generative model of pairs whose latents change little, and mostly one at a time, beside table 6.3.

Source: Klindt et al. (2021), with which the thesis compares in table 6.3. For a pair of pictures, of which z is the
first's latent and z' the second's, it maximises

    E[log p(x|z) + log p(x'|z')] − β KL(q(z|x) ‖ N(0, 1)) − γ KL(q(z'|x') ‖ p(z'|z)),  p(z'|z) = ∏ λ/2 exp(−λ|z' − z|)

with q normal of diagonal covariance, β = 1, γ = 10, λ = 6 as there. E|z' − z| is that of a normal variable, so that the
second divergence has a closed form. Pictures are Bernoulli in every pixel.
Where this differs: small pictures and the networks of `pictures`; pairs are drawn, not taken from a video.
Cost: a decoder beside the encoder, twice the time of a step of a contrastive encoder.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from haptera.analyses.identify.pictures import PictureDecoder

BETA, GAMMA, RATE = 1.0, 10.0, 6.0
LEAST = 1e-6
START = -2.0
"""Where log σ² begins."""


class SlowVAE(nn.Module):
    """The loss of an encoder whose outputs are means, with the decoder and the variances that it needs.

    Args:
        dimensions: of the latents.
        channels: of the pictures.
        seed: of weights and draws.
    """

    def __init__(self, dimensions: int, channels: int, seed: int = 0) -> None:
        super().__init__()
        self.random = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.decoder = PictureDecoder(dimensions, channels)
        self.spread = nn.Linear(dimensions, dimensions)  # log σ² of a point, from its mean
        nn.init.zeros_(self.spread.weight)
        nn.init.constant_(self.spread.bias, START)

    def forward(self, means: torch.Tensor, pictures: torch.Tensor, unknown: torch.Tensor) -> torch.Tensor:
        """Return the negative bound of pairs, minus that of one that says nothing about a picture, nats for a pair.

        Args:
            means: of the first pictures, then of the second, `(2 x batch, dimensions)`.
            pictures: from 0 to 1, in the same order.
            unknown: the mean of all pictures.
        """
        logs = self.spread(means)
        noise = torch.randn(means.shape, generator=self.random).to(means.device)
        drawn = means + (logs / 2).exp() * noise
        told = _bernoulli(self.decoder(drawn), pictures)
        untold = _bernoulli(unknown.clamp(0.001, 0.999).logit().expand_as(pictures), pictures)
        (first, second), (first_logs, second_logs) = means.chunk(2), logs.chunk(2)
        normal = 0.5 * (first**2 + first_logs.exp() - 1 - first_logs).sum(1)
        slow = slow_divergence(second - first, first_logs.exp(), second_logs.exp())
        reconstruction = sum(part.mean() for part in (told - untold).chunk(2))
        return reconstruction + BETA * normal.mean() + GAMMA * slow.mean()


def slow_divergence(apart: torch.Tensor, before: torch.Tensor, after: torch.Tensor, rate: float = RATE) -> torch.Tensor:
    """KL of q(z') to the Laplace law around z, the mean over z, of each row.

    Args:
        apart: mean of z' minus mean of z, `(batch, dimensions)`.
        before: variance of z.
        after: variance of z'.
        rate: λ.

    >>> slow_divergence(torch.zeros(1, 1), torch.full((1, 1), 1e-9), torch.full((1, 1), 0.1)).round(decimals=3)
    tensor([0.1480])
    """
    spread = (before + after).clamp(min=LEAST).sqrt()
    ratio = apart / spread
    gap = spread * math.sqrt(2 / math.pi) * (-(ratio**2) / 2).exp() + apart * torch.erf(ratio / math.sqrt(2))
    entropy = 0.5 * (2 * math.pi * math.e * after).log()
    return (rate * gap - math.log(rate / 2) - entropy).sum(1)


def _bernoulli(logits: torch.Tensor, pictures: torch.Tensor) -> torch.Tensor:
    """−log p of each picture."""
    return F.binary_cross_entropy_with_logits(logits, pictures, reduction="none").flatten(1).sum(1)
