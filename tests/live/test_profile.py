"""Profiles: what they hold, that a file gives back the same, and what is refused."""

from dataclasses import fields

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from tests.live.small_reference import CLASSES, DATA, small_network
from torch import nn

from haptera.adapters.sharing import model_fingerprint
from haptera.analyses.diagnosis.known_shifts import KnownShifts
from haptera.batch import Batch
from haptera.errors import HapteraError
from haptera.live.profile import Profile
from haptera.models import ResNet, ViT
from haptera.observe import observe_moments
from haptera.streams import Clean


@pytest.fixture(scope="module")
def profile():
    measured = Profile.measure(small_network(), Clean(DATA, batch_size=50), name="bars")
    return measured.try_corruptions(small_network(), DATA, "holdout", images=48, progress=False)


def same(first, second):
    if isinstance(first, KnownShifts) or hasattr(first, "__dataclass_fields__"):
        return all(same(getattr(first, each.name), getattr(second, each.name)) for each in fields(first))
    if isinstance(first, dict):
        return set(first) == set(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(first, second)
    return first.equals(second) if hasattr(first, "equals") else first == second


def test_a_profile_holds_what_the_model_says_and_leaves_the_model_as_it_was():
    network = small_network()
    before = model_fingerprint(network)
    profile = Profile.measure(network, Clean(DATA, batch_size=64))
    with torch.no_grad():
        answers = network(DATA.images(np.arange(len(DATA)))).argmax(1).numpy()
    assert profile.accuracy == pytest.approx((answers == DATA.targets).mean())
    assert profile.images == len(DATA)
    assert profile.logits.shape == (len(DATA), CLASSES)
    np.testing.assert_allclose(
        np.sort(profile.scores["brightness"]), np.sort(DATA.images(np.arange(len(DATA))).mean((1, 2, 3))), rtol=1e-5
    )
    assert model_fingerprint(network) == before == profile.fingerprint
    assert not any(layer._forward_pre_hooks for layer in network.modules())


def test_moments_are_those_of_diagnose():
    observed = observe_moments(small_network(), Clean(DATA, batch_size=64)).moments
    profile = Profile.measure(small_network(), Clean(DATA, batch_size=64))
    assert profile.moments.names == observed.names
    for own, other in zip(profile.moments.pool(), observed.pool(), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-3, atol=1e-5)


def test_images_are_in_random_order_and_nothing_fitted_has_seen_the_second_half(monkeypatch):
    ordered = Clean(DATA, batch_size=60, shuffle=False)
    profile = Profile.measure(small_network(), ordered)
    assert not np.array_equal(profile.targets, DATA.targets)
    assert np.array_equal(np.sort(profile.targets), np.sort(DATA.targets))
    order = np.random.default_rng(0).permutation(len(DATA))  # the order that it drew
    second = set(order[len(DATA) // 2 :].tolist())

    class Changed(Clean):
        def __getitem__(self, index):
            batch = super().__getitem__(index)
            rows = torch.tensor([int(k) in second for k in batch.ids])
            inputs = torch.where(rows[:, None, None, None], 1 - batch.inputs, batch.inputs)
            return Batch(inputs, batch.targets, batch.ids, batch.context)

    other = Profile.measure(small_network(), Changed(DATA, batch_size=60, shuffle=False))
    np.testing.assert_array_equal(other.centre, profile.centre)
    np.testing.assert_array_equal(other.spread, profile.spread)
    assert not np.array_equal(other.scores["early_distance"], profile.scores["early_distance"])


def test_a_file_gives_back_the_same(profile, tmp_path):
    profile.save(tmp_path / "profile.safetensors")
    read = Profile.read(tmp_path / "profile.safetensors")
    assert same(profile, read)
    assert read.known.frame["shift"].nunique() == 4


@pytest.mark.parametrize("known", [True, False])
def test_a_profile_without_labels_or_corruptions_says_what_it_cannot_tell(known, tmp_path):
    batches = [
        Batch(batch.inputs, batch.targets if known else None, batch.ids, {}) for batch in Clean(DATA, batch_size=64)
    ]
    profile = Profile.measure(small_network(), batches)
    said = " ".join(profile.remarks)
    assert ("has no labels: accuracy is not predicted" in said) is not known
    assert ("no known corruptions were tried" in said) is known
    assert "240 images; small shifts need" in said
    profile.save(tmp_path / "p.safetensors")
    assert same(profile, Profile.read(tmp_path / "p.safetensors"))


@pytest.mark.parametrize(
    "model",
    [
        ViT(channels=1, classes=CLASSES, width=16, depth=1, patch=8, size=16),
        ResNet(channels=1, classes=CLASSES, width=4, norm="group"),
    ],
    ids=["ViT", "GroupNorm"],
)
def test_a_model_without_batchnorm_has_a_profile_and_known_corruptions(model, tmp_path):
    profile = Profile.measure(model, Clean(DATA, batch_size=64))
    assert profile.moments is None
    assert "no BatchNorm layers" in " ".join(profile.remarks)
    profile = profile.try_corruptions(model, DATA, "holdout", images=16, progress=False)
    profile.save(tmp_path / "p.safetensors")
    assert same(profile, Profile.read(tmp_path / "p.safetensors"))


def test_a_profile_of_another_model_is_refused(profile):
    profile.check(small_network())
    torch.manual_seed(1)
    other = ResNet(channels=1, classes=CLASSES, width=4)
    with pytest.raises(HapteraError, match="the profile of bars belongs to another model"):
        profile.check(other)
    with pytest.raises(HapteraError, match="belongs to another model"):
        profile.try_corruptions(other, DATA)


def test_a_damaged_profile_is_refused(profile, tmp_path):
    path = tmp_path / "profile.safetensors"
    profile.save(path)
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    with pytest.raises(HapteraError, match=r"profile.safetensors is damaged"):
        Profile.read(path)
    path.write_bytes(content[:-100])
    with pytest.raises(HapteraError, match=r"cannot read the profile .*profile.safetensors"):
        Profile.read(path)
    save_file({"logits": np.zeros((3, 2), np.float32)}, path)
    with pytest.raises(HapteraError, match="not one that haptera profile wrote"):
        Profile.read(path)
    with pytest.raises(HapteraError, match="missing"):
        Profile.read(tmp_path / "missing.safetensors")


def test_arrays_that_do_not_fit_one_another_are_refused(profile, tmp_path):
    from haptera.live import profile_file

    path = tmp_path / "profile.safetensors"
    wrong = Profile(profile.fingerprint, {"contrast": np.zeros(7)}, profile.logits)
    profile_file.write_profile(wrong, path)
    assert len(load_file(path)) == 2
    with pytest.raises(HapteraError, match=r"score.contrast has shape \(7,\); \(240,\) was expected"):
        Profile.read(path)


def test_wrong_references_are_named():
    network = small_network()
    with pytest.raises(HapteraError, match="the reference has 50 images; at least 100 were expected"):
        Profile.measure(network, list(Clean(DATA, batch_size=50))[:1])
    with pytest.raises(HapteraError, match="the reference holds a Tensor; a stream of batches"):
        Profile.measure(network, [torch.zeros(1, 1, 16, 16)])
    with pytest.raises(HapteraError, match="not finite"):
        Profile.measure(network, [Batch(torch.full((1, 1, 16, 16), torch.nan), None, torch.zeros(1), {})])
    with pytest.raises(HapteraError, match="unknown choice of corruptions 'every'"):
        Profile.measure(network, Clean(DATA, batch_size=60)).try_corruptions(network, DATA, "every")
    with pytest.raises(HapteraError, match=r"\(batch, classes\) was expected"):
        Profile.measure(nn.Flatten(0), Clean(DATA, batch_size=60))
