"""SLEAP's analysis files: predicted keypoints of a video in HDF5, as `sleap-convert --format analysis` writes them.

Source: SLEAP's documentation of the format. `tracks` is `(tracks, 2, nodes, frames)`, NaN where nothing was found;
`point_scores` `(tracks, nodes, frames)`; `track_occupancy` `(frames, tracks)`; names are bytes. One animal is one
track. Needs h5py (`pip install 'haptera[pose]'`).
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from haptera.errors import HapteraError
from haptera.extras import import_extra
from haptera.files.atomic import whole
from haptera.files.deeplabcut import KeypointTable, check_target

SUFFIX = ".analysis.h5"


def is_analysis(path: Path) -> bool:
    """Say whether a file has the name of an analysis file."""
    return path.name.endswith(SUFFIX)


def write_analysis(path: Path, table: KeypointTable, skeleton: Sequence[tuple[str, str]] = (), video: str = "") -> None:
    """Write the keypoints of one animal in a video, whole or not at all.

    Args:
        path: a name ending in `.analysis.h5`.
        table: a row for each frame, in order.
        skeleton: pairs of parts.
        video: the path of the video, for people.
    """
    h5py = import_extra("h5py", "pose", f"writing {path.name}")
    keypoints = np.asarray(table.keypoints, float)
    confidence = np.full(keypoints.shape[:2], np.nan) if table.confidence is None else table.confidence
    there = np.isfinite(keypoints).all(2)
    scores = np.where(there, confidence, np.nan).T[None]
    means = np.array([row[each].mean() if each.any() else np.nan for row, each in zip(confidence, there, strict=True)])
    edges = [(table.parts.index(one), table.parts.index(two)) for one, two in skeleton]
    with whole(path) as file, h5py.File(file.name, "w") as content:  # h5py reads what it wrote
        content["tracks"] = keypoints.transpose(2, 1, 0)[None]
        content["point_scores"] = scores
        content["instance_scores"] = means[None]
        content["tracking_scores"] = np.full((1, len(keypoints)), np.nan)
        content["track_occupancy"] = there.any(1)[:, None].astype(np.uint8)
        content["node_names"] = np.array([part.encode() for part in table.parts])
        content["track_names"] = np.array([b"track_0"])
        names = [[one.encode(), two.encode()] for one, two in skeleton]
        content["edge_names"] = np.array(names or np.empty((0, 2), "S1"))
        content["edge_inds"] = np.array(edges, int).reshape(-1, 2)
        content["video_path"], content["video_ind"] = video, 0
        content["provenance"] = "{}"
        content["labels_path"] = ""


def read_analysis(path: Path) -> KeypointTable:
    """Return the keypoints of a file with one track; the numbers of frames are the names."""
    h5py = import_extra("h5py", "pose", f"reading {path.name}")
    if not path.is_file():
        raise HapteraError(f"there is no file {path}")
    try:
        with h5py.File(path, "r") as content:
            tracks, names = content["tracks"][()], content["node_names"][()]
            scores = content["point_scores"][()] if "point_scores" in content else None
    except (OSError, KeyError, RuntimeError) as error:
        raise HapteraError(f"{path} is not an analysis file of SLEAP: {error}") from error
    if tracks.ndim != 4 or tracks.shape[1:3] != (2, len(names)):
        raise HapteraError(f"{path}: tracks are {tracks.shape}; (tracks, 2, {len(names)} nodes, frames) was expected")
    if len(tracks) != 1:
        raise HapteraError(f"{path} has {len(tracks)} tracks; one animal was expected")
    parts = tuple(name.decode() if isinstance(name, bytes) else str(name) for name in names)
    files = np.arange(tracks.shape[3]).astype(str)
    return KeypointTable(tracks[0].transpose(2, 1, 0), parts, files, "sleap", None if scores is None else scores[0].T)


def check_video_target(out: Path) -> None:
    """Refuse a file to which no table can be written."""
    if is_analysis(out):
        return
    try:
        check_target(out)
    except HapteraError as error:
        raise HapteraError(f"{error}; .analysis.h5 for SLEAP") from error
