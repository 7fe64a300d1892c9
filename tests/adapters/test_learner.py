"""What every learner does: update as plain torch would, release, accumulate, survive bad batches, record."""

import copy
import io
import logging

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from haptera.adapters import BatchNorm, Learner, NoAdaptation, Tent, adapt
from haptera.adapters.base import all_finite
from haptera.adapters.norm import Once, once
from haptera.errors import HapteraError, NotApplicable
from haptera.testing.adapters import example_batches, example_models


@pytest.fixture
def model():
    return example_models()["batch"]


def tent_by_hand(model, batches, lr, momentum=0.9):
    """Train mode, entropy, SGD on scale and offset, written out with nothing of ours."""
    net = copy.deepcopy(model).train().requires_grad_(False)
    affine = [p for m in net.modules() if isinstance(m, nn.BatchNorm2d) for p in (m.weight, m.bias)]
    velocity = [torch.zeros_like(p) for p in affine]
    outputs = []
    for inputs in batches:
        for p in affine:
            p.requires_grad_(True)
        logits = net(inputs)
        loss = -(F.softmax(logits, 1) * F.log_softmax(logits, 1)).sum(1).mean()
        gradients = torch.autograd.grad(loss, affine)
        with torch.no_grad():
            for p, v, g in zip(affine, velocity, gradients, strict=True):
                v.mul_(momentum).add_(g)
                p.sub_(lr * v)
        outputs.append(logits.detach())
    return outputs


def test_tent_is_what_plain_torch_does(model):
    adapter, batches = Tent(model, prior=0, lr=0.05), example_batches()
    for ours, expected in zip(map(adapter, batches), tent_by_hand(model, batches, 0.05), strict=True):
        assert torch.allclose(ours, expected, atol=2e-5)


def test_predictions_after_the_update_are_those_of_the_updated_model(model):
    inputs = example_batches()[0]
    before, after = Tent(model, prior=0, lr=0.1), Tent(model, prior=0, lr=0.1, predictions="after")
    first, second = before(inputs), after(inputs)
    assert not torch.allclose(first, second)
    assert torch.allclose(second, before(inputs), atol=1e-6)


def test_two_batches_accumulated_are_the_mean_of_their_gradients(model):
    one, two = example_batches()[:2]
    ours = Tent(model, prior=0, lr=0.1, momentum=0.0, accumulate=2)
    ours(one)
    ours(two)
    gradients = []
    for inputs in (one, two):
        alone = Tent(model, prior=0, lr=1.0, momentum=0.0)
        alone(inputs)
        gradients.append([s - p.detach() for s, p in zip(alone._source, alone.adapted.values(), strict=True)])
    for start, g1, g2, now in zip(ours._source, *gradients, ours.adapted.values(), strict=True):
        assert torch.allclose(now, start - 0.1 * (g1 + g2) / 2, atol=1e-5)


def test_state_goes_to_another_process_in_the_middle_of_an_accumulation(model):
    batches = example_batches()
    adapter = Tent(model, lr=0.1, accumulate=2)
    adapter(batches[0])
    file = io.BytesIO()
    torch.save(adapter.state_dict(), file)
    other = Tent(model, lr=0.1, accumulate=2)
    other.load_state_dict(torch.load(io.BytesIO(file.getvalue()), weights_only=True))
    for inputs in batches[1:]:
        assert torch.equal(adapter(inputs), other(inputs))


def test_a_window_lets_one_image_at_a_time_see_the_statistics_of_many(model):
    images = torch.cat(example_batches())
    adapter = Tent(model, prior=0, lr=0.0, window=12)
    outputs = [adapter(image[None]) for image in images]
    expected = BatchNorm(model, prior=0)(images[-12:])[-1:]
    assert torch.allclose(outputs[-1], expected, atol=1e-6)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_batch_that_is_not_finite_is_predicted_recorded_and_not_learnt_from(model, bad, caplog):
    batches = example_batches()
    adapter = Tent(model, lr=0.1)
    adapter(batches[0])
    state = copy.deepcopy(adapter.state_dict())
    frozen = Tent(model, lr=0.1, frozen=True)
    frozen.load_state_dict(state)
    broken = batches[1].clone()
    broken[2, 0, 3, 3] = bad
    outputs = adapter(broken)
    assert adapter.record["skipped"] == 1
    assert torch.equal(outputs[[0, 1, 3, 4, 5]], frozen(batches[1])[[0, 1, 3, 4, 5]])
    assert "not finite" in caplog.text
    after = adapter.state_dict()
    assert all(torch.equal(after[key], value) for key, value in state.items() if isinstance(value, torch.Tensor))


def test_numbers_are_finite_each_by_itself_whatever_their_sum():
    large = torch.full((4,), 3e38)
    assert not torch.isfinite(large.sum())
    assert all_finite(large)
    assert not all_finite(torch.tensor([1.0, float("inf"), float("-inf")]))
    assert not all_finite(torch.tensor([1.0, float("nan")]))


class Exploding(Learner):
    """Its loss is fine, its gradient is not."""

    def loss(self, logits, inputs):
        return (logits.detach() - logits).abs().sqrt().sum()


def test_a_gradient_that_is_not_finite_changes_nothing(model):
    adapter = Exploding(model, lr=0.1)
    adapter(example_batches()[0])
    assert adapter.record["skipped"] == 1
    assert adapter.record["change"] == 0


