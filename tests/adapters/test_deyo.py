"""DeYO: five batches against a straight version written from the paper, sample by sample; what destroys an object."""

import copy
from math import exp, log

import pytest
import torch
from torch import nn

from haptera.adapters import DeYO
from haptera.adapters.deyo import occlude, shuffle_patches, shuffle_pixels
from haptera.adapters.generator import generator_of
from haptera.errors import HapteraError


def network(norm="batch"):
    """A small network that looks at where things are: without pooling."""
    torch.manual_seed(3)
    norms = {"batch": nn.BatchNorm2d(4), "group": nn.GroupNorm(2, 4), "layer": nn.LayerNorm([4, 6, 6])}
    model = nn.Sequential(nn.Conv2d(1, 4, 3), norms[norm], nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
    nn.init.normal_(model[1].weight, 1.0, 0.3)
    model[4].weight.data.mul_(6)
    return model.eval()


def batches(n=5, size=17):
    generator = torch.Generator().manual_seed(5)
    return [torch.rand(size, 1, 8, 8, generator=generator) for _ in range(n)]


def slow_shuffle(image, patches, order):
    """Patch `order[i]` comes to place i, counted row by row."""
    height, width = image.shape[1] // patches, image.shape[2] // patches
    shuffled = torch.empty_like(image)
    for place, source in enumerate(order):
        (row, column), (old_row, old_column) = divmod(place, patches), divmod(int(source), patches)
        for y in range(height):
            for x in range(width):
                new = image[:, old_row * height + y, old_column * width + x]
                shuffled[:, row * height + y, column * width + x] = new
    return shuffled


class Straight:
    """The method in training mode, with plain loops over samples."""

    def __init__(self, model, rate):
        self.model = copy.deepcopy(model).train()
        self.parameters = [*self.model[1].parameters()]
        self.optimiser = torch.optim.SGD(self.parameters, lr=rate, momentum=0.9)
        self.random, self.dropped = generator_of(0), [0, 0]

    def step(self, inputs):
        logits = self.model(inputs)
        limit = log(logits.shape[1])
        h = [-sum(p * log(p) for p in row.softmax(0).tolist()) for row in logits]
        sure = [i for i, value in enumerate(h) if value < 0.5 * limit]
        orders = torch.rand(len(sure), 4, generator=self.random).argsort(1)
        if not sure:
            return logits.detach()
        with torch.no_grad():
            shuffled = [slow_shuffle(inputs[i], 2, order) for i, order in zip(sure, orders, strict=True)]
            destroyed = self.model(torch.stack(shuffled))
        terms = []
        for i, row in zip(sure, destroyed, strict=True):
            p = logits[i].softmax(0)
            fall = float(p.detach().max() - row.softmax(0)[int(p.argmax())])
            if fall > 0.1:
                terms.append((exp(0.4 * limit - h[i]) + exp(fall)) * -(p * p.log()).sum())
        self.dropped[0] += len(inputs) - len(sure)
        self.dropped[1] += len(sure) - len(terms)
        if terms:
            self.optimiser.zero_grad()
            (sum(terms) / len(terms)).backward()
            self.optimiser.step()
        return logits.detach()


@pytest.mark.parametrize("norm", ["batch", "group", "layer"])
def test_five_batches_are_those_of_a_straight_version(norm):
    model = network(norm)
    adapter, straight = DeYO(model, lr=0.02, threshold=0.1, patches=2, parameters="norm"), Straight(model, 0.02)
    for inputs in batches():
        assert torch.allclose(adapter(inputs), straight.step(inputs), atol=1e-4)
    for ours, theirs in zip(adapter.adapted.values(), straight.parameters, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)
    assert adapter.change() > 0.01
    assert all(straight.dropped)  # both tests drop some


def test_a_single_sure_image_is_normalised_by_the_statistics_of_the_batch():
    layers = (nn.Conv2d(1, 4, 8), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 3))  # maps of one pixel
    adapter = DeYO(nn.Sequential(*layers).eval(), lr=0.05, margin=0.9, threshold=-1.0, parameters="norm")
    inputs = batches(1)[0]
    adapter.begin_step(inputs)
    alone = torch.zeros_like(adapter.logits(inputs)).detach()  # even, so unsure
    alone[0, 0] = 9.0
    assert (adapter.weights(alone, inputs) > 0).tolist() == [True] + [False] * 16


