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
    with pytest.raises(HapteraError, match="are not there: 3"):
        prepared().preparation.apply(fewer)


def test_facts_that_do_not_fit_are_refused():
    facts = prepared(zscore=True).preparation.facts()
    with pytest.raises(HapteraError, match="do not fit 4 channels"):
        Preparation.of_facts(facts | {"mean": [0.0]}, "the file")
    with pytest.raises(HapteraError, match="do not fit 2 channels"):
        Preparation.of_facts(facts | {"of": 2}, "the file")
