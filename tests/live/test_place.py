"""Where a shift is: moving sums against whole windows, and the name of a known corruption."""

import numpy as np
import pytest
import torch
from tests.live.small_reference import DATA, small_network

from haptera.adapters import NoAdaptation
from haptera.adapters.watch import squared_size
from haptera.analyses.diagnosis.known_shifts import change_of_statistics
from haptera.errors import HapteraError
from haptera.live.place import LayerStatistics, ShiftWindow
from haptera.live.profile import Profile
from haptera.live.signals import Signals
from haptera.shifts import GaussianBlur, SpeckleNoise
from haptera.statistics.moments import Moments, scale
from haptera.streams import Clean, Shifted


@pytest.fixture(scope="module")
def profile():
    measured = Profile.measure(small_network(), Clean(DATA, batch_size=60))
    return measured.try_corruptions(small_network(), DATA, "holdout", images=64, progress=False)


def moments_of(profile, stream, sample=16):
    adapter = NoAdaptation(small_network())
    with Signals(adapter, profile, sample=sample) as signals:
        for batch in stream:
            adapter(batch.inputs)
            yield signals.take_moments()


def test_sizes_are_those_of_watch_where_all_images_have_the_same_weight(profile):
    window, parts = ShiftWindow(profile, window=10**7), []
    for moments in moments_of(profile, Shifted(DATA, GaussianBlur(2), batch_size=60)):
        window.update(moments)
        parts.append(moments)
    found = window.place()
    mean, var = (profile.moments.per_layer(values) for values in profile.moments.pool())
    for name in profile.moments.names:
        images = torch.from_numpy(np.concatenate([part[name] for part in parts])).double()
        statistics = [torch.from_numpy(values) for values in (mean[name], var[name], scale(var[name]))]
        square = float(squared_size(images, *statistics))
        assert found.layers[name] == pytest.approx(np.sign(square) * abs(square) ** 0.5, rel=1e-3, abs=1e-4)
    assert found.size == pytest.approx(np.mean(list(found.layers.values())))
    assert found.where == max(found.layers, key=found.layers.get)


def test_without_a_profile_sizes_are_distances_from_the_statistics_of_batchnorm_layers(profile):
    network = small_network()
    window, parts = ShiftWindow(LayerStatistics.of_network(network), window=10**7), []
    for moments in moments_of(None, Shifted(DATA, GaussianBlur(2), batch_size=60)):
        window.update(moments)
        parts.append(moments)
    found = window.place()
    kept = {name: layer for name, layer in network.named_modules() if isinstance(layer, torch.nn.BatchNorm2d)}
    assert set(found.layers) == set(kept)
    for name, layer in kept.items():
        images = torch.from_numpy(np.concatenate([part[name] for part in parts])).double()
        mean, var = layer.running_mean.double(), layer.running_var.double()
        square = float(squared_size(images, mean, var, torch.from_numpy(scale(var.numpy()))))
        assert found.layers[name] == pytest.approx(np.sign(square) * abs(square) ** 0.5, rel=1e-3, abs=1e-4)
    assert found.nearest == ""


def test_layers_that_keep_no_statistics_are_left_out():
    layers = [torch.nn.BatchNorm2d(3), torch.nn.BatchNorm2d(4, track_running_stats=False), torch.nn.BatchNorm2d(2)]
    layers[2].running_mean[0] = float("nan")
    network = torch.nn.Sequential(*layers, torch.nn.ReLU())
    found = LayerStatistics.of_network(network)
    assert (found.names, found.channels) == (("0",), (3,))
    assert LayerStatistics.of_network(network, ["3"]) is None


def test_the_nearest_corruption_has_the_largest_cosine(profile):
    window, parts = ShiftWindow(profile, window=10**7), []
    for moments in moments_of(profile, Shifted(DATA, SpeckleNoise(4), batch_size=60), 60):
        window.update(moments)
        parts.append(moments)
    layers = {name: np.concatenate([part[name] for part in parts]) for name in profile.moments.names}
    change = change_of_statistics(profile.moments, Moments.of_images(layers, 200))
    known = profile.known.changes
    cosines = known @ change / np.linalg.norm(known, axis=1) / np.linalg.norm(change)
    found = window.place()
    assert found.nearest == profile.known.frame["shift"].iloc[cosines.argmax()] == "speckle_noise"
    assert found.cosine == pytest.approx(cosines.max(), abs=0.02)


def test_the_window_moves_and_a_clean_stream_has_hardly_a_size(profile):
    window = ShiftWindow(profile, window=100)
    for moments in moments_of(profile, Shifted(DATA, SpeckleNoise(5), batch_size=60), 60):
        window.update(moments)
    shifted = window.place().size
    for _ in range(2):
        for moments in moments_of(profile, Clean(DATA, batch_size=60), 60):
            window.update(moments)
    assert abs(window.place().size) < 0.1 < shifted


def test_a_state_goes_on_to_the_same_numbers(profile):
    first, second = ShiftWindow(profile), ShiftWindow(profile)
    batches = list(moments_of(profile, Clean(DATA, batch_size=60)))
    first.update(batches[0])
    second.restore(first.state())
    for window in (first, second):
        window.update(batches[1])
    assert first.place() == second.place()
    with pytest.raises(HapteraError, match="sums of the state"):
        first.restore({"sums": np.zeros(3), "weights": np.zeros(2)})


def test_what_cannot_be_told_is_not_told(profile):
    window = ShiftWindow(profile)
    assert np.isnan(window.place().size)
    one = {name: values[:1] for name, values in next(moments_of(profile, Clean(DATA, batch_size=60))).items()}
    window.update(one)
    assert (window.place().where, window.place().nearest) == ("", "")
    window.update({name: values * np.nan for name, values in one.items()})
    assert np.isfinite(window.state()["sums"]).all()
    none = ShiftWindow(Profile("", {}, np.zeros((100, 2))))
    none.update({})
    assert np.isnan(none.place().size)


def test_moments_of_other_layers_are_named(profile):
    with pytest.raises(HapteraError, match=r"moments of layer .* are nothing; \(images, 2, 4\) was expected"):
        ShiftWindow(profile).update({})
