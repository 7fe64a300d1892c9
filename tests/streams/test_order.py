"""Mixed and correlated streams: the laws, and what they show against slow references."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from haptera.data import ArrayData
from haptera.errors import HapteraError
from haptera.shifts import Contrast, GaussianNoise
from haptera.streams import Clean, Correlated, Mixed
from haptera.testing.streams import STREAM_LAWS, check_stream, example_data

DATA = example_data()
PAIR = (GaussianNoise, Contrast)
STREAMS = {
    "mixed": Mixed(DATA, PAIR, (1, 3.5, 5), batch_size=7),
    "mixed in order": Mixed(DATA, PAIR, (2,), shuffle=False, seed=4),
    "sorted": Correlated(DATA, labels="sorted", batch_size=6),
    "dirichlet": Correlated(DATA, GaussianNoise(4), delta=0.5, slots=4, batch_size=6, seed=1),
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("law", STREAM_LAWS, ids=lambda law: law.__name__)
def test_law_holds(law, stream):
    law(stream, DATA)


@pytest.mark.parametrize("kind", [Mixed, Correlated])
def test_public_check_passes(kind):
    assert not any(check_stream(kind).values())


def all_of(stream):
    """Inputs, targets, ids and context of a whole stream, sorted by id."""
    batches = list(stream)
    ids = torch.cat([batch.ids for batch in batches])
    order = ids.argsort()
    context = {
        key: np.concatenate([np.broadcast_to(batch.context[key], len(batch)) for batch in batches])[order]
        for key in batches[0].context
    }
    return torch.cat([batch.inputs for batch in batches])[order], ids[order], context


def test_mixed_is_each_image_shifted_alone():
    stream = STREAMS["mixed"]
    shifts = {shift.name: shift for shift in PAIR}
    for batch in stream:
        for row in range(len(batch)):
            shift = shifts[batch.context["shift"][row]](float(batch.context["severity"][row]))
            image = DATA.images(batch.ids[row : row + 1].numpy())
            assert torch.equal(shift(image, batch.ids[row : row + 1], stream.seed), batch.inputs[row : row + 1])


def test_mixed_does_not_depend_on_batches_or_order():
    reference = all_of(STREAMS["mixed"])
    for other in ({"batch_size": 1}, {"batch_size": 64}, {"shuffle": False}):
        images, ids, context = all_of(replace(STREAMS["mixed"], **other))
        assert torch.equal(images, reference[0])
        assert torch.equal(ids, reference[1])
        assert all(np.array_equal(context[key], reference[2][key]) for key in context)


def test_mixed_draws_every_shift_and_severity_about_equally_often():
    big = ArrayData(np.zeros((6000, 2, 2), np.uint8), np.zeros(6000, int))
    choices = Mixed(big, PAIR, (1, 3, 5)).draw(big.rows)
    assert np.bincount(choices, minlength=6).min() > 900
    assert not np.array_equal(choices, Mixed(big, PAIR, (1, 3, 5), seed=1).draw(big.rows))


def test_sorted_is_class_after_class_and_holds_every_sample():
    batches = list(STREAMS["sorted"])
    targets = torch.cat([batch.targets for batch in batches])
    assert torch.equal(targets, targets.sort().values)
    assert sorted(torch.cat([batch.ids for batch in batches]).tolist()) == list(range(23))
    unmixed = torch.cat([batch.ids for batch in Correlated(DATA, labels="sorted", shuffle=False)]).numpy()
    assert np.array_equal(unmixed, np.argsort(DATA.targets, kind="stable"))


def test_correlated_images_are_those_of_the_shift_whatever_the_order():
    images, ids, context = all_of(STREAMS["dirichlet"])
    assert torch.equal(images, GaussianNoise(4)(DATA.images(np.arange(23)), ids, seed=1))
    assert set(context["shift"]) == {"gaussian_noise"}
    assert torch.equal(all_of(STREAMS["sorted"])[0], all_of(Clean(DATA))[0])


def runs(stream):
    """How often a sample has the class of the one before it."""
    targets = torch.cat([batch.targets for batch in stream])
    return (targets[1:] == targets[:-1]).float().mean().item()


def test_a_small_delta_correlates_more_than_a_large_one():
    labels = np.random.default_rng(0).integers(0, 8, 2000)
    data = ArrayData(np.zeros((2000, 2, 2), np.uint8), labels)
    tiny, middle, large = (runs(Correlated(data, delta=delta, slots=40, batch_size=500)) for delta in (1e-3, 0.3, 1e4))
    assert tiny > middle + 0.1 > large + 0.2
    assert abs(large - runs(Clean(data, batch_size=500))) < 0.05
    assert runs(Correlated(data, labels="sorted")) > 0.99


def test_correlated_follows_the_seed():
    orders = [torch.cat([batch.ids for batch in Correlated(DATA, delta=0.5, seed=seed)]).tolist() for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Correlated(ArrayData(np.zeros((5, 4, 4), np.uint8), name="plain")), "plain has no labels"),
        (lambda: Correlated(DATA, labels="sortd"), "did you mean 'sorted'"),
        (lambda: Correlated(DATA, delta=0), "delta .* is 0; a number above 0"),
        (lambda: Correlated(DATA, delta=float("nan")), "delta .* is nan"),
        (lambda: Correlated(DATA, slots=0), "slots .* is 0; a whole number"),
        (lambda: Correlated(DATA, "contrast"), "by of the stream"),
        (lambda: Mixed(DATA, ()), "at least one shift"),
        (lambda: Mixed(DATA, PAIR, (6,)), "severity of gaussian_noise is 6"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(HapteraError, match=message):
        make()
