"""Streams over data that is in parts already: the laws, and that images are those of the parts."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch

from haptera.data import ArrayData, CorruptedImages, CorruptedPart
from haptera.errors import HapteraError
from haptera.run.protocol import describe_stream
from haptera.shifts import Contrast, Fog, GaussianNoise
from haptera.streams import CCC, Continual, ContinualOrders, Correlated, Corruptions, Directory, Gradual, Mixed
from haptera.streams.published import PUBLISHED, USUAL
from haptera.streams.shift_stream import all_shifts
from haptera.testing.streams import STREAM_LAWS, check_stream, example_data, example_domains

DATA = example_data()
DOMAINS, DOMAIN_DATA = example_domains(), example_data(20)


def corrupted(shifts=("snow", "fog", "bit_error"), severities=(1.0, 3.0, 5.0)):
    """Parts whose images say, in their one colour, which part and which sample they are."""
    parts = []
    for shift in shifts:
        for severity in severities:
            images = np.zeros((len(DATA), 4, 4, 3), np.uint8)
            images[:] = np.arange(len(DATA))[:, None, None, None]
            images[..., 1], images[..., 2] = int(severity), 10 * sorted(shifts).index(shift)
            parts.append(CorruptedPart(shift, severity, ArrayData(images, DATA.targets, name="parts")))
    return CorruptedImages("given", parts)


GIVEN = corrupted()
STREAMS = {
    "corruptions": Corruptions(GIVEN, batch_size=9),
    "directory": Directory(GIVEN, ("snow",), (5, 1), labels="sorted", batch_size=9),
    "continual": Continual(GIVEN, batch_size=10),
    "continual, classes in runs": Continual(GIVEN, ("fog", "snow"), 3, labels="dirichlet", batch_size=6),
    "orders": ContinualOrders(GIVEN, orders=4, batch_size=10),
    "gradual": Gradual(GIVEN, batch_size=10),
    "gradual, classes in runs": Gradual(GIVEN, ("fog",), samples_per_step=9, labels="sorted", batch_size=4),
    "mixed": Mixed(GIVEN, batch_size=7),
    "mixed, classes in runs": Mixed(GIVEN, severities=(3, 5), labels="dirichlet", delta=0.5, batch_size=7),
    "correlated": Correlated(GIVEN, batch_size=6),
    "correlated, one part": Correlated(GIVEN, "fog:3", batch_size=6),
    "correlated, named by a shift": Correlated(GIVEN, Fog(3), labels="sorted", batch_size=6),
}
OF_DOMAINS = {
    "corruptions": Corruptions(DOMAINS, batch_size=6),
    "continual": Continual(DOMAINS, batch_size=6),
    "continual, and back": Continual(DOMAINS, ("sketch", "photo", "sketch"), labels="sorted", batch_size=6),
    "orders": ContinualOrders(DOMAINS, batch_size=6),
    "mixed": Mixed(DOMAINS, batch_size=6),
    "correlated": Correlated(DOMAINS, labels="sorted", batch_size=6),
    "correlated, one domain": Correlated(DOMAINS, "sketch", batch_size=6),
}
CASES = [pytest.param(stream, DATA, id=name) for name, stream in STREAMS.items()]
CASES += [pytest.param(stream, DOMAIN_DATA, id=f"domains, {name}") for name, stream in OF_DOMAINS.items()]


@pytest.mark.parametrize(("stream", "data"), CASES)
def test_laws_hold(stream, data):
    for law in STREAM_LAWS:
        law(stream, data)
    assert stream.sizes().tolist() == [len(batch) for batch in stream]


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_images_are_those_of_the_part_that_the_context_names(stream):
    parts = {(part.shift, part.severity): part.data for part in GIVEN.parts}
    for batch in stream:
        samples = np.asarray(batch.context.get("sample", batch.ids.numpy()))
        for row, sample in enumerate(samples):
            shift, severity = (np.broadcast_to(batch.context[key], len(batch))[row] for key in ("shift", "severity"))
            assert torch.equal(batch.inputs[row], parts[str(shift), float(severity)].images(np.array([sample]))[0])


def conditions(stream):
    """The shifts and severities, in the order in which they come."""
    found = [(str(batch.context["shift"]), float(batch.context["severity"])) for batch in stream]
    return [one for place, one in enumerate(found) if not place or found[place - 1] != one]


def test_shifts_come_in_the_usual_order_and_others_after_them():
    assert conditions(STREAMS["continual"]) == [("snow", 5), ("fog", 5), ("bit_error", 5)]
    assert conditions(STREAMS["gradual"])[:6] == [*(("snow", s) for s in (1, 3, 5, 3, 1)), ("fog", 1)]
    assert [shift.name for shift in all_shifts()] == list(USUAL)
    assert USUAL[:3] + USUAL[-2:] == ("gaussian_noise", "shot_noise", "impulse_noise", "pixelate", "jpeg_compression")
    assert [part.label for part in STREAMS["directory"].parts()] == ["snow 5", "snow 1"]


def test_published_orders_are_chosen_by_number():
    every = corrupted(USUAL, (5.0,))
    for number, first, last in ((1, "brightness", "contrast"), (10, "contrast", "brightness")):
        names = [shift for shift, _ in conditions(Continual(every, order=number))]
        assert (names[0], names[-1]) == (first, last)
        assert names == [step.shift for step in Continual(DATA, order=number).steps()] == list(PUBLISHED[number - 1])
    assert [shift for shift, _ in conditions(Continual(every, ("fog", "snow"), order=1))] == ["snow", "fog"]
    assert [shift for shift, _ in conditions(Continual(GIVEN, order=("bit_error", "fog")))] == ["bit_error", "fog"]


def test_continual_orders_of_the_fifteen_are_the_published_ones():
    parts = ContinualOrders(corrupted(USUAL, (5.0,)), orders=12, batch_size=64).parts()
    names = [tuple(shift for shift, _ in conditions(part)) for part in parts]
    assert names[:10] == list(PUBLISHED)
    assert len(set(names)) == 12
    made = ContinualOrders(DATA, orders=2, table="cifar").parts()
    assert [tuple(step.shift for step in part.steps()) for part in made] == list(PUBLISHED[:2])
    assert {step.make.table for part in made for step in part.steps()} == {"cifar"}


def test_published_orders_are_ten_permutations():
    assert len(set(PUBLISHED)) == 10
    assert all(sorted(order) == sorted(USUAL) for order in PUBLISHED)


def test_hold_out_shifts_of_a_folder_are_left_out_and_named(caplog):
    with caplog.at_level(logging.INFO, "haptera"):
        stream = Directory(corrupted(("fog", "spatter", "saturate"), (1.0,)))
    assert [part.label for part in stream.parts()] == ["fog 1"]
    assert "leaves out hold-out shifts: spatter, saturate" in caplog.text
    assert [part.label for part in Directory(corrupted(("spatter",), (1.0,))).parts()] == ["spatter 1"]


def test_domains_have_turns_of_their_own_size_and_no_severity():
    batches = list(OF_DOMAINS["continual"])
    assert [(batch.context["shift"], len(batch)) for batch in batches] == [
        *(("photo", 6), ("photo", 6), ("photo", 1)),
        *(("sketch", 6), ("sketch", 1)),
    ]
    assert all(np.isnan(batch.context["severity"]) for batch in batches)
    back = np.concatenate([batch.context["sample"] for batch in OF_DOMAINS["continual, and back"]])
    assert sorted(back[:7]) == sorted(back[20:]) == list(range(13, 20))
    assert sorted(torch.cat([batch.ids for batch in OF_DOMAINS["mixed"]]).tolist()) == list(range(20))


def test_classes_come_in_runs_within_each_step_and_in_another_order_each_time():
    stream = replace(STREAMS["continual, classes in runs"], labels="sorted")
    targets = torch.cat([batch.targets for batch in stream])
    for step in (targets[:23], targets[23:]):
        assert torch.equal(step, step.sort().values)
    runs = STREAMS["continual, classes in runs"]
    samples = np.concatenate([batch.context["sample"] for batch in runs])
    assert not np.array_equal(samples[:23], samples[23:])
    alone = torch.cat([batch.ids for batch in Correlated(DATA)]).numpy()
    assert np.array_equal(alone, samples[:23])


def test_the_constants_of_a_table_are_used():
    made = Corruptions(DATA, (GaussianNoise, Contrast(1).at), (2, 5), table="cifar")
    assert [part.by for part in made.parts()][::2] == [GaussianNoise(2, table="cifar"), Contrast(2, table="cifar")]
    assert {choice.make.table for choice in Mixed(DATA, (Fog,), table="cifar").list_conditions()} == {"cifar"}
    assert Continual(DATA, (Fog,), table="cifar").fingerprint() != Continual(DATA, (Fog,)).fingerprint()


@pytest.mark.parametrize("kind", [Continual, Mixed, Correlated, Directory])
def test_public_check_passes_on_parts_and_domains(kind):
    def on_parts(data, **settings):
        if isinstance(data, ArrayData):
            raise HapteraError("parts only, which are quick")
        return kind(data, **settings)

    assert not any(check_stream(on_parts).values())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Continual(GIVEN, ("fgo",)), "unknown shift of given 'fgo'; did you mean 'fog'"),
        (lambda: Continual(GIVEN, severity=4), "severity 4 of snow is not in the data; there are 1, 3, 5"),
        (lambda: Mixed(GIVEN, severities=(2,)), "severity 2 of snow is not in the data"),
        (lambda: Continual(GIVEN, table="cifar"), "given is corrupted already"),
        (lambda: Continual(DATA, (Fog,), table="cifr"), "unknown table of fog 'cifr'; did you mean 'cifar'"),
        (lambda: Continual(DOMAINS, severity=5), "photo has no severities"),
        (lambda: Gradual(DOMAINS), "goes through severities, and photo has none"),
        (lambda: Continual(GIVEN, order=11), "order of the stream 'continual' is 11; 1 to 10"),
        (lambda: Continual(GIVEN, order=3), "no place for bit_error"),
        (lambda: Continual(GIVEN, ("fog",), order=("snow",)), "names snow and shifts are fog"),
        (lambda: Continual(GIVEN, labels="sort"), "did you mean 'sorted'"),
        (lambda: Correlated(GIVEN, "fogg:5"), "unknown shift of given 'fogg'; did you mean 'fog'"),
        (lambda: Correlated(GIVEN, "fog:x"), "severity of fog is 'x'; a number was expected"),
        (lambda: Directory(DATA), "example is none of them"),
        (
            lambda: Continual(ArrayData(np.zeros((5, 4, 4), np.uint8), name="bare"), labels="sorted"),
            "bare has no labels",
        ),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(HapteraError, match=message):
        make()


def test_the_public_check_names_what_a_stream_needs_beside_data():
    with pytest.raises(HapteraError, match=r"CCC needs calibration beside data; check functools.partial\(CCC, cal"):
        check_stream(CCC)


def test_the_protocol_names_shifts_and_the_order_of_classes():
    given = Continual(GIVEN, order=("fog", "snow"), labels="dirichlet")
    told = describe_stream(given)
    assert told["order"] == "shuffled with seed 0, classes in runs: dirichlet, delta 0.1"
    assert (told["shifts"], told["images"], told["images of the data"]) == ("fog, snow", 46, 9 * 23)
    assert describe_stream(Mixed(DATA, (Fog,), table="cifar"))["shifts"] == "fog (constants of cifar)"
