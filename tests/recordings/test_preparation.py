"""Bins, smoothing and scaling agree with slow references, and nothing crosses a cut."""

from itertools import pairwise

import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.recordings.preparation import Scaling, bin_edges, bin_spikes, resample, smooth


def test_counts_equal_those_of_a_histogram():
    generator = np.random.default_rng(0)
    spikes = [np.sort(generator.uniform(-1, 11, count)) for count in (0, 1, 500)]
    edges = bin_edges(0.0, 10.0, 0.1)
    counts = bin_spikes(spikes, edges)
    assert counts.shape == (100, 3)
    for unit, times in enumerate(spikes):
        expected = [((times >= low) & (times < high)).sum() for low, high in pairwise(edges)]
        assert counts[:, unit].tolist() == expected


def test_a_spike_at_an_edge_belongs_to_the_bin_that_begins_there():
    edges = bin_edges(0.0, 1.0, 0.1)
    counts = bin_spikes([np.arange(10) * 0.1], edges)  # 3 * .1 is a little more than .3
    assert counts[:, 0].tolist() == [1] * 10


def test_numbers_are_averaged_in_bins_and_interpolated_over_empty_ones():
    times, values = np.array([0.1, 0.2, 0.6, 1.1, 1.9]), np.array([1.0, 3.0, 5.0, 7.0, 11.0])
    found = resample(times, values, np.array([0.0, 0.5, 1.0, 1.5, 2.0]))
    assert found.tolist() == [2.0, 5.0, 7.0, 11.0]
    gap = resample(np.array([0.1, 0.3, 0.7, 0.9]), np.array([1.0, 3.0, 7.0, 9.0]), bin_edges(0, 1, 0.2))
    assert np.allclose(gap, [1, 3, 5, 7, 9])  # the bin in the middle has no sample


def test_angles_are_averaged_on_the_circle():
    degrees = np.array([350.0, 10.0, 170.0, 190.0])
    found = resample(np.array([0.1, 0.2, 1.1, 1.2]), np.deg2rad(degrees), np.array([0.0, 1.0, 2.0]), "angle")
    assert np.allclose(np.rad2deg(found), [0, 180]) or np.allclose(np.rad2deg(found), [360, 180])


def test_numbers_that_wrap_are_averaged_around_their_turn():
    times, values = np.array([0.1, 0.2, 1.1, 1.2, 2.9, 4.1]), np.array([350.0, 20.0, 100.0, 111.0, 340.0, 0.0])
    found = resample(times, values, np.arange(6.0), turn=360.0)
    assert np.allclose(found, [5, 105.5, 340, 350, 0])
    assert resample(times, values, np.arange(6.0)).tolist()[:2] == [185, 105.5]
    assert found[1] == 105.5  # what is not at the jump keeps every digit


def test_classes_take_the_most_frequent_and_keep_the_last_over_a_gap():
    times, values = np.array([0.1, 0.2, 0.3, 3.1]), np.array([0, 2, 2, 1])
    assert resample(times, values, np.arange(5.0), "discrete").tolist() == [2, 2, 2, 1]


def test_wide_gaps_and_time_outside_are_not_invented():
    times = np.concatenate([np.arange(0, 2, 0.1), np.arange(5, 7, 0.1)])
    found = resample(times, np.ones(len(times)), bin_edges(-1.0, 8.0, 0.5))
    middle = np.arange(-0.75, 8, 0.5)
    known = ((middle > 0) & (middle < 2)) | ((middle > 5) & (middle < 7))
    assert np.isfinite(found).tolist() == known.tolist()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("shape", "width"), [("gaussian", 1.5), ("box", 5)])
def test_smoothing_is_a_weighted_mean_inside_the_block(shape, width, causal):
    signal = np.random.default_rng(0).normal(size=(30, 2))
    blocks = np.repeat([0, 1], [18, 12])
    found = smooth(signal, width, blocks, shape=shape, causal=causal)
    for at in range(30):
        lag = at - np.arange(30)
        weight = np.exp(-0.5 * (lag / width) ** 2) if shape == "gaussian" else np.ones(30)
        reach = np.ceil(4 * width) if shape == "gaussian" else (4 if causal else 2)
        weight = weight * (np.abs(lag) <= reach) * (blocks == blocks[at]) * ((lag >= 0) | (not causal))
        assert np.allclose(found[at], weight @ signal / weight.sum(), atol=1e-6)


def test_smoothing_a_part_does_not_depend_on_what_was_cut_off():
    signal = np.random.default_rng(1).normal(size=(40, 3))
    blocks = np.repeat([0, 1], 20)
    changed = signal.copy()
    changed[20:] += 100
    assert np.array_equal(smooth(signal, 2.0, blocks)[:20], smooth(changed, 2.0, blocks)[:20])


def test_causal_smoothing_does_not_look_ahead():
    signal = np.random.default_rng(2).normal(size=(40, 3))
    changed = signal.copy()
    changed[25:] += 100
    assert np.array_equal(smooth(signal, 3.0, causal=True)[:25], smooth(changed, 3.0, causal=True)[:25])


def test_scaling_knows_the_training_part_only():
    generator = np.random.default_rng(3)
    train, test = generator.normal(5, 2, (500, 4)), generator.normal(50, 9, (100, 4))
    train[:, 3] = test[:, 3] = 1.0  # a silent unit
    scaled = Scaling.of(train)
    assert np.allclose(scaled(train)[:, :3].mean(0), 0, atol=1e-6)
    assert np.allclose(scaled(train)[:, :3].std(0), 1, atol=1e-5)
    assert np.allclose(scaled(test)[:, :3], (test[:, :3] - train[:, :3].mean(0)) / train[:, :3].std(0), atol=1e-4)
    assert (scaled(test)[:, 3] == 0).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bin_edges(0, 1, 0), "above 0"),
        (lambda: bin_edges(0, 1, 2.0), "no bin of 2 s fits"),
        (lambda: resample(np.arange(3), np.arange(4), np.arange(3.0)), "4 values and 3 times"),
        (lambda: resample(np.arange(3), np.full(3, np.nan), np.arange(3.0)), "not one sample"),
        (lambda: smooth(np.zeros((3, 1)), 0), "above 0"),
        (lambda: smooth(np.zeros((3, 1)), 1, shape="boxcar"), "'gaussian' or 'box'"),
    ],
)
def test_bad_settings_are_errors(call, message):
    with pytest.raises(HapteraError, match=message):
        call()
