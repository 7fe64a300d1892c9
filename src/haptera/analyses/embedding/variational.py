"""A plain variational autoencoder of windows: what a generative model makes of the same samples, without labels.

Source: Kingma and Welling (2014); Poisson counts as in pi-VAE (Zhou and Wei, 2020), with which chapter 7 compares. It
maximises the evidence bound E_q[log p(x | z)] − KL(q(z | x) ‖ N(0, 1)), q a normal distribution with diagonal
covariance. For counts p is Poisson with rates softplus(·), otherwise normal with a deviation for each channel.
Where this differs from pi-VAE: the prior does not know the label, and networks are plain ones of 60 units, so that
every sample has one place whatever its label is.
Cost: 500 steps of 256 windows through networks of two layers, some seconds of one core.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

STEPS, BATCH, WIDTH, RATE = 500, 256, 60, 2e-3


@dataclass(frozen=True, eq=False)
class Variational:
    """A fitted autoencoder.

    Attributes:
        encoder: from scaled windows to means and log variances.
        mean: of the training part.
        scale: its deviations.
        bounds: the evidence bound of every step, nats for a window.
    """

    encoder: nn.Module
    mean: np.ndarray
    scale: np.ndarray
    bounds: np.ndarray

    @torch.no_grad()
    def transform(self, windows: np.ndarray) -> np.ndarray:
        """Return the mean of the posterior of every window, `(samples, dimensions)`."""
        inputs = torch.as_tensor((windows - self.mean) / self.scale, dtype=torch.float32)
        means: np.ndarray = self.encoder(inputs).chunk(2, dim=1)[0].double().numpy()
        return means


def fit_variational(train: np.ndarray, dimensions: int, seed: int = 0, *, steps: int = STEPS) -> Variational:
    """Fit an autoencoder to windows, `(samples, values)`.

    Args:
        train: the part that it may learn from.
        dimensions: of the latent.
        seed: of weights, batches and noise.
        steps: of Adam.
    """
    counts = bool((train >= 0).all() and (train == np.round(train)).all())
    mean, scale = train.mean(0), np.maximum(train.std(0), 1e-6)
    scaled = torch.as_tensor((train - mean) / scale, dtype=torch.float32)
    truth = torch.as_tensor(train, dtype=torch.float32) if counts else scaled
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder, decoder = _network(train.shape[1], 2 * dimensions), _network(dimensions, train.shape[1])
        deviation = nn.Parameter(torch.zeros(train.shape[1]))
        optimiser = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), deviation], RATE)
        bounds = np.empty(steps)
        for step in range(steps):
            rows = torch.randint(len(train), (min(BATCH, len(train)),))
            means, logs = encoder(scaled[rows]).chunk(2, dim=1)
            latent = means + (logs / 2).exp() * torch.randn_like(means)
            likelihood = log_likelihood(truth[rows], decoder(latent), None if counts else deviation)
            bound = (likelihood - divergence(means, logs)).mean()
            optimiser.zero_grad()
            (-bound).backward()
            optimiser.step()
            bounds[step] = bound.item()
    return Variational(encoder, mean, scale, bounds)


def divergence(means: torch.Tensor, logs: torch.Tensor) -> torch.Tensor:
    """KL(N(means, exp(logs)) ‖ N(0, 1)) of each row."""
    return 0.5 * (means**2 + logs.exp() - 1 - logs).sum(1)


def log_likelihood(truth: torch.Tensor, outputs: torch.Tensor, deviation: torch.Tensor | None) -> torch.Tensor:
    """log p(truth | latent) of each row: normal with log deviations, or Poisson with rates softplus(outputs)."""
    if deviation is None:
        rates = functional.softplus(outputs) + 1e-6
        return (truth * rates.log() - rates - torch.lgamma(truth + 1)).sum(1)
    scaled = (truth - outputs) * (-deviation).exp()
    return (-0.5 * scaled**2 - deviation - 0.5 * np.log(2 * np.pi)).sum(1)


def _network(inputs: int, outputs: int) -> nn.Module:
    inner = [nn.Linear(inputs, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh()]
    return nn.Sequential(*inner, nn.Linear(WIDTH, outputs))
