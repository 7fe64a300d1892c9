"""Log sums of products are those of the whole matrix, large and small, in blocks, with their gradients."""

import pytest
import torch

from haptera.contrastive import products
from haptera.contrastive.products import log_sum_of_products


def slow(rows, others):
    return (rows @ others.transpose(-1, -2)).logsumexp(-1)


def draw(*shape, size=1.0, seed=0):
    return size * torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


@pytest.mark.parametrize("size", [0.1, 3.0, 50.0])
@pytest.mark.parametrize("block", [1, 40, 2**17])
@pytest.mark.parametrize("even", [True, False])  # rows that count the same are a way of their own
def test_sums_and_gradients_are_those_of_the_whole_matrix(monkeypatch, size, block, even):
    monkeypatch.setattr(products, "BLOCK", block)
    weights = torch.tensor(0.7, dtype=torch.double) if even else draw(2, 9, seed=2)
    found = []
    for function in (slow, log_sum_of_products):
        rows, others = draw(2, 9, 3, size=size).requires_grad_(), draw(2, 7, 3, size=size, seed=1).requires_grad_()
        value = function(rows, others)
        (weights * value).sum().backward()
        found.append((value.detach(), rows.grad, others.grad))
    for expected, own in zip(*found, strict=True):
        torch.testing.assert_close(own, expected)


def test_products_beyond_what_an_exponential_holds_are_summed_too():
    rows = torch.tensor([[300.0, 0.0], [-300.0, 0.0]])
    others = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    torch.testing.assert_close(
        log_sum_of_products(rows, others), torch.tensor([300.0, -300.0]) + torch.tensor(2.0).log()
    )


def test_what_is_not_a_number_is_handed_on():
    rows = torch.full((2, 3), torch.nan)
    assert log_sum_of_products(rows, torch.ones(4, 3)).isnan().all()
