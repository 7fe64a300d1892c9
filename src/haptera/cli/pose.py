"""`pose train`, `pose predict` and `pose score`: keypoints of animals, on individuals that were never seen."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.cli.options import Json, Quiet
from haptera.cli.pose_options import (
    BatchSize,
    Data,
    Drawn,
    Images,
    Individual,
    Normalise,
    OwnBackbone,
    Scorer,
    Size,
    load_model,
    open_frames,
    read_backbone,
    read_shift,
    read_size,
)
from haptera.cli.say import logging_to_stderr, resumable, say, say_json
from haptera.errors import HapteraError
from haptera.words import count

if TYPE_CHECKING:
    import pandas as pd

    from haptera.pose import PoseData, PoseModel

app = typer.Typer(help="Keypoints: train, predict and score pose models.", no_args_is_help=True)


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
    individual: Individual = None,
    drawn: Drawn = None,
    seed: Annotated[int, typer.Option(help="Of weights, order and augmentation.")] = 0,
    every: Annotated[int, typer.Option(help="Steps between checkpoints.")] = 200,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a pose model on some individuals; the same command goes on where it was stopped."""
    with logging_to_stderr(quiet):
        import torch

        from haptera.files.atomic import writable_folder, write_text
        from haptera.pose import PoseModel, fit, leave_species_out, split_individuals

        found = open_frames(data, images, size, scorer, individual, drawn)
        split = None
        if leave_out is not None:
            split = leave_species_out(found, leave_out, fraction=fraction, seed=seed)
        elif not everything:
            split = split_individuals(found, individuals, fraction=fraction, shuffle=shuffle)
        learnt = found if split is None else found.select(split.train)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = PoseModel(found.parts, skeleton=found.skeleton, size=read_size(size), **read_backbone(backbone))
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
        write_text(out / "split.csv", _split_table(found, parts))
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
    scorer: Annotated[str, typer.Option(help="Who the table says predicted.")] = "haptera",
    backbone: OwnBackbone = None,
    size: Size = None,
    batch_size: BatchSize = 32,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Predict keypoints of images, with confidence."""
    with logging_to_stderr(quiet):
        from haptera.files.deeplabcut import check_target
        from haptera.pose import predict
        from haptera.pose.predict import list_frames

        check_target(out)
        network = load_model(model, backbone)
        files = list_frames(images)
        to = read_size(size) or network.size
        poses = predict(network, files, size=to, batch_size=batch_size, progress=False if quiet else None)
        root = images if images.is_dir() else images.parent
        names = [path.relative_to(root).as_posix() for path in files]
        poses.table(network.parts, names, scorer).write(out)
    confidence = float(poses.confidence.mean())
    if as_json:
        facts = {"frames": len(files), "parts": list(network.parts), "mean_confidence": confidence, "size": to}
        say_json(facts | {"table": str(out)})
        return
    brought = f", images brought to {to[0]}x{to[1]} as in training" if to and not size else ""
    say(f"{count(len(files), 'frame')}, {count(len(network.parts), 'part')}, mean confidence {confidence:.2f}{brought}")
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
    threshold: Annotated[
        float | None, typer.Option(help="Of PCK: 0.3 units of the animal; 5 where errors are in pixels.")
    ] = None,
    normalise: Normalise = None,
    images: Images = None,
    size: Size = None,
    scorer: Scorer = None,
    individual: Individual = None,
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
        raise HapteraError("give either --predictions, a table, or --model, a file of weights")
    if predictions is not None and (shift or adapter or split or report):
        raise HapteraError("--shift, --adapter, --split and --report need --model, for they predict")
    with logging_to_stderr(quiet):
        if predictions is not None:
            from haptera.pose.evaluate import score_table

            drawn_too = open_frames(labels, images, size, scorer, individual, drawn) if labels == "drawn" else None
            rows = score_table(
                predictions, drawn_too or Path(labels), scorer=scorer, individual=individual, threshold=threshold,
                normalise=normalise,
            )  # fmt: skip
        else:
            assert model is not None
            network = load_model(model, backbone)
            to = size or (f"{network.size[0]}x{network.size[1]}" if network.size else None)
            found = open_frames(labels, images, to, scorer, individual, drawn)
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
            from haptera.files.atomic import write_text

            write_text(table, rows.to_csv(index=False))
    from haptera.pose.summary import lines, notes

    if as_json:
        said = {"normalise": str(rows["normalise"].iloc[0]), "notes": notes(rows, normalise is not None)}
        say_json({"scores": _records(rows)} | said | ({"report": str(report)} if report else {}))
        return
    for line in (*lines(rows), *notes(rows, normalise is not None)):
        say(line)
    for path in (table, report):
        if path is not None:
            say(str(path))


def _split_table(data: "PoseData", parts: list[str]) -> str:
    """The part of every frame, as CSV."""
    import pandas as pd

    return pd.DataFrame({"file": data.files, "individual": data.individuals, "part": parts}).to_csv(index=False)


def _last(history: "pd.DataFrame") -> float:
    from haptera.pose.training import WEIGHT

    return float(history["scores"].iloc[-1] + WEIGHT * history["offsets"].iloc[-1])


def _of_model(
    model: Path,
    network: "PoseModel",
    data: "PoseData",
    split: Path | None,
    shifts: list[str],
    adapters: list[str],
    threshold: float | None,
    normalise: str | None,
    batch_size: int,
    seed: int,
    quiet: bool,
    report: Path | None,
) -> "pd.DataFrame":
    from haptera import catalog
    from haptera.pose import PoseStudy
    from haptera.pose.joining import read_split
    from haptera.run.flags import Spec
    from haptera.run.parts import configured

    named = [Spec.parse(text) for text in adapters or ["none", "batchnorm:prior=0"]]
    study = PoseStudy(
        {model.stem if model.stem != "model" else model.parent.name or "model": network},
        {"data": data} if split is None else read_split(split, data),
        (None, *(read_shift(text) for text in shifts)),
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
        from haptera.pose.page_frames import write_page

        write_page(study, rows, report)
    return rows


def _records(rows: "pd.DataFrame") -> list[dict[str, Any]]:
    from haptera.files.json import plain

    keys = ("model", "stream", "adapter", "shift", "severity", "part", "individual", "measure", "value", "low", "high")
    return [plain({key: row[key] for key in (*keys, "n", "missing")}) for row in rows.to_dict("records")]
