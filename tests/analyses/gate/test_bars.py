import pytest

from haptera.analyses.gate.bars import Bar, check_bars
from haptera.errors import HapteraError
from haptera.table import tidy

NAMES = {"model": "net", "stream": "corruptions", "adapter": "none", "seed": 0}
ROWS = [
    NAMES
    | {"shift": shift, "severity": severity, "measure": measure, "value": value if measure == "accuracy" else 1 - value}
    for shift, severity, value in [("fog", 1, 0.9), ("fog", 5, 0.7), ("contrast", 1, 0.8), ("contrast", 5, 0.4)]
    for measure in ("accuracy", "error")
]
OVER_TIME = NAMES | {"shift": "fog", "severity": 1, "measure": "accuracy", "value": 0.0, "step": 3}
TABLE = tidy([*ROWS, OVER_TIME])


@pytest.mark.parametrize(
    ("text", "values", "missed"),
    [
        ("accuracy=0.75", 4, [0.4, 0.7]),
        ("accuracy@contrast=0.75", 2, [0.4]),
        ("accuracy@contrast:1=0.75", 1, []),
        ("accuracy@fog:5=0.7", 1, []),
        ("error@contrast=0.3", 2, [0.6]),  # of what should be small, the bar is an upper one
    ],
)
def test_a_bar_is_about_the_values_it_names(text, values, missed):
    rows = check_bars(TABLE, [Bar.parse(text)])
    assert len(rows) == values
    assert rows["value"][rows["verdict"] == "missed"].tolist() == pytest.approx(missed)


def test_a_bar_is_written_as_it_is_read():
    for text in ("accuracy=0.75", "accuracy@contrast=0.75", "accuracy@contrast:1=0.75"):
        assert Bar.parse(text).text == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("acuracy=0.5", "did you mean 'accuracy'"),
        ("accuracy@contrst=0.5", "did you mean 'contrast'"),
        ("accuracy@contrast:9=0.5", "no such severity; the study has 1, 5"),
    ],
)
def test_a_bar_about_nothing_names_the_nearest(text, message):
    with pytest.raises(HapteraError, match=message):
        check_bars(TABLE, [Bar.parse(text)])
