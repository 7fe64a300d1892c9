"""Signals: what they are for each image, and that adaptation cannot change them."""

import threading
from functools import partial

import numpy as np
import pytest
import torch
from tests.live.small_reference import DATA, small_network
from torch import nn

from haptera.adapters import BatchNorm, CoTTA, NoAdaptation, RDumb, Tent
from haptera.live.profile import Profile
from haptera.live.signals import Signals, output_signals, pixel_signals
from haptera.models import ResNet, ViT
from haptera.streams import Clean


@pytest.fixture(scope="module")
def network():
    return small_network()


@pytest.fixture(scope="module")
def profile(network):
    return Profile.measure(network, Clean(DATA, batch_size=50))


def images(n=6, channels=3, seed=0):
    return torch.rand(n, channels, 12, 10, generator=torch.Generator().manual_seed(seed))


def test_signals_of_pixels_are_what_they_say():
    batch = images()
    found = pixel_signals(batch)
    for k, image in enumerate(batch.double().numpy()):
        grey = image.mean(0)
        across = [grey[y, x + 1] - grey[y, x] for y in range(12) for x in range(9)]
        down = [grey[y + 1, x] - grey[y, x] for y in range(11) for x in range(10)]
        bends = [grey[y, x + 2] - 2 * grey[y, x + 1] + grey[y, x] for y in range(12) for x in range(8)]
        sags = [grey[y + 2, x] - 2 * grey[y + 1, x] + grey[y, x] for y in range(10) for x in range(10)]
        edges = np.mean(np.square(across)) + np.mean(np.square(down))
        assert found["brightness"][k] == pytest.approx(grey.mean(), rel=1e-4)
        assert found["contrast"][k] == pytest.approx(np.log(grey.var()), abs=1e-4)
        assert found["sharpness"][k] == pytest.approx(np.log(edges / grey.var()), abs=1e-4)
        assert found["roughness"][k] == pytest.approx(
            np.log((np.mean(np.square(bends)) + np.mean(np.square(sags))) / edges), abs=1e-4
        )
        assert found["colour"][k] == pytest.approx(np.log(image.var(0).mean()), abs=1e-4)


def test_constant_and_grey_images_have_finite_signals():
    grey = images(4, 1).expand(4, 3, 12, 10).clone()
    grey[0] = 0.5
    assert all(np.isfinite(values).all() for values in pixel_signals(grey).values())


def test_inputs_that_are_not_images_have_brightness_and_contrast():
    assert set(pixel_signals(torch.rand(5, 7))) == {"brightness", "contrast"}


def test_signals_of_outputs_are_what_they_say():
    logits = np.random.default_rng(0).normal(size=(5, 4))
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    found = output_signals(logits)
    ordered = np.sort(logits, 1)
    np.testing.assert_allclose(found["entropy"], -(chances * np.log(chances)).sum(1))
    np.testing.assert_allclose(found["confidence"], chances.max(1))
    np.testing.assert_allclose(found["margin"], ordered[:, -1] - ordered[:, -2])
    assert output_signals(np.array([[1e4, 0.0]]))["entropy"] == pytest.approx(0.0)


@pytest.mark.parametrize("method", [Tent, BatchNorm, partial(RDumb, every=2)])
def test_adaptation_cannot_change_them(network, profile, method):
    adapter, plain = method(network), NoAdaptation(network)
    with Signals(adapter, profile) as adapted, Signals(plain, profile) as unadapted:
        for batch in Clean(DATA, batch_size=40, seed=1):
            adapter(batch.inputs)
            plain(batch.inputs)
            found, expected = adapted.take(len(batch)), unadapted.take(len(batch))
            assert set(found) == {"brightness", "contrast", "sharpness", "roughness", "early_energy", "early_distance"}
            for name, values in expected.items():
                np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-6)


def test_the_first_layer_is_left_aside_where_an_adapter_changes_weights_before_it(network, profile):
    adapter = CoTTA(network)
    with Signals(adapter, profile) as signals:
        adapter(next(iter(Clean(DATA, batch_size=16))).inputs)
        assert set(signals.take()) == {"brightness", "contrast", "sharpness", "roughness"}


