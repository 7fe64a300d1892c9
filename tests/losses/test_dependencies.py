"""The dependency penalty: its value, its gradient, its memory, and that it cuts a dependency in a training loop."""

import pytest
import torch
from torch import nn

from haptera.errors import HapteraError
from haptera.losses import DependencyPenalty


def logits(samples: int, seed: int = 0) -> torch.Tensor:
    rows = torch.randn(samples, 4, generator=torch.Generator().manual_seed(seed))
    rows[:, 1] += 0.8 * rows[:, 0]
    return rows


def test_one_batch_gives_the_printed_term_and_its_gradient():
    rows = logits(64).requires_grad_()
    term = DependencyPenalty([(0, 1), (2, 3)])(rows)
    term.backward()
    again = rows.detach().clone().requires_grad_()
    printed = 0.2 * ((again[:, 0] * again[:, 1]).mean().abs() + (again[:, 2] * again[:, 3]).mean().abs())
    printed.backward()
    assert term.item() == pytest.approx(printed.item(), rel=1e-6)
    assert torch.allclose(rows.grad, again.grad, atol=1e-7)


def test_the_running_mean_of_small_batches_approaches_the_moment():
    rows = logits(8_000)
    penalty = DependencyPenalty([(0, 1)], weight=1.0, memory=5000)
    for batch in rows.split(4):
        term = penalty(batch)
    assert term.item() == pytest.approx(0.8, abs=0.06)
    noisy = [DependencyPenalty([(0, 1)], weight=1.0)(batch).item() for batch in rows[:800].split(4)]
    assert torch.tensor(noisy).std() > 0.4  # what single batches would say


def test_memory_counts_samples_not_batches():
    rows = logits(240)
    states = []
    for size in (1, 8, 60):
        penalty = DependencyPenalty([(0, 1)], memory=1e9)
        for batch in rows.split(size):
            penalty(batch)
        states.append((penalty.moment / penalty.seen).item())
    exact = (rows[:, 0] * rows[:, 1]).mean().item()
    assert states == pytest.approx([exact] * 3, rel=1e-5)


def test_the_sign_of_the_gradient_is_that_of_the_running_mean():
    penalty = DependencyPenalty([(0, 1)], weight=1.0)
    for batch in logits(4000).split(50):
        penalty(batch)
    against = torch.tensor([[1.0, -3.0, 0.0, 0.0]], requires_grad=True)  # this sample alone says otherwise
    penalty(against).backward()
    assert against.grad[0].tolist() == [-3.0, 1.0, 0.0, 0.0]


def test_evaluation_leaves_the_memory_and_its_state_can_be_kept():
    penalty = DependencyPenalty([(0, 1)])
    penalty(logits(100))
    before = {key: value.clone() for key, value in penalty.state_dict().items()}
    penalty.eval()(logits(100, seed=1))
    assert all(torch.equal(before[key], value) for key, value in penalty.state_dict().items())
    copy = DependencyPenalty([(0, 1)])
    copy.load_state_dict(before)
    assert copy.eval()(logits(5)).item() == penalty(logits(5)).item()


def test_training_with_it_lowers_the_moment_of_the_pair():
    torch.manual_seed(0)
    inputs, targets = torch.randn(512, 8), torch.randint(0, 4, (512,))
    net = nn.Linear(8, 4)
    with torch.no_grad():
        net.weight[1] = net.weight[0]
    penalty = DependencyPenalty([(0, 1)], weight=1.0)
    optimiser = torch.optim.SGD(net.parameters(), 0.05)

    def moment() -> float:
        with torch.no_grad():
            out = net(inputs)
        return abs((out[:, 0] * out[:, 1]).mean().item())

    before = moment()
    for _ in range(10):
        for rows in torch.randperm(512).split(16):
            out = net(inputs[rows])
            loss = nn.functional.cross_entropy(out, targets[rows]) + penalty(out)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    assert moment() < 0.2 * before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DependencyPenalty([]), "at least one pair"),
        (lambda: DependencyPenalty([(1, 1)]), "two different classes"),
        (lambda: DependencyPenalty([(0, 1)], weight=-1), "weight is -1"),
        (lambda: DependencyPenalty([(0, 7)])(logits(3)), r"logits have shape \(3, 4\); \(batch, more than 7\)"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(HapteraError, match=message):
        make()
