"""`pose train`, `pose predict` and `pose score`: keypoints of animals, on individuals that were never seen."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from haptera.cli.options import Json, Quiet
from haptera.cli.present import command_of
from haptera.cli.say import logging_to_stderr, resumable, say, say_json
from haptera.errors import HapteraError
from haptera.words import count

if TYPE_CHECKING:
    from haptera.pose import PoseScores

Data = Annotated[
    str,
    typer.Argument(
        help="drawn (drawn:individuals=30,frames=40,seed=0), a table or project of DeepLabCut, or a COCO .json file.",
        show_default=False,
    ),
]
Images = Annotated[Path | None, typer.Option(help="The folder that paths of images begin at.")]
Size = Annotated[
    str | None,
    typer.Option(help="HEIGHTxWIDTH, such as 160x288, to which images are brought; a trained model knows its own."),
]
Scorer = Annotated[str | None, typer.Option(help="Whose labels, where there are several scorers; a,b for both.")]
Individual = Annotated[
    str | None,
    typer.Option("--individual-by", help="Whose image it is in a COCO file: a field of it, folder, or image."),
]
BatchSize = Annotated[int, typer.Option(help="Frames in a pass.")]
OwnBackbone = Annotated[
    str | None, typer.Option("--backbone", help="file.py:function, again, if the model was trained with one.")
]

app = typer.Typer(help="Keypoints: train, predict and score pose models.", no_args_is_help=True)


@app.command("train")
def train(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for checkpoints, the model, its history and the split.")],
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
    seed: Annotated[int, typer.Option(help="Of weights, order and augmentation.")] = 0,
    every: Annotated[int, typer.Option(help="Steps between checkpoints.")] = 200,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a pose model on some individuals; the same command goes on where it was stopped."""
    with logging_to_stderr(quiet), resumable():
        import torch

        from haptera.pose import PoseModel, Training, fit, leave_species_out, open_pose, split_individuals
        from haptera.pose.opening import read_backbone, read_size
        from haptera.pose.splits import split_nothing, split_text
        from haptera.pose.training import MODEL, loss_of

        to = read_size(size)
        found = open_pose(data, images, size=to, scorer=scorer, individual=individual)
        if leave_out is not None:
            split = leave_species_out(found, leave_out, fraction=fraction, seed=seed)
        elif everything:
            split = split_nothing(found)
        else:
            split = split_individuals(found, individuals, fraction=fraction, shuffle=shuffle)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = PoseModel(found.parts, skeleton=found.skeleton, size=to, **read_backbone(backbone))
        history = fit(
            model,
            found.select(split.train),
            Training(steps, lr, lr_end, cycles, batch_size, rotation, crop, radius, seed),
            every=every,
            out=out,
            texts={"split.csv": split_text(found, split)},
            progress=False if quiet else None,
        )
    counts = {"train": len(split.train), "within": len(split.within), "out": len(split.out)}
    loss = loss_of(history)
    if as_json:
        files = {"model": str(out / MODEL), "split": str(out / "split.csv")}
        say_json({"frames": counts, "loss": loss, "steps": steps, "files": files})
        return
    say(f"learnt from {count(counts['train'], 'frame')}; loss {loss:.4f} after {count(steps, 'step')}")
    say(f"left for tests: {counts['within']} within domain, {counts['out']} out of domain ({out / 'split.csv'})")
    say(str(out / MODEL))


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
        from haptera.pose.opening import open_model, read_size
        from haptera.pose.predict import list_frames

        check_target(out)
        network = open_model(model, backbone)
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


def score(
    labels: Data,
    predictions: Annotated[Path | None, typer.Option(help="A table of DeepLabCut with predictions.")] = None,
    model: Annotated[Path | None, typer.Option(help="Or what `pose train` wrote, to predict now.")] = None,
    backbone: OwnBackbone = None,
    split: Annotated[Path | None, typer.Option(help="split.csv of `pose train`: scores within and out of it.")] = None,
    shift: Annotated[
        list[str] | None, typer.Option(help="name:severity, such as contrast:5, beside clean; repeatable.")
    ] = None,
    adapter: Annotated[
        list[str] | None, typer.Option(help="name:key=value; none and batchnorm:prior=0 by default; repeatable.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Of PCK: 0.3 units of the animal; 5 where errors are in pixels.")
    ] = None,
    normalise: Annotated[
        str | None, typer.Option(help="box, pixels, or two parts such as nose,eye; nose,eye where there are both.")
    ] = None,
    images: Images = None,
    size: Size = None,
    scorer: Scorer = None,
    individual: Individual = None,
    batch_size: BatchSize = 256,
    seed: Annotated[int, typer.Option(help="Of the shifts.")] = 0,
    out: Path | None = None,
    progress: bool | None = None,
) -> "PoseScores":
    """Score predictions, or a model under shifts with and without adaptation."""
    if (predictions is None) == (model is None):
        raise HapteraError("give either --predictions, a table, or --model, a file of weights")
    if predictions is not None and (shift or adapter or split):
        raise HapteraError("--shift, --adapter and --split need --model, for they predict")
    from haptera import pose
    from haptera.pose.opening import is_drawn, open_model, read_size
    from haptera.pose.splits import read_split
    from haptera.run.flags import from_flags
    from haptera.run.parts import make_adapter, make_shift

    named = {"scorer": scorer, "individual": individual}
    if predictions is not None:
        truth = pose.open_pose(labels, size=read_size(size)) if is_drawn(labels) else Path(labels)
        return pose.score_predictions(predictions, truth, **named, threshold=threshold, normalise=normalise)
    assert model is not None
    network = open_model(model, backbone)
    frames = pose.open_pose(labels, images, size=read_size(size) or network.size, **named)
    adapters = from_flags([], adapters=adapter or ["none", "batchnorm:prior=0"])["adapters"]
    return pose.score(
        {model.stem if model.stem != "model" else model.parent.name or "model": network},
        {"data": frames} if split is None else read_split(split, frames),
        shifts=(None, *map(make_shift, shift or [])),
        adapters=dict(make_adapter(table, Path()) for table in adapters),
        threshold=threshold,
        normalise=normalise,
        batch_size=batch_size,
        seed=seed,
        out=out,
        progress=progress,
    )


app.command("score")(command_of(score))
