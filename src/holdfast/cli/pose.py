"""`pose train`, `pose predict` and `pose score`: keypoints of animals, on individuals that were never seen."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.say import count, logging_to_stderr, resumable, say, say_json
from holdfast.cli.study import Json, Quiet
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.pose import PoseData, PoseModel

app = typer.Typer(help="Keypoints: train, predict and score pose models.", no_args_is_help=True)

Data = Annotated[
    str, typer.Argument(help="drawn, a table or project of DeepLabCut, or a COCO .json file.", show_default=False)
]
Images = Annotated[Path | None, typer.Option(help="The folder that paths of images begin at.")]
Size = Annotated[str | None, typer.Option(help="HEIGHTxWIDTH, such as 160x288, for images of different sizes.")]
Scorer = Annotated[str | None, typer.Option(help="Whose labels, of a table with several scorers.")]
BatchSize = Annotated[int, typer.Option(help="Frames in a pass.")]
Normalise = Annotated[
    str | None, typer.Option(help="box, or two parts such as nose,eye; nose,eye where there are both.")
]
OwnBackbone = Annotated[
    str | None, typer.Option("--backbone", help="file.py:function, again, if the model was trained with one.")
]
Drawn = Annotated[str | None, typer.Option(help="Settings of drawn animals: individuals=30,frames=40,seed=0.")]


@app.command("train")
def train(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for the model, its history and the split.")],
    images: Images = None,
    individuals: Annotated[int | None, typer.Option(help="How many to learn from; a third by default.")] = None,
    leave_out: Annotated[str | None, typer.Option(help="Learn from all species but this one.")] = None,
    everything: Annotated[bool, typer.Option("--everything", help="Learn from all frames of all individuals.")] = False,
    fraction: Annotated[float, typer.Option(help="Of the frames of these individuals.")] = 0.5,
    shuffle: Annotated[int, typer.Option(help="Another number, other individuals.")] = 0,
    backbone: Annotated[
        str, typer.Option(help="small, efficientnet_lite0, module:function or file.py:function; :key=value.")
    ] = "small",
    steps: Annotated[int, typer.Option(help="Batches in all.")] = 2000,
    lr: Annotated[float, typer.Option(help="Learning rate at the start.")] = 1e-3,
    lr_end: Annotated[float, typer.Option(help="Learning rate at the end.")] = 1e-5,
    cycles: Annotated[int, typer.Option(help="How often the rate begins anew.")] = 1,
    batch_size: BatchSize = 8,
    rotation: Annotated[float, typer.Option(help="Degrees to either side at most.")] = 25.0,
    crop: Annotated[float, typer.Option(help="Largest share of each side that is cut off.")] = 0.15,
    radius: Annotated[float | None, typer.Option(help="Of the disc around a keypoint, in pixels; 8.")] = None,
    size: Size = None,
    scorer: Scorer = None,
    drawn: Drawn = None,
    seed: Annotated[int, typer.Option(help="Of weights, order and augmentation.")] = 0,
    every: Annotated[int, typer.Option(help="Steps between checkpoints.")] = 200,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a pose model on some individuals; the same command goes on where it was stopped."""
    with logging_to_stderr(quiet):
        import torch

        from holdfast.files import writable_folder, write_text
        from holdfast.pose import PoseModel, fit, leave_species_out, split_individuals

        found = _open(data, images, size, scorer, drawn)
        split = None
        if leave_out is not None:
            split = leave_species_out(found, leave_out, fraction=fraction, seed=seed)
        elif not everything:
            split = split_individuals(found, individuals, fraction=fraction, shuffle=shuffle)
        learnt = found if split is None else found.select(split.train)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = PoseModel(found.parts, skeleton=found.skeleton, **_backbone(backbone))
        writable_folder(out)
        with resumable():
            history = fit(
                model,
                learnt,
                steps=steps,
                lr=lr,
                lr_end=lr_end,
                cycles=cycles,
                batch_size=batch_size,
                rotation=rotation,
                crop=crop,
                radius=radius,
                seed=seed,
                every=every,
                checkpoint=out / "checkpoint.safetensors",
                progress=False if quiet else None,
            )
        model.save(out / "model.safetensors")
        write_text(out / "history.csv", history.to_csv(index=False))
        parts = ["train"] * len(found) if split is None else split.names().tolist()
        write_text(out / "split.csv", "file,individual,part\n" + _split_rows(found, parts))
    counts = {part: parts.count(part) for part in ("train", "within", "out")}
    if as_json:
        files = {"model": str(out / "model.safetensors"), "split": str(out / "split.csv")}
        say_json({"frames": counts, "loss": _last(history), "steps": steps, "files": files})
        return
    say(f"learnt from {count(counts['train'], 'frame')}; loss {_last(history):.4f} after {count(steps, 'step')}")
    say(f"left for tests: {counts['within']} within domain, {counts['out']} out of domain ({out / 'split.csv'})")
    say(str(out / "model.safetensors"))


