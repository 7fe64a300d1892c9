"""Studies in MLflow, read back by its own client from a database on disk."""

import contextlib
import shutil
from pathlib import Path
from unittest import mock

import pytest
from tests.export.conftest import forget_last_cell
from tests.export.test_record import Answer

from haptera.errors import HapteraError
from haptera.export import record_of, to_mlflow

mlflow = pytest.importorskip("mlflow")
# SQLAlchemy 2.1 warns of an option that MLflow's store uses.
NOLOAD = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning")
pytestmark = [pytest.mark.long, NOLOAD]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A database, which takes seconds to make, and the folder beside it into which MLflow puts files."""
    folder = tmp_path_factory.mktemp("mlflow")
    with contextlib.chdir(folder):
        yield f"sqlite:///{folder}/mlflow.db"


def client_of(store):
    return mlflow.MlflowClient(tracking_uri=store)


def runs_of(store, experiment):
    client = client_of(store)
    found = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    return {run.info.run_name: run for run in found}, len(found)


def test_what_mlflow_reads_is_what_the_record_says(study, store, tmp_path):
    outcome = to_mlflow(study, store)
    record = record_of(study)
    assert outcome.written == ["audit", "net · batchnorm:prior=4", "net · none"]
    runs, count = runs_of(store, "audit")
    assert count == 3
    client = client_of(store)
    for run in record.runs:
        found = runs[run.name]
        last = {each.name: each.value for each in run.metrics}  # of several steps the last
        assert found.data.metrics == pytest.approx(last)
        assert found.info.status == "FINISHED"
        if not run.main:
            assert found.data.params["model"] == "net"
            assert found.data.params["stream.continual.batch_size"] == "20"
            assert found.data.tags["haptera.adapter"] == run.tags["adapter"]
            assert found.data.tags["mlflow.parentRunId"] == runs["audit"].info.run_id
    name = "continual/accuracy_over_steps"
    history = client.get_metric_history(runs["net · none"].info.run_id, name)
    own = [(each.step, each.value) for each in record.runs[-1].metrics if each.name == name]
    assert sorted((each.step, each.value) for each in history) == own
    main = runs["audit"].info.run_id
    assert {each.path for each in client.list_artifacts(main)} == {"report.html", "table.parquet", "result.json"}
    page = client.download_artifacts(main, "report.html", str(tmp_path))
    assert "<html" in Path(page).read_text("utf-8")[:1000]


def test_exporting_twice_does_not_double_and_a_study_that_went_on_takes_the_place_of_what_was_there(
    own_study, study, store
):
    forget_last_cell(own_study)
    first = to_mlflow(own_study, store, "twice")
    assert first.notes == ["1 of 6 cells have not been run yet"]
    again = to_mlflow(own_study, store, "twice")
    assert (again.written, len(again.kept)) == ([], 3)
    before, count = runs_of(store, "twice")
    assert count == 3
    assert before["audit"].data.tags["haptera.notes"] == "1 of 6 cells have not been run yet"
    shutil.rmtree(own_study)
    shutil.copytree(study, own_study)
    later = to_mlflow(own_study, store, "twice")
    assert set(later.replaced) == set(later.written) >= {"audit", "net · batchnorm:prior=4"}
    after, count = runs_of(store, "twice")
    assert count == 3
    assert after["audit"].info.run_id != before["audit"].info.run_id
    assert "haptera.notes" not in after["audit"].data.tags
    assert {run.data.tags.get("mlflow.parentRunId") for run in after.values()} == {None, after["audit"].info.run_id}


def test_a_run_that_was_cut_short_is_written_again(tmp_path, store):
    Answer().save(tmp_path / "answer")
    with (
        mock.patch.object(mlflow.MlflowClient, "log_artifact", side_effect=OSError("disk full")),
        pytest.raises(HapteraError, match="did not take the runs: OSError: disk full"),
    ):
        to_mlflow(tmp_path / "answer", store, "cut")
    runs, count = runs_of(store, "cut")
    assert (count, runs["An answer"].info.status) == (1, "FAILED")
    to_mlflow(tmp_path / "answer", store, "cut")
    runs, count = runs_of(store, "cut")
    assert (count, runs["An answer"].info.status) == (1, "FINISHED")
    assert runs["An answer"].data.metrics == {"fit/r2": 0.9, "fit/r2/low": 0.8, "fit/r2/high": 1.0}


def test_an_experiment_in_the_trash_is_refused(tmp_path, store):
    client = client_of(store)
    client.delete_experiment(client.create_experiment("old"))
    with pytest.raises(HapteraError, match="old is in MLflow's trash"):
        to_mlflow(Answer(), store, "old")


def test_a_server_that_is_not_there_is_one_sentence_and_soon(monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(HapteraError, match=r"MLflow at http://127.0.0.1:9 did not take the runs"):
        to_mlflow(Answer(), "http://127.0.0.1:9")
