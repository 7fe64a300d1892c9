"""What an input has to do with an output, sample by sample: five answers to the same question.

Sources: thesis chapter 8 for the inverted Jacobian; its baselines are the gradient (Simonyan et al., 2013), integrated
gradients (Sundararajan et al., 2017), ablation of a feature (Molnar, 2022) and Shapley values by drawn orders (Lundberg
and Lee, 2017). The gradient says how an output changes with an input. The inverted Jacobian says how the input changes
with the latent that the output stands for, which is what a map of the process that made the data is: by theorem 2,
where an encoder inverts the process g that made the data, and its Jacobian is as small as that allows, the
pseudo-inverse J⁺ of its Jacobian is the Jacobian of g up to a block-diagonal matrix. J⁺ = Jᵀ (J Jᵀ)⁻¹ by Cholesky, in
double precision, since J Jᵀ has the square of J's condition number. Where that is too large, as for encoders whose
outputs have unit length and so one direction that never changes, singular values decide.

All return `(batch, outputs, ...)` for inputs `(batch, ...)`; of windows `(batch, channels, length)`, ablation and
Shapley values take out a channel with its whole window and return `(batch, outputs, channels)`.
Cost: a backward pass for each output, whatever the number of samples (gradient; inverted Jacobian, with small matrices
after it), `STEPS` times that (integrated gradients), a forward pass for each feature (ablation), twice that for each
pair of orders (Shapley values).
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

STEPS = 50
"""Points of the path of integrated gradients, by the rule of Gauss and Legendre."""
ILL = 1e10
"""Condition number of J Jᵀ from which on singular values are used."""


def inverted_jacobian(encoder: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """J⁺, with the outputs first: its entry says how much the input moves when the latent moves by 1."""
    found = jacobians(encoder, inputs)
    inverse = pseudo_inverse(found.flatten(2)).transpose(1, 2)
    return inverse.reshape(found.shape)


def integrated_gradients(
    encoder: nn.Module, inputs: torch.Tensor, baseline: torch.Tensor, steps: int = STEPS
) -> torch.Tensor:
    """(x − x₀) times the mean gradient from x₀ to x; over all inputs it sums to f(x) − f(x₀).

    Args:
        encoder: from `(batch, ...)` to `(batch, outputs)`.
        inputs: `(batch, ...)`.
        baseline: x₀, of the same shape.
        steps: points on the way.
    """
    places, weights = np.polynomial.legendre.leggauss(steps)
    away = inputs - baseline
    total: torch.Tensor | None = None
    for place, weight in zip((places + 1) / 2, weights / 2, strict=True):
        part = float(weight) * jacobians(encoder, baseline + float(place) * away)
        total = part if total is None else total + part
    assert total is not None
    return away[:, None] * total


@torch.no_grad()
def feature_ablation(encoder: nn.Module, inputs: torch.Tensor, baseline: torch.Tensor) -> torch.Tensor:
    """f(x) minus f of x with one feature taken from the baseline."""
    full = encoder(inputs)
    columns = []
    for feature in range(inputs.shape[1]):
        without = inputs.clone()
        without[:, feature] = baseline[:, feature]
        columns.append(full - encoder(without))
    return torch.stack(columns, 2)


@torch.no_grad()
def shapley_sampling(
    encoder: nn.Module, inputs: torch.Tensor, baseline: torch.Tensor, orders: int = 10, seed: int = 0
) -> torch.Tensor:
    """The mean over orders of what a feature changes when it joins those before it; sums to f(x) − f(x₀).

    Every sample has orders of its own, and every other order is the one before turned round, which makes interactions
    of two features exact.

    Args:
        encoder: from `(batch, ...)` to `(batch, outputs)`.
        inputs: `(batch, ...)`.
        baseline: x₀, of the same shape.
        orders: how many for each sample.
        seed: of the orders.
    """
    samples, features = inputs.shape[:2]
    total = torch.zeros(0)
    for order in _orders(samples, features, orders, seed):
        current = baseline.clone()
        before = encoder(current)
        if not len(total):
            total = before.new_zeros(samples, before.shape[1], features)
        rows = torch.arange(samples)
        for step in range(features):
            joins = order[:, step]
            current[rows, joins] = inputs[rows, joins]
            after = encoder(current)
            total[rows, :, joins] += after - before
            before = after
    return total / orders


def _orders(samples: int, features: int, orders: int, seed: int) -> Iterator[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    order = torch.zeros(0)
    for number in range(orders):
        order = order.flip(1) if number % 2 else torch.rand(samples, features, generator=generator).argsort(1)
        yield order


def jacobians(encoder: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """∂ output / ∂ input of each sample by itself.

    Args:
        encoder: from `(batch, ...)` to `(batch, outputs)`. Samples must not see each other: no BatchNorm in training.
        inputs: `(batch, ...)`.

    Returns:
        `(batch, outputs, ...)`.

    >>> layer = nn.Linear(3, 2)
    >>> torch.equal(jacobians(layer, torch.zeros(5, 3))[4], layer.weight)
    True
    """
    with torch.enable_grad():
        inputs = inputs.detach().requires_grad_()
        outputs = encoder(inputs)
        # The sum over samples has each sample's own gradient in its row.
        sums = outputs.sum(0)
        last = len(sums) - 1
        rows = [torch.autograd.grad(one, inputs, retain_graph=place < last)[0] for place, one in enumerate(sums)]
    return torch.stack(rows, 1)


def pseudo_inverse(matrices: torch.Tensor, rtol: float | None = None) -> torch.Tensor:
    """The Moore-Penrose inverses of many small matrices.

    Args:
        matrices: `(batch, rows, columns)`.
        rtol: singular values below this share of the largest count as zero, where singular values are used; by default
            what the precision of the numbers can tell.

    Returns:
        `(batch, columns, rows)`.
    """
    rows, columns = matrices.shape[1:]
    if rows > columns:
        return pseudo_inverse(matrices.transpose(1, 2), rtol).transpose(1, 2)
    if rtol is None:
        rtol = max(columns, 100) * torch.finfo(matrices.dtype).eps
    exact = matrices.double()
    gram = exact @ exact.transpose(1, 2)
    factor, failed = torch.linalg.cholesky_ex(gram)
    bad = failed > 0
    if bad.any():  # these have no factor; any other will do until singular values replace it
        factor = torch.where(bad[:, None, None], torch.eye(rows, dtype=factor.dtype, device=factor.device), factor)
    inverse = torch.cholesky_inverse(factor)
    condition = torch.linalg.matrix_norm(gram) * torch.linalg.matrix_norm(inverse)
    bad |= ~(condition < ILL)
    found = exact.transpose(1, 2) @ inverse
    if bad.any():
        found[bad] = _by_singular_values(exact[bad], rtol)
    return found.to(matrices.dtype)


def _by_singular_values(matrices: torch.Tensor, rtol: float) -> torch.Tensor:
    left, values, right = torch.linalg.svd(matrices, full_matrices=False)
    kept = values > rtol * values[:, :1]
    inverse = torch.where(kept, 1 / values.clamp(min=torch.finfo(values.dtype).tiny), 0.0)
    return right.transpose(1, 2) @ (inverse[:, :, None] * left.transpose(1, 2))
