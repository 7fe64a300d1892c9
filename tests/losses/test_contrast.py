"""Contrastive losses against the sums written out, their gradients, and their limits."""

import math

import pytest
import torch

from haptera.losses import instance_contrast, view_contrast


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cosine(one, two):
    product = sum(a * b for a, b in zip(one, two, strict=True))
    return product / math.sqrt(sum(a * a for a in one) * sum(b * b for b in two))


@pytest.mark.parametrize(("n", "m"), [(4, 3), (5, 2), (1, 3)])
def test_views_of_a_sample_are_contrasted_as_in_the_sum_written_out(n, m):
    views, temperature = draw(n, m, 6), 0.3
    every = [(i, j) for i in range(n) for j in range(m)]
    expected = []
    for i in range(n):
        terms = []
        for j in range(m):
            weights = {
                (a, b): math.exp(cosine(views[i, j].tolist(), views[a, b].tolist()) / temperature)
                for a, b in every
                if (a, b) != (i, j)
            }
            positives = [-math.log(weights[i, b] / sum(weights.values())) for b in range(m) if b != j]
            terms.append(sum(positives) / (m - 1))
        expected.append(sum(terms) / m)
    assert view_contrast(views, temperature).tolist() == pytest.approx(expected)


def test_a_key_is_contrasted_with_the_rivals_in_the_queue_as_in_the_sum_written_out():
    queries, keys, queue = draw(3, 5), draw(3, 5, seed=1), draw(7, 5, seed=2)
    rivals = draw(3, 7, seed=3) > 0
    for i, value in enumerate(instance_contrast(queries, keys, queue, rivals, 0.2).tolist()):
        own = math.exp(cosine(queries[i].tolist(), keys[i].tolist()) / 0.2)
        others = [math.exp(cosine(queries[i].tolist(), queue[k].tolist()) / 0.2) for k in range(7) if rivals[i, k]]
        assert value == pytest.approx(-math.log(own / (own + sum(others))))


def test_without_rivals_there_is_nothing_to_learn():
    queries = draw(3, 5).requires_grad_()
    for queue in (draw(0, 5), draw(4, 5)):
        loss = instance_contrast(queries, draw(3, 5, seed=1), queue, torch.zeros(3, len(queue), dtype=torch.bool))
        (gradient,) = torch.autograd.grad(loss.sum(), queries)
        assert torch.equal(loss, torch.zeros(3, dtype=torch.float64))
        assert torch.equal(gradient, torch.zeros_like(gradient))


def test_gradients_agree_with_finite_differences():
    assert torch.autograd.gradcheck(lambda x: view_contrast(x, 0.5), draw(3, 3, 4).requires_grad_())
    rivals = draw(3, 6, seed=3) > 0
    assert torch.autograd.gradcheck(
        lambda x: instance_contrast(x, draw(3, 4, seed=1), draw(6, 4, seed=2), rivals, 0.5), draw(3, 4).requires_grad_()
    )


def test_the_order_of_samples_and_of_views_does_not_matter():
    views = draw(4, 3, 6)
    order = torch.tensor([2, 0, 3, 1])
    assert torch.allclose(view_contrast(views[order]), view_contrast(views)[order])
    assert torch.allclose(view_contrast(views.flip(1)), view_contrast(views))


def test_very_small_temperatures_stay_finite():
    assert torch.isfinite(view_contrast(draw(4, 2, 3).float(), 1e-3)).all()
