"""Watch: predictions stay those of the model, and the record says how far a batch is from training."""

import numpy as np
import pytest
import torch
from torch import nn

from haptera.adapters import Watch
from haptera.adapters.norm import per_image
from haptera.adapters.watch import DRAWS, squared_size
from haptera.batch import Batch
from haptera.errors import HapteraError, NotApplicable
from haptera.statistics.moments import scale


def net(mean=0.0, var=1.0):
    torch.manual_seed(0)
    model = nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 36, 5))
    model[0].running_mean.fill_(mean)
    model[0].running_var.fill_(var)
    return model.eval()


def test_predictions_are_those_of_the_model():
    model, images = net(), torch.rand(6, 3, 8, 8)
    assert torch.equal(Watch(model)(images), model(images))


def size(values, mean, var):
    divisor = torch.from_numpy(scale(var.double().numpy()))
    square = float(squared_size(per_image(values.double()), mean.double(), var.double(), divisor))
    return np.sign(square) * np.sqrt(abs(square))


def test_the_size_is_that_of_the_formula():
    values = torch.randn(50, 3, 4, 4, dtype=torch.float64) * 2 + 1
    mean, var = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([1.0, 4.0, 2.0])
    distances = []
    for channel in range(3):
        own = values[:, channel].numpy()
        chance = own.mean((1, 2)).var(ddof=1) / 50
        spread = own.var() + chance
        influence = (own**2).mean((1, 2)) - 2 * own.mean() * own.mean((1, 2))
        deviation = np.sqrt(spread) + influence.var(ddof=1) / 50 / (8 * spread**1.5)
        squared = (own.mean() - mean[channel].item()) ** 2 - chance
        squared += spread + var[channel].item() - 2 * np.sqrt(var[channel].item()) * deviation
        distances.append(squared / var[channel].item())
    assert size(values, mean, var) == pytest.approx(np.sqrt(np.mean(distances)), rel=1e-6)


@pytest.fixture(scope="module")
def images():
    """Images of one camera, each with a brightness of its own; channel 7 fires on one of a hundred."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(4096, 8, 4, 4, generator=generator) + torch.randn(4096, 8, 1, 1, generator=generator)
    values[:, 7] *= torch.rand(4096, 1, 1, generator=generator) < 0.01
    return values


SIZES = (4, 16, 64, 256)


def norm_of(images):
    """A network of one BatchNorm layer that was trained on these images."""
    model = nn.Sequential(nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(128, 3)).eval()
    model[0].running_mean.copy_(images.mean((0, 2, 3)))
    model[0].running_var.copy_(images.var((0, 2, 3)))
    return model


def check_that_sizes_agree(watched, images):
    """The mean square of the sizes of batches is that of all images together, within its spread, whatever the batch."""

    def square(part):
        watched(part)
        return watched.record["shift_size"] * abs(watched.record["shift_size"])

    truth = square(images)
    for n in SIZES:
        own = [square(part) for part in images[: max(40 * n, 800)].split(n)]
        spread = np.std(own) * np.sqrt(1 / len(own) + 1 / DRAWS)
        assert np.mean(own) == pytest.approx(truth, abs=3 * spread + 0.02), n
        assert spread < 0.15


CHANGES = [(0.0, 1.0), (0.5, 1.0), (0.0, 0.5), (1.0, 2.0)]


@pytest.mark.parametrize(("offset", "factor"), CHANGES)
def test_the_same_images_have_the_same_size_whatever_the_batch_size(images, offset, factor):
    ordinary = torch.cat([images[:, :7], images[:, :1].flip(0)], 1)
    check_that_sizes_agree(Watch(norm_of(ordinary)), ordinary * factor + offset)


@pytest.mark.parametrize(("offset", "factor"), CHANGES[:2])
def test_with_a_reference_so_have_images_that_rarely_fire(images, offset, factor):
    reference = [Batch(images[:2048], None, torch.arange(2048), {})]
    rarely = offset * torch.tensor([1.0] * 7 + [0.0])[:, None, None]
    check_that_sizes_agree(Watch(norm_of(images), reference=reference), images * factor + rarely)


def test_a_new_camera_stays_above_the_same_one_at_every_batch_size(images):
    model = norm_of(images)
    model[0].running_var[3] = 1e-12  # nearly dead in training: any distance over it would be a million
    watched = Watch(model, reference=[Batch(images[:256], None, torch.arange(256), {})])
    for n in (8, 64, 256):
        same, new = [], []
        for part in images[256 : 256 + 20 * n].split(n):
            watched(part)
            same.append(watched.record["shift_size"])
            limit = watched.record["shift_limit"]
            watched(part * 1.5 + 0.7)
            new.append(watched.record["shift_size"])
            assert watched.record["shift_p"] == pytest.approx(1 / 201)
        assert np.quantile(same, 0.95) < min(new)
        assert np.mean(np.array(same) > limit) <= 0.3  # 5 % in truth; 20 batches
        assert min(new) > limit


def test_reference_batches_of_the_same_size_pass_the_limit_as_rarely_as_it_says(images):
    watched = Watch(norm_of(images), reference=[Batch(images[:1024], None, torch.arange(1024), {})])
    for n in (4, 16):
        above = []
        for part in images[1024 : 1024 + 150 * n].split(n):
            watched(part)
            above.append(watched.record["shift_size"] > watched.record["shift_limit"])
        assert np.mean(above) == pytest.approx(0.05, abs=0.055)


def test_one_image_has_no_size_which_is_said_once(caplog):
    adapter = Watch(net())
    for _ in range(2):
        adapter(torch.rand(1, 3, 8, 8))
    assert np.isnan(adapter.record["shift_size"])
    assert caplog.text.count("give a window") == 1
    together = Watch(net(), window=4)
    for _ in range(2):
        together(torch.rand(1, 3, 8, 8))
    assert np.isfinite(together.record["shift_size"])


def test_a_reference_that_is_not_a_stream_is_told():
    with pytest.raises(HapteraError, match="stream of batches"):
        Watch(net(), reference="old.npz")


def test_every_layer_is_recorded_and_the_whole_is_their_mean():
    adapter = Watch(net(mean=2.0))
    adapter(torch.rand(6, 3, 8, 8))
    assert set(adapter.record) == {"shift_size", "shift_size:0", "shift_size:2"}
    layers = [adapter.record["shift_size:0"], adapter.record["shift_size:2"]]
    assert adapter.record["shift_size"] == pytest.approx(np.mean(layers))
    assert layers[0] > 1


@pytest.mark.parametrize("nearly", [0.0, 1e-30, 1e-9])
def test_a_channel_that_never_varied_in_training_is_left_out(nearly):
    values, var = torch.rand(9, 3, 3, 3), torch.tensor([nearly, 1.0, 1.0])
    assert size(values, torch.zeros(3), var) == pytest.approx(size(values[:, 1:], torch.zeros(2), var[1:]))


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
