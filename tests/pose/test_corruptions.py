"""`--shift all`, and the tables of corruptions x severities."""

import numpy as np
import pandas as pd
import pytest

from haptera.errors import HapteraError
from haptera.pose.corruptions import by_severity, corruption_findings, corruption_lines, has_severities, read_shifts


@pytest.fixture
def rows():
    """Errors that say by themselves of which cell they are, and a row of a part that does not belong there."""
    made = []
    for shift, base in (("contrast", 1.0), ("gaussian_noise", 2.0)):
        for severity in (1.0, 5.0):
            for adapter, share in (("none", 1.0), ("batchnorm", 0.1)):
                value = (base + severity) * share
                made.append({"shift": shift, "severity": severity, "adapter": adapter, "part": "", "value": value})
    made.append(made[0] | {"part": "nose", "value": 99.0})
    made.append({"shift": "clean", "severity": 0.0, "adapter": "none", "part": "", "value": 0.5})
    common = {"model": "net", "stream": "out", "individual": "", "measure": "normalised_error"}
    return pd.DataFrame(made).assign(**common)


def test_all_are_fifteen_corruptions_at_five_severities_each_once():
    found = read_shifts(["all", "contrast:5"])
    assert len(found) == len({(shift.name, shift.severity) for shift in found}) == 75
    assert {shift.severity for shift in read_shifts(["all:2"])} == {2}
    with pytest.raises(HapteraError, match="contrast"):
        read_shifts(["contrats:3"])


def test_adapters_are_columns_and_means_are_over_severities(rows):
    table = by_severity(rows).set_index(["shift", "severity"])
    assert table.loc[("contrast", "5"), "none"] == 6
    assert table.loc[("contrast", "mean"), "none"] == pytest.approx(np.mean([2, 6]))
    assert table.loc[("gaussian_noise", "mean"), "batchnorm"] == pytest.approx(np.mean([0.3, 0.7]))
    assert table.loc[("mean", "mean"), "none"] == pytest.approx(np.mean([2, 6, 3, 7]))
    assert [shift for shift, _ in table.index] == ["gaussian_noise"] * 3 + ["contrast"] * 3 + ["mean"]


def test_sentence_and_lines_say_the_means(rows):
    (finding,) = corruption_findings(rows)
    assert "2 corruptions at 2 severities: out: none 4.500, batchnorm 0.450" in finding.sentence
    text = "\n".join(corruption_lines(rows))
    assert "4.000" in text
    assert "0.500" in text


def test_one_severity_has_no_means(rows):
    one = rows[rows["severity"] < 5]
    assert not has_severities(one)
    assert corruption_findings(one) == []
