"""Files that were read wrong without a word: now they are read right, or refused by name, and spoil nothing else."""

import os

import h5py
import numpy as np
import pytest
from tests.commands import call

from haptera.errors import HapteraError
from haptera.files.atomic import write_text
from haptera.files.deeplabcut import KeypointTable
from haptera.files.fingerprint import fingerprint
from haptera.recordings.reading import read_recording
from haptera.run.calibrate import load_calibration
from haptera.run.cells import cells_of, notes, open_study, study_ledger
from haptera.run.importing import import_predictions
from haptera.run.ledger import Ledger, Piece
from haptera.run.results import measure, report

RANDOM = np.random.default_rng(0)


def write_nwb(path, order=slice(None), index=(200, 400), times=None):
    with h5py.File(path, "w") as file:
        file["units/spike_times"] = np.concatenate([np.sort(RANDOM.uniform(0, 30, 200)) for _ in range(2)])
        file["units/spike_times_index"] = np.array(index)
        stamps = np.linspace(0, 30, 300) if times is None else times
        file["processing/behavior/speed/data"] = np.arange(300.0)[order]
        file["processing/behavior/speed/timestamps"] = stamps[order]


def test_samples_that_are_not_in_the_order_of_time_are_put_there(tmp_path):
    write_nwb(tmp_path / "sorted.nwb")
    write_nwb(tmp_path / "mixed.nwb", np.r_[150:160, 0:150, 200:300, 160:200])
    whole, mixed = (read_recording(tmp_path / name, "spikes", ["speed"]) for name in ("sorted.nwb", "mixed.nwb"))
    assert len(mixed) == len(whole) > 290
    assert np.array_equal(mixed.label("speed").values, whole.label("speed").values)
    assert [note for note in mixed.notes if "time goes back in 2 places" in note]


@pytest.mark.parametrize("index", [(300, 200), (200, 401), (-1, 400)])
def test_an_index_of_spikes_that_falls_or_leaves_the_file_is_refused(tmp_path, index):
    write_nwb(tmp_path / "a.nwb", index=index)
    with pytest.raises(HapteraError, match=r"a\.nwb: units/spike_times_index is .* for unit"):
        read_recording(tmp_path / "a.nwb")


def test_one_wrong_time_does_not_make_millions_of_bins(tmp_path):
    write_nwb(tmp_path / "a.nwb", times=np.append(np.linspace(0, 30, 299), 1e9))
    with pytest.raises(HapteraError, match=r"a\.nwb: from .* bins of 0\.1 s .* is a time wrong"):
        read_recording(tmp_path / "a.nwb", "speed", bin=0.1)


@pytest.mark.parametrize("how", ["link", "storage", "virtual"])
def test_an_hdf5_file_reads_no_other_file(tmp_path, how):
    np.arange(100.0).tofile(tmp_path / "secret")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["secret"] = np.arange(100.0)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        if how == "link":
            file["signal"] = h5py.ExternalLink("other.h5", "secret")
        elif how == "storage":
            file.create_dataset("signal", (100,), "f8", external=[(str(tmp_path / "secret"), 0, 800)])
        else:
            layout = h5py.VirtualLayout((100,), "f8")
            layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "secret", (100,))
            file.create_virtual_dataset("signal", layout)
    with pytest.raises(HapteraError, match=r"a\.h5: 'signal' (is a link into another file|keeps its values in other)"):
        read_recording(tmp_path / "a.h5")


def bring(tmp_path, model="theirs", **arrays):
    np.savez(tmp_path / "theirs.npz", **arrays)
    return import_predictions(tmp_path / "theirs.npz", tmp_path / "study", model=model, stream="v2")


def accuracies(folder):
    table = measure(folder)
    return dict(table[table["measure"] == "accuracy"].set_index("model")["value"])


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_logits_beyond_single_precision_keep_their_order(tmp_path, scale):
    targets = RANDOM.integers(0, 5, 40)
    logits = RANDOM.uniform(1, 2, (40, 5)) * scale
    logits[np.arange(40), targets] = 3 * scale
    bring(tmp_path, logits=logits, targets=targets)
    assert accuracies(tmp_path / "study") == {"theirs": 1.0}


