"""Recurring streams: the laws, what each visit shows, and the error of each visit."""

import numpy as np
import pandas as pd
import pytest

from haptera.errors import HapteraError
from haptera.measures import visit_error
from haptera.shifts import Contrast, GaussianNoise
from haptera.streams import Continual, Recurring
from haptera.table import COLUMNS
from haptera.testing.streams import STREAM_LAWS, check_stream, example_data

DATA = example_data()
PAIR = (GaussianNoise, Contrast)
STREAMS = {
    "three visits": Recurring(DATA, PAIR, 3.0, visits=3, batch_size=10),
    "classes in runs": Recurring(DATA, PAIR, visits=2, labels="dirichlet", batch_size=9, seed=2),
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("law", STREAM_LAWS, ids=lambda law: law.__name__)
def test_law_holds(law, stream):
    law(stream, DATA)


@pytest.mark.long
def test_public_check_passes():
    assert not any(check_stream(Recurring).values())


def test_every_visit_shows_every_shift_once_and_every_image_of_it():
    batches = list(STREAMS["three visits"])
    seen = [(batch.context["visit"], batch.context["shift"]) for batch in batches]
    assert list(dict.fromkeys(seen)) == [(v, s) for v in (1, 2, 3) for s in ("gaussian_noise", "contrast")]
    for turn in dict.fromkeys(seen):
        samples = np.concatenate([b.context["sample"] for b, own in zip(batches, seen, strict=True) if own == turn])
        assert sorted(samples) == list(range(len(DATA)))


def test_the_first_visit_is_the_continual_stream():
    for one, two in zip(Continual(DATA, PAIR, 3.0, batch_size=10), STREAMS["three visits"], strict=False):
        assert one.inputs.equal(two.inputs)
        assert one.ids.equal(two.ids)


@pytest.mark.parametrize("visits", [0, 1.5, "many", 10**6])
def test_visits_that_cannot_be_are_refused(visits):
    with pytest.raises(HapteraError, match="visits of the stream 'recurring' is"):
        Recurring(DATA, PAIR, visits=visits)


def test_the_error_of_a_visit_is_the_mean_over_its_shifts():
    errors = {(1, "fog"): 0.2, (1, "snow"): 0.4, (2, "fog"): 0.5, (2, "snow"): 0.9, (1, "clean"): 0.0}
    rows = [
        {"measure": "error", "model": "net", "stream": "recurring", "adapter": "tent", "seed": 0, "n": 10}
        | {"shift": shift, "severity": 5.0 if shift != "clean" else 0.0, "visit": visit, "value": value}
        | {"low": value, "high": value}
        for (visit, shift), value in errors.items()
    ]
    table = pd.DataFrame(rows).reindex(columns=[*COLUMNS, "visit"])
    assert {row["visit"]: round(row["value"], 6) for row in visit_error(table)} == {1: 0.3, 2: 0.7}
    assert visit_error(table.drop(columns="visit")) == []
