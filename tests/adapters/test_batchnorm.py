"""BatchNorm statistics against train mode, evaluation mode and the formula written out."""

import copy

import pytest
import torch
from torch import nn

from haptera.adapters import BatchNorm, NoAdaptation
from haptera.batch import Batch
from haptera.errors import HapteraError, NotApplicable
from haptera.testing.adapters import example_batches, example_models


@pytest.fixture
def model():
    return example_models()["batch"]


def test_no_prior_equals_train_mode(model):
    inputs = example_batches()[0]
    adapted = BatchNorm(model, prior=0)(inputs)
    expected = model.train()(inputs)
    assert torch.allclose(adapted, expected, atol=1e-6)


def test_infinite_prior_equals_evaluation_mode(model):
    inputs = example_batches()[0]
    assert torch.equal(BatchNorm(model, prior=float("inf"))(inputs), NoAdaptation(model)(inputs))


@pytest.mark.parametrize(("prior", "n"), [(16, 6), (1, 2), (3, 1)])
def test_one_layer_follows_the_formula(prior, n):
    layer = nn.BatchNorm2d(2)
    layer.running_mean.copy_(torch.tensor([0.5, -1.0]))
    layer.running_var.copy_(torch.tensor([2.0, 0.25]))
    inputs = torch.randn(n, 2, 3, 3, generator=torch.Generator().manual_seed(0))
    values = inputs.transpose(0, 1).reshape(2, -1)
    mean = prior / (prior + n) * layer.running_mean + n / (prior + n) * values.mean(1)
    spread = ((values - values.mean(1, keepdim=True)) ** 2).mean(1)  # divided by n, not n - 1
    var = prior / (prior + n) * layer.running_var + n / (prior + n) * spread
    expected = (inputs - mean[None, :, None, None]) / (var[None, :, None, None] + layer.eps).sqrt()
    adapted = BatchNorm(nn.Sequential(layer), prior=prior)(inputs)
    assert torch.allclose(adapted, expected, atol=1e-6)


class FixedShare(nn.Module):
    """(1 - alpha) of the source's statistics and alpha of the batch's, as BN-alpha is defined."""

    def __init__(self, layer, alpha):
        super().__init__()
        self.layer, self.alpha = layer, alpha

    def forward(self, inputs):
        values, layer, alpha = inputs.transpose(0, 1).flatten(1), self.layer, self.alpha
        mean = (1 - alpha) * layer.running_mean + alpha * values.mean(1)
        var = (1 - alpha) * layer.running_var + alpha * values.var(1, correction=0)
        return nn.functional.batch_norm(inputs, mean, var, layer.weight, layer.bias, False, 0.0, layer.eps)


def with_fixed_share(model, alpha):
    made = copy.deepcopy(model)
    for name, layer in list(made.named_modules()):
        if isinstance(layer, nn.BatchNorm2d):
            parent = made.get_submodule(name.rpartition(".")[0])
            setattr(parent, name.rpartition(".")[2], FixedShare(layer, alpha))
    return made


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.6, 1.0])
def test_alpha_is_the_share_of_a_batch_of_any_size(model, alpha):
    adapter, straight = BatchNorm(model, statistics="alpha", alpha=alpha), with_fixed_share(model, alpha)
    for inputs in (example_batches()[0], example_batches()[1][:2], torch.cat(example_batches())):
        with torch.no_grad():
            assert torch.allclose(adapter(inputs), straight(inputs), atol=1e-5)


def test_alpha_is_the_share_of_a_whole_stream_too():
    net = nn.Sequential(nn.BatchNorm1d(4))
    inputs = torch.randn(20, 4, generator=torch.Generator().manual_seed(1)) * 3 + 1
    stream = [Batch(part, None, torch.arange(len(part)), {}) for part in inputs.split([7, 13])]
    adapter = BatchNorm(net, statistics="alpha", alpha=0.4, frozen=True)
    adapter.adapt(stream)
    assert torch.allclose(adapter(inputs), BatchNorm(net, statistics="alpha", alpha=0.4)(inputs), atol=1e-5)


