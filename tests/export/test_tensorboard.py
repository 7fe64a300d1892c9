"""Events for TensorBoard, read back record by record, checksums included."""

import shutil
import struct

import pytest
from tests.export.conftest import forget_last_cell
from tests.export.test_record import Answer

from haptera.errors import HapteraError
from haptera.export import record_of, to_tensorboard

event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")
pytestmark = pytest.mark.long


def crc32c(data):
    """The checksum of Castagnoli, bit by bit."""
    rest = 0xFFFFFFFF
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = (rest >> 1) ^ (0x82F63B78 if rest & 1 else 0)
    return rest ^ 0xFFFFFFFF


def mask(value):
    return (((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def read_events(folder):
    """Read the one file of a folder: length, its checksum, an event, its checksum."""
    (path,) = folder.glob("events.out.tfevents.*")
    data, at, events = path.read_bytes(), 0, []
    while at < len(data):
        (size,) = struct.unpack("<Q", data[at : at + 8])
        assert struct.unpack("<I", data[at + 8 : at + 12])[0] == mask(crc32c(data[at : at + 8]))
        content = data[at + 12 : at + 12 + size]
        assert struct.unpack("<I", data[at + 12 + size : at + 16 + size])[0] == mask(crc32c(content))
        events.append(event_pb2.Event.FromString(content))
        at += 16 + size
    return events


def scalars(folder):
    values = [(event.step, value) for event in read_events(folder) for value in event.summary.value]
    return [(value.tag, step, value.simple_value) for step, value in values if value.HasField("simple_value")]


def folders(out):
    return sorted(path.name for path in out.iterdir())


def test_every_number_is_an_event_at_its_step(study, tmp_path):
    to_tensorboard(study, tmp_path, measures=["accuracy", "accuracy_over_steps"])
    record = record_of(study, measures=["accuracy", "accuracy_over_steps"])
    none = next(path for path in tmp_path.iterdir() if path.name.startswith("net-none"))
    found = scalars(none)
    assert [(tag, step) for tag, step, _ in found] == [(each.name, each.step or 0) for each in record.runs[-1].metrics]
    assert [value for *_, value in found] == pytest.approx([each.value for each in record.runs[-1].metrics], rel=1e-6)
    texts = [value for event in read_events(none) for value in event.summary.value if value.HasField("tensor")]
    assert [text.tag for text in texts] == ["settings/text_summary", "about/text_summary"]
    assert b"| stream.continual.batch size | 20 |" in texts[0].tensor.string_val[0]
    assert {"report.html", "table.parquet", "result.json"} <= set(folders(tmp_path / "audit"))


def test_exporting_twice_does_not_double(own_study, study, tmp_path):
    out = tmp_path / "events"
    forget_last_cell(own_study)
    to_tensorboard(own_study, out, measures=["mean_accuracy"])
    names = folders(out)
    assert len(names) == 3
    assert to_tensorboard(own_study, out, measures=["mean_accuracy"]).written == []
    shutil.rmtree(own_study)
    shutil.copytree(study, own_study)
    assert "audit" in to_tensorboard(own_study, out, measures=["mean_accuracy"]).replaced
    assert folders(out) == names
    assert b"not been run" not in b"".join(path.read_bytes() for path in (out / "audit").glob("events*"))


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    own = tmp_path / "answer"
    to_tensorboard(Answer(), tmp_path)
    (folder,) = tmp_path.iterdir()
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(HapteraError, match="was not written by haptera"):
        to_tensorboard(Answer(), tmp_path)
    assert (folder / "thesis.txt").read_text() == "mine"
    assert not own.exists()


def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_written(tmp_path, monkeypatch):
    from tensorboardX.record_writer import RecordWriter

    write, written = RecordWriter.write, []

    def full(self, data):
        written.append(data)
        if len(written) > 2:
            raise OSError(28, "No space left on device")
        write(self, data)

    monkeypatch.setattr(RecordWriter, "write", full)
    with pytest.raises(HapteraError, match=r"cannot write .*: No space left on device"):
        to_tensorboard(Answer(), tmp_path)
    assert folders(tmp_path) == []
