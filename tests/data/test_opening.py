"""What open_data makes of a name."""

from pathlib import Path

import numpy as np
import pytest

from haptera.data import FolderData, open_data
from haptera.errors import HapteraError


def test_a_name_that_is_not_there_names_the_nearest_beside_it(tmp_path: Path) -> None:
    np.savez(tmp_path / "mnist.npz", images=np.zeros((1, 4, 4)))
    with pytest.raises(HapteraError, match=r"no data at .*mnits\.npz; did you mean 'mnist\.npz'\? an \.npz, "):
        open_data(tmp_path / "mnits.npz")


def test_nothing_near_is_no_hint(tmp_path: Path) -> None:
    (tmp_path / "unrelated").mkdir()
    with pytest.raises(HapteraError, match=r"xyz; an \.npz, .*, a folder or 'digits' was expected"):
        open_data(tmp_path / "xyz")


def test_digits_is_a_name_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HapteraError, match=r"no data at digit; did you mean 'digits'\?"):
        open_data("digit")


def test_settings_after_a_colon_are_told_where_they_belong(tmp_path: Path) -> None:
    table = tmp_path / "labels.csv"
    table.write_text("path,label\n", encoding="utf-8")
    with pytest.raises(HapteraError, match=r"data take no settings after a colon; .* --size 224"):
        open_data(f"{table}:size=224")


def test_a_missing_parent_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(HapteraError, match=r"no data at .*x\.npz: there is no folder .*/nowhere"):
        open_data(tmp_path / "nowhere" / "x.npz")


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"")
    with pytest.raises(HapteraError, match=r"x\.zip is a file of kind '\.zip'; an \.npz, \.parquet"):
        open_data(tmp_path / "x.zip")


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(HapteraError, match="the name of the data is empty"):
        open_data("")


def test_a_home_folder_is_expanded(class_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(class_folder.parent))
    assert isinstance(open_data("~/pets"), FolderData)


@pytest.mark.parametrize(("setting", "value"), [("size", 0), ("channels", 2)])
def test_wrong_settings_are_refused_before_anything_is_read(setting: str, value: int) -> None:
    with pytest.raises(HapteraError, match=f"{setting} is {value}"):
        open_data("nowhere", **{setting: value})