def test_labels_that_no_class_has_are_refused_and_nothing_is_listed(tmp_path):
    bring(tmp_path, "good", labels=np.arange(10), targets=np.arange(10))
    for wrong in (np.array([2**40]), np.array([2**64 - 1], np.uint64), np.array([-1])):
        for name in ("labels", "targets"):
            arrays = {"labels": np.zeros(1, int), "targets": np.zeros(1, int)} | {name: wrong}
            with pytest.raises(HapteraError, match=rf"theirs\.npz: {name} hold {wrong[0]}; 0 to"):
                bring(tmp_path, "bad", **arrays)
    assert [cell.model for cell in cells_of(open_study(tmp_path / "study"))] == ["good"]
    assert accuracies(tmp_path / "study") == {"good": 1.0}


@pytest.mark.long
def test_one_damaged_cell_is_left_out_with_a_note_and_the_others_are_measured(tmp_path, capsys):
    cells = [bring(tmp_path, name, labels=np.arange(10), targets=np.arange(10)) for name in ("good", "bad")]
    folder = tmp_path / "study"
    path = open_study(folder).path(cells[1].piece)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert accuracies(folder) == {"good": 1.0}
    report(folder)
    assert (
        f"{path.name} has {len(whole) // 2:,} bytes, and had {len(whole):,} when it was finished"
        in (folder / "report.html").read_text()
    )
    assert call("measure", folder) == 1
    assert call("report", folder) == 1
    assert "bad · v2 · none is left out" in capsys.readouterr().err
    path.write_bytes(whole)
    assert accuracies(folder) == {"good": 1.0, "bad": 1.0}
    assert call("report", folder) == 0
    assert notes(open_study(folder), open_study(folder).damaged()) == []


def write_calibration(folder, counts, **settings):
    content = {"shifts": ["fog", "snow"], "samples": 10, "step": 5.0, "clean": 9, "classes": 10}
    content |= {"flip": True, "crop": 0.1, "prints": {"model": "m", "data": "d"}} | settings
    with Ledger(folder, "calibration") as ledger:
        pairs = ("fog", "snow"), ("snow", "fog")
        ledger.plan([Piece(fingerprint(*pair), f"pairs/{' '.join(pair)}.npy") for pair in pairs], content)
        for piece in ledger.pieces.values():
            with ledger.writing(piece) as file:
                np.save(file, counts)


@pytest.mark.parametrize(
    ("counts", "settings", "message"),
    [
        (np.full((2, 2), np.nan), {}, r"fog snow\.npy holds float64 \(2, 2\); counts"),
        (np.full((2, 2), -1), {}, r"fog snow\.npy counts -1 right answers; 0 to 10"),
        (np.full((2, 2), 11), {}, r"fog snow\.npy counts 11 right answers; 0 to 10"),
        (np.zeros((3, 3), int), {}, r"fog snow\.npy holds int64 \(3, 3\); counts \(2, 2\)"),
        (np.zeros((2, 2), int), {"clean": -1}, r"plan\.json: clean is -1; a whole number"),
        (np.zeros((2, 2), int), {"clean": 11}, r"plan\.json: clean is 11, of 10 samples"),
        (np.zeros((2, 2), int), {"shifts": ["fog", "../../x"]}, r"plan\.json: shifts is .* the name of a shift"),
        (np.zeros((2, 2), int), {"step": 1e-320}, r"plan\.json: step is"),
    ],
)
def test_counts_that_cannot_be_are_refused(tmp_path, counts, settings, message):
    write_calibration(tmp_path / "cal", counts, **settings)
    with pytest.raises(HapteraError, match=message):
        load_calibration(tmp_path / "cal")


def test_a_link_where_a_temporary_file_was_expected_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".a.h5.part").symlink_to(victim)
    (tmp_path / ".a.txt.part").symlink_to(victim)
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked" / ".lock").symlink_to(victim)
    KeypointTable(np.zeros((2, 1, 2)), ("nose",), np.array(["1.png", "2.png"])).write(tmp_path / "a.h5")
    write_text(tmp_path / "a.txt", "text")
    with pytest.raises(HapteraError, match=r"cannot lock .*\.lock"), study_ledger(tmp_path / "locked"):
        pass
    assert victim.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file() and not path.is_symlink()) == [
        *("a.h5", "a.txt", "victim")
    ]


def test_a_pipe_among_images_is_left_out(tmp_path, caplog):
    from PIL import Image

    from haptera.data import open_data

    Image.new("RGB", (8, 8)).save(tmp_path / "1.png")
    os.mkfifo(tmp_path / "2.png")
    assert len(open_data(tmp_path)) == 1
    assert "2.png is not a file" in caplog.text
