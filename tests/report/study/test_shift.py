"""The section about the size of shifts: errors are predicted by lines through hold-out corruptions."""

import pandas as pd
import pytest

from haptera.report.study.cells import named
from haptera.report.study.shift import cells_with_errors, predictions, section
from haptera.table import COLUMNS


def table(rows):
    frame = pd.DataFrame(rows).assign(model="net", adapter="watch", stream="corruptions", seed=0, n=10)
    return frame.reindex(columns=COLUMNS)


def rows(shift, severity, size, error):
    place = {"shift": shift, "severity": severity}
    layers = [{"measure": f"shift_size:{name}", "value": size, "step": 3} for name in ("stem", "last")]
    values = [{"measure": "shift_size", "value": size, "step": 3}, {"measure": "error", "value": error}]
    return [place | row for row in [*values, *layers]]


@pytest.fixture
def watched():
    found = rows("clean", None, 0.0, 0.1)
    for severity, size in ((1, 0.2), (3, 0.6)):
        found += rows("speckle_noise", severity, size, 0.1 + 0.5 * size)
    return table(found + rows("gaussian_noise", 3, 0.4, 0.35) + rows("fog", 3, 0.4, 0.5))


def test_the_error_of_the_family_is_predicted_beside_the_measured_one(watched):
    predicted = predictions(cells_with_errors(watched, named(watched, "shift_size")))
    assert predicted["shift"].tolist() == ["gaussian_noise"]  # nobody watched the hold-out corruption of fog's family
    assert predicted["predicted"].tolist() == [pytest.approx(0.3)]
    assert predicted["measured"].tolist() == [pytest.approx(0.35)]


def test_the_profile_has_clean_data_as_severity_0_of_every_shift(watched):
    made = section(watched)
    profile = made.figures[0].frame
    for shift in ("speckle_noise", "gaussian_noise", "fog"):
        assert "0" in set(profile[profile["shift"] == shift]["severity"])
    assert profile["layer"].unique().tolist() == ["stem", "last"]


def test_without_labels_the_profile_stays():
    found = table([row for row in rows("fog", 3, 0.4, 0.5) if row["measure"] != "error"])
    assert [figure.title for figure in section(found).figures] == ["Size over depth"]


def test_without_records_there_is_no_section():
    assert section(table([{"measure": "accuracy", "value": 0.5, "shift": "fog", "severity": 1.0}])) is None
