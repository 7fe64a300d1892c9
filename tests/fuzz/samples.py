"""One small sample for every reader of the package, and the reader itself as a user calls it."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import torch
from PIL import Image
from safetensors.torch import save_file
from scipy.io import savemat
from tests.commands import call

from haptera import table as tables
from haptera.analyses.attribution.analysis import prepared_recording, read_facts
from haptera.analyses.dependencies.files import LogitsFile
from haptera.analyses.trends.reading import read_side
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.data import digits, open_data
from haptera.errors import HapteraError
from haptera.files.deeplabcut import KeypointTable, read_deeplabcut
from haptera.models import LeNet
from haptera.models.source import load_weights
from haptera.outputs import Outputs
from haptera.pose import PoseModel
from haptera.pose.coco import read_coco
from haptera.pose.opening import open_pose
from haptera.pose.splits import read_split
from haptera.recordings.reading import read_recording
from haptera.run.build import make_study
from haptera.run.calibrate import calibrate, load_calibration
from haptera.run.cells import cells_of, open_study, study_ledger
from haptera.run.importing import import_predictions
from haptera.run.materialise import materialise
from haptera.run.results import measure
from haptera.run.settings import read_study
from haptera.run.yardstick import Scale
from haptera.shifts import Contrast, GaussianNoise

RANDOM = np.random.default_rng(0)
LOGITS, TARGETS = RANDOM.normal(size=(40, 5)).astype(np.float32), RANDOM.integers(0, 5, 40)
SPIKES, ANGLE = RANDOM.poisson(2, (60, 4)).astype(float), np.linspace(0, 6.2, 60)


@dataclass(frozen=True)
class Reader:
    """How to write a sample into a folder, and how to read it; a command's exit code, or None."""

    write: Callable[[Path], Any]
    read: Callable[[Path], int | None]


def _cell(path: Path) -> None:
    context = {"shift": np.repeat(["fog", "snow"], 20), "severity": np.repeat([1.0, 2.0], 20)}
    provenance = {"model": "net", "stream": "clean", "adapter": "none", "part": "clean", "seed": 0}
    steps = {"seconds": np.ones(4), "loss": np.ones(4)}
    step = np.arange(40) // 10
    Outputs({"logits": LOGITS}, np.arange(40), TARGETS, step, context, steps, provenance=provenance).save(path)


def _top(path: Path) -> None:
    best = np.argsort(-LOGITS, axis=1)[:, :3]
    arrays = {"top_indices": best, "top_values": np.take_along_axis(LOGITS, best, 1)}
    accepted = np.eye(5, dtype=bool)
    Outputs(arrays, np.arange(40), TARGETS, accepted=accepted, columns=np.arange(5) * 2).save(path)


def _study(folder: Path) -> None:
    for name in ("one", "two"):
        np.savez(folder / "in.npz", logits=LOGITS, targets=TARGETS)
        import_predictions(folder / "in.npz", folder / "study", model=name, stream="clean")
    (folder / "in.npz").unlink()
    measure(folder / "study")


def _measure_study(folder: Path) -> int | None:
    return call("measure", folder / "study")


def _report_study(folder: Path) -> int | None:
    return call("report", folder / "study")


def _predictions(folder: Path) -> None:
    np.savez(folder / "theirs.npz", logits=LOGITS.astype(float), targets=TARGETS, ids=np.arange(40))
    np.savez(folder / "labels.npz", labels=TARGETS, targets=TARGETS.astype(np.uint16))


def _import(folder: Path) -> int | None:
    for name in ("theirs", "labels"):
        out = folder / "out"
        code = call("import", folder / f"{name}.npz", "--model", name, "--stream", "s", "--out", out)
        if code:
            assert not out.exists() or name not in {cell.model for cell in cells_of(open_study(out))}
            return code
    return 0


def _calibration(folder: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(1024, 10))
    calibrate(model, digits(), folder / "cal", [Contrast, GaussianNoise], Scale(20, 2.5), progress=False)


def _read_calibration(folder: Path) -> None:
    found = load_calibration(folder / "cal")
    for name in ("easy", "hard"):
        found.target(name)
        found.out_of_reach(name)


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