@pytest.mark.parametrize("momentum", [0.1, 0.7])
def test_ema_is_a_pass_in_train_mode_and_one_in_evaluation_mode(model, momentum):
    adapter, plain = BatchNorm(model, statistics="ema", momentum=momentum), copy.deepcopy(model)
    for layer in plain.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = momentum
    for inputs in example_batches():
        plain.train()(inputs)
        assert torch.allclose(adapter(inputs), plain.eval()(inputs), atol=1e-5)


def test_shares_are_checked(model):
    with pytest.raises(HapteraError, match=r"alpha is 1\.5"):
        BatchNorm(model, statistics="alpha", alpha=1.5)
    with pytest.raises(HapteraError, match="those of 'ema' have none"):
        BatchNorm(model, prior="auto", statistics="ema")
    with pytest.raises(HapteraError, match="one value per channel"):
        BatchNorm(nn.Sequential(nn.BatchNorm1d(3)), statistics="ema")(torch.rand(1, 3))


def test_pooled_statistics_are_those_of_all_images_at_once():
    net = nn.Sequential(nn.BatchNorm1d(4))
    inputs = torch.randn(20, 4, generator=torch.Generator().manual_seed(1)) * 3 + 1
    stream = [Batch(part, None, torch.arange(len(part)), {}) for part in inputs.split([7, 7, 6])]
    pooled = BatchNorm(net, prior=5, frozen=True)
    for _ in range(2):  # a second pass forgets the first
        pooled.adapt(stream)
        assert torch.allclose(pooled(inputs), BatchNorm(net, prior=5)(inputs), atol=1e-5)


def test_weights_are_shared_and_only_statistics_are_the_adapters_own(model):
    adapter = BatchNorm(model)
    shared = {tensor.data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    own = [tensor for tensor in (*adapter.parameters(), *adapter.buffers()) if tensor.data_ptr() not in shared]
    channels = sum(m.num_features for m in model.modules() if isinstance(m, nn.BatchNorm2d))
    assert sum(tensor.numel() for tensor in own) <= 6 * channels + 20


def test_a_shared_layer_is_replaced_once():
    layer = nn.BatchNorm1d(3)
    adapter = BatchNorm(nn.Sequential(layer, nn.Linear(3, 3), layer))
    assert len(adapter.layers) == 1


def test_models_without_batchnorm_do_not_apply():
    with pytest.raises(NotApplicable, match="no BatchNorm layer"):
        BatchNorm(example_models()["group"])
    with pytest.raises(NotApplicable):
        BatchNorm(nn.Sequential(nn.BatchNorm1d(3, track_running_stats=False)))


@pytest.mark.parametrize("prior", [-1, float("nan"), "16", True])
def test_wrong_prior_is_refused(model, prior):
    with pytest.raises(HapteraError, match="prior is"):
        BatchNorm(model, prior=prior)


def test_one_value_per_channel_has_no_variance():
    net = nn.Sequential(nn.BatchNorm1d(3))
    with pytest.raises(HapteraError, match="needs a prior above 0"):
        BatchNorm(net, prior=0)(torch.rand(1, 3))
    assert torch.isfinite(BatchNorm(net, prior=1)(torch.rand(1, 3))).all()


def test_black_frames_are_survived(model):
    adapter = BatchNorm(model, prior=0)
    assert torch.isfinite(adapter(torch.zeros(4, 1, 16, 16))).all()


def test_a_nearly_dead_channel_does_not_choose_the_prior():
    chosen = []
    for dead in (0, 1):
        model = nn.Sequential(nn.BatchNorm2d(3 + dead), nn.Flatten(), nn.Linear((3 + dead) * 16, 2)).eval()
        model[0].running_var[3:] = 1e-30
        images = torch.randn(8, 3 + dead, 4, 4, generator=torch.Generator().manual_seed(0))
        images[:, :3] = torch.randn(8, 3, 4, 4, generator=torch.Generator().manual_seed(1))
        images[:, 3:] = 1e-4
        adapter = BatchNorm(model, prior="auto")
        adapter(images)
        adapter(images)
        chosen.append(adapter.record["prior"])
    assert chosen[0] > 1
    assert chosen[0] == chosen[1]
