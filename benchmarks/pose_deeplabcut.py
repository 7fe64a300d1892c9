"""A snapshot that DeepLabCut 3 trained, and tables that DeepLabCut reads: both ways between it and us.

    DEEPLABCUT_PYTHON benchmarks/pose_deeplabcut.py train PROJECT FOLDER [--epochs N] [--net hrnet_w18]
    DEEPLABCUT_PYTHON benchmarks/pose_deeplabcut.py predict FOLDER
    python benchmarks/pose_deeplabcut.py compare FOLDER
    DEEPLABCUT_PYTHON benchmarks/pose_deeplabcut.py read FOLDER

DEEPLABCUT_PYTHON is that of an environment of its own, with `pip install deeplabcut` (3.0 needs an older NumPy than we
do). `train` copies PROJECT, such as DeepLabCut's open-field example, into FOLDER and trains a network there by its own
code, from random weights, so that nothing is fetched. `predict` predicts some labelled frames and a short clip by its
own code. `compare` predicts the same from the snapshot alone by ours; the aim is at most half a pixel. It leaves our
tables of the clip under the names that DeepLabCut gives its own; `read` opens these by DeepLabCut's functions and has
one of them filtered. About ten CPU-minutes.
"""

import argparse
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd

AIM = 0.5
FRAMES, CLIP = 12, 16
STEM = "clip"
UPDATES = {
    "data.train.crop_sampling.width": 128,
    "data.train.crop_sampling.height": 128,
    "train_settings.batch_size": 8,
    "runner.snapshots.save_epochs": 5,
    "runner.eval_interval": 5,
}


def train(project: Path, folder: Path, epochs: int, net: str) -> None:
    """Train by DeepLabCut alone."""
    import deeplabcut
    import torch
    from deeplabcut.pose_estimation_pytorch.config import PoseConfig
    from deeplabcut.pose_estimation_pytorch.models import PoseModel
    from deeplabcut.utils import auxiliaryfunctions

    home = folder / "project"
    shutil.copytree(project, home, dirs_exist_ok=True, copy_function=shutil.copyfile)
    for each in (home, *home.rglob("*")):
        each.chmod(0o755)
    labelled = next((home / "labeled-data").iterdir())
    config = str(home / "config.yaml")
    videos = {str(home / "videos" / f"{labelled.name}.mp4"): {"crop": "0, 640, 0, 480"}}
    auxiliaryfunctions.edit_config(config, {"project_path": str(home), "video_sets": videos})
    torch.manual_seed(0)
    deeplabcut.create_training_dataset(config, net_type=net, userfeedback=False)
    settings = next(home.rglob("pytorch_config.yaml"))
    start = folder / "start.pt"
    model = PoseModel.build(PoseConfig.from_any(settings)["model"], pretrained_backbone=False)
    torch.save({"model": model.state_dict()}, start)
    deeplabcut.train_network(
        config, snapshot_path=str(start), epochs=epochs, device="cpu", pytorch_cfg_updates=UPDATES
    )  # fmt: skip


def predict_theirs(folder: Path) -> None:
    """Predict by DeepLabCut alone."""
    import deeplabcut

    home = folder / "project"
    config = str(home / "config.yaml")
    images = sorted(next((home / "labeled-data").iterdir()).glob("*.png"))[::6][:FRAMES]
    (folder / "images").mkdir(exist_ok=True)
    for image in images:
        shutil.copyfile(image, folder / "images" / image.name)
    deeplabcut.analyze_images(config, folder / "images", destfolder=folder / "theirs", device="cpu", save_as_csv=True)
    video = next(each for each in (home / "videos").glob("*.mp4") if each.stem != STEM)
    cut(video, home / "videos" / f"{STEM}.mp4")
    deeplabcut.analyze_videos(config, [str(home / "videos" / f"{STEM}.mp4")], device="cpu", save_as_csv=True)


def cut(video: Path, clip: Path) -> None:
    """Write the first frames of a video."""
    import cv2

    source = cv2.VideoCapture(str(video))
    size = int(source.get(cv2.CAP_PROP_FRAME_WIDTH)), int(source.get(cv2.CAP_PROP_FRAME_HEIGHT))
    target = cv2.VideoWriter(str(clip), cv2.VideoWriter_fourcc(*"mp4v"), 30.0, size)
    for _ in range(CLIP):
        target.write(source.read()[1])
    target.release()


