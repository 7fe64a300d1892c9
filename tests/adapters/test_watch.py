"""Watch: predictions stay those of the model, and the record says how far a batch is from training."""

import numpy as np
import pytest
import torch
from torch import nn

from holdfast.adapters import Watch
from holdfast.adapters.norm import per_image
from holdfast.adapters.watch import shift_size
from holdfast.errors import NotApplicable


def net(mean=0.0, var=1.0):
    torch.manual_seed(0)
    model = nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 36, 5))
    model[0].running_mean.fill_(mean)
    model[0].running_var.fill_(var)
    return model.eval()


def test_predictions_are_those_of_the_model():
    model, images = net(), torch.rand(6, 3, 8, 8)
    assert torch.equal(Watch(model)(images), model(images))


def test_the_size_is_that_of_the_formula():
    values = torch.randn(50, 3, 4, 4, dtype=torch.float64) * 2 + 1
    mean, var = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([1.0, 4.0, 2.0])
    distances = []
    for channel in range(3):
        own = values[:, channel].numpy()
        chance = own.mean((1, 2)).var(ddof=1) / 50
        squared = (own.mean() - mean[channel].item()) ** 2 - chance + (own.std() - var[channel].sqrt().item()) ** 2
        distances.append(squared / var[channel].item())
    assert float(shift_size(values, mean, var)) == pytest.approx(np.sqrt(np.mean(distances)), rel=1e-6)


def test_without_a_shift_small_batches_look_no_more_shifted_than_large_ones():
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(4000, 8, 1, 1, generator=generator)
    mean, var = torch.zeros(8), torch.ones(8)
    squares = [float(shift_size(part, mean, var) ** 2) for part in images.split(8)]
    plain = [float(((part.mean(0) - mean[:, None, None]) ** 2).mean()) for part in images.split(8)]
    assert np.mean(squares) < 0.7 * np.mean(plain)


def test_every_layer_is_recorded_and_the_whole_is_their_mean():
    adapter = Watch(net(mean=2.0))
    adapter(torch.rand(6, 3, 8, 8))
    assert set(adapter.record) == {"shift_size", "shift_size:0", "shift_size:2"}
    layers = [adapter.record["shift_size:0"], adapter.record["shift_size:2"]]
    assert adapter.record["shift_size"] == pytest.approx(np.mean(layers))
    assert layers[0] > 1


def test_a_channel_that_never_varied_in_training_is_left_out():
    values, var = torch.rand(9, 2, 3, 3), torch.tensor([0.0, 1.0])
    assert torch.isfinite(shift_size(values, torch.zeros(2), var))


def test_a_frozen_one_records_nothing():
    adapter = Watch(net(), frozen=True)
    adapter(torch.rand(6, 3, 8, 8))
    assert adapter.record == {}


def test_a_model_without_statistics_is_refused():
    with pytest.raises(NotApplicable, match="no BatchNorm"):
        Watch(nn.Linear(2, 2))


@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 7), (5, 3, 6, 4), (5, 3, 2, 3, 4)])
@pytest.mark.parametrize("last", [False, True])
def test_moments_of_an_image_do_not_depend_on_the_layout(shape, last):
    values = torch.randn(shape)
    if last and len(shape) == 4:
        values = values.contiguous(memory_format=torch.channels_last)
    flat = values.reshape(5, 3, -1)
    expected = torch.stack([flat.mean(2), (flat**2).mean(2)], 1)
    assert torch.allclose(per_image(values), expected, atol=1e-5)
