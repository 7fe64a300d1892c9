"""The table: standard columns, sorted, and the same after a file."""

import pandas as pd
import pytest

from haptera import table as tables
from haptera.errors import HapteraError
from haptera.outputs import Outputs

ROWS = [
    {"model": "b", "measure": "accuracy", "value": 0.5, "n": 4, "seed": 0, "severity": 2, "world": "wet"},
    {"model": "a", "measure": "accuracy", "value": 1.0, "n": 4, "seed": 0, "step": 3},
]


def test_standard_columns_come_first_and_others_follow():
    table = tables.tidy(ROWS)
    assert list(table) == [*tables.COLUMNS, "world"]
    assert table["model"].tolist() == ["a", "b"]
    assert table["step"].isna().tolist() == [False, True]
    assert tables.tidy([]).empty


def test_order_of_rows_does_not_matter():
    pd.testing.assert_frame_equal(tables.tidy(ROWS), tables.tidy(ROWS[::-1])[list(tables.tidy(ROWS))])


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_file_gives_back_the_table(tmp_path, suffix):
    table, path = tables.tidy(ROWS), tmp_path / f"table.{suffix}"
    if suffix == "parquet":
        tables.write(table, path)
    else:
        table.to_csv(path, index=False)
    pd.testing.assert_frame_equal(tables.read(path)[tables.COLUMNS], table[tables.COLUMNS], check_exact=True)


def test_what_is_no_table_is_refused(tmp_path):
    with pytest.raises(HapteraError, match="no table at"):
        tables.read(tmp_path / "table.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"no")
    with pytest.raises(HapteraError, match="cannot read the table"):
        tables.read(tmp_path / "bad.parquet")
    (tmp_path / "other.csv").write_text("x,y\n1,2\n")
    with pytest.raises(HapteraError, match="no column 'model'"):
        tables.read(tmp_path / "other.csv")


def test_rows_of_a_cell_carry_its_names():
    import numpy as np

    outputs = Outputs({"labels": np.arange(2)}, np.arange(2), provenance={"model": "net", "stream": "s", "seed": 4})
    rows = tables.measure_outputs(outputs, [lambda _: [{"measure": "m", "value": 1.0}]])
    assert rows == [{"model": "net", "stream": "s", "adapter": "", "seed": 4, "measure": "m", "value": 1.0}]


def test_the_table_of_a_study_comes_back_as_it_was_without_being_sorted(tmp_path, monkeypatch):
    table, path = tables.tidy(ROWS), tmp_path / "table.parquet"
    tables.write(table, path, digest="of a study")
    monkeypatch.setattr(tables, "tidy", None)
    pd.testing.assert_frame_equal(tables.read(path), table, check_exact=True)


def test_a_table_read_as_codes_is_the_same_table(tmp_path):
    rows = [
        {"model": name, "shift": "fog", "severity": 3.0, "step": step, "measure": "accuracy", "value": 0.5, "n": 8}
        | ({"against": "none"} if step else {})
        for name in ("zebra", "ape")
        for step in range(3)
    ]
    table = tables.tidy(rows)
    tables.write(table, tmp_path / "table.parquet", "made of something")
    codes = tables.read(tmp_path / "table.parquet", as_codes=True)
    assert codes["model"].cat.categories.tolist() == ["ape", "zebra"]  # grouped and sorted as text would be
    assert isinstance(codes["against"].dtype, pd.CategoricalDtype)
    pd.testing.assert_frame_equal(tables.decoded(codes), table)
    pd.testing.assert_frame_equal(tables.decoded(tables.coded(table)), table)


def test_a_table_that_no_study_wrote_can_be_read_as_codes_too(tmp_path):
    frame = pd.DataFrame({"model": ["b", "a"], "measure": "accuracy", "value": [0.5, 0.25]})
    frame.to_parquet(tmp_path / "table.parquet")
    codes = tables.read(tmp_path / "table.parquet", as_codes=True)
    pd.testing.assert_frame_equal(tables.decoded(codes), tables.tidy(frame))
