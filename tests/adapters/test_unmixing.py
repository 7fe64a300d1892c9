"""Un-mixing statistics against a loop over images and components, its limits, and streams of two kinds of images."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters import BatchNorm, CoTTA, PeriodicReset, Tent, UnMixing, UnMixingTNS
from haptera.adapters.norm import blends_of
from haptera.adapters.unmixing import Mixture
from haptera.errors import HapteraError, NotApplicable
from haptera.losses import entropy
from haptera.testing.networks import images, plain


def layer(channels=3, seed=0):
    """One BatchNorm layer as a model, its statistics and affine away from the defaults."""
    generator = torch.Generator().manual_seed(seed)
    made = nn.BatchNorm2d(channels)
    for tensor, low in ((made.running_mean, -1), (made.running_var, 0.5), (made.weight, 0.5), (made.bias, -1)):
        tensor.data.uniform_(low, low + 2, generator=generator)
    return made.eval()


def draw(n=5, channels=3, seed=1):
    return torch.randn(n, channels, 4, 5, generator=torch.Generator().manual_seed(seed)) * 2 + 0.5


def by_hand(inputs, means, variances, weight, bias, temperature, move, eps=1e-5):
    """One image and one component after the other."""
    out, probabilities = [], []
    for image in inputs:
        m, v = image.mean((1, 2)), image.var((1, 2), correction=0)
        p = torch.stack([F.cosine_similarity(m, mean, dim=0) / temperature for mean in means]).softmax(0)
        hats = [(1 - p[k]) * means[k] + p[k] * m for k in range(len(means))]
        within = [(1 - p[k]) * variances[k] + p[k] * v for k in range(len(means))]
        mean = sum(hats) / len(hats)
        var = sum(within) / len(hats) + sum(hat**2 for hat in hats) / len(hats) - mean**2
        scaled = (image - mean[:, None, None]) / (var[:, None, None] + eps).sqrt()
        out.append(scaled * weight[:, None, None] + bias[:, None, None])
        probabilities.append(p)
    new_means, new_variances = means.clone(), variances.clone()
    for k in range(len(means)):
        for image, p in zip(inputs, probabilities, strict=True):
            new_means[k] += move * p[k] * (image.mean((1, 2)) - means[k]) / len(inputs)
            new_variances[k] += move * p[k] * (image.var((1, 2), correction=0) - variances[k]) / len(inputs)
    return torch.stack(out), new_means, new_variances


@pytest.mark.parametrize("components", [1, 2, 7])
def test_three_steps_go_as_by_hand(components):
    norm = layer()
    adapter = UnMixingTNS(norm, components, share=0.3, images=10, temperature=0.2)
    (mixture,) = adapter.layers
    means, variances = mixture.means.clone(), mixture.vars.clone()
    for seed, n in ((1, 5), (2, 10), (3, 1)):
        inputs, move = draw(n, seed=seed), 1 - 0.7 ** (n / 10)
        expected, means, variances = by_hand(inputs, means, variances, norm.weight, norm.bias, 0.2, move)
        assert torch.allclose(adapter(inputs), expected, atol=1e-5)
        assert torch.allclose(mixture.means, means, atol=1e-6)
        assert torch.allclose(mixture.vars, variances, atol=1e-6)


def test_one_component_normalises_by_the_image_and_moves_as_plain_running_statistics():
    norm, moments = layer(), (0.0, 0.0)
    adapter = UnMixingTNS(norm, components=1, share=0.25, images=5)
    mean, var = norm.running_mean.clone(), norm.running_var.clone()
    for seed in range(3):
        inputs = draw(seed=seed)
        out = adapter(inputs)
        assert torch.allclose(out, F.instance_norm(inputs, weight=norm.weight, bias=norm.bias), atol=1e-5)
        moments = inputs.mean((0, 2, 3)), inputs.var((2, 3), correction=0).mean(0)
        mean, var = 0.75 * mean + 0.25 * moments[0], 0.75 * var + 0.25 * moments[1]
    released = adapter.release()
    assert torch.allclose(released.running_mean, mean, atol=1e-6)
    assert torch.allclose(released.running_var, var, atol=1e-6)
    running = BatchNorm(norm, statistics="running", momentum=0.25)
    for seed in range(3):
        running(draw(seed=seed))
    assert torch.allclose(running.release().running_mean, mean, atol=1e-6)


def test_a_share_of_one_takes_the_moments_of_the_batch():
    adapter = UnMixingTNS(layer(), components=1, share=1.0, images=5)
    adapter(draw(seed=1))
    adapter(draw(seed=2))
    assert torch.allclose(adapter.layers[0].means[0], draw(seed=2).mean((0, 2, 3)), atol=1e-6)


def test_many_still_components_without_spread_are_the_statistics_of_training():
    norm, inputs = layer(), draw()
    away = []
    for components in (500, 5000):
        adapter = UnMixingTNS(norm, components, share=0.0, spread=0.0)
        with torch.no_grad():
            away.append(float((adapter(inputs) - norm(inputs)).abs().max()))
        assert torch.equal(adapter.layers[0].means, norm.running_mean.expand(components, 3))
    assert away[1] < 0.02
    assert away[1] == pytest.approx(away[0] / 10, rel=0.1)  # the image has 1/K of the mixture


def test_first_components_have_the_training_statistics_together():
    norm = layer(channels=2)
    (mixture,) = UnMixingTNS(norm, components=20000, spread=0.4).layers
    assert torch.allclose(mixture.mean, norm.running_mean, atol=0.03)
    assert torch.allclose(mixture.var, norm.running_var, rtol=0.03)
    assert torch.allclose(mixture.vars[0], 0.6 * norm.running_var)


def test_components_take_the_kinds_of_images_apart_whichever_come_in_a_run():
    norm = nn.BatchNorm2d(2).eval()
    adapter, plainly = UnMixingTNS(norm, components=8, share=0.3), BatchNorm(norm, statistics="running", momentum=0.3)
    centres = torch.tensor([[4.0, 0.0], [0.0, 4.0]])
    for step in range(60):
        kind = centres[step // 10 % 2]  # runs of ten batches
        for each in (adapter, plainly):
            each(draw(64, 2, seed=step) * 0.2 + kind[:, None, None])
    means = adapter.layers[0].means
    nearest = [float((means - centre).norm(dim=1).min()) for centre in centres]
    assert max(nearest) < 0.5
    assert float((plainly.release().running_mean - centres[0]).norm()) > 4  # which has forgotten the earlier run


def test_an_image_has_the_same_prediction_in_any_batch_while_frozen():
    adapter = UnMixingTNS(plain())
    adapter(images()[0])
    adapter.frozen = True
    inputs = images()[1]
    alone = torch.cat([adapter(image) for image in inputs.split(1)])
    assert torch.allclose(adapter(inputs), alone, atol=1e-5)


def test_a_layer_with_one_value_per_channel_keeps_the_statistics_of_training():
    norm = nn.BatchNorm1d(3).eval()
    norm.running_mean.fill_(0.5)
    inputs = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.allclose(UnMixingTNS(norm)(inputs), norm(inputs), atol=1e-6)


def test_seeds_give_other_components_and_resets_the_first_ones():
    adapter = PeriodicReset(UnMixingTNS, every=2)(plain())
    first = adapter(images()[0])
    adapter(images()[1])
    assert torch.equal(adapter(images()[0]), first)
    assert not torch.equal(UnMixingTNS(plain(), seed=1)(images()[0]), first)


def test_a_learner_steps_on_the_entropy_of_images_normalised_by_their_mixtures():
    model, inputs = plain(), images()[0]
    plainly, adapter = UnMixingTNS(model, components=4), UnMixing(partial(Tent, lr=0.1), components=4)(model)
    before = adapter(inputs)
    assert torch.allclose(before, plainly(inputs), atol=1e-5)
    assert adapter.record["loss"] == pytest.approx(float(entropy(before).mean()), rel=1e-4)
    assert adapter.record["change"] > 0
    ours, theirs = adapter.innermost.norms, plainly.layers
    assert all(torch.allclose(a.means, b.means, atol=1e-4) for a, b in zip(ours, theirs, strict=True))
    assert not torch.allclose(adapter(inputs), plainly(inputs), atol=1e-3)


def test_teachers_have_mixtures_too_and_other_wrappers_go_around():
    adapter = PeriodicReset(UnMixing(partial(CoTTA, lr=0.1, augmentations=0), components=3), every=2)(plain())
    first = adapter(images()[0])
    assert all(isinstance(blend, Mixture) for blend in blends_of(adapter))
    adapter(images()[1])
    assert torch.equal(adapter(images()[0]), first)


def test_components_need_blended_statistics():
    with pytest.raises(NotApplicable, match="Tent has none in this model"):
        UnMixing(Tent)(nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3), nn.Linear(3, 2)))
    with pytest.raises(NotApplicable, match="of an adapter that learns; BatchNorm has none"):
        UnMixing(BatchNorm)(plain())
    with pytest.raises(HapteraError, match="unmixing is 0; a number of components"):
        UnMixing(Tent, components=0)(plain())


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"components": 0}, "components is 0"),
        ({"images": 1.5}, "images is 1.5"),
        ({"share": -1}, "share is -1"),
        ({"temperature": 0}, "temperature is 0"),
        ({"spread": 2}, "spread is 2; a share from 0 to 1"),
    ],
)
def test_wrong_settings_are_refused(settings, why):
    with pytest.raises(HapteraError, match=why):
        UnMixingTNS(layer(), **settings)


def test_models_without_batchnorm_are_refused():
    with pytest.raises(NotApplicable, match="no BatchNorm layer"):
        UnMixingTNS(nn.Sequential(nn.Linear(2, 2)))
