"""`pose train` and `pose score`: keypoints of animals, on individuals that were never seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.cli.options import Json, Quiet, expand_groups
from haptera.cli.pose_audit import audit_command
from haptera.cli.pose_predict import predict
from haptera.cli.pose_similarity import similarity_command
from haptera.cli.present import command_of
from haptera.cli.say import say, say_json, session
from haptera.errors import HapteraError
from haptera.words import count

if TYPE_CHECKING:
    from haptera.pose import PoseData, PoseScores, Split

FRAMES = (
    "drawn (drawn:individuals=30,frames=40,seed=0), a table or project of DeepLabCut, a table of Lightning "
    "Pose, a .slp of SLEAP, or a COCO .json file."
)
Frames = Annotated[str, typer.Argument(help=FRAMES, show_default=False)]

app = typer.Typer(help="Keypoints: train, predict, score and audit pose models.", no_args_is_help=True)
app.command("predict")(predict)
app.command("audit")(audit_command)
app.command("similarity")(similarity_command)


@dataclass(frozen=True)
class FrameOptions:
    """How labelled frames are read.

    Attributes:
        images: the folder that paths of images begin at.
        size: HEIGHTxWIDTH, such as 160x288, to which images are brought; a trained model knows its own.
        scorer: whose labels, where there are several scorers; a,b for both.
        individual_by: whose frame it is: folder, image, animal, pattern:REGEX, a .csv with video and individual, or a
            field of a COCO file.
        animals: of a COCO file: one for images with exactly one animal, all for a crop of every animal.
    """

    images: Path | None = None
    size: str | None = None
    scorer: str | None = None
    individual_by: str | None = None
    animals: str | None = None

    def open(self, source: str, usual: tuple[int, int] | None = None) -> "PoseData":
        """Return the frames, in their `usual` size where no other one is asked for."""
        from haptera.pose.opening import open_pose, read_size

        size = read_size(self.size) or usual
        how = {"scorer": self.scorer, "individual": self.individual_by, "animals": self.animals}
        return open_pose(source, self.images, size=size, **how)


@dataclass(frozen=True)
class SplitOptions:
    """Which frames a model learns from.

    Attributes:
        individuals: how many to learn from; a third by default. One video alone is split by time.
        leave_out: learn from all species but this one.
        everything: learn from all frames of all individuals.
        fraction: of the frames of these individuals.
        shuffle: another number, other individuals.
    """

    individuals: int | None = None
    leave_out: str | None = None
    everything: bool = False
    fraction: float = 0.5
    shuffle: int = 0

    def split(self, data: "PoseData", seed: int) -> "Split":
        """Return the frames to learn from, and those left for tests."""
        from haptera.pose.splits import leave_species_out, split_individuals, split_nothing, split_time

        if self.leave_out is not None:
            return leave_species_out(data, self.leave_out, fraction=self.fraction, seed=seed)
        if self.everything:
            return split_nothing(data)
        if self.individuals is None and len(set(data.individuals)) == 1:
            return split_time(data, self.fraction)
        return split_individuals(data, self.individuals, fraction=self.fraction, shuffle=self.shuffle)


@dataclass(frozen=True)
class TrainOptions:
    """What is trained, and how; most are fields of `haptera.pose.Training`, which needs torch.

    Attributes:
        backbone: small, efficientnet_lite0, 1 or 2, module:function or file.py:function; :key=value, such as
            efficientnet_lite0:pretrained=false, from scratch.
        steps: batches in all.
        lr: learning rate at the start.
        lr_end: learning rate at the end.
        cycles: how often the rate begins anew.
        batch_size: frames in a pass.
        rotation: degrees to either side at most.
        crop: largest share of each side that is cut off.
        radius: of the disc around a keypoint, in pixels; 8.
        frozen_statistics: BatchNorm keeps the statistics that the backbone came with.
        seed: of weights, order and augmentation.
        every: steps between checkpoints.
    """

    backbone: str = "small"
    steps: int = 2000
    lr: float = 1e-3
    lr_end: float = 1e-5
    cycles: int = 1
    batch_size: int = 8
    rotation: float = 25.0
    crop: float = 0.15
    radius: float | None = None
    frozen_statistics: bool = False
    seed: int = 0
    every: int = 200


@app.command("train")
@expand_groups
def train(
    data: Frames,
    out: Annotated[Path, typer.Option(help="Folder for checkpoints, the model, its history and the split.")],
    frames: FrameOptions,
    chosen: SplitOptions,
    options: TrainOptions,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a pose model on some individuals; the same command goes on where it was stopped."""
    with session(quiet, out):
        import torch

        from haptera.pose import PoseModel, Training, fit
        from haptera.pose.opening import read_backbone, read_size
        from haptera.pose.training import MODEL, loss_of

        opened = frames.open(data)
        split = chosen.split(opened, options.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            backbone = read_backbone(options.backbone)
            model = PoseModel(opened.parts, skeleton=opened.skeleton, size=read_size(frames.size), **backbone)
        history = fit(
            model,
            opened.select(split.train),
            Training(**{key: getattr(options, key) for key in Training.__match_args__}),
            every=options.every,
            out=out,
            texts={"split.csv": split.text(opened)},
            progress=False if quiet else None,
        )
    counts = {"train": len(split.train), "within": len(split.within), "out": len(split.out)}
    loss, files = loss_of(history), {"model": str(out / MODEL), "split": str(out / "split.csv")}
    if as_json:
        say_json({"frames": counts, "loss": loss, "steps": options.steps, "files": files})
        return
    say(f"learnt from {count(counts['train'], 'frame')}; loss {loss:.4f} after {count(options.steps, 'step')}")
    say(f"left for tests: {counts['within']} within domain, {counts['out']} out of domain ({files['split']})")
    say(files["model"])


@dataclass(frozen=True)
class ScoreOptions:
    """What is scored, and how errors are counted.

    Attributes:
        predictions: a table of DeepLabCut or Lightning Pose with predictions, or a .analysis.h5 or .slp of SLEAP.
        model: or a network, to predict now: what `pose train` wrote, a DeepLabCut 3 snapshot (.pt), a folder of
            transformers, or file.py:function.
        backbone: the file.py:function again, if the model was trained with one.
        split: the split.csv of `pose train`: scores within and out of it.
        shift: name:severity, such as contrast:5, beside clean; all for 15 corruptions at 5 severities, all:3 at one.
        adapter: an adapter as name:key=value; none and, where the network can, batchnorm:prior=0 by default.
        threshold: of PCK: 0.3 units of the animal; 5 where errors are in pixels.
        normalise: what divides errors: box, pixels, or two parts such as nose,eye; nose,eye where there are both.
        cutoff: likelihood below which one RMSE leaves a keypoint out; pcutoff of the project, or 0.6.
        sigma: of OKS, how precisely a part can be labelled.
        match: how several animals in a frame are found in the labels: oks, or name.
        batch_size: frames in a pass.
        seed: of the shifts.
    """

    predictions: Path | None = None
    model: str | None = None
    backbone: str | None = None
    split: Path | None = None
    shift: Sequence[str] = ()
    adapter: Sequence[str] = ()
    threshold: float | None = None
    normalise: str | None = None
    cutoff: float | None = None
    sigma: float = 0.1
    match: str = "oks"
    batch_size: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.predictions is None) == (self.model is None):
            raise HapteraError("give either --predictions, a table, or --model, a file of weights")
        if self.predictions is not None and (self.shift or self.adapter or self.split):
            raise HapteraError("--shift, --adapter and --split need --model, for they predict")