@app.command("predict")
def predict_(
    model: Annotated[Path, typer.Argument(help="What `pose train` wrote.", show_default=False)],
    images: Annotated[Path, typer.Argument(help="A folder of images, or one image.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The table: a .csv or .h5 as DeepLabCut reads it.")],
    scorer: Annotated[str, typer.Option(help="Who the table says predicted.")] = "holdfast",
    backbone: OwnBackbone = None,
    batch_size: BatchSize = 32,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Predict keypoints of images, with confidence."""
    with logging_to_stderr(quiet):
        from holdfast.deeplabcut import check_target
        from holdfast.pose import predict
        from holdfast.pose.predict import list_frames

        check_target(out)
        network = _load(model, backbone)
        files = list_frames(images)
        poses = predict(network, files, batch_size=batch_size, progress=False if quiet else None)
        root = images if images.is_dir() else images.parent
        names = [path.relative_to(root).as_posix() for path in files]
        poses.table(network.parts, names, scorer).write(out)
    confidence = float(poses.confidence.mean())
    if as_json:
        say_json({"frames": len(files), "parts": list(network.parts), "mean_confidence": confidence, "table": str(out)})
        return
    say(f"{count(len(files), 'frame')}, {count(len(network.parts), 'part')}, mean confidence {confidence:.2f}")
    say(str(out))


@app.command("score")
def score(
    labels: Data,
    predictions: Annotated[Path | None, typer.Option(help="A table of DeepLabCut with predictions.")] = None,
    model: Annotated[Path | None, typer.Option(help="Or what `pose train` wrote, to predict now.")] = None,
    backbone: OwnBackbone = None,
    split: Annotated[Path | None, typer.Option(help="split.csv of `pose train`: scores within and out of it.")] = None,
    shift: Annotated[
        list[str] | None, typer.Option(help="NAME=SEVERITY, such as contrast=5, beside clean; repeatable.")
    ] = None,
    adapter: Annotated[
        list[str] | None, typer.Option(help="name:key=value; none and batchnorm:prior=0 by default; repeatable.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="Of PCK, in units of the animal.")] = 0.3,
    normalise: Normalise = None,
    images: Images = None,
    size: Size = None,
    scorer: Scorer = None,
    drawn: Drawn = None,
    batch_size: BatchSize = 256,
    seed: Annotated[int, typer.Option(help="Of the shifts.")] = 0,
    table: Annotated[Path | None, typer.Option(help="Also write the table to this .csv file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a page with figures to this file.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Score predictions, or a model under shifts with and without adaptation."""
    if (predictions is None) == (model is None):
        raise HoldfastError("give either --predictions, a table, or --model, a file of weights")
    if predictions is not None and (shift or adapter or split or report):
        raise HoldfastError("--shift, --adapter, --split and --report need --model, for they predict")
    with logging_to_stderr(quiet):
        if predictions is not None:
            rows = _of_table(predictions, labels, images, size, scorer, drawn, threshold, normalise)
        else:
            assert model is not None
            network = _load(model, backbone)
            found = _open(labels, images, size, scorer, drawn)
            rows = _of_model(
                model,
                network,
                found,
                split,
                shift or [],
                adapter or [],
                threshold,
                normalise,
                batch_size,
                seed,
                quiet,
                report,
            )
        if table is not None:
            from holdfast.files import write_text

            write_text(table, rows.to_csv(index=False))
    if as_json:
        say_json({"scores": _records(rows)} | ({"report": str(report)} if report else {}))
        return
    for line in _lines(rows, threshold):
        say(line)
    for path in (table, report):
        if path is not None:
            say(str(path))


def _open(data: str, images: Path | None, size: str | None, scorer: str | None, drawn: str | None) -> "PoseData":
    from holdfast.pose import open_pose
    from holdfast.settings import Spec

    settings = {} if drawn is None else dict(Spec.parse(f"drawn:{drawn}").arguments)
    return open_pose(data, images, size=_size(size), scorer=scorer, **settings)


def _size(text: str | None) -> tuple[int, int] | None:
    """Height and width.

    >>> _size("160x288")
    (160, 288)
    """
    if text is None:
        return None
    height, _, width = text.partition("x")
    if not (height.isdigit() and width.isdigit()):
        raise HoldfastError(f"--size is {text!r}; HEIGHTxWIDTH was expected, such as 160x288")
    return int(height), int(width)


def _backbone(text: str) -> dict[str, Any]:
    """Return what `PoseModel` is told: `small:width=8` by its name, `file.py:build` as what that function returns."""
    from holdfast.pose.backbone import import_backbone
    from holdfast.settings import Spec

    spec = Spec.parse(text) if "=" in text else Spec(text, {})
    if ":" not in spec.name:
        return {"backbone": spec.name, "settings": dict(spec.arguments)}
    place, _, function = spec.name.rpartition(":")
    origin = f"{Path(place).name if place.endswith('.py') else place}:{function}"
    return {"backbone": import_backbone(spec.name, spec.arguments), "origin": origin}


def _load(path: Path, backbone: str | None) -> "PoseModel":
    """Return a trained model; a backbone of one's own is named again."""
    from holdfast.pose import PoseModel

    own = None if backbone is None else _backbone(backbone)["backbone"]
    if isinstance(own, str):
        raise HoldfastError(f"--backbone is {backbone!r}, which the file says by itself; file.py:function was expected")
    return PoseModel.load(path, own)


def _split_rows(data: "PoseData", parts: list[str]) -> str:
    rows = zip(data.files, data.individuals, parts, strict=True)
    return "".join(f"{file},{individual},{part}\n" for file, individual, part in rows)


def _last(history: "pd.DataFrame") -> float:
    from holdfast.pose.loss import WEIGHT

    return float(history["scores"].iloc[-1] + WEIGHT * history["offsets"].iloc[-1])


def _of_table(
    predictions: Path,
    labels: str,
    images: Path | None,
    size: str | None,
    scorer: str | None,
    drawn: str | None,
    threshold: float,
    normalise: str | None,
) -> "pd.DataFrame":
    """Frames of both tables, found by their names."""
    from holdfast.measures import normalised_error, pck
    from holdfast.outputs import Outputs
    from holdfast.pose import read_deeplabcut
    from holdfast.pose.joining import joined
    from holdfast.table import measured, tidy

    said = read_deeplabcut(predictions)
    if labels == "drawn" or labels.endswith(".json"):
        data = _open(labels, images, size, scorer, drawn)
        truth = (data.keypoints, data.parts, data.files, data.individuals)
    else:
        read = read_deeplabcut(Path(labels), scorer)
        truth = (read.keypoints, read.parts, read.files, read.individuals)
    keypoints, places = joined(said, truth[1], truth[2], str(predictions))
    outputs = Outputs(
        {"keypoints": keypoints},
        ids=places,
        targets=truth[0][places],
        context={"individual": truth[3][places]},
        provenance={"parts": list(truth[1]), "normalise": normalise, "model": said.scorer, "seed": None},
    )
    return tidy(measured(outputs, [normalised_error, lambda found: pck(found, threshold)]))


def _of_model(
    model: Path,
    network: "PoseModel",
    data: "PoseData",
    split: Path | None,
    shifts: list[str],
    adapters: list[str],
    threshold: float,
    normalise: str | None,
    batch_size: int,
    seed: int,
    quiet: bool,
    report: Path | None,
) -> "pd.DataFrame":
    from holdfast import catalog
    from holdfast.pose import PoseStudy
    from holdfast.pose.joining import read_split
    from holdfast.settings import Spec, configured

    named = [Spec.parse(text) for text in adapters or ["none", "batchnorm:prior=0"]]
    study = PoseStudy(
        {model.stem if model.stem != "model" else model.parent.name or "model": network},
        {"data": data} if split is None else read_split(split, data),
        (None, *(_shift(text) for text in shifts)),
        {
            catalog.label(spec.name, spec.arguments): configured(
                catalog.find_or_import("adapters", spec.name), spec.arguments
            )
            for spec in named
        },
        threshold,
        normalise,
        batch_size,
        seed,
    )
    rows = study.run(progress=False if quiet else None)
    if report is not None:
        from holdfast.pose.page import write_page

        write_page(study, rows, report)
    return rows


def _shift(text: str) -> Any:
    from holdfast import catalog

    name, _, severity = text.partition("=")
    try:
        level = float(severity)
    except ValueError as error:
        raise HoldfastError(f"--shift is {text!r}; NAME=SEVERITY was expected, such as contrast=5") from error
    return catalog.find_or_import("shifts", name)(level)


def _lines(rows: "pd.DataFrame", threshold: float) -> list[str]:
    """Both scores of every cell, and of parts and individuals where there is one cell only."""
    from holdfast.pose.summary import lines

    return lines(rows, threshold)


def _records(rows: "pd.DataFrame") -> list[dict[str, Any]]:
    from holdfast.plain import plain

    keys = ("model", "stream", "adapter", "shift", "severity", "part", "individual", "measure", "value", "low", "high")
    return [plain({key: row[key] for key in (*keys, "n")}) for row in rows.to_dict("records")]
