"""One small sample for every reader of the package, and the reader itself as a user calls it."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors.torch import save_file
from tests.commands import call
from tests.data import layouts
from tests.fuzz.reader import LOGITS, RANDOM, TARGETS, Reader, ignore, images
from tests.fuzz.recording_samples import RECORDINGS

from haptera import table as tables
from haptera.analyses.dependencies.files import LogitsFile
from haptera.analyses.diagnosis.known_shifts import KnownShifts
from haptera.analyses.trends.reading import read_side
from haptera.data import ArrayData, digits, open_data
from haptera.errors import HapteraError
from haptera.live.accuracy import Accuracy
from haptera.live.alarms import Alarms
from haptera.live.place import ShiftWindow
from haptera.live.profile import Profile
from haptera.measures.label_free import ESTIMATES
from haptera.models import LeNet
from haptera.models.weights import load_weights
from haptera.outputs import Outputs
from haptera.run.calibrate import Scale, calibrate, load_calibration
from haptera.run.cells import cells_of, open_study, study_ledger
from haptera.run.importing import import_predictions
from haptera.run.materialise import materialise
from haptera.run.results import measure
from haptera.run.settings import make_study, read_study
from haptera.shifts import Contrast, GaussianNoise
from haptera.streams import Clean


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


def _copied(source: Path) -> None:
    """Read a Parquet file with a cache that is nobody else's."""
    os.environ["HAPTERA_CACHE"] = str(source.parent / ".cache")
    _every(source)


def _cifar_c(folder: Path) -> None:
    (folder / "c").mkdir()
    np.save(folder / "c" / "labels.npy", np.tile(np.arange(4), 5))
    np.save(folder / "c" / "fog.npy", RANDOM.integers(0, 255, (20, 8, 8, 3), dtype=np.uint8))


def _imagenet_c(folder: Path) -> None:
    images(folder / "c", [f"fog/{severity}/{name}/{k}.png" for severity in (1, 2) for name in "ab" for k in range(2)])


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
    "outputs": Reader(lambda folder: _cell(folder / "a.npz"), lambda folder: ignore(Outputs.load(folder / "a.npz"))),
    "outputs-top": Reader(lambda folder: _top(folder / "a.npz"), lambda folder: ignore(_used(folder / "a.npz"))),
    "measure": Reader(_study, _measure_study),
    "report": Reader(_study, _report_study),
    "import": Reader(_predictions, _import),
    "calibration": Reader(_calibration, _read_calibration),
    "study-file": Reader(_study_file, _read_study_file),
    "data-npz": Reader(_data, lambda folder: _every(folder / "data.npz")),
    "data-folder": Reader(lambda folder: images(folder, [f"{c}/{k}.png" for c in "ab" for k in range(3)]), _every),
    "data-flat-folder": Reader(
        lambda folder: images(folder, ["1.png", "2.jpg"]), lambda folder: _every(folder, size=16)
    ),
    "data-parquet": Reader(
        lambda folder: layouts.parquet(folder / "a.parquet"), lambda folder: _copied(folder / "a.parquet")
    ),
    "data-saved": Reader(
        lambda folder: layouts.saved_dataset(folder / "saved"), lambda folder: _every(folder / "saved")
    ),
    "data-tar": Reader(lambda folder: layouts.tar(folder / "a.tar"), lambda folder: _every(folder / "a.tar")),
    "data-csv": Reader(layouts.table, lambda folder: _every(folder / "list.csv")),
    "data-cifar": Reader(layouts.cifar_binary, _every),
    "cifar-c": Reader(_cifar_c, lambda folder: _every(folder / "c")),
    "imagenet-c": Reader(_imagenet_c, lambda folder: _every(folder / "c")),
    "mapping": Reader(_mapping, lambda folder: _every(folder / "data.npz", mapping=folder / "map.csv")),
    "trends": Reader(_trends, _read_trends),
    "dependencies": Reader(_logits, _read_logits),
    "weights": Reader(_weights, _read_weights),
    "materialised": Reader(_materialised, _materialise_more),
    "table": Reader(_table, _read_table),
    "profile": Reader(
        lambda folder: _profile(folder / "profile.safetensors"),
        lambda folder: _read_profile(folder / "profile.safetensors"),
    ),
    **RECORDINGS,
}


def _profile(path: Path) -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(144, 5)
    )
    data = ArrayData(RANDOM.integers(0, 255, (120, 8, 8), dtype=np.uint8), np.arange(120) % 5, "noise")
    profile = Profile.measure(net, Clean(data, batch_size=60))
    row = {"shift": "fog", "family": "weather", "holdout": False, "severity": 3.0, "size": 0.5, "error": 0.5}
    frame = pd.DataFrame([row | dict.fromkeys(ESTIMATES, 0.6), row | {"shift": "snow"} | dict.fromkeys(ESTIMATES, 0.7)])
    known = KnownShifts(frame, RANDOM.normal(size=(2, 8)), {"error": 0.2}, 100)
    replace(profile, known=known).save(path)


def _read_profile(path: Path) -> None:
    profile = Profile.read(path)
    try:
        Alarms(profile)
        Accuracy(profile).update(np.zeros((2, 5)))
        ShiftWindow(profile).place()
    except HapteraError as error:  # names a signal or a setting, and knows of no file
        raise HapteraError(f"{path}: {error}") from error


def _used(path: Path) -> None:
    outputs = Outputs.load(path)
    outputs.predictions()
    if outputs.targets is not None:
        outputs.correct()
