"""Jacobians of an encoder at many samples, and their pseudo-inverses, each in one batch.

Source: thesis chapter 8, theorem 2: where an encoder inverts the process g that made the data, and its Jacobian is as
small as that allows, the pseudo-inverse J⁺ of its Jacobian is the Jacobian of g up to a block-diagonal matrix.
J⁺ = Jᵀ (J Jᵀ)⁻¹ by Cholesky, in double precision, since J Jᵀ has the square of J's condition number. Where that is too
large, as for encoders whose outputs have unit length and so one direction that never changes, singular values decide.
Cost: a backward pass for each output, whatever the number of samples; then small matrices.
"""

import torch
from torch import nn

ILL = 1e10
"""Condition number of J Jᵀ from which on singular values are used."""


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
