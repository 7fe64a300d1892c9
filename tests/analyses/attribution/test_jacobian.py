"""Jacobians against automatic differentiation sample by sample; pseudo-inverses against singular values."""

import pytest
import torch
from torch import nn

from haptera.analyses.attribution.methods import jacobians, pseudo_inverse


def network(inputs: int, outputs: int, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(inputs, 16), nn.GELU(), nn.Linear(16, outputs))


def test_jacobians_of_a_batch_are_those_of_each_sample():
    encoder, inputs = network(7, 3), torch.randn(5, 7)
    found = jacobians(encoder, inputs)
    for sample, matrix in zip(inputs, found, strict=True):
        torch.testing.assert_close(matrix, torch.autograd.functional.jacobian(encoder, sample))


def test_jacobians_leave_no_gradients_behind():
    encoder = network(4, 2)
    jacobians(encoder, torch.randn(3, 4))
    assert all(parameter.grad is None for parameter in encoder.parameters())


@pytest.mark.parametrize("shape", [(3, 10), (10, 3), (4, 4), (1, 6)])
def test_pseudo_inverse_is_that_of_singular_values(shape):
    matrices = torch.randn(50, *shape, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(pseudo_inverse(matrices), torch.linalg.pinv(matrices.double()).float())


@pytest.mark.parametrize("smallest", [1e-2, 1e-4, 1e-7, 1e-12, 0.0])
def test_ill_conditioned_matrices_are_inverted_as_by_singular_values(smallest):
    generator = torch.Generator().manual_seed(1)
    left = torch.linalg.qr(torch.randn(20, 4, 4, generator=generator, dtype=torch.float64))[0]
    right = torch.linalg.qr(torch.randn(20, 9, 4, generator=generator, dtype=torch.float64))[0]
    values = torch.tensor([1.0, 0.5, 0.2, smallest], dtype=torch.float64)
    matrices = left * values @ right.transpose(1, 2)
    expected = torch.linalg.pinv(matrices, rtol=1e-9)
    found = pseudo_inverse(matrices, rtol=1e-9)
    assert (found - expected).abs().max() <= 1e-5 * expected.abs().max()


def test_well_and_ill_conditioned_matrices_share_a_batch():
    good, bad = torch.randn(3, 2, 5), torch.randn(3, 2, 5)
    bad[:, 1] = bad[:, 0]
    both = pseudo_inverse(torch.cat([good, bad]))
    torch.testing.assert_close(both[:3], torch.linalg.pinv(good), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(both[3:], torch.linalg.pinv(bad, rtol=1e-4), rtol=1e-4, atol=1e-5)


def test_zero_matrices_have_zero_inverses():
    assert pseudo_inverse(torch.zeros(2, 3, 4)).abs().max() == 0


def test_outputs_of_unit_length_are_inverted_in_the_directions_they_can_move():
    class Unit(nn.Module):
        def forward(self, inputs):
            return nn.functional.normalize(inputs @ self.weight.T, dim=1)

    encoder = Unit()
    encoder.weight = nn.Parameter(torch.randn(3, 6, generator=torch.Generator().manual_seed(2)))
    matrices = jacobians(encoder, torch.randn(30, 6, generator=torch.Generator().manual_seed(3)))
    inverse = pseudo_inverse(matrices)
    assert torch.linalg.matrix_rank(inverse, rtol=1e-3).tolist() == [2] * 30
    torch.testing.assert_close(matrices @ inverse @ matrices, matrices, rtol=1e-3, atol=1e-5)
