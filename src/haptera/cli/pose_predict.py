"""`pose predict`: a video or images in, a table of keypoints out."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.checks import check_whole_number
from haptera.cli.options import Json, Quiet, expand_groups
from haptera.cli.say import say, say_json, session
from haptera.errors import HapteraError
from haptera.files.atomic import writable_file
from haptera.words import count

if TYPE_CHECKING:
    from haptera.pose.network import PoseNetwork

BARE = "none"


@dataclass(frozen=True)
class PredictOptions:
    """How keypoints are predicted.

    Attributes:
        model: the network: what `pose train` wrote, a DeepLabCut 3 snapshot (.pt), a folder of transformers, or
            file.py:function.
        config: the pytorch_config.yaml of a snapshot, where it is not beside it.
        adapter: of a video: batchnorm:prior=auto, statistics of the video; keypoint_labels, its sure keypoints too.
        around: of images with several animals: a table that says where they are, such as labels or tracks of
            DeepLabCut; each is predicted from a crop, and --out has a row of individuals.
        clip: an .mp4 of a video with skeletons, unadapted beside adapted.
        clip_frames: how many frames the clip has.
        cutoff: confidence below which the clip shows a part as a ring.
        sample: frames of a video from which an adapter takes its statistics.
        scorer: who the table says predicted.
        backbone: the file.py:function again, if the model was trained with one.
        size: HEIGHTxWIDTH, such as 160x288, to which images are brought; a trained model knows its own.
        batch_size: frames in a pass.
    """

    model: str | None = None
    config: Path | None = None
    adapter: str = BARE
    around: Path | None = None
    clip: Path | None = None
    clip_frames: int = 300
    cutoff: float = 0.6
    sample: int = 32
    scorer: str = "haptera"
    backbone: str | None = None
    size: str | None = None
    batch_size: int = 32


@expand_groups
def predict(
    source: Annotated[Path, typer.Argument(help="A video, a folder of images, or one image.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The table: .csv or .h5 as DeepLabCut, .analysis.h5 as SLEAP reads it.")],
    options: PredictOptions,
    images: Annotated[Path | None, typer.Argument(help="Images, where the first is the model.", hidden=True)] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Predict keypoints of a video or of images, with confidence; the same command goes on where it was stopped."""
    with session(quiet, out):
        from haptera.files.deeplabcut import check_target
        from haptera.files.sleap import check_video_target
        from haptera.files.video import is_video
        from haptera.pose.opening import open_model, read_size

        name = options.model
        if images is not None and name is None:
            name, source = str(source), images
        elif name is None or images is not None:
            raise HapteraError("give the network as --model, and one video, image or folder of images")
        video, show = is_video(source), False if quiet else None
        _check(options, video)
        check_video_target(out) if video else check_target(out)
        network = open_model(name, options.backbone, options.config)
        size = read_size(options.size) or network.size
        if options.around is not None:
            facts = _animals(network, source, out, options, size, show)
        elif video:
            facts = _video(network, source, out, options, size, show)
        else:
            facts = _images(network, source, out, options, size, show)
    _say(facts, options, size, out, as_json)


def _check(options: PredictOptions, video: bool) -> None:
    """Refuse what is for videos alone, and what could only fail after the prediction."""
    for name in ("batch_size", "sample", "clip_frames"):
        check_whole_number(f"--{name.replace('_', '-')}", getattr(options, name))
    if not video and (options.adapter != BARE or options.clip is not None):
        raise HapteraError("--adapter and --clip are for a video, whose frames are of one animal and one camera")
    if video and options.around is not None:
        raise HapteraError("--around is for images with several animals; take the frames out of the video first")
    if options.clip is not None and options.clip.suffix.lower() != ".mp4":
        raise HapteraError(f"--clip is {options.clip}; a name ending in .mp4 was expected")
    if options.clip is not None:
        writable_file(options.clip)


def _images(
    network: "PoseNetwork", source: Path, out: Path, options: PredictOptions, size: Any, show: bool | None
) -> dict[str, Any]:
    from haptera.pose.predict import predict_table

    how: dict[str, Any] = {"size": size, "batch_size": options.batch_size, "progress": show}
    table = predict_table(network, source, out, options.scorer, **how)
    assert table.confidence is not None
    return {
        "frames": len(table.files), "parts": list(table.parts), "mean_confidence": float(table.confidence.mean()),
    }  # fmt: skip


def _animals(
    network: "PoseNetwork", source: Path, out: Path, options: PredictOptions, size: Any, show: bool | None
) -> dict[str, Any]:
    from haptera.pose.animals import predict_animals

    assert options.around is not None
    how: dict[str, Any] = {"size": size, "batch_size": options.batch_size, "progress": show}
    table = predict_animals(network, options.around, out, options.scorer, images=source, **how)
    assert table.confidence is not None
    facts = {"frames": len(set(table.files)), "animals": len(table.files), "parts": list(table.parts)}
    return facts | {"mean_confidence": float(table.confidence.mean())}


def _video(
    network: "PoseNetwork", source: Path, out: Path, options: PredictOptions, size: Any, show: bool | None
) -> dict[str, Any]:
    from haptera.adapters import NoAdaptation
    from haptera.files.video import Video
    from haptera.pose.clips import write_clip
    from haptera.pose.opening import open_adapter
    from haptera.pose.video import predict_video

    label, make = open_adapter(options.adapter)
    adapters = {label: make} if label == BARE or options.clip is None else {BARE: NoAdaptation, label: make}
    how: dict[str, Any] = {"size": size, "batch_size": options.batch_size, "sample": options.sample, "progress": show}
    found = predict_video(network, source, out, options.scorer, adapters=adapters, **how)
    poses = found.poses[label]
    facts: dict[str, Any] = {"frames": len(poses.keypoints), "parts": list(found.parts)}
    facts |= {"mean_confidence": float(poses.confidence.mean()), "adapter": label}
    facts |= {} if found.prior is None else {"prior": found.prior}
    if BARE in found.poses and label != BARE:
        facts["mean_confidence_unadapted"] = float(found.poses[BARE].confidence.mean())
    if options.clip is not None:
        lines = [(found.parts.index(one), found.parts.index(two)) for one, two in found.skeleton]
        headings = {"unadapted" if name == BARE else name: each for name, each in found.poses.items()}
        shown: dict[str, Any] = {"parts": found.parts, "cutoff": options.cutoff, "frames": options.clip_frames}
        write_clip(options.clip, Video(source), headings, lines, **shown)
        facts["clip"] = str(options.clip)
    return facts


def _say(facts: dict[str, Any], options: PredictOptions, size: Any, out: Path, as_json: bool) -> None:
    if as_json:
        say_json(facts | {"size": size, "table": str(out)})
        return
    brought = f", images brought to {size[0]}x{size[1]} as in training" if size and not options.size else ""
    words = f"{count(facts['frames'], 'frame')}, "
    words += f"{count(facts['animals'], 'animal')}, " if "animals" in facts else ""
    words += f"{count(len(facts['parts']), 'part')}"
    say(f"{words}, mean confidence {facts['mean_confidence']:.2f}{brought}")
    if options.adapter != BARE:
        before = facts.get("mean_confidence_unadapted")
        prior = f", N = {facts['prior']:g}" if "prior" in facts else ""
        say(f"{facts['adapter']}{prior}" + (f"; mean confidence unadapted {before:.2f}" if before is not None else ""))
    say("  ".join(filter(None, [str(out), facts.get("clip")])))
