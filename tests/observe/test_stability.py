"""Distances under deformation and noise, against a network run image by image, and against closed forms."""

import numpy as np
import pytest
import torch
from torch import nn

from haptera.data import digits
from haptera.errors import HapteraError
from haptera.models import LeNet, ResNet
from haptera.models.training import fit
from haptera.observe import Probe, respond
from haptera.shifts import Diffeo, sphere_noise
from haptera.statistics.stability import stability_indices

N = 101  # odd, so that the median is an image


def probe(n=N, *, double=True, sphere="median", shift=None, batch_size=16, size=16):
    images = digits("test", size=size).images(np.arange(n))
    images = images.double() if double else images
    return Probe(images, shift or Diffeo(1, 3), torch.arange(n), 5, sphere, batch_size)


def indices(model, given, **settings):
    frame = stability_indices(respond(model, given, **settings).distances["output"], draws=0)
    return frame.set_index(["index", "aggregate"])["value"]


class Map(nn.Module):
    """A linear map of the pixels."""

    def __init__(self, matrix):
        super().__init__()
        self.matrix = matrix

    def forward(self, images):
        return images.flatten(1) @ self.matrix.T


def test_the_identity_has_a_median_of_1_and_a_mean_of_1_plus_cv_squared():
    given = probe()
    found = indices(nn.Flatten(), given)
    norms = (given.deformed - given.images).flatten(1).norm(dim=1).numpy()
    assert found["R", "median"] == pytest.approx(1, abs=1e-9)
    assert found["R", "mean"] == pytest.approx(1 + (norms.std() / norms.mean()) ** 2, rel=1e-9)
    for aggregate in ("mean", "median"):
        assert found["R", aggregate] == pytest.approx(found["D", aggregate] / found["G", aggregate], rel=1e-12)


def test_an_even_number_of_images_is_off_by_little():
    assert indices(nn.Flatten(), probe(100))["R", "median"] == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("sphere", ["median", "mean"])
def test_a_linear_map_has_the_ratio_of_its_closed_form(sphere):
    matrix = torch.randn(7, 256, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    given = probe(sphere=sphere)
    found = indices(Map(matrix), given)
    moved = ((given.deformed - given.images).flatten(1) @ matrix.T).square().sum(1).numpy()
    unit = sphere_noise(given.images, 1.0, given.ids, 5)
    shaken = (unit.flatten(1) @ matrix.T).square().sum(1).numpy()
    for aggregate, take in (("mean", np.mean), ("median", np.median)):
        expected = take(moved) / (take(shaken) * given.radii[aggregate] ** 2)
        assert found["R", aggregate] == pytest.approx(expected, rel=1e-7)
    # Over all directions of the noise, its mean is that of the squared singular values.
    noise = np.mean(shaken) * given.radii["mean"] ** 2
    assert noise == pytest.approx(given.radii["mean"] ** 2 * float(matrix.square().sum()) / 256, rel=0.15)


def test_scaling_and_turning_the_output_change_nothing():
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(7, 256, dtype=torch.float64, generator=generator)
    turn = torch.linalg.qr(torch.randn(7, 7, dtype=torch.float64, generator=generator))[0]
    given = probe()
    plain, other = indices(Map(matrix), given), indices(Map(3 * turn @ matrix), given)
    assert other.to_numpy() == pytest.approx(plain.to_numpy(), rel=1e-9)


def test_average_pooling_is_less_stable_to_deformations_than_to_noise():
    smooth = nn.Sequential(nn.AvgPool2d(8), nn.Flatten())
    assert 5 < indices(smooth, probe(size=32))["R", "mean"] < 20


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    model = ResNet(width=4, stem=2)
    fit(model, digits("train", size=16), epochs=3)
    return model


def test_one_pass_gives_what_each_image_gives_alone(net):
    given = probe(37, double=False)
    found = respond(net, given, ["4.conv1", "6"])
    assert list(found.distances) == ["pixels", "4.conv1", "6", "output"]
    noise = sphere_noise(given.images, given.radii["median"], given.ids, 5)
    begin = nn.Sequential(*list(net)[:7])
    with torch.no_grad():
        for place in (0, 11, 36):
            plain = given.images[place : place + 1]
            moved, shaken = given.deformed[place : place + 1], plain + noise[place : place + 1]
            for name, part in {"output": net, "6": begin}.items():
                here = found.distances[name]
                expected = (part(moved) - part(plain)).square().sum()
                assert here.deformed[place] == pytest.approx(float(expected), rel=1e-3)
                assert here.noisy[place] == pytest.approx(float((part(shaken) - part(plain)).square().sum()), rel=1e-3)
    sizes = [len(group) for group in found.distances["6"].pairs]
    assert sum(sizes) == 37
    with torch.no_grad():
        inner = begin(given.images[: sizes[0]]).flatten(1)
    exact = torch.cdist(inner.double(), inner.double()).square().numpy()
    assert found.distances["6"].pairs[0] == pytest.approx(exact, rel=1e-3, abs=1e-4)
    assert found.distances["pixels"].noisy == pytest.approx(np.full(37, given.radii["median"] ** 2), rel=1e-4)


def test_every_innermost_layer_is_watched_in_the_order_of_running(net):
    names = list(respond(net, probe(8, double=False), True).distances)
    assert names[0] == "pixels"
    assert names[-1] == "output"
    assert names[1:5] == ["0", "1", "2", "3"]
    assert names.index("4.conv1") < names.index("4.norm1") < names.index("4.conv2")


def test_a_layer_that_runs_twice_counts_twice():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU()

        def forward(self, images):
            return self.relu(1 - self.relu(images).flatten(1))

    assert list(respond(Twice(), probe(8), True).distances) == ["pixels", "relu", "relu (2)", "output"]


def test_the_scaled_sphere_is_near_the_exact_one_for_a_trained_network(net):
    by_median, by_mean = (indices(net, probe(double=False, sphere=sphere)) for sphere in ("median", "mean"))
    assert by_median["R", "mean"] == pytest.approx(by_mean["R", "mean"], rel=0.05)
    assert by_median["R", "median"] == pytest.approx(by_mean["R", "median"], rel=0.05)


def test_the_model_and_its_mode_are_left_alone(net):
    before = {key: value.clone() for key, value in net.state_dict().items()}
    net.train()
    respond(net, probe(8, double=False), True)
    assert net.training
    net.eval()
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    assert not any(module._forward_hooks for module in net.modules())


def test_batches_and_order_do_not_matter(net):
    one, two = (indices(net, probe(double=False, batch_size=size)) for size in (16, 40))
    assert one.to_numpy() == pytest.approx(two.to_numpy(), rel=1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: probe(1), "at least two images, found 1"),
        (lambda: probe(sphere="mode"), "unknown sphere 'mode'"),
        (lambda: probe(shift=Diffeo(0)), "leave most of the 101 images as they are"),
        (lambda: respond(LeNet(size=16), probe(4, double=False), ["conv9"]), "no layer fits 'conv9'"),
        (lambda: respond(nn.Sequential(nn.Flatten(0)), probe(4)), r"the model gives \(3072,\) for 12 images"),
    ],
)
def test_what_cannot_be_measured_is_said(make, message):
    with pytest.raises(HapteraError, match=message):
        make()