def score(
    labels: Frames, frames: FrameOptions, options: ScoreOptions, out: Path | None = None, progress: bool | None = None
) -> "PoseScores":
    """Score predictions, or a model under shifts with and without adaptation."""
    from haptera import pose
    from haptera.pose.corruptions import read_shifts
    from haptera.pose.opening import is_drawn, open_adapters, open_model
    from haptera.pose.project import find_cutoff
    from haptera.pose.splits import read_split

    cutoff = find_cutoff(Path(labels)) if options.cutoff is None else options.cutoff
    counting = pose.Counting(options.threshold, options.normalise, cutoff, options.sigma)
    counted: dict[str, Any] = {"counting": counting}
    if options.model is None:
        assert options.predictions is not None
        truth = frames.open(labels) if is_drawn(labels) else Path(labels)
        counted |= {"scorer": frames.scorer, "individual": frames.individual_by, "animals": frames.animals}
        counted |= {"match": options.match}
        return pose.score_predictions(options.predictions, truth, **counted)
    network, path = open_model(options.model, options.backbone), Path(options.model)
    opened = frames.open(labels, network.size)
    return pose.score(
        {path.stem if path.stem != "model" else path.parent.name or "model": network},
        {"data": opened} if options.split is None else read_split(options.split, opened),
        shifts=(None, *read_shifts(options.shift)),
        adapters=open_adapters(options.adapter, network),
        batch_size=options.batch_size,
        seed=options.seed,
        out=out,
        progress=progress,
        **counted,
    )


app.command("score")(command_of(score))
