"""Runs for Weights & Biases: offline as files that are read back, online as calls of a stand-in."""

import json
import shutil
import struct
from types import SimpleNamespace
from unittest import mock

import pytest
from tests.export.conftest import forget_last_cell
from tests.export.test_record import Answer

from haptera.errors import HapteraError
from haptera.export import record_of, to_wandb

wandb = pytest.importorskip("wandb")
BLOCK, HEAD = 32768, 7
pytestmark = pytest.mark.long


def read_records(path):
    """Read the log of a run: a head, then records that may go over several blocks."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, part, records = path.read_bytes(), HEAD, b"", []
    assert data[:4] == b":W&B"
    while at < len(data):
        if (left := BLOCK - at % BLOCK) < HEAD:
            at += left
            continue
        _, size, kind = struct.unpack("<IHB", data[at : at + HEAD])
        part += data[at + HEAD : at + HEAD + size]
        at += HEAD + size
        if kind in (1, 4):  # whole, or the last of several
            records.append(Record.FromString(part))
            part = b""
    return records


def read_run(folder):
    """Return what a run is, its summary, and its history by step."""
    (path,) = folder.glob("*.wandb")
    records = read_records(path)
    (run,) = [each.run for each in records if each.HasField("run")]
    items = [item for each in records if each.HasField("summary") for item in each.summary.update]
    summary = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}
    rows = [each.history.item for each in records if each.HasField("history")]
    history = [{item.key or item.nested_key[0]: json.loads(item.value_json) for item in row} for row in rows]
    return run, summary, history


def folders(place):
    return sorted(path for path in (place / "wandb").glob("offline-run-*"))


def test_what_is_written_offline_is_what_the_record_says(study, tmp_path):
    chosen = ["accuracy", "accuracy_over_steps"]
    outcome = to_wandb(study, "robust", folder=tmp_path, measures=chosen)
    assert len(outcome.written) == 3
    runs = {run.display_name: (run, *rest) for run, *rest in map(read_run, folders(tmp_path))}
    run, summary, history = runs["net · none"]
    record = record_of(study, chosen).runs[-1]
    assert (run.project, run.run_group) == ("robust", "audit")
    assert {name: summary[name] for name in (each.name for each in record.metrics if each.step is None)} == {
        each.name: pytest.approx(each.value) for each in record.metrics if each.step is None
    }
    own = {(row["step"], name): value for row in history for name, value in row.items() if "accuracy" in name}
    assert own == {
        (each.step, each.name): pytest.approx(each.value) for each in record.metrics if each.step is not None
    }
    config = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in run.config.update}
    assert config["settings"]["stream.continual.batch size"] == 20
    (main,) = [path for path in folders(tmp_path) if (path / "files" / "report.html").is_file()]
    assert (main / "files" / "table.parquet").is_file()
    assert not (main / "files" / "requirements.txt").exists()
    assert to_wandb(study, "robust", folder=tmp_path, measures=chosen).written == []
    assert len(folders(tmp_path)) == 3


def test_a_study_that_went_on_takes_the_place_of_what_was_there_and_so_does_a_run_cut_short(own_study, study, tmp_path):
    chosen = {"measures": ["mean_accuracy"], "folder": tmp_path}
    forget_last_cell(own_study)
    to_wandb(own_study, **chosen)
    old = folders(tmp_path)
    shutil.rmtree(own_study)
    shutil.copytree(study, own_study)
    outcome = to_wandb(own_study, **chosen)
    assert "audit" in outcome.replaced
    assert len(folders(tmp_path)) == len(old)
    (main,) = [path for path in folders(tmp_path) if (path / "files" / "report.html").is_file()]
    assert main not in old
    (main / "haptera.json").unlink()  # as if it had been killed before the end
    assert to_wandb(own_study, **chosen).written == ["audit"]
    assert len(folders(tmp_path)) == len(old)


class StandIn:
    """Weights & Biases as far as an online export asks it: runs by id, which are resumed when they are there."""

    Error = wandb.Error
    Settings = SimpleNamespace

    def __init__(self, place):
        self.place, self.runs, self.calls = place, {}, []

    def init(self, *, id, resume, mode, **_):
        assert (mode, resume) == ("online", "allow")
        run = mock.MagicMock(dir=self.place, resumed=id in self.runs)
        run.summary = self.runs.setdefault(id, {})
        self.calls.append(run)
        return run


def test_online_a_finished_run_is_left_alone_and_one_cut_short_is_written_again(tmp_path, monkeypatch):
    server = StandIn(tmp_path)
    monkeypatch.setattr("haptera.export.wandb.import_extra", lambda *_: server)
    assert to_wandb(Answer(), mode="online", folder=tmp_path).written == ["An answer"]
    assert to_wandb(Answer(), mode="online", folder=tmp_path).kept == ["An answer"]
    ((_, summary),) = server.runs.items()
    assert summary["fit/r2"] == 0.9
    assert [run.save.called for run in server.calls] == [True, False]
    del summary["haptera_digest"]
    assert to_wandb(Answer(), mode="online", folder=tmp_path).written == ["An answer"]
    assert all(run.finish.called for run in server.calls)


def test_what_wandb_refuses_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(wandb, "init", mock.Mock(side_effect=wandb.errors.UsageError("No API key configured")))
    with pytest.raises(HapteraError, match="did not take the run An answer: UsageError: No API key configured"):
        to_wandb(Answer(), mode="online", folder=tmp_path)


def test_an_unknown_mode_is_refused(tmp_path):
    with pytest.raises(HapteraError, match="unknown mode 'onlin'; did you mean 'online'"):
        to_wandb(Answer(), mode="onlin", folder=tmp_path)
