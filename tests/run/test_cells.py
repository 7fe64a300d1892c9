"""The cells of a study: which are current, which are missing, and what is said about the others."""

from dataclasses import replace

import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.outputs import Outputs
from haptera.run.cells import (
    CellEntry,
    about_of,
    cells_of,
    list_cells,
    merge,
    missing_cells,
    notes,
    open_study,
    study_ledger,
)

CELL = CellEntry("k1", "net", "corruptions", "fog 1", "none", 0, model_print="m1", stream_print="s1")


def keys(cells):
    return [cell.key for cell in cells]


def save(ledger, cell, key=None):
    path = ledger.path(cell.piece)
    Outputs({"labels": np.arange(2)}, np.arange(2), provenance={"key": key or cell.key}).save(path)
    return path


def test_cells_survive_their_file(tmp_path):
    with study_ledger(tmp_path / "study") as ledger:
        list_cells(ledger, [CELL], settings={"data": "x"}, left_out=["a sentence"])
    ledger = open_study(tmp_path / "study")
    assert cells_of(ledger) == [CELL]
    assert about_of(ledger) == {"name": "study", "settings": {"data": "x"}, "left_out": ["a sentence"]}


def test_new_weights_make_every_cell_of_the_model_stale():
    other = replace(CELL, key="k2", adapter="batchnorm")
    assert keys(merge([CELL, other], [replace(CELL, key="k3", model_print="m2")])) == ["k3"]


def test_new_data_makes_every_cell_of_that_part_stale_and_no_other():
    other_part = replace(CELL, key="k2", part="fog 2", stream_print="s2")
    other_model = replace(CELL, key="k4", model="net2", model_print="m9")
    merged = merge([CELL, other_part, other_model], [replace(CELL, key="k3", stream_print="s9")])
    assert keys(merged) == ["k2", "k3"]


def test_another_adapter_adds_to_what_is_there():
    assert keys(merge([CELL], [replace(CELL, key="k2", adapter="batchnorm")])) == ["k1", "k2"]


def test_imported_predictions_stay_beside_a_run():
    imported = replace(CELL, key="k9", stream="elsewhere", part="elsewhere", model_print="", stream_print="")
    assert keys(merge([imported], [CELL])) == ["k9", "k1"]


def test_notes_tell_of_failed_damaged_and_missing_cells(tmp_path):
    cells = [CELL, *(replace(CELL, key=f"k{n}", part=f"fog {n}") for n in (2, 3, 4))]
    with study_ledger(tmp_path) as ledger:
        list_cells(ledger, cells)
        ledger.fail(cells[1].piece, "no memory")
        for cell in cells[2:]:
            save(ledger, cell)
            ledger.done(cell.piece)
    ledger.path(cells[3].piece).write_bytes(b"short")
    damage = ledger.damaged()
    failed, damaged, missing = notes(ledger, damage)
    assert failed == "1 of 4 cells failed: no memory (net · fog 2 · none)"
    assert damaged.startswith("1 of 4 cells left out because their files are damaged: net · fog 4 · none (")
    assert "k4.npz has 5 bytes, and had" in damaged
    assert missing == "1 of 4 cells have not been run yet"
    with study_ledger(tmp_path) as ledger:
        for cell in cells:
            save(ledger, cell)
            ledger.done(cell.piece)
    assert notes(ledger, ledger.damaged()) == []


def test_a_whole_cell_that_a_killed_run_could_not_note_is_finished(tmp_path):
    other = replace(CELL, key="k2", part="fog 2")
    with study_ledger(tmp_path) as ledger:
        list_cells(ledger, [CELL, other])
        save(ledger, CELL)
        save(ledger, other, key="k1")  # the file of another cell
        assert missing_cells(ledger, [CELL, other]) == {"k2"}
    assert [piece.key for piece in open_study(tmp_path).finished] == ["k1"]


def test_every_byte_of_a_cell_that_was_not_noted_counts(tmp_path):
    with study_ledger(tmp_path) as ledger:
        list_cells(ledger, [CELL])
        content = save(ledger, CELL).read_bytes()
        place = content.index(np.arange(2).tobytes())  # the labels themselves
        ledger.path(CELL.piece).write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert missing_cells(ledger, [CELL]) == {"k1"}


def test_what_is_not_the_folder_of_a_study_is_refused(tmp_path):
    with pytest.raises(HapteraError, match="no folder"):
        open_study(tmp_path / "nowhere")
    with pytest.raises(HapteraError, match=r"has no plan\.json"):
        open_study(tmp_path)
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(HapteraError, match=r"plan\.json (is not JSON|has no)"):
        open_study(tmp_path)


def test_a_run_that_fails_after_it_wrote_keeps_what_there_is(tmp_path):
    def fail():
        with study_ledger(tmp_path) as ledger:
            list_cells(ledger, [CELL])
            raise HapteraError("too late")

    with pytest.raises(HapteraError, match="too late"):
        fail()
    assert cells_of(open_study(tmp_path)) == [CELL]
