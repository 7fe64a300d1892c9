"""What was done to a signal is done to another one in the same way, and survives a file."""

import numpy as np
import pytest

from haptera.analyses.embedding.plan import Parts, Plan
from haptera.errors import HapteraError
from haptera.recordings.prepared import Preparation
from haptera.recordings.recording import Recording


def recording(channels=4, samples=200):
    signal = np.random.default_rng(0).poisson(2.0, (samples, channels)).astype(np.float32)
    signal[:, 1] = 0
    return Recording({"spikes": signal}, source="rat.npz")


def prepared(**plan):
    return Parts.of(recording(), Plan(baselines=(), **plan))


def test_the_training_part_is_prepared_as_it_was():
    parts = prepared(smoothing=2.0, zscore=True)
    again = parts.preparation.apply(recording()[: len(parts.train)])
    assert np.allclose(again.signal(), parts.train.signal())
    assert again.signal().shape[1] == 3


def test_facts_survive_a_file():
    made = prepared(zscore=True).preparation
    again = Preparation.of_facts(made.facts(), "the file")
    assert np.allclose(again.apply(recording()).signal(), made.apply(recording()).signal())
    assert again.facts() == made.facts()


def test_channels_are_found_by_name_where_others_are_missing():
    whole = recording()
    fewer = whole.with_channels("spikes", np.array([True, False, True, True]))
    made = prepared().preparation
    assert np.allclose(made.apply(fewer).signal(), made.apply(whole).signal())


def test_missing_channels_are_named():
    fewer = recording().with_channels("spikes", np.array([True, True, True, False]))
    with pytest.raises(HapteraError, match="are not there by name: 3"):
        prepared().preparation.apply(fewer)


def named(columns, order=None):
    signal = np.random.default_rng(1).poisson(2.0, (200, len(columns))).astype(np.float32)
    order = range(len(columns)) if order is None else order
    made = Recording({"spikes": signal[:, list(order)]}, source="rat.csv")
    return made.with_columns("spikes", [columns[place] for place in order])


def test_columns_in_another_order_are_brought_into_that_of_the_model():
    columns = ["a1", "a2", "a3", "a4"]
    made = Parts.of(named(columns), Plan(baselines=(), zscore=True)).preparation
    assert made.channels == tuple(columns)
    assert np.array_equal(made.apply(named(columns, [2, 0, 3, 1])).signal(), made.apply(named(columns)).signal())


def test_columns_that_are_called_otherwise_are_taken_by_place_with_a_warning(caplog):
    made = Parts.of(named(["a1", "a2", "a3"]), Plan(baselines=())).preparation
    found = made.apply(named(["b1", "b2", "b3"]))
    assert np.array_equal(found.signal(), named(["b1", "b2", "b3"]).signal())
    assert "3 of 3 channels are called otherwise" in caplog.text


def test_a_channel_left_out_in_the_middle_does_not_move_the_others():
    holes = np.random.default_rng(0).normal(size=(200, 4))
    holes[:150, 1] = np.nan
    whole = Recording.from_arrays({"spikes": np.random.default_rng(0).normal(size=(200, 3))}, source="rat.npz")
    made = Parts.of(whole, Plan(baselines=())).preparation
    with pytest.raises(HapteraError, match="not there by name: 1"):
        made.apply(Recording.from_arrays({"spikes": holes}, source="mouse.npz"))


def test_facts_that_do_not_fit_are_refused():
    facts = prepared(zscore=True).preparation.facts()
    with pytest.raises(HapteraError, match="do not fit 4 channels"):
        Preparation.of_facts(facts | {"mean": [0.0]}, "the file")
    with pytest.raises(HapteraError, match="do not fit 2 channels"):
        Preparation.of_facts(facts | {"of": 2}, "the file")