def _images(folder: Path, names: list[str]) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(RANDOM.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(path)


def _project(folder: Path) -> None:
    _tracks(folder / "CollectedData_me.csv")
    _images(folder, [f"labeled-data/v{k % 2}/img{k}.png" for k in range(6)])


def _coco(folder: Path) -> None:
    import json

    _images(folder, [f"img{k}.png" for k in range(4)])
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


def _study_file(folder: Path) -> None:
    np.savez(folder / "data.npz", images=RANDOM.integers(0, 255, (6, 16, 16), dtype=np.uint8), labels=np.arange(6) % 2)
    (folder / "map.csv").write_text("class,accepted\n0,1\n1,2\n")
    (folder / "study.toml").write_text(
        'seeds = [0]\nbatch_size = 3\nkeep = "float32"\ndevice = "cpu"\n'
        'data = {path = "data.npz", channels = 1, mapping = "map.csv", restrict = true}\n'
        'models = [{name = "a", build = "resnet", arguments = {width = 4, channels = 1, classes = 4}}]\n'
        'streams = [{use = "clean", repeat = 2, name = "s"},'
        ' {use = "corruptions", shifts = ["contrast"], severities = [1]},'
        ' {use = "continual", shifts = ["fog"], truncate = 2, interleave = 2}]\n'
        'adapters = ["none", {use = "batchnorm", prior = 4}, {use = "tent", lr = 1e-3, reset = 5, epochs = 1}]\n'
    )


def _read_study_file(folder: Path) -> None:
    study = make_study(read_study(folder / "study.toml"), folder / "out", folder, where=str(folder / "study.toml"))
    try:
        study._plan(study_ledger(folder / "out"))  # what `run` does before it runs anything
    except HapteraError as error:  # names an adapter's setting or a stream, and knows of no file
        raise HapteraError(f"study.toml: {error}") from error


def _data(folder: Path) -> None:
    images = RANDOM.integers(0, 255, (20, 8, 8, 3), dtype=np.uint8)
    np.savez_compressed(
        folder / "data.npz", images=images, labels=np.arange(20) % 4, classes=list("abcd"), ids=np.arange(20)
    )


def _every(source: Path, **settings: Any) -> None:
    data = open_data(source, **settings)
    for each in [part.data for part in data.parts] if hasattr(data, "parts") else [data]:
        each.images(np.arange(len(each)))
        each.fingerprint()


def _cifar_c(folder: Path) -> None:
    (folder / "c").mkdir()
    np.save(folder / "c" / "labels.npy", np.tile(np.arange(4), 5))
    np.save(folder / "c" / "fog.npy", RANDOM.integers(0, 255, (20, 8, 8, 3), dtype=np.uint8))


def _imagenet_c(folder: Path) -> None:
    _images(folder / "c", [f"fog/{severity}/{name}/{k}.png" for severity in (1, 2) for name in "ab" for k in range(2)])


def _mapping(folder: Path) -> None:
    _data(folder)
    (folder / "map.csv").write_text("class,accepted\na,1\nb,2 3\nc,0\nd,7\n")


def _trends(folder: Path) -> None:
    right = RANDOM.random((5, 30)) < np.linspace(0.3, 0.9, 5)[:, None]
    np.savez(folder / "a.npz", models=[f"m{k}" for k in range(5)], correct=right, ids=np.arange(30))
    rows = [f"m{k},{accuracy:.3f},30" for k, accuracy in enumerate(right.mean(1))]
    (folder / "b.csv").write_text("\n".join(["model,accuracy,n", *rows]) + "\n")


def _read_trends(folder: Path) -> None:
    read_side(str(folder / "a.npz"))
    read_side(str(folder / "b.csv"))


def _logits(folder: Path) -> None:
    np.savez_compressed(folder / "logits.npz", logits=LOGITS, targets=TARGETS, classes=list("abcde"))


def _read_logits(folder: Path) -> None:
    sum(len(rows) for rows in LogitsFile(folder / "logits.npz"))


def _weights(folder: Path) -> None:
    net = LeNet(size=16, classes=4)
    save_file(net.state_dict(), folder / "net.safetensors")
    torch.save(net.state_dict(), folder / "net.pt")


def _read_weights(folder: Path) -> None:
    for name in ("net.safetensors", "net.pt"):
        load_weights(LeNet(size=16, classes=4), folder / name, allow_pickle=True)


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
    prepared_recording(read_facts(folder / "out" / "result.json"), folder / "a.npz")
    ContrastiveEmbedding.load(folder / "out" / "model.safetensors")


def _pose_model(path: Path) -> None:
    PoseModel(["nose", "tail"], "small", settings={"width": 4}, skeleton=[("nose", "tail")]).save(path)


def _materialised(folder: Path) -> None:
    _data(folder)
    materialise(
        open_data(folder / "data.npz"), [Contrast], folder / "out", severities=[1], quality="png", progress=False
    )


def _materialise_more(folder: Path) -> None:
    data = open_data(folder / "data.npz")
    materialise(data, [Contrast], folder / "out", severities=[1, 2], quality="png", progress=False)
    _every(folder / "out")


def _table(folder: Path) -> None:
    rows = [{"model": f"m{k}", "measure": "accuracy", "value": 0.5, "n": 8, "seed": 0} for k in range(5)]
    tables.write(tables.tidy(rows), folder / "table.parquet")
    tables.tidy(rows).to_csv(folder / "table.csv", index=False)


def _read_table(folder: Path) -> None:
    tables.read(folder / "table.parquet")
    tables.read(folder / "table.csv")


READERS: dict[str, Reader] = {
    "outputs": Reader(lambda folder: _cell(folder / "a.npz"), lambda folder: _ignore(Outputs.load(folder / "a.npz"))),
    "outputs-top": Reader(lambda folder: _top(folder / "a.npz"), lambda folder: _ignore(_used(folder / "a.npz"))),
    "measure": Reader(_study, _measure_study),
    "report": Reader(_study, _report_study),
    "import": Reader(_predictions, _import),
    "calibration": Reader(_calibration, _read_calibration),
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
        lambda folder: _tracks(folder / "a.h5"), lambda folder: _ignore(read_deeplabcut(folder / "a.h5"))
    ),
    "deeplabcut-project": Reader(_project, lambda folder: _posed(open_pose(folder))),
    "coco": Reader(_coco, lambda folder: _posed(read_coco(folder / "coco.json"))),
    "split": Reader(_split, lambda folder: _ignore(read_split(folder / "split.csv", open_pose(folder)))),
    "study-file": Reader(_study_file, _read_study_file),
    "data-npz": Reader(_data, lambda folder: _every(folder / "data.npz")),
    "data-folder": Reader(lambda folder: _images(folder, [f"{c}/{k}.png" for c in "ab" for k in range(3)]), _every),
    "data-flat-folder": Reader(
        lambda folder: _images(folder, ["1.png", "2.jpg"]), lambda folder: _every(folder, size=16)
    ),
    "cifar-c": Reader(_cifar_c, lambda folder: _every(folder / "c")),
    "imagenet-c": Reader(_imagenet_c, lambda folder: _every(folder / "c")),
    "mapping": Reader(_mapping, lambda folder: _every(folder / "data.npz", mapping=folder / "map.csv")),
    "trends": Reader(_trends, _read_trends),
    "dependencies": Reader(_logits, _read_logits),
    "weights": Reader(_weights, _read_weights),
    "embedding": Reader(lambda folder: _embedding(folder / "model.safetensors"), _read_embedding),
    "attribute": Reader(_embedded, _read_embedded),
    "pose-model": Reader(
        lambda folder: _pose_model(folder / "pose.safetensors"),
        lambda folder: _ignore(PoseModel.load(folder / "pose.safetensors")),
    ),
    "materialised": Reader(_materialised, _materialise_more),
    "table": Reader(_table, _read_table),
}


def _ignore(_: object) -> None:
    return None


def _used(path: Path) -> None:
    outputs = Outputs.load(path)
    outputs.predictions()
    if outputs.targets is not None:
        outputs.correct()


def _recorded(path: Path, labels: tuple[str, ...] = ("angle",)) -> None:
    recording = read_recording(path, labels=labels)
    recording.split(0.3)
    assert len(recording.blocks) == len(recording)


def _posed(data: Any) -> None:
    data.images(np.arange(len(data)))
    data.fingerprint()
