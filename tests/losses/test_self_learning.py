"""Losses without labels: the published test vector, slow references, gradients by finite differences, limits."""

import math

import pytest
import torch
from torch.nn import functional as F

from haptera.losses import self_learning as losses

VECTOR = torch.tensor([[2.0, 1.0, 0.0, -1.0]], dtype=torch.float64)

TEACHER = torch.randn(5, 7, generator=torch.Generator().manual_seed(4), dtype=torch.float64)


def probabilities(row):
    weights = [math.exp(value) for value in row]
    return [weight / sum(weights) for weight in weights]


@pytest.fixture
def logits():
    return torch.randn(5, 7, generator=torch.Generator().manual_seed(3), dtype=torch.float64) * 2


@pytest.mark.parametrize(
    ("loss", "value"),
    [
        (losses.entropy, 0.947537),
        (lambda z: losses.generalised_cross_entropy(z, z.argmax(1)), 0.371033),
        (losses.soft_likelihood_ratio, 0.209582),
        (losses.conjugate_poly_loss, 6.634427),
    ],
    ids=["entropy", "gce", "slr", "cpl"],
)
def test_the_known_vector_gives_its_known_value(loss, value):
    assert loss(VECTOR).item() == pytest.approx(value, abs=5e-7)


def test_entropy_is_the_sum_written_out(logits):
    for row, value in zip(logits.tolist(), losses.entropy(logits, 1.5, 0.5).tolist(), strict=True):
        teacher = probabilities([x / 0.5 for x in row])
        student = probabilities([x / 1.5 for x in row])
        assert value == pytest.approx(-sum(t * math.log(s) for t, s in zip(teacher, student, strict=True)))


def test_soft_labels_stop_the_gradient_of_the_teacher_and_entropy_does_not(logits):
    teacher = logits.clone().requires_grad_(True)
    losses.soft_pseudo_labels(logits.clone().requires_grad_(True), teacher).sum().backward()
    assert teacher.grad is None
    student = logits.clone().requires_grad_(True)
    assert torch.equal(losses.soft_pseudo_labels(student, logits), losses.entropy(logits))
    losses.soft_pseudo_labels(student, logits).sum().backward()
    both = logits.clone().requires_grad_(True)
    losses.entropy(both).sum().backward()
    assert not torch.allclose(student.grad, both.grad)


def test_mutual_cross_entropy_is_the_sum_written_out_with_gradients_to_both_sides(logits):
    values = losses.mutual_cross_entropy(logits, TEACHER).tolist()
    for one, two, value in zip(logits.tolist(), TEACHER.tolist(), values, strict=True):
        p, q = probabilities(one), probabilities(two)
        expected = -sum(0.5 * a * math.log(b) + 0.5 * b * math.log(a) for a, b in zip(p, q, strict=True))
        assert value == pytest.approx(expected)
    pair = logits.clone().requires_grad_(True), TEACHER.clone().requires_grad_(True)
    assert torch.autograd.gradcheck(losses.mutual_cross_entropy, pair)


def test_hard_labels_are_cross_entropy_with_the_teachers_first_class(logits):
    teacher = logits.flip(1)
    pairs = zip(logits.tolist(), teacher.tolist(), strict=True)
    expected = [-math.log(probabilities(row)[own.index(max(own))]) for row, own in pairs]
    assert losses.hard_pseudo_labels(logits, teacher).tolist() == pytest.approx(expected)


def test_robust_loss_goes_from_cross_entropy_to_absolute_error(logits):
    labels = logits.argmax(1)
    p = logits.softmax(1).gather(1, labels[:, None]).squeeze(1)
    crossed = F.cross_entropy(logits, labels, reduction="none")
    assert torch.equal(losses.generalised_cross_entropy(logits, labels, 0.0), crossed)
    assert torch.allclose(losses.generalised_cross_entropy(logits, labels, 1e-7), crossed, atol=1e-6)
    assert torch.allclose(losses.generalised_cross_entropy(logits, labels, 1.0), 1 - p)
    assert torch.allclose(losses.generalised_cross_entropy(logits, labels, 0.8), (1 - p**0.8) / 0.8)


