"""From finished cells to the table: measures of outputs first, then those that compare cells."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from haptera import catalog
from haptera.errors import HapteraError
from haptera.measures import accuracy, adaptation_gain, mce, measure, stacks
from haptera.outputs import Outputs
from haptera.report.study import complete
from haptera.run.importing import import_predictions
from haptera.run.parts import make_measure
from haptera.run.results import measure as measure_folder
from haptera.run.results import report, results_of, table_of
from haptera.table import measure_outputs, tidy

RIGHT = {("one", "none"): 12, ("one", "tent"): 18, ("two", "none"): 6, ("two", "tent"): 9}


@pytest.fixture
def study(tmp_path):
    """Two models with two adapters on fog, imported: decisions on 20 samples, so many of them right."""
    targets = np.arange(20) % 4
    for (model, adapter), right in RIGHT.items():
        labels = np.where(np.arange(20) < right, targets, (targets + 1) % 4)
        np.savez(tmp_path / "file.npz", labels=labels, targets=targets)
        names = {"model": model, "stream": "fog", "adapter": adapter, "shift": "fog", "severity": 3.0}
        import_predictions(tmp_path / "file.npz", tmp_path / "study", **names)
    return tmp_path / "study"


@pytest.mark.long
def test_a_table_is_completed_by_what_it_lacks_and_not_twice():
    names = {"model": "net", "stream": "s", "measure": "accuracy", "severity": 3.0, "n": 100}
    rows = [
        names | {"adapter": adapter, "shift": shift, "seed": seed, "value": value}
        for adapter, value in (("none", 0.5), ("tent", 0.7))
        for shift in ("fog", "snow")
        for seed in (0, 1)
    ]
    whole = complete(tidy(rows))
    assert {"mean_accuracy", "mean_gain_over_seeds", "adapter_margin"} <= set(whole["measure"])
    assert len(complete(whole)) == len(whole)
    lacking = whole[~whole["measure"].isin(["mean_gain", "mean_gain_over_seeds"])]
    assert sorted(complete(lacking)["measure"]) == sorted(whole["measure"])


@pytest.mark.long
def test_cells_are_compared_after_they_have_been_measured(study):
    table = measure_folder(study)
    gains = table[table["measure"] == "adaptation_gain"].set_index("model")["value"]
    assert gains.to_dict() == pytest.approx({"one": 0.3, "two": 0.15})
    pd.testing.assert_frame_equal(table_of(study), table)


def test_what_compares_cells_can_be_had_alone(study):
    table = measure_folder(study, ["adaptation_gain"])
    assert table["measure"].tolist() == ["adaptation_gain"] * 2
    assert not (study / "table.parquet").exists()
    both = measure_folder(study, [adaptation_gain, "error"])
    assert both["measure"].value_counts().to_dict() == {"error": 4, "adaptation_gain": 2}


@pytest.mark.long
def test_nothing_is_divided_by_a_reference_that_nobody_named(study):
    assert not {"mce", "mde"} & set(measure_folder(study)["measure"])
    table = measure_folder(study, [partial(mce, reference="one")])
    values = {(row.model, row.adapter): row.value for row in table.itertuples()}
    assert values == pytest.approx({key: (20 - right) / 8 for key, right in RIGHT.items()})


def test_a_measure_with_its_settings_comes_from_text(study):
    table = measure_folder(study, [make_measure("mce:reference=two")])
    assert set(table["measure"]) == {"mce"}
    with pytest.raises(HapteraError, match="measure mce needs reference: mce:reference="):
        make_measure("mce")


def test_a_measure_of_ones_own_sees_the_rows_of_all_others(study):
    @measure(bounds=(0, 100), of="table")
    def count(table):
        return [{"measure": "count", "value": table["measure"].nunique(), "n": len(table)}]

    [value] = measure_folder(study, [count])["value"]
    assert value >= 3  # accuracy, error, class_attraction


@pytest.mark.long
def test_a_report_of_decisions_alone_says_what_they_tell(study):
    path, summary = report(study)
    assert path.is_file()
    assert "tent" in summary


@pytest.mark.long
def test_a_part_of_a_stream_is_a_column_and_a_whole_stream_is_not(study):
    assert set(measure_folder(study)["part"].dropna()) == {"fog 3"}


def test_many_small_cells_have_the_rows_of_each_and_a_damaged_one_is_left_out(tmp_path):
    generator = np.random.default_rng(0)
    for number in range(12):
        np.savez(tmp_path / "file.npz", logits=generator.normal(size=(6, 4)), targets=np.arange(6) % 4)
        names = {"model": f"net {number}", "stream": "fog", "shift": "fog", "severity": 3.0}
        import_predictions(tmp_path / "file.npz", tmp_path / "study", **names)
    paths = sorted((tmp_path / "study" / "cells").glob("*.npz"))
    paths[3].write_bytes(paths[3].read_bytes()[:-1])
    names = ["accuracy", "reliability", "class_attraction", "mean_error"]
    table = measure_folder(tmp_path / "study", names)
    measures = [catalog.find("measures", name) for name in names[:3]]
    rows = [row for path in paths if path != paths[3] for row in measure_outputs(Outputs.load(path), measures)]
    assert table["model"].nunique() == 11
    assert table["measure"].eq("mean_error").sum() == 11
    found = table[table["measure"].isin(names[:3])].reset_index(drop=True)
    pd.testing.assert_frame_equal(found, tidy(rows), check_exact=True, check_like=True)


def test_a_cell_that_a_measure_refuses_within_a_stack_is_left_out_by_name(tmp_path, monkeypatch, caplog):
    generator = np.random.default_rng(0)
    for number in range(20):
        logits = generator.normal(size=(8, 3)).astype(np.float32)
        logits[0, 0] = 99 if number == 13 else 0
        np.savez(tmp_path / "file.npz", logits=logits, targets=np.arange(8) % 3)
        names = {"model": f"net {number}", "stream": "fog", "adapter": "none", "shift": "fog", "severity": 3.0}
        import_predictions(tmp_path / "file.npz", tmp_path / "study", **names)
    everything = measure_folder(tmp_path / "study")
    form = stacks.form_of(accuracy)

    def refuse(stacked):
        if (stacked.flat.logits > 90).any():
            raise HapteraError("a logit is above 90")
        return form(stacked)

    def picky(outputs):
        if (outputs.logits > 90).any():
            raise HapteraError("a logit is above 90")
        return accuracy(outputs)

    monkeypatch.setattr("haptera.run.results._measures", lambda: [picky])
    monkeypatch.setitem(stacks._FORMS, picky, refuse)
    (tmp_path / "study" / "table.parquet").unlink()
    results = results_of(tmp_path / "study")
    assert list(results.damage.values()) == ["a logit is above 90"]
    assert "net 13" in caplog.text
    assert "is left out: a logit is above 90" in caplog.text
    wanted = everything[(everything["measure"] == "accuracy") & (everything["model"] != "net 13")]
    wanted = wanted[results.table.columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(results.table, wanted, check_exact=True)
