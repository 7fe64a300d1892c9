"""BatchNorm statistics against train mode, evaluation mode and the formula written out."""

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
