"""Every stream keeps every law."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from haptera.errors import HapteraError
from haptera.shifts import Contrast, GaussianNoise
from haptera.streams import Clean, Continual, Corruptions, Directory, Shifted, Stability
from haptera.testing.streams import STREAM_LAWS, check_stream, example_corrupted, example_data

DATA = example_data()
STREAMS = {
    "clean": Clean(DATA, batch_size=5),
    "clean in order": Clean(DATA, batch_size=23, shuffle=False),
    "shifted": Shifted(DATA, GaussianNoise(2.5), batch_size=7, seed=3),
    "corruptions": Corruptions(DATA, (GaussianNoise, Contrast), (1, 4.5), batch_size=10),
    "continual": Continual(DATA, (GaussianNoise, Contrast), 3.0, batch_size=10),
    "one at a time": Continual(DATA, (GaussianNoise,), batch_size=1),
    "stability": Stability(DATA, 1.0, 3.0, 20, batch_size=7),
    "directory": Directory(example_corrupted(), batch_size=9),
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("law", STREAM_LAWS, ids=lambda law: law.__name__)
def test_law_holds(law, stream):
    law(stream, DATA)


@pytest.mark.parametrize(
    "kind", [Clean, pytest.param(Corruptions, marks=pytest.mark.long), Continual, Stability, Directory]
)
def test_public_check_passes(kind):
    assert not any(check_stream(kind).values())


@pytest.mark.parametrize("name", ["clean", "corruptions", "shifted"])
def test_images_do_not_depend_on_the_batch_size(name):
    stream = STREAMS[name]
    from dataclasses import replace

    def by_id(batch_size):
        batches = list(replace(stream, batch_size=batch_size).parts()[0])
        ids = torch.cat([batch.ids for batch in batches])
        return torch.cat([batch.inputs for batch in batches])[ids.argsort()]

    assert torch.equal(by_id(1), by_id(64))
    assert torch.equal(by_id(7), by_id(64))


def test_images_do_not_depend_on_the_number_of_workers():
    stream = STREAMS["corruptions"]
    alone = [batch.inputs for batch in stream]
    loader = DataLoader(stream, batch_size=None, num_workers=2, multiprocessing_context="fork")
    assert all(map(torch.equal, alone, [batch.inputs for batch in loader]))


def test_corruptions_have_one_part_per_shift_and_severity():
    parts = STREAMS["corruptions"].parts()
    assert [part.label for part in parts] == [
        "gaussian_noise 1",
        "gaussian_noise 4.5",
        "contrast 1",
        "contrast 4.5",
    ]
    assert [(part[0].context["shift"], part[0].context["severity"]) for part in parts][1] == ("gaussian_noise", 4.5)


def test_continual_tells_the_sample_and_changes_shift_without_mixing():
    batches = list(STREAMS["continual"])
    assert [batch.context["shift"] for batch in batches] == ["gaussian_noise"] * 3 + ["contrast"] * 3
    samples = np.concatenate([batch.context["sample"] for batch in batches])
    assert sorted(samples[:23]) == sorted(samples[23:]) == list(range(23))
    assert not np.array_equal(samples[:23], samples[23:])


def test_shuffling_mixes_and_another_seed_mixes_otherwise():
    orders = [torch.cat([batch.ids for batch in Clean(DATA, seed=seed)]).tolist() for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0])


def test_wrong_settings_are_refused():
    with pytest.raises(HapteraError, match="batch_size is 0"):
        Clean(DATA, batch_size=0)
    with pytest.raises(HapteraError, match="at least one shift"):
        Corruptions(DATA, ())
    with pytest.raises(HapteraError, match="takes one data set"):
        Clean("digits")
