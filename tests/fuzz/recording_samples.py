"""Samples of recordings, embeddings, keypoints and pose models."""

import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
from scipy.io import savemat
from tests.commands import call
from tests.fuzz.reader import ANGLE, RANDOM, SPIKES, Reader, ignore, images

from haptera.analyses.attribution.analysis import prepared_recording, read_facts
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.files.deeplabcut import KeypointTable, read_deeplabcut
from haptera.pose import PoseModel
from haptera.pose.opening import open_pose, read_coco
from haptera.pose.splits import read_split
from haptera.recordings.reading import read_recording


def _nwb(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["units/spike_times"] = np.concatenate([np.sort(RANDOM.uniform(0, 20, 100)) for _ in range(3)])
        file["units/spike_times_index"] = np.array([100, 200, 300])
        file["units/id"] = np.arange(3)
        file.create_dataset("units/location", data=["a", "b", "a"], dtype=h5py.string_dtype())
        for name in ("heading", "speed"):
            data = file.create_dataset(f"processing/behavior/{name}/data", data=np.linspace(0, 6, 200))
            data.attrs["unit"] = "radians" if name == "heading" else "m/s"
            data.attrs["conversion"] = 1.0
        file["processing/behavior/heading/timestamps"] = np.linspace(0, 20, 200)
        start = file.create_dataset("processing/behavior/speed/starting_time", data=0.0)
        start.attrs["rate"] = 10.0
        file["intervals/trials/start_time"] = np.arange(0.0, 20, 2)
        file["intervals/trials/stop_time"] = np.arange(0.0, 20, 2) + 1.9
        file.create_dataset("intervals/trials/side", data=["l", "r"] * 5, dtype=h5py.string_dtype())
        file["intervals/epochs/start_time"], file["intervals/epochs/stop_time"] = [0.0, 10.0], [10.0, 20.0]
        file.create_dataset("intervals/epochs/tags", data=["wake", "sleep"], dtype=h5py.string_dtype())
        file["intervals/epochs/tags_index"] = [1, 2]


def _read_nwb(folder: Path) -> None:
    path = folder / "a.nwb"
    read_recording(path, "spikes", ["heading", "speed", "side"], trials="trials")
    read_recording(path, "speed", ["heading"], epoch="wake")


def _arrays(folder: Path) -> None:
    np.savez(folder / "a.npz", spikes=SPIKES, angle=ANGLE, trial=np.repeat([1, 2], 30))


def _hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["spikes"], file["angle"], file["time"] = SPIKES, ANGLE, np.arange(60) * 0.1


def _csv(folder: Path) -> None:
    frame = pd.DataFrame({f"unit{k}": SPIKES[:, k] for k in range(4)} | {"angle": ANGLE, "side": ["l", "r"] * 30})
    frame.to_csv(folder / "a.csv", index=False)


def _tracks(path: Path) -> None:
    files = np.array([f"labeled-data/v{k % 2}/img{k}.png" for k in range(6)])
    KeypointTable(RANDOM.uniform(0, 30, (6, 3, 2)), ("nose", "eye", "tail"), files, "me").write(path)


def _project(folder: Path) -> None:
    _tracks(folder / "CollectedData_me.csv")
    images(folder, [f"labeled-data/v{k % 2}/img{k}.png" for k in range(6)])


def _coco(folder: Path) -> None:
    import json

    images(folder, [f"img{k}.png" for k in range(4)])
    content = {
        "images": [{"id": k, "file_name": f"img{k}.png", "width": 32, "height": 32} for k in range(4)],
        "annotations": [
            {
                "id": k,
                "image_id": k,
                "category_id": 1,
                "keypoints": [5, 6, 2, 9, 9, 2, 20, 3, 0],
                "bbox": [0, 0, 9, 9],
                "area": 81.0,
            }
            for k in range(4)
        ],
        "categories": [{"id": 1, "name": "mouse", "keypoints": ["nose", "eye", "tail"], "skeleton": [[1, 2], [2, 3]]}],
    }
    (folder / "coco.json").write_text(json.dumps(content))


def _split(folder: Path) -> None:
    _project(folder)
    rows = [f"labeled-data/v{k % 2}/img{k}.png,v{k % 2},{'train' if k < 3 else 'out'}" for k in range(6)]
    (folder / "split.csv").write_text("\n".join(["file,individual,part", *rows]) + "\n")


def _embedding(path: Path) -> None:
    model = ContrastiveEmbedding(output_dimension=3, max_iterations=2, batch_size=16, random_state=0, device="cpu")
    model.fit(SPIKES, ANGLE).save(path)


def _read_embedding(folder: Path) -> None:
    found = ContrastiveEmbedding.load(folder / "model.safetensors")
    assert found.model_.channels
    if found.n_features_in_ == SPIKES.shape[1]:
        found.transform(SPIKES)


def _embedded(folder: Path) -> None:
    _arrays(folder)
    options = ("--label", "angle", "--no-controls", "--steps", 2, "--batch-size", 16, "--quiet")
    assert call("embed", folder / "a.npz", "--out", folder / "out", *options) == 0
    for path in (folder / "out").iterdir():
        if path.name not in ("result.json", "model.safetensors"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    text = (folder / "out" / "result.json").read_text()
    (folder / "out" / "result.json").write_text(text.replace(str(folder), "."))


def _read_embedded(folder: Path) -> None:
    prepared_recording(*read_facts(folder / "out" / "result.json"), folder / "a.npz")
    ContrastiveEmbedding.load(folder / "out" / "model.safetensors")


def _pose_model(path: Path) -> None:
    PoseModel(["nose", "tail"], "small", settings={"width": 4}, skeleton=[("nose", "tail")]).save(path)


def _recorded(path: Path, labels: tuple[str, ...] = ("angle",)) -> None:
    recording = read_recording(path, labels=labels)
    recording.split(0.3)
    assert len(recording.blocks) == len(recording)


def _posed(data: Any) -> None:
    data.images(np.arange(len(data)))
    data.fingerprint()


RECORDINGS: dict[str, Reader] = {
    "nwb": Reader(lambda folder: _nwb(folder / "a.nwb"), _read_nwb),
    "recording-npz": Reader(_arrays, lambda folder: _recorded(folder / "a.npz")),
    "recording-npy": Reader(
        lambda folder: np.save(folder / "a.npy", SPIKES), lambda folder: _recorded(folder / "a.npy", ())
    ),
    "recording-hdf5": Reader(lambda folder: _hdf5(folder / "a.h5"), lambda folder: _recorded(folder / "a.h5")),
    "recording-matlab": Reader(
        lambda folder: savemat(folder / "a.mat", {"spikes": SPIKES, "angle": ANGLE}, do_compression=True),
        lambda folder: _recorded(folder / "a.mat"),
    ),
    "recording-csv": Reader(_csv, lambda folder: _recorded(folder / "a.csv", ("angle", "side"))),
    "tracks-csv": Reader(
        lambda folder: _tracks(folder / "a.csv"), lambda folder: _recorded(folder / "a.csv", ("nose",))
    ),
    "deeplabcut-hdf5": Reader(
        lambda folder: _tracks(folder / "a.h5"), lambda folder: ignore(read_deeplabcut(folder / "a.h5"))
    ),
    "deeplabcut-project": Reader(_project, lambda folder: _posed(open_pose(folder))),
    "coco": Reader(_coco, lambda folder: _posed(read_coco(folder / "coco.json"))),
    "split": Reader(_split, lambda folder: ignore(read_split(folder / "split.csv", open_pose(folder)))),
    "embedding": Reader(lambda folder: _embedding(folder / "model.safetensors"), _read_embedding),
    "attribute": Reader(_embedded, _read_embedded),
    "pose-model": Reader(
        lambda folder: _pose_model(folder / "pose.safetensors"),
        lambda folder: ignore(PoseModel.load(folder / "pose.safetensors")),
    ),
}