def test_patches_of_each_image_are_laid_in_an_order_of_its_own():
    images = torch.rand(3, 2, 6, 9)
    orders = torch.rand(3, 9, generator=generator_of(4)).argsort(1)
    expected = torch.stack([slow_shuffle(image, 3, order) for image, order in zip(images, orders, strict=True)])
    assert torch.equal(shuffle_patches(images, 3, generator_of(4)), expected)


def test_patches_that_do_not_divide_the_image_are_cut_from_a_smaller_one():
    images = torch.rand(2, 1, 7, 9)
    shuffled = shuffle_patches(images, 4, generator_of(0))
    assert shuffled.shape == images.shape
    assert torch.allclose(shuffle_patches(torch.ones(1, 1, 7, 9), 4, generator_of(0)), torch.ones(1, 1, 7, 9))
    assert not torch.allclose(shuffled, images, atol=0.1)


def test_pixels_of_all_images_are_laid_in_one_order():
    images = torch.arange(2 * 16.0).reshape(2, 1, 4, 4)
    shuffled = shuffle_pixels(images, generator_of(0))
    assert torch.equal(shuffled[1] - shuffled[0], torch.full((1, 4, 4), 16.0))
    assert shuffled[0].flatten().sort().values.tolist() == list(range(16))
    assert not torch.equal(shuffled, images)


def test_an_occlusion_hides_the_middle_in_the_mean_colour():
    images = torch.rand(2, 3, 8, 12)
    occluded = occlude(images)
    hidden = torch.zeros(8, 12, dtype=torch.bool)
    hidden[2:6, 3:9] = True
    assert torch.equal(occluded[:, :, ~hidden], images[:, :, ~hidden])
    assert torch.allclose(occluded[:, :, hidden], images.mean((2, 3))[..., None].expand(2, 3, 24))


@pytest.mark.parametrize("destroy", ["patches", "pixels", "occlusion"])
def test_a_class_that_needs_no_object_is_not_learnt_from(destroy):
    class Brightness(nn.Module):  # the mean is the same wherever the pixels are
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(2)

        def forward(self, images):
            return self.norm(torch.stack([images.mean((1, 2, 3)), 1 - images.mean((1, 2, 3))], 1)) * 9

    adapter = DeYO(Brightness(), lr=0.1, destroy=destroy, parameters="norm")
    adapter(torch.rand(6, 1, 8, 8) * 0.3)
    assert adapter.record["kept"] == 0
    assert "loss" not in adapter.record


@pytest.mark.parametrize(
    ("settings", "shape", "message"),
    [
        ({"destroy": "patch"}, (2, 1, 8, 8), "unknown destroy 'patch'; did you mean 'patches'"),
        ({"patches": 0}, (2, 1, 8, 8), "patches is 0"),
        ({"threshold": 2}, (2, 1, 8, 8), "threshold is 2; a difference"),
        ({"patches": 16}, (2, 1, 8, 8), "images of 8 x 8 pixels have fewer"),
        ({}, (2, 144), "destroys the objects of images"),
    ],
)
def test_bad_settings_and_inputs_are_named(settings, shape, message):
    model = nn.Sequential(nn.Flatten(), nn.LazyLinear(4), nn.LayerNorm(4), nn.Linear(4, 3))
    inputs = torch.rand(shape)
    model(inputs)
    with pytest.raises(HapteraError, match=message):
        DeYO(model, margin=1.1, **settings)(inputs)
