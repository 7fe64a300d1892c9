"""Sections on stability: what a figure shows is what was measured."""

import pandas as pd
import pytest

from haptera.report.study.stability import against_error, points_and_laws, section, stability_and_error
from haptera.statistics.power_law import power_laws
from haptera.table import tidy


def rows(model, error, r, d, adapter="none"):
    names = {"model": model, "adapter": adapter, "seed": 0, "n": 100}
    clean = names | {"stream": "clean", "shift": "clean", "severity": 0.0, "measure": "error", "value": error}
    moved = names | {"stream": "stability", "shift": "diffeo", "severity": 1.0}
    values = {"relative_stability": r, "diffeo_stability": d, "noise_stability": d / r}
    return [clean, *(moved | {"measure": measure, "value": value} for measure, value in values.items())]


TABLE = tidy(
    [
        *rows("mlp", 0.2, 1.0, 0.1),
        *rows("lenet", 0.1, 0.25, 0.1),
        *rows("resnet", 0.05, 0.0625, 0.05),
        *rows("resnet", 0.01, 9.0, 0.05, adapter="batchnorm"),
        *rows("perfect", 0.0, 0.01, 0.01),
    ]
)


def test_networks_without_an_adapter_stand_beside_their_clean_error():
    points = stability_and_error(TABLE)
    assert list(points["model"]) == ["perfect", "resnet", "lenet", "mlp"]
    assert points.set_index("model").loc["resnet"].tolist() == pytest.approx([0.05, 0.0625, 0.05, 0.8])


def test_a_power_law_is_a_straight_line_through_logarithms():
    found = section(TABLE)
    frame = found.figures[0].frame
    own = frame[frame["index"] == "R"]
    points, line = own[own["mark"] == "point"], own[own["mark"] == "line"]
    assert list(points["model"]) == ["resnet", "lenet", "mlp"]  # an error of 0 has no logarithm
    assert (own[["value", "error"]] > 0).all(axis=None)
    assert found.figures[0].scale == "log"
    assert line["error"].to_numpy() == pytest.approx([0.05, 0.2])  # error = .2 √R
    laws = found.tables[1].frame.set_index("index")
    assert laws.loc["R", "exponent"] == pytest.approx(0.5)
    assert laws.loc["R", "left_out"] == 1


def test_a_study_without_the_stream_has_no_section():
    assert section(TABLE[TABLE["stream"] == "clean"]) is None
    assert section(TABLE[TABLE["model"] == "mlp"]) is None


def test_two_networks_have_points_but_no_law():
    points = pd.DataFrame({"model": ["a", "b"], "error": [0.1, 0.2], "R": [1.0, 2.0], "D": [1.0, 1.0], "G": [1.0, 2.0]})
    assert power_laws(points) == {}
    assert set(points_and_laws(points, {})["mark"]) == {"point"}
    assert len(against_error(points, {}).tables) == 1