def test_signals_of_the_profile_are_those_of_the_same_images_later(network, profile):
    scores = {name: [] for name in profile.scores if name not in ("entropy", "confidence", "margin")}
    adapter = NoAdaptation(network)
    with Signals(adapter, profile) as signals:
        for batch in Clean(DATA, batch_size=30, seed=2):
            adapter(batch.inputs)
            for name, values in signals.take(len(batch)).items():
                scores[name].append(values)
    for name, values in scores.items():
        np.testing.assert_allclose(np.sort(np.concatenate(values)), np.sort(profile.scores[name]), rtol=1e-4, atol=1e-5)


def test_of_a_window_only_the_new_images_count(network, profile):
    adapter, plain = Tent(network, window=24), NoAdaptation(network)
    with Signals(adapter, profile, sample=3) as windowed, Signals(plain, profile, sample=3) as single:
        for batch in list(Clean(DATA, batch_size=8))[:5]:
            adapter(batch.inputs)
            plain(batch.inputs)
            found, expected = windowed.take(8), single.take(8)
            np.testing.assert_allclose(found["early_distance"], expected["early_distance"], rtol=1e-4)
            first = next(iter(single.take_moments().items()))
            np.testing.assert_allclose(windowed.take_moments()[first[0]], first[1], rtol=1e-3, atol=1e-5)


def test_moments_are_those_of_the_first_images_at_every_batchnorm_layer(network):
    inputs = next(iter(Clean(DATA, batch_size=16))).inputs
    seen = {}

    def look(name, given):
        seen[name] = given[0].detach().numpy()

    layers = {name: layer for name, layer in network.named_modules() if isinstance(layer, nn.BatchNorm2d)}
    hooks = [
        layer.register_forward_pre_hook(lambda _, given, name=name: look(name, given)) for name, layer in layers.items()
    ]
    with Signals(network, sample=5) as signals, torch.no_grad():
        network(inputs)
        found = signals.take_moments()
    for hook in hooks:
        hook.remove()
    assert set(found) == set(layers)
    for name, values in seen.items():
        np.testing.assert_allclose(found[name][:, 0], values[:5].mean((2, 3)), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found[name][:, 1], np.square(values[:5]).mean((2, 3)), rtol=1e-4, atol=1e-5)


def test_what_was_taken_is_forgotten_and_a_batch_of_another_size_gives_nothing(network):
    with Signals(network) as signals, torch.no_grad():
        network(next(iter(Clean(DATA, batch_size=4))).inputs)
        assert signals.take(5) == {}
        assert signals.take(4) == {}
        network(next(iter(Clean(DATA, batch_size=4))).inputs)
        assert len(signals.take(4)["contrast"]) == 4


@pytest.mark.long
def test_threads_have_their_own(network):
    adapter, wrong = NoAdaptation(network), []
    signals = Signals(adapter)

    def serve(seed):
        for batch in Clean(DATA, batch_size=5 + seed, seed=seed):
            adapter(batch.inputs)
            found = signals.take(len(batch))
            expected = batch.inputs.mean((1, 2, 3)).double().numpy()
            if not found or not np.allclose(found["brightness"], expected, rtol=1e-4):
                wrong.append(seed)

    threads = [threading.Thread(target=serve, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_closing_leaves_no_hook(network):
    Signals(network).close()
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in network.modules())


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (ViT(channels=1, width=16, depth=1, patch=8, size=32), (3, 1, 32, 32)),
        (ResNet(channels=1, width=4, norm="group"), (3, 1, 32, 32)),
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 5)), (3, 1, 8, 8)),
    ],
    ids=["ViT", "GroupNorm", "linear"],
)
def test_models_without_batchnorm_have_a_first_layer(model, shape):
    with Signals(model.eval()) as signals, torch.no_grad():
        model(torch.rand(shape))
        found = signals.take(3)
    assert len(found["early_energy"]) == 3
    assert "early_distance" not in found
    assert signals.take_moments() == {}
