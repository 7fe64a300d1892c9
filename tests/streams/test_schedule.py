"""Orders of shifts, and severities that go up and down."""

import numpy as np
import pytest
import torch

from haptera.errors import HapteraError
from haptera.shifts import Contrast, GaussianBlur, GaussianNoise
from haptera.streams import Continual, ContinualOrders, Gradual, permutations
from haptera.testing.streams import STREAM_LAWS, check_stream, example_data

DATA = example_data()
THREE = (GaussianNoise, Contrast, GaussianBlur)
STREAMS = {
    "orders": ContinualOrders(DATA, THREE, 3.0, orders=3, batch_size=10),
    "gradual": Gradual(DATA, THREE[:2], (1, 3, 1), batch_size=10),
    "gradual, few samples": Gradual(DATA, THREE[:2], (0, 2.5, 5), samples_per_step=9, batch_size=4),
    "gradual, many samples": Gradual(DATA, THREE[:1], (5,), samples_per_step=50, batch_size=16, shuffle=False),
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("law", STREAM_LAWS, ids=lambda law: law.__name__)
def test_law_holds(law, stream):
    law(stream, DATA)


@pytest.mark.parametrize("kind", [ContinualOrders, Gradual])
def test_public_check_passes(kind):
    def small(data, **settings):
        return kind(data, THREE[:2], **settings)

    assert not any(check_stream(small).values())


def test_permutations_are_stable_differ_by_seed_and_among_each_other():
    items = "abcdefg"
    first = permutations(items, 10, seed=0)
    assert first == permutations(items, 10, seed=0)
    assert first[:4] == permutations(items, 4, seed=0)
    assert first != permutations(items, 10, seed=1)
    assert len(set(first)) == 10
    assert all(sorted(order) == list(items) for order in first)
    assert len(set(permutations("ab", 10))) == 2


def test_every_order_is_a_continual_stream_of_its_own():
    parts = STREAMS["orders"].parts()
    assert [part.label for part in parts] == ["order 1", "order 2", "order 3"]
    orders = permutations(THREE, 3, 0)
    for number, (part, order) in enumerate(zip(parts, orders, strict=True), 1):
        plain = list(Continual(DATA, order, 3.0, batch_size=10))
        assert all(torch.equal(one.inputs, two.inputs) for one, two in zip(part, plain, strict=True))
        assert {batch.context["order"] for batch in part} == {number}
        assert len(part.parts()) == 1
    assert len({part.fingerprint() for part in parts}) == 3


def test_gradual_goes_up_and_down_for_each_shift():
    batches = list(STREAMS["gradual"])
    path = [(batch.context["shift"], batch.context["severity"]) for batch in batches[::3]]
    assert path == [(name, s) for name in ("gaussian_noise", "contrast") for s in (1.0, 3.0, 1.0)]
    steps = [(step.shift, step.severity) for step in Gradual(DATA, THREE).steps()]
    assert steps == [(shift.name, float(s)) for shift in THREE for s in (1, 2, 3, 4, 5, 4, 3, 2, 1)]
    assert len(STREAMS["gradual"].parts()) == 1


def test_gradual_is_each_image_shifted_alone_by_its_position():
    stream = STREAMS["gradual, few samples"]
    shifts = {shift.name: shift for shift in THREE}
    for batch in stream:
        shift = shifts[batch.context["shift"]](batch.context["severity"])
        for row in range(len(batch)):
            image = DATA.images(batch.context["sample"][row : row + 1])
            assert torch.equal(shift(image, batch.ids[row : row + 1], 0), batch.inputs[row : row + 1])


def test_steps_of_a_few_samples_go_on_through_the_data():
    samples = np.concatenate([batch.context["sample"] for batch in STREAMS["gradual, few samples"]])
    assert len(samples) == 54
    assert sorted(samples[:23]) == sorted(samples[23:46]) == list(range(23))
    again = np.concatenate([batch.context["sample"] for batch in STREAMS["gradual, many samples"]])
    assert np.array_equal(again, np.arange(50) % 23)


@pytest.mark.parametrize("stream", [value for key, value in STREAMS.items() if key != "orders"])
def test_sizes_are_those_of_the_batches(stream):
    assert stream.sizes().tolist() == [len(batch) for batch in stream]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ContinualOrders(DATA, THREE, orders=0), "orders .* is 0"),
        (lambda: ContinualOrders(DATA, ()), "at least one shift"),
        (lambda: Gradual(DATA, THREE, ()), "at least one shift and one severity"),
        (lambda: Gradual(DATA, THREE, samples_per_step=1.5), "samples_per_step .* is 1.5"),
        (lambda: Gradual("digits", THREE), "takes one data set"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(HapteraError, match=message):
        make()
