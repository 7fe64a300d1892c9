"""Tables as other countries write them, and names of columns that stay with their channels."""

import numpy as np
import pandas as pd
import pytest

from haptera.recordings.reading import Source


def columns(path, **more):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["unit1", "unit2", "x"])
    table.to_csv(path, index=False, **more)
    return table


@pytest.mark.parametrize(("sep", "decimal"), [(";", ","), (";", "."), ("\t", "."), (",", ".")])
def test_a_csv_of_another_country_is_read(tmp_path, sep, decimal):
    table = columns(tmp_path / "rat.csv", sep=sep, decimal=decimal)
    recording = Source(tmp_path / "rat.csv", labels=["x"]).read()
    assert np.allclose(recording.signal(), table[["unit1", "unit2"]])
    assert np.allclose(recording.label("x").values, table["x"])


def test_fractions_are_found_where_the_first_row_is_whole(tmp_path):
    (tmp_path / "rat.csv").write_text("time;speed;x\n0;0;0\n" + "".join(f"{t},5;{t},25;-{t},5\n" for t in range(30)))
    recording = Source(tmp_path / "rat.csv", signal="speed", labels=["x"]).read()
    assert np.allclose(recording.signal()[:, 0], [0, *np.arange(30) + 0.25])
    assert np.allclose(recording.label("x").values, [0, *-(np.arange(30) + 0.5)])
    assert recording.times is not None


def test_columns_of_a_table_keep_their_names_and_one_that_is_no_unit_is_noted(tmp_path):
    columns(tmp_path / "rat.csv")
    recording = Source(tmp_path / "rat.csv").read()
    assert recording.channel_names() == ["unit1", "unit2", "x"]
    assert recording.channel_noun() == "channels"
    assert "the signal is 3 columns, 2 like unit1, x" in recording.notes[0]
    assert Source(tmp_path / "rat.csv", labels=["x"]).read().notes == ()
    assert Source(tmp_path / "rat.csv", "unit*").read().notes == ()


def test_names_of_columns_stay_with_them_where_one_is_left_out(tmp_path):
    table = columns(tmp_path / "rat.csv")
    table.assign(unit1=np.nan).to_csv(tmp_path / "rat.csv", index=False)
    assert Source(tmp_path / "rat.csv", labels=["x"]).read().channel_names() == ["unit2"]
