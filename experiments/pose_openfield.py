"""Real frames: a network learns part of DeepLabCut's open-field example and is tried on the rest and on another video.

    python experiments/pose_openfield.py PROJECT [FOLDER] [--tiny]

PROJECT is the folder `openfield-Pranav-2018-10-30` of DeepLabCut's examples: 116 labelled frames of one recording of a
mouse, with `config.yaml`, and a video of another recording. The first 11 blocks of EfficientNet-Lite0 (ImageNet
weights) learn the first 70 % of the frames at 96 x 128 pixels; errors are in pixels of the frames as they are,
480 x 640. The other frames are of the same mouse and day. Of the other recording there are no labels, so what changes
there is told by what a mouse cannot do: a part that moves more than JUMP pixels from one frame to the next. Writes
`pose_openfield.md` into FOLDER, by default docs/evidence/results. The network stays in $HAPTERA_DATA/pose-openfield
(default ~/.cache/haptera) with its split, for `haptera pose audit`. The same network by the command line:

    haptera pose train PROJECT/config.yaml --size 96x128 --backbone efficientnet_lite0:blocks=11 --steps 200 \\
        --lr 0.005 --fraction 0.7 --out ~/.cache/haptera/pose-openfield

Some two CPU-minutes on one core.
"""

import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from haptera.adapters import BatchNorm, NoAdaptation
from haptera.files.video import Video
from haptera.measures import keypoint_distances
from haptera.pose import KeypointLabels, PoseData, PoseModel, Split, Training, evaluate, fit
from haptera.pose.evaluate import MakeAdapter
from haptera.pose.predict import Poses
from haptera.pose.project import Project, open_project
from haptera.pose.splits import split_time
from haptera.pose.video import learn_video, to_batch
from haptera.shifts import Contrast, GaussianNoise
from pose_pieces import arguments, kept_in, read, write

HOME = kept_in("pose-openfield")
SIZE = (96, 128)
SHARE, STEPS, FRAMES, JUMP, NEAR = 0.7, 200, 300, 30.0, 10.0
ADAPTERS = {
    "none": NoAdaptation,
    "batchnorm:prior=16": partial(BatchNorm, prior=16),
    "keypoint_labels": KeypointLabels,
}
SHIFTS = {
    "as they are": None,
    "contrast 5": Contrast(5),
    "gaussian noise 3": GaussianNoise(3),
}


def trained(data: PoseData, split: Split, home: Path, steps: int) -> PoseModel:
    """From its file, or trained now."""
    torch.manual_seed(0)
    model = PoseModel(data.parts, "efficientnet_lite0", settings={"blocks": 11}, size=SIZE)
    training = Training(steps=steps, lr=5e-3)
    texts = {"split.csv": split.text(data)}
    fit(model, data.select(split.train), training, every=50, out=home, texts=texts)
    return model


def held_out(model: PoseModel, data: PoseData) -> list[str]:
    """Rows of the table of errors, in pixels of the frames as they are."""
    rows = ["| frames | adapter | median error | mean error | within 10 pixels |", "|---|---|---|---|---|"]
    labels = data.in_source(data.keypoints)
    for name, shift in SHIFTS.items():
        for adapter, make in ADAPTERS.items():
            found = evaluate(model, data, adapter=make, shift=shift, batch_size=64)
            apart = keypoint_distances(data.in_source(found.arrays["keypoints"]), labels)
            near = np.mean(apart[np.isfinite(apart)] <= NEAR)
            rows.append(f"| {name} | {adapter} | {np.nanmedian(apart):.1f} | {np.nanmean(apart):.1f} | {near:.1%} |")
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def jumps(poses: Poses) -> float:
    """The share of keypoints that move further in a frame than a mouse can."""
    return float((np.linalg.norm(np.diff(poses.keypoints, axis=0), axis=2) > JUMP).mean())


def batched(frames: Iterator[np.ndarray], size: int) -> Iterator[list[np.ndarray]]:
    while batch := list(islice(frames, size)):
        yield batch


def stretch(model: PoseModel, make: MakeAdapter, video: Video, frames: int) -> Poses:
    """Keypoints of the first frames of a video, adapted to a sample of all of it, in pixels of the video."""
    adapted = learn_video(model, make, video, SIZE)
    batches = (to_batch(np.stack(batch), SIZE, torch.device("cpu")) for batch in batched(video.read(0, frames), 32))
    with torch.inference_mode():
        found = [model.decode(adapted(batch)) for batch in batches]
    keypoints, confidence = (torch.cat(each).numpy() for each in zip(*found, strict=True))
    return Poses((keypoints + 0.5) * (video.width / SIZE[1]) - 0.5, confidence)


def other_video(model: PoseModel, project: Project, frames: int) -> list[str]:
    """Rows of the table of the other recording."""
    video = Video(project.videos[0])
    sure, leap = f"confidence at least {project.cutoff:g}", f"moves more than {JUMP:g} pixels in a frame"
    rows = [f"| adapter | frames | {sure} | {leap} |", "|---|---|---|---|"]
    for name, make in ADAPTERS.items():
        poses = stretch(model, make, video, frames)
        certain = (poses.confidence >= project.cutoff).mean()
        rows.append(f"| {name} | {len(poses.keypoints):,} | {certain:.1%} | {jumps(poses):.2%} |")
    return rows


def main() -> None:
    parser = arguments()
    parser.add_argument("project", type=Path)
    given = read(parser)
    project = open_project(given.project, size=SIZE)
    split = split_time(project.data, SHARE)
    home = given.folder / "weights" if given.tiny else HOME
    model = trained(project.data, split, home, 2 if given.tiny else STEPS)
    lines = [
        f"{len(split.train)} frames to learn from, {len(split.within)} later ones of the same recording for a test:",
        "",
    ]
    lines += held_out(model, project.data.select(split.within))
    lines += ["", f"The other recording, {project.videos[0].name}, which has no labels:", ""]
    lines += other_video(model, project, 12 if given.tiny else FRAMES)
    write(given.folder, "pose_openfield.md", lines)


if __name__ == "__main__":
    main()
