"""Mean predictions over views against a loop over images."""

import pytest
import torch
from torch.nn import functional as F

from haptera.adapters import Augment, TTAug
from haptera.adapters.generator import generator_of
from haptera.errors import HapteraError
from haptera.testing.adapters import example_batches, example_models
from haptera.testing.networks import images, plain

MIRROR = Augment(0, 0, 0, 1.0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("mean", ["logits", "probabilities"])
def test_predictions_are_the_mean_over_the_image_and_its_views(mean):
    model, inputs = example_models()["none"], example_batches()[0]
    found = TTAug(model, augmentations=3, mean=mean, seed=4)(inputs)
    views = Augment()(inputs.repeat_interleave(3, 0), generator_of(4)).unflatten(0, (6, 3))
    for row, image, others in zip(found, inputs, views, strict=True):
        with torch.no_grad():
            said = model(torch.cat([image[None], others]))
        expected = said.mean(0) if mean == "logits" else said.softmax(1).mean(0).log()
        assert torch.allclose(row, expected, atol=1e-5)


@torch.no_grad()
def test_the_views_of_an_image_have_their_share_in_the_statistics():
    model, inputs = plain(), images()[0]
    found = TTAug(model, augmentations=1, share=0.25, augment=MIRROR)(inputs)
    for row, image in zip(found, inputs, strict=True):
        values = torch.stack([image, image.flip(2)])
        for layer in model[:-1]:
            if isinstance(layer, torch.nn.BatchNorm2d):
                mean = 0.75 * layer.running_mean + 0.25 * values.mean((0, 2, 3))
                var = 0.75 * layer.running_var + 0.25 * values.var((0, 2, 3), correction=0)
                values = F.batch_norm(values, mean, var, layer.weight, layer.bias, False, 0.0, layer.eps)
            else:
                values = layer(values)
        assert torch.allclose(row, model[-1](values).mean(0), atol=1e-5)


@pytest.mark.parametrize("settings", [{"augmentations": 0}, {"augment": Augment(*[0] * 9), "augmentations": 2}])
def test_without_views_that_differ_it_is_the_model(settings):
    model, inputs = plain(), images()[0]
    with torch.no_grad():
        assert torch.allclose(TTAug(model, share=0, **settings)(inputs), model(inputs), atol=1e-5)


def test_an_image_is_predicted_alone_and_a_released_model_is_the_callers():
    model, inputs = plain(), images()[0]
    together = TTAug(model, augmentations=1, augment=MIRROR)(inputs)
    adapter = TTAug(model, augmentations=1, augment=MIRROR)
    alone = torch.cat([adapter(image) for image in inputs.split(1)])
    assert torch.allclose(together, alone, atol=1e-5)
    assert torch.allclose(adapter.release()(inputs), model(inputs), atol=1e-6)


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_it_does_not_matter_how_many_images_go_in_one_pass(norm, monkeypatch):
    model, inputs = example_models()[norm], example_batches()[0]
    whole = TTAug(model, augmentations=2, augment=MIRROR)(inputs)
    monkeypatch.setattr("haptera.adapters.ttaug.TOGETHER", 6)
    assert torch.allclose(TTAug(model, augmentations=2, augment=MIRROR)(inputs), whole, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"augmentations": -1}, "augmentations is -1; a number of views"),
        ({"share": 2}, "share is 2; a number from 0 to 1"),
        ({"mean": "logit"}, "logits"),
    ],
)
def test_wrong_settings_are_refused(settings, why):
    with pytest.raises(HapteraError, match=why):
        TTAug(plain(), **settings)
