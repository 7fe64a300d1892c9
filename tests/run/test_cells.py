"""The folder of a study: which cells are current, and what is said about the others."""

from dataclasses import replace

import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.outputs import Outputs
from haptera.run.cells import Listed, Manifest, locked

CELL = Listed("k1", "net", "corruptions", "fog 1", "none", 0, model_print="m1", stream_print="s1")


def keys(manifest):
    return [cell.key for cell in manifest.cells]


def test_a_manifest_survives_its_file(tmp_path):
    manifest = Manifest(tmp_path, "study", {"data": "x"}, [CELL], ["a sentence"])
    manifest.write()
    assert Manifest.read(tmp_path) == manifest


def test_new_weights_make_every_cell_of_the_model_stale(tmp_path):
    other = replace(CELL, key="k2", adapter="batchnorm")
    manifest = Manifest(tmp_path, cells=[CELL, other])
    manifest.merge([replace(CELL, key="k3", model_print="m2")])
    assert keys(manifest) == ["k3"]


def test_new_data_makes_every_cell_of_that_part_stale_and_no_other(tmp_path):
    other_part = replace(CELL, key="k2", part="fog 2", stream_print="s2")
    other_model = replace(CELL, key="k4", model="net2", model_print="m9")
    manifest = Manifest(tmp_path, cells=[CELL, other_part, other_model])
    manifest.merge([replace(CELL, key="k3", stream_print="s9")])
    assert keys(manifest) == ["k2", "k3"]


def test_another_adapter_adds_to_what_is_there(tmp_path):
    manifest = Manifest(tmp_path, cells=[CELL])
    manifest.merge([replace(CELL, key="k2", adapter="batchnorm")])
    assert keys(manifest) == ["k1", "k2"]


def test_imported_predictions_stay_beside_a_run(tmp_path):
    imported = replace(CELL, key="k9", stream="elsewhere", part="elsewhere", model_print="", stream_print="")
    manifest = Manifest(tmp_path, cells=[imported])
    manifest.merge([CELL])
    assert keys(manifest) == ["k9", "k1"]


def test_notes_tell_of_failed_and_missing_cells(tmp_path):
    cells = [CELL, replace(CELL, key="k2", part="fog 2"), replace(CELL, key="k3", part="fog 3")]
    manifest = Manifest(tmp_path, cells=cells)
    manifest.note_failures(cells, {"k2": "no memory"})
    Outputs({"labels": np.arange(2)}, np.arange(2)).save(manifest.path(cells[2]))
    assert manifest.notes() == [
        "1 of 3 cells failed: no memory (net · fog 2 · none)",
        "1 of 3 cells have not been run yet",
    ]
    manifest.note_failures(cells, {})
    assert not any(cell.failure for cell in manifest.cells)


def test_half_written_files_of_a_killed_run_are_removed(tmp_path):
    cells = tmp_path / "cells"
    cells.mkdir()
    (cells / ".abc.part").touch()
    (cells / "k1.npz").touch()
    Manifest(tmp_path).tidy_up()
    assert [path.name for path in cells.iterdir()] == ["k1.npz"]


def test_cells_of_another_schema_are_not_listed(tmp_path):
    Manifest(tmp_path, "study", cells=[CELL]).write()
    file = tmp_path / "study.json"
    file.write_text(file.read_text().replace('"schema": 1', '"schema": 0'))
    assert Manifest.read(tmp_path).cells == []


def test_what_is_no_folder_of_a_study_is_refused(tmp_path):
    with pytest.raises(HapteraError, match="no folder"):
        Manifest.read(tmp_path / "nowhere")
    with pytest.raises(HapteraError, match=r"has no study\.json"):
        Manifest.read(tmp_path)
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(HapteraError, match=r"study\.json (is not JSON|has no)"):
        Manifest.read(tmp_path)


def test_a_second_run_is_kept_out(tmp_path):
    with locked(tmp_path), pytest.raises(HapteraError, match="another run is writing"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_a_run_that_fails_before_it_writes_leaves_no_folder(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(HapteraError, match="nothing"), locked(tmp_path / "out"):
        raise HapteraError("nothing came of it")
    assert not (tmp_path / "out").exists()


def test_a_run_that_fails_after_it_wrote_keeps_what_there_is(tmp_path):
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(HapteraError, match="too late"), locked(tmp_path):
        raise HapteraError("too late")
    assert (tmp_path / "study.json").exists()
