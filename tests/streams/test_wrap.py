"""Streams around streams: the laws, what stays as it was, and how they compose."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from haptera.batch import Stream
from haptera.data import ArrayData, Classes
from haptera.errors import HapteraError
from haptera.outputs import context_columns
from haptera.shifts import Contrast, GaussianNoise
from haptera.streams import (
    Clean,
    Continual,
    ContinualOrders,
    Corruptions,
    Directory,
    Gradual,
    Interleaved,
    Mixed,
    OneByOne,
    Repeated,
    Shifted,
    Truncated,
)
from haptera.testing.streams import STREAM_LAWS, example_corrupted, example_data

DATA = example_data()
PAIR = (GaussianNoise, Contrast)
CLEAN = Clean(DATA, batch_size=8)
CONTINUAL = Continual(DATA, PAIR, 3.0, batch_size=10)
CORRUPTIONS = Corruptions(DATA, PAIR, (2, 4), batch_size=10)
ORDERS = ContinualOrders(DATA, PAIR, 3.0, orders=2, batch_size=12)
STREAMS = {
    "truncated": Truncated(CONTINUAL, 28),
    "truncated to batches": Truncated(CONTINUAL, batches=4),
    "truncated beyond the end": Truncated(CLEAN, 1000),
    "truncated parts": Truncated(CORRUPTIONS, 15),
    "repeated": Repeated(Shifted(DATA, GaussianNoise(3), batch_size=7), 3),
    "repeated parts": Repeated(CORRUPTIONS, 2),
    "interleaved": Interleaved(CONTINUAL, CLEAN, 2),
    "interleaved parts": Interleaved(ORDERS, CLEAN, 1),
    "one by one": OneByOne(Shifted(DATA, GaussianNoise(3), batch_size=7)),
    "one by one, mixed": OneByOne(Mixed(DATA, PAIR, batch_size=7)),
    "one by one, parts": OneByOne(Directory(example_corrupted(), batch_size=9)),
    "all": Truncated(Repeated(OneByOne(Interleaved(CONTINUAL, CLEAN, 2)), 2), 70),
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("law", STREAM_LAWS, ids=lambda law: law.__name__)
def test_law_holds(law, stream):
    law(stream, DATA)


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_it_can_be_pickled_and_its_context_is_a_table(stream):
    again = pickle.loads(pickle.dumps(stream))
    assert torch.equal(again[1].inputs, stream[1].inputs)
    assert again.samples == stream.samples
    for part in stream.parts():
        columns = context_columns([(batch.context, len(batch)) for batch in part])
        assert all(len(column) == part.samples for column in columns.values())


@pytest.mark.parametrize(
    "stream",
    [CLEAN, CONTINUAL, CORRUPTIONS, ORDERS, Continual(DATA, PAIR, batch_size=12), Gradual(DATA, PAIR, (1, 2))],
)
def test_sizes_are_known_without_reading(stream, monkeypatch):
    expected = [len(batch) for batch in stream]
    monkeypatch.setattr(DATA, "images", None)
    assert stream.sizes().tolist() == expected


@dataclass(frozen=True)
class Odd(Stream):
    """A user's stream: batches of 1, 2, 3 samples, and no sizes()."""

    seed: int = 0
    name: str = "odd"

    @property
    def samples(self):
        return 6

    def __len__(self):
        return 3

    def __getitem__(self, index):
        whole = Clean(DATA, batch_size=1)
        from haptera.batch import Batch, check_index

        check_index(index, self)
        pieces = [whole[index * (index + 1) // 2 + i] for i in range(index + 1)]
        joined = [torch.cat([getattr(piece, key) for piece in pieces]) for key in ("inputs", "targets", "ids")]
        return Batch(*joined, {"shift": "odd"})


@pytest.mark.parametrize("law", STREAM_LAWS, ids=lambda law: law.__name__)
def test_law_holds_around_a_stream_of_ones_own(law):
    law(Truncated(OneByOne(Interleaved(Odd(), CLEAN, 2)), 9), DATA)


def ids(stream):
    return torch.cat([batch.ids for batch in stream]).tolist()


def images(stream):
    return torch.cat([batch.inputs for batch in stream])


def test_truncated_is_the_beginning():
    stream = STREAMS["truncated"]
    assert (stream.samples, [len(batch) for batch in stream]) == (28, [10, 10, 3, 5])
    assert torch.equal(images(stream), images(CONTINUAL)[:28])
    assert ids(stream) == ids(CONTINUAL)[:28]
    assert stream[3].context["sample"].tolist() == CONTINUAL[3].context["sample"][:5].tolist()
    assert len(STREAMS["truncated to batches"]) == 4
    assert torch.equal(images(STREAMS["truncated beyond the end"]), images(CLEAN))


def test_parts_are_wrapped_each_and_keep_their_labels():
    parts = STREAMS["truncated parts"].parts()
    assert [part.label for part in parts] == [part.label for part in CORRUPTIONS.parts()]
    assert [part.samples for part in parts] == [15] * 4
    assert {part.name for part in parts} == {"corruptions, first 15 samples"}
    assert [part.label for part in STREAMS["interleaved parts"].parts()] == ["order 1", "order 2"]
    assert len({part.fingerprint() for part in parts}) == 4


def test_repeated_has_other_noise_and_other_orders_each_time():
    inner = STREAMS["repeated"].stream
    stream = STREAMS["repeated"]
    assert ids(stream) == list(range(69))
    assert len(stream.parts()) == 1
    for time in range(3):
        expected = images(inner.with_seed(inner.seed + time))
        assert torch.equal(images(stream)[time * 23 : (time + 1) * 23], expected)
    samples = np.concatenate([batch.context["sample"] for batch in stream])
    assert sorted(samples[:23]) == sorted(samples[46:]) == list(range(23))
    assert not torch.equal(images(stream)[:23], images(stream)[23:46])


def test_a_repeated_stream_of_parts_is_one_part():
    stream = STREAMS["repeated parts"]
    assert stream.parts() == [stream]
    assert stream.label == stream.name == "corruptions, repeated 2 times"
    assert torch.equal(images(stream)[: CORRUPTIONS.samples], images(CORRUPTIONS))


def test_interleaved_shows_clean_data_in_turn():
    stream = STREAMS["interleaved"]
    marks = [batch.context["interleaved"] for batch in stream]
    assert marks == [False, False, True] * 3
    between = [batch for batch in stream if batch.context["interleaved"]]
    assert all(torch.equal(one.inputs, two.inputs) for one, two in zip(between, CLEAN, strict=True))
    assert between[0].context["sample"].tolist() == CLEAN[0].ids.tolist()
    assert {batch.context["shift"] for batch in between} == {"clean"}
    rest = [batch.inputs for batch in stream if not batch.context["interleaved"]]
    assert torch.equal(torch.cat(rest), images(CONTINUAL))
    assert {batch.context["order"] for batch in STREAMS["interleaved parts"].parts()[1]} == {2}


def test_interleaved_begins_the_clean_data_again():
    stream = Interleaved(Continual(DATA, PAIR, batch_size=4), CLEAN, 1)
    between = [batch.inputs for batch in stream if batch.context["interleaved"]]
    assert len(between) == 12
    assert torch.equal(between[3], CLEAN[0].inputs)


def test_one_by_one_changes_nothing_and_reads_a_batch_once(monkeypatch):
    for name in ("one by one", "one by one, mixed"):
        stream = STREAMS[name]
        assert {len(batch) for batch in stream} == {1}
        assert torch.equal(images(stream), images(stream.stream))
        assert ids(stream) == ids(stream.stream)
    mixed = STREAMS["one by one, mixed"]
    assert [batch.context["shift"][0] for batch in mixed] == [
        name for batch in mixed.stream for name in batch.context["shift"]
    ]
    reads = []
    read = Clean.__getitem__
    monkeypatch.setattr(Clean, "__getitem__", lambda self, index: reads.append(index) or read(self, index))
    list(OneByOne(CLEAN))
    assert reads == [0, 1, 2]


def test_changing_an_image_does_not_change_the_stream():
    stream = OneByOne(CLEAN)
    stream[0].inputs.zero_()
    assert stream[0].inputs.any()


def test_names_come_from_within_unless_given():
    assert STREAMS["truncated"].name == "continual, first 28 samples"
    assert STREAMS["truncated to batches"].name == "continual, first 4 batches"
    assert STREAMS["interleaved"].name == "continual, clean after every 2 batches"
    assert (
        STREAMS["all"].name == "continual, clean after every 2 batches, one by one, repeated 2 times, first 70 samples"
    )
    assert Repeated(CLEAN, 3, name="thrice").with_seed(4).name == "thrice"


def test_another_seed_reaches_the_streams_within():
    stream = STREAMS["all"].with_seed(5)
    assert stream.seed == stream.stream.seed == 5
    interleaved = stream.stream.stream.stream
    assert (interleaved.stream.seed, interleaved.clean.seed) == (5, 5)
    assert not torch.equal(images(stream), images(STREAMS["all"]))


def test_a_stream_that_miscounts_is_named():
    @dataclass(frozen=True)
    class Wrong(Odd):
        def sizes(self):
            return np.array([2, 2, 2])

    with pytest.raises(HapteraError, match=r"batch 0 .* has 1 samples and not 2; .* needs a method sizes"):
        Repeated(Wrong(), 2)[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Truncated(CLEAN), "one of them"),
        (lambda: Truncated(CLEAN, 3, 4), "one of them"),
        (lambda: Truncated(CLEAN, 0), "first .* is 0"),
        (lambda: Repeated(CLEAN, 1.5), "times .* is 1.5"),
        (lambda: Interleaved(CLEAN, CLEAN, 0), "every .* is 0"),
        (lambda: Interleaved(CLEAN, DATA), "a stream of clean data, found ArrayData"),
        (lambda: OneByOne(DATA), "OneByOne wraps a stream, found ArrayData"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(HapteraError, match=message):
        make()


def test_other_classes_cannot_be_interleaved():
    other = ArrayData(np.zeros((4, 8, 8, 3), np.uint8), [0, 1, 2, 0])
    other.classes = Classes(((0,), (1,), (2,)))
    with pytest.raises(HapteraError, match="have other classes"):
        Interleaved(CLEAN, Clean(other))
