"""InfoNCE against its formula, written as loops, and against known values of its optimum."""

import math

import numpy as np
import pytest
import torch

from haptera.contrastive import loss as losses
from haptera.contrastive.loss import Cosine, DotProduct, Euclidean, InfoNCE, Learnable, Lp, Similarity, in_bits
from haptera.errors import HapteraError

SIMILARITIES = {
    "dot": (DotProduct(), lambda x, y: float(x @ y)),
    "cosine": (Cosine(), lambda x, y: float(x @ y) / (np.linalg.norm(x) * np.linalg.norm(y))),
    "euclidean": (Euclidean(), lambda x, y: -float(((x - y) ** 2).sum())),
    "l1": (Lp(1), lambda x, y: -float(np.abs(x - y).sum())),
    "l3": (Lp(3), lambda x, y: -float((np.abs(x - y) ** 3).sum())),
}


def three(seed=0, batch=5, negatives=7, dimensions=3):
    random = np.random.default_rng(seed)
    return [random.normal(size=(rows, dimensions)) for rows in (batch, batch, negatives)]


def slow(reference, positive, negative, phi, temperature, inside):
    total = 0.0
    for x, y in zip(reference, positive, strict=True):
        terms = [phi(x, other) / temperature for other in negative]
        if inside:
            terms.append(phi(x, y) / temperature)
        total += -phi(x, y) / temperature + math.log(sum(math.exp(term) for term in terms))
    return total / len(reference)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("name", SIMILARITIES)
def test_loss_is_the_formula_with_its_gradient(name, inside):
    similarity, phi = SIMILARITIES[name]
    arrays = three()
    loss = InfoNCE(similarity, 0.7, positive_inside=inside).double()
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    assert loss(*tensors).item() == pytest.approx(slow(*arrays, phi, 0.7, inside), rel=1e-6)
    assert torch.autograd.gradcheck(loss, tensors, atol=1e-5)


def test_large_products_in_blocks_are_the_same(monkeypatch):
    arrays = three(batch=50, negatives=40)
    results = []
    for block in (2**24, 200):
        monkeypatch.setattr(losses, "BLOCK", block)
        tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
        value = InfoNCE(Lp(3), learnable=True).double()(*tensors)  # what is no product of rows
        value.backward()
        results.append([value.detach(), *(tensor.grad for tensor in tensors)])
    for whole, parts in zip(*results, strict=True):
        torch.testing.assert_close(whole, parts)


def test_groups_do_not_see_each_other():
    a, b = [torch.tensor(array) for array in three(0)], [torch.tensor(array) for array in three(1)]
    loss = InfoNCE(Cosine(), 0.5).double()
    together = loss(*(torch.stack(pair) for pair in zip(a, b, strict=True)))
    torch.testing.assert_close(together, (loss(*a) + loss(*b)) / 2)


def test_learnable_temperature_stops_at_its_minimum_and_has_a_gradient():
    loss = InfoNCE(DotProduct(), 0.5, learnable=True, min_temperature=0.25)
    assert loss.temperature == pytest.approx(0.5)
    loss(*(torch.tensor(array, dtype=torch.float32) for array in three())).backward()
    assert loss.log_inverse_temperature.grad.item() != 0
    with torch.no_grad():
        loss.log_inverse_temperature.fill_(10.0)
    assert loss.temperature == pytest.approx(0.25)


def test_a_constant_embedding_is_at_chance():
    points = [torch.ones(rows, 4) for rows in (6, 6, 9)]
    for inside in (False, True):
        loss = InfoNCE(Cosine(), 0.3, positive_inside=inside)
        assert loss(*points).item() == pytest.approx(loss.chance(9), abs=1e-5)
    assert InfoNCE(Cosine()).chance(9) == pytest.approx(math.log(9))
    assert in_bits(-2.0) == pytest.approx(2 / math.log(2))


class LogRatio(Similarity):
    """log p(y|x) / q(y) for y = x + N(0, .09), x standard normal: the optimum of the loss."""

    def crossed(self, first, second):
        inside = -((second.transpose(-1, -2) - first) ** 2) / 0.18 - 0.5 * math.log(0.09)
        return inside + (second.transpose(-1, -2) ** 2) / 2.18 + 0.5 * math.log(1.09)

    def paired(self, first, second):
        return self.crossed(first[..., None, :], second[..., None, :])[..., 0, 0]


@pytest.mark.long
def test_at_the_optimum_goodness_of_fit_approaches_the_divergence_from_below():
    divergence = 0.5 * math.log(1 + 1 / 0.09)
    assert divergence == pytest.approx(1.247, abs=1e-3)
    generator = torch.Generator().manual_seed(0)
    found = []
    for n, groups, expected, tolerance in ((8, 20_000, -1.99, 0.05), (64, 500, -1.32, 0.03), (512, 60, -1.254, 0.01)):
        x, y = (torch.randn(groups, n, 1, generator=generator, dtype=torch.float64) for _ in range(2))
        positive = x + 0.3 * torch.randn(groups, n, 1, generator=generator, dtype=torch.float64)
        loss = InfoNCE(LogRatio())
        found.append(loss(x, positive, y * math.sqrt(1.09)).item() - loss.chance(n))
        assert found[-1] == pytest.approx(expected, abs=tolerance)
    assert found[0] < found[1] < found[2] < -divergence + 0.01


def test_learnable_similarity_adds_a_term_for_each_dimension_of_the_other():
    similarity = Learnable(3).double()
    x, y, other = (torch.tensor(array) for array in three(batch=4, negatives=4))
    # changing y_0 changes the sum by the same amount, whatever y_1 and y_2 are
    first, second = y.clone(), other.clone()
    first[:, 0], second[:, 0] = 1.5, 1.5
    before, after = y.clone(), other.clone()
    before[:, 0], after[:, 0] = -0.5, -0.5
    torch.testing.assert_close(
        similarity.paired(x, first) - similarity.paired(x, before),
        similarity.paired(x, second) - similarity.paired(x, after),
    )
    torch.testing.assert_close(similarity.crossed(x, y).diagonal(), similarity.paired(x, y))
    assert torch.autograd.gradcheck(InfoNCE(similarity).double(), [x.requires_grad_(), y, other])


def test_wrong_settings_are_named():
    with pytest.raises(HapteraError, match="did you mean 'cosine'"):
        losses.similarity("cosin", 3)
    with pytest.raises(HapteraError, match="temperature is 0"):
        InfoNCE(Cosine(), 0)
    with pytest.raises(HapteraError, match="min_temperature is 2"):
        InfoNCE(Cosine(), 1.0, learnable=True, min_temperature=2)
