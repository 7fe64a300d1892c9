"""CCC as a benchmark: its walks, the shifts within reach of each difficulty, and the mean of its table."""

import logging

import numpy as np
import pytest
import torch

from haptera.adapters import NoAdaptation
from haptera.errors import HapteraError
from haptera.run.study import Study
from haptera.streams import CCC, Calibration, CCCBenchmark
from haptera.testing.streams import STREAM_LAWS, example_data

DATA = example_data()
SPEEDS = {"speeds": (5, 10), "walks": 2, "length": 20, "batch_size": 8}


def calibration(floors):
    """Counts out of 100 that fall from 90 to the floor of each shift; of 10 classes, 90 % are right on clean data."""
    names = list(floors)
    falls = {name: np.linspace(90, floor, 6) for name, floor in floors.items()}
    counts = {
        (one, two): np.minimum.outer(falls[one], falls[two]).astype(np.int64)
        for one in names
        for two in names
        if one != two
    }
    return Calibration(counts, 100, 1.0, 90, 10, flip=False, crop=0.0)


CALIBRATION = calibration({"gaussian_noise": 5, "contrast": 5, "pixelate": 5, "fog": 40})


@pytest.mark.parametrize("law", STREAM_LAWS, ids=lambda law: law.__name__)
def test_law_holds(law):
    law(CCCBenchmark(DATA, CALIBRATION, **SPEEDS), DATA)


def test_there_is_a_walk_for_each_difficulty_speed_and_seed():
    parts = CCCBenchmark(DATA, CALIBRATION).parts()
    assert len(parts) == 27
    assert [part.label for part in parts[:4]] == [
        *(f"easy, speed 100, walk {walk}" for walk in (1, 2, 3)),
        "easy, speed 200, walk 1",
    ]
    assert {part.seed for part in parts} == {0}
    others = CCCBenchmark(DATA, CALIBRATION, seed=1).parts()
    assert len({part.walk_seed for part in (*parts, *others)}) == 6
    assert len({part.fingerprint() for part in parts}) == 27


def test_a_walk_is_that_of_ccc_and_says_its_speed_and_number():
    part = CCCBenchmark(DATA, CALIBRATION, ("easy",), **SPEEDS).parts()[3]
    plain = CCC(DATA, CALIBRATION, "easy", 10, 20, batch_size=8, seed=1_000_003)
    for one, two in zip(part, plain, strict=True):
        assert np.array_equal(one.inputs, two.inputs)
        assert {key: one.context[key] for key in ("speed", "walk", "difficulty")} == {
            "speed": 10,
            "walk": 2,
            "difficulty": CALIBRATION.target("easy"),
        }


def test_shifts_out_of_reach_of_a_difficulty_are_left_out_and_named(caplog):
    with caplog.at_level(logging.INFO, "haptera"):
        stream = CCCBenchmark(DATA, CALIBRATION, **SPEEDS)
    shifts = {part.difficulty: part.calibration.shifts for part in stream.parts()}
    assert shifts["easy"] == ["gaussian_noise", "contrast", "pixelate", "fog"]
    assert shifts["hard"] == shifts["medium"] == ["gaussian_noise", "contrast", "pixelate"]
    assert "leaves out of hard: fog" in caplog.text


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CCCBenchmark(DATA, CALIBRATION, speeds=()), "speeds of the stream 'ccc_benchmark' are ()"),
        (lambda: CCCBenchmark(DATA, CALIBRATION, ("eazy",)), "did you mean 'easy'"),
        (lambda: CCCBenchmark(DATA, CALIBRATION, walks=0), "walks .* is 0"),
        (
            lambda: CCCBenchmark(DATA, calibration({"fog": 5, "contrast": 60})),
            "as hard as 'easy', and only fog is",
        ),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(HapteraError, match=message.replace("()", r"\(\)")):
        make()


@pytest.mark.long
def test_the_table_has_the_mean_over_difficulties_of_the_mean_over_walks(tmp_path):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 3))
    stream = CCCBenchmark(DATA, CALIBRATION, ("easy", "medium"), (20, 40), 2, 120, batch_size=40)
    table = Study({"net": net}, [stream], {"none": NoAdaptation}, out=tmp_path).run(progress=False)
    walks = table[table["measure"] == "walk_accuracy"]
    assert len(walks) == 8
    rows = table[table["measure"] == "accuracy"]
    for walk in walks.itertuples():
        own = rows[rows["part"] == walk.part]
        assert set(own["difficulty"]) == {walk.difficulty}
        assert walk.value == pytest.approx((own["value"] * own["n"]).sum() / own["n"].sum())
    mean = table[table["measure"] == "benchmark_accuracy"].set_index("difficulty")["value"]
    each = walks.groupby("difficulty")["value"].mean()
    assert mean[mean.index.notna()].to_dict() == pytest.approx(each.to_dict())
    assert float(mean[mean.index.isna()].iloc[0]) == pytest.approx(each.mean())