def test_likelihood_ratio_is_the_sum_written_out(logits):
    for row, value in zip((3 * logits).tolist(), losses.soft_likelihood_ratio(3 * logits).tolist(), strict=True):
        p = [min(x, 0.99) for x in probabilities(row)]
        assert value == pytest.approx(-sum(x * math.log(x / (1 - x) + 1e-5) for x in p))


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 8.0])
def test_conjugate_labels_solve_their_linear_system(logits, epsilon):
    p = logits.softmax(1)
    labels = losses.conjugate_labels(p, epsilon)
    for row, own in zip(p, labels, strict=True):
        matrix = torch.eye(7, dtype=torch.float64) + epsilon * torch.diag(row) - epsilon * torch.outer(row, row)
        assert torch.allclose(torch.linalg.solve(matrix, row), own)


def test_conjugate_labels_without_polyloss_minimise_entropy(logits):
    assert torch.allclose(losses.conjugate_poly_loss(logits, 0.0), losses.entropy(logits))


def test_a_mean_prediction_is_diverse_when_uniform():
    assert losses.diversity(torch.full((4,), 0.25)).item() == pytest.approx(0, abs=1e-7)
    assert losses.diversity(torch.tensor([1.0, 0, 0, 0])).item() == pytest.approx(math.log(4))


@pytest.mark.parametrize(
    "loss",
    [
        losses.entropy,
        lambda z: losses.entropy(z, 0.7, 1.4),
        lambda z: losses.soft_pseudo_labels(z, TEACHER),
        lambda z: losses.hard_pseudo_labels(z, TEACHER),
        lambda z: losses.generalised_cross_entropy(z, z.detach().argmax(1)),
        losses.soft_likelihood_ratio,
        losses.conjugate_poly_loss,
    ],
    ids=["entropy", "temperatures", "soft", "hard", "gce", "slr", "cpl"],
)
def test_gradient_equals_finite_differences(loss, logits):
    assert torch.autograd.gradcheck(loss, (logits.requires_grad_(True),))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
def test_symmetric_cross_entropy_is_the_two_sums_written_out(logits, share):
    values = losses.symmetric_cross_entropy(logits, TEACHER, share).tolist()
    for row, other, value in zip(logits.tolist(), TEACHER.tolist(), values, strict=True):
        p, q = probabilities(row), probabilities(other)
        one = -sum(b * math.log(a) for a, b in zip(p, q, strict=True))
        two = -sum(a * math.log(b) for a, b in zip(p, q, strict=True))
        assert value == pytest.approx((1 - share) * one + share * two)


def test_symmetric_cross_entropy_has_the_gradient_of_finite_differences_and_none_for_the_teacher(logits):
    student, teacher = logits.clone().requires_grad_(), TEACHER.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: losses.symmetric_cross_entropy(z, TEACHER, 0.3), student)
    losses.symmetric_cross_entropy(student, teacher).sum().backward()
    assert teacher.grad is None


def test_information_maximisation_is_the_sums_written_out(logits):
    rows = [probabilities(row) for row in logits.tolist()]
    mean = [sum(row[k] for row in rows) / len(rows) for k in range(7)]
    sure = sum(-sum(p * math.log(p) for p in row) for row in rows) / len(rows)
    assert losses.information_maximisation(logits).item() == pytest.approx(sure + sum(p * math.log(p) for p in mean))
    assert torch.autograd.gradcheck(losses.information_maximisation, logits.requires_grad_(True))


def test_information_maximisation_is_least_where_all_is_sure_and_spread():
    sure = 50 * torch.eye(4, dtype=torch.float64)
    assert losses.information_maximisation(sure).item() == pytest.approx(-math.log(4))
    assert losses.information_maximisation(sure[:1].expand(4, 4)).item() == pytest.approx(0, abs=1e-9)