def snapshot_of(folder: Path, scorer: str) -> Path:
    """The snapshot that a scorer names, such as `..._snapshot_best-5`."""
    named = re.search(r"snapshot_(best-)?(\d+)", scorer)
    if named is None:
        sys.exit(f"the scorer {scorer} names no snapshot")
    return next((folder / "project").rglob(f"snapshot-{named[1] or ''}{int(named[2]):03d}.pt"))


def theirs(path: Path) -> np.ndarray:
    """`(frames, parts, 3)` of a table that DeepLabCut wrote."""
    header = [0, 1, 2, 3] if "individuals" in path.read_text()[:4000] else [0, 1, 2]
    table = pd.read_csv(path, header=header, index_col=0)
    table = table.sort_index(key=lambda names: [Path(str(name)).name.zfill(20) for name in names])
    return table.to_numpy(float).reshape(len(table), -1, 3)


def compare(folder: Path) -> None:
    """Predict by ours, and print how far apart both are."""
    import torch

    from haptera.pose import open_model, predict
    from haptera.pose.video import predict_video

    torch.set_num_threads(1)
    videos = folder / "project" / "videos"
    table = next(each for each in videos.glob(f"{STEM}*.csv") if "filtered" not in each.name)
    scorer = table.stem.removeprefix(STEM)
    network = open_model(snapshot_of(folder, scorer))
    poses = predict(network, folder / "images", batch_size=2)
    show("labelled frames", poses.keypoints, poses.confidence, next((folder / "theirs").glob("*.csv")))
    clip = videos / f"{STEM}.mp4"
    said = predict_video(network, clip, folder / "ours.csv", scorer, batch_size=4, progress=False)
    said.table("none", scorer).write(folder / f"{STEM}{scorer}.h5")
    show("a clip", said.poses["none"].keypoints, said.poses["none"].confidence, table)


def show(name: str, keypoints: np.ndarray, confidence: np.ndarray, table: Path) -> None:
    expected = theirs(table)
    apart = np.linalg.norm(keypoints - expected[..., :2], axis=2)
    surer = np.abs(confidence - expected[..., 2]).max()
    numbers = f"at most {apart.max():.4f} pixels apart (aim {AIM}), median {np.median(apart):.4f}"
    print(f"{name}: {apart.size} keypoints, {numbers}, confidence {surer:.1e}; mean confidence {confidence.mean():.2f}")


def read(folder: Path) -> None:
    """Open our tables by DeepLabCut's own functions."""
    import deeplabcut
    from deeplabcut.utils import auxiliaryfunctions

    ours = next(folder.glob(f"{STEM}*.h5"))
    scorer = ours.stem.removeprefix(STEM)
    table, *_ = auxiliaryfunctions.load_analyzed_data(folder, STEM, scorer)
    csv = pd.read_csv(folder / "ours.csv", header=[0, 1, 2], index_col=0)
    print(f"h5: {table.shape}, columns {table.columns.names}, scorer {table.columns[0][0] == scorer}; csv: {csv.shape}")
    videos = folder / "project" / "videos"
    own = videos / f"{STEM}{scorer}.h5"
    same = [list(pd.read_hdf(own).columns) == list(each.columns) for each in (table, csv)]
    print(f"the columns of DeepLabCut's own table: {same}")
    shutil.copyfile(videos / f"{STEM}.mp4", folder / f"{STEM}.mp4")
    config = str(folder / "project" / "config.yaml")
    deeplabcut.filterpredictions(config, [str(folder / f"{STEM}.mp4")], filtertype="median")
    filtered = pd.read_hdf(next(folder.glob(f"{STEM}*_filtered.h5")))
    print(f"filtered by DeepLabCut: {filtered.shape}")


def main() -> None:
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers(dest="verb", required=True)
    first = verbs.add_parser("train")
    first.add_argument("project", type=Path)
    first.add_argument("folder", type=Path)
    first.add_argument("--epochs", type=int, default=10)
    first.add_argument("--net", default="resnet_50")
    for name in ("predict", "compare", "read"):
        verbs.add_parser(name).add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.verb == "train":
        train(given.project.resolve(), given.folder.resolve(), given.epochs, given.net)
    else:
        {"predict": predict_theirs, "compare": compare, "read": read}[given.verb](given.folder.resolve())


if __name__ == "__main__":
    main()