def test_the_record_says_what_happened(model):
    adapter = Tent(model, lr=0.1)
    logits = adapter(example_batches()[0])
    mean = logits.softmax(1).mean(0)
    assert set(adapter.record) == {"entropy", "largest", "change", "loss"}
    assert adapter.record["entropy"] == pytest.approx(float(-(mean * mean.log()).sum()))
    assert adapter.record["largest"] == pytest.approx(float(mean.max()))
    moved = [now.detach() - start for now, start in zip(adapter.adapted.values(), adapter._source, strict=True)]
    assert adapter.record["change"] == pytest.approx(float(torch.cat([m.flatten() for m in moved]).norm()))


def test_a_released_model_is_plain_and_predicts_what_the_frozen_adapter_does(model):
    batches = example_batches()
    adapter = Tent(model, lr=0.1)
    adapter(batches[0])
    released = adapter.release()
    adapter.frozen = True
    assert [type(layer) for layer in released.modules()] == [type(layer) for layer in model.modules()]
    assert torch.allclose(released(batches[1]), adapter(batches[1]), atol=1e-5)
    assert all(parameter.requires_grad for parameter in released.parameters())
    assert set(released.state_dict()) == set(model.state_dict())


def test_a_released_model_can_have_the_statistics_of_the_source(model):
    adapter = Tent(model, lr=0.0)
    adapter(example_batches()[0])
    inputs = example_batches()[1]
    assert torch.allclose(adapter.release(source_statistics=True)(inputs), model(inputs), atol=1e-6)


def test_within_and_after_the_context_the_callers_model_is_as_it_was(model):
    inputs = example_batches()[0]
    expected = model(inputs)
    with adapt(model, Tent, lr=0.5) as adapted:
        adapted(inputs)
        assert torch.equal(model(inputs), expected)
    assert torch.equal(model(inputs), expected)


def test_a_changing_number_of_classes_is_an_error():
    class Growing(nn.Module):
        classes = 3

        def forward(self, inputs):
            return torch.zeros(len(inputs), self.classes)

    adapter = NoAdaptation(Growing())
    adapter(torch.zeros(2, 4))
    adapter.model.classes = 4
    with pytest.raises(HapteraError, match="4 classes after 3"):
        adapter(torch.zeros(2, 4))


def test_it_works_without_gradients_and_in_inference_mode(model):
    inputs = example_batches()[0]
    expected = Tent(model, lr=0.1)
    expected(inputs)
    with torch.no_grad():
        plain = Tent(model, lr=0.1)
        plain(inputs)
    with torch.inference_mode():
        inference = Tent(model, lr=0.1)
        inference(inputs * 1)
    assert plain.record == inference.record == expected.record


def test_it_can_be_moved_to_another_type_after_it_was_made(model):
    adapter = Tent(model, lr=0.1).double()
    logits = adapter(example_batches()[0].double())
    assert logits.dtype == torch.float64
    assert adapter.record["change"] > 0


def test_affine_methods_hold_no_second_copy_of_frozen_weights(model):
    adapter = Tent(model)
    shared = {tensor.data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    held = [*adapter.parameters(), *adapter.buffers(), *adapter._source, *adapter._first.values()]
    own = [t for t in held if isinstance(t, torch.Tensor) and t.data_ptr() not in shared]
    channels = sum(m.num_features for m in model.modules() if isinstance(m, nn.BatchNorm2d))
    assert sum(tensor.numel() for tensor in own) <= 20 * channels


def test_a_model_that_cannot_take_channels_last_runs_in_the_usual_layout():
    class Viewing(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 3)
            self.head = nn.Linear(4 * 12 * 12, 3)

        def forward(self, inputs):
            hidden = self.two(self.one(inputs))
            return self.head(hidden.view(len(hidden), -1))

    net = Viewing().eval()
    inputs = example_batches()[0]
    assert torch.equal(NoAdaptation(net)(inputs), net(inputs))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": -1.0}, "lr is -1"),
        ({"optimiser": "sdg"}, "did you mean 'sgd'"),
        ({"predictions": "later"}, "unknown predictions"),
        ({"accumulate": 0}, "accumulate is 0"),
        ({"precision": "float8"}, "unknown precision"),
        ({"prior": -2}, "prior is -2"),
        ({"window": -1}, "window is -1"),
        ({"student_temperature": 0.0}, "student_temperature is 0"),
    ],
)
def test_wrong_settings_are_refused(model, settings, message):
    with pytest.raises(HapteraError, match=message):
        Tent(model, **settings)


def test_the_choice_of_parameters_is_logged_once(model, caplog, monkeypatch):
    monkeypatch.setattr(once(), "filters", [Once()])
    with caplog.at_level(logging.INFO, "haptera"):
        Tent(model)
        Tent(model)
    assert caplog.text.count("Tent adapts") == 1


class Checkpointed(nn.Module):
    """Runs its body again during the backward pass, as networks do that are too large to keep all they computed."""

    def __init__(self, body, reentrant):
        super().__init__()
        self.body, self.reentrant = body, reentrant

    def forward(self, inputs):
        if not inputs.requires_grad:
            inputs = inputs.detach().requires_grad_()  # reentrant ones need it
        return checkpoint(self.body, inputs, use_reentrant=self.reentrant)


@pytest.mark.parametrize("reentrant", [True, False])
def test_activation_checkpoints_are_refused_or_change_nothing(model, reentrant):
    inputs = example_batches()[0]
    with pytest.raises(NotApplicable, match="activation checkpoints"):
        Tent(Checkpointed(model, reentrant), lr=0.1, prior=0)(inputs)
    checkpointed, plain = (Tent(net, lr=0.1, prior=float("inf")) for net in (Checkpointed(model, reentrant), model))
    for adapter in (checkpointed, plain):
        adapter(inputs)
    assert torch.allclose(checkpointed(inputs), plain(inputs), atol=1e-6)
