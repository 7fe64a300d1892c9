"""SLEAP's analysis files: predicted keypoints of a video in HDF5, as `sleap-convert --format analysis` writes them.

Source: SLEAP's documentation of the format. `tracks` is `(tracks, 2, nodes, frames)`, NaN where nothing was found;
`point_scores` `(tracks, nodes, frames)`; `track_occupancy` `(frames, tracks)`; names are bytes. An animal is a track. A
file of sleap-io may say another order of the axes in `dims`. Needs h5py (`pip install 'haptera[pose]'`).
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from haptera.errors import HapteraError
from haptera.extras import import_extra
from haptera.files.atomic import WriteError, whole, writable_file
from haptera.files.hdf5 import attribute, open_hdf5, values_of
from haptera.files.keypoints import KeypointTable, check_target

SUFFIX = ".analysis.h5"
MATLAB = ("track", "xy", "node", "frame")


def is_analysis(path: Path) -> bool:
    """Say whether a file has the name of an analysis file."""
    return path.name.endswith(SUFFIX)


def write_analysis(path: Path, table: KeypointTable, skeleton: Sequence[tuple[str, str]] = (), video: str = "") -> None:
    """Write the keypoints of the animals in a video, a track for each, whole or not at all.

    Args:
        path: a name ending in `.analysis.h5`.
        table: a row for each frame, or for each animal in each frame, in order.
        skeleton: pairs of parts.
        video: the path of the video, for people.
    """
    h5py = import_extra("h5py", "pose", f"writing {path.name}")
    names, keypoints, confidence = _tracks(table)
    there = np.isfinite(keypoints).all(3)
    scores = np.where(there, confidence, np.nan)
    counts = there.sum(2)
    means = np.where(counts > 0, np.nansum(scores, 2) / np.maximum(counts, 1), np.nan)
    edges = [(table.parts.index(one), table.parts.index(two)) for one, two in skeleton]
    with whole(path) as file, h5py.File(file.name, "w") as content:  # h5py reads what it wrote
        content["tracks"] = keypoints.transpose(0, 3, 2, 1)
        content["point_scores"] = scores.transpose(0, 2, 1)
        content["instance_scores"] = means
        content["tracking_scores"] = np.full(means.shape, np.nan)
        content["track_occupancy"] = there.any(2).T.astype(np.uint8)
        content["node_names"] = np.array([part.encode() for part in table.parts])
        content["track_names"] = np.array([name.encode() for name in names])
        pairs = [[one.encode(), two.encode()] for one, two in skeleton]
        content["edge_names"] = np.array(pairs or np.empty((0, 2), "S1"))
        content["edge_inds"] = np.array(edges, int).reshape(-1, 2)
        content["video_path"], content["video_ind"] = video, 0
        content["provenance"] = "{}"
        content["labels_path"] = ""


def _tracks(table: KeypointTable) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return names, keypoints `(tracks, frames, parts, 2)` and confidence `(tracks, frames, parts)`."""
    animals = np.full(len(table.files), "track_0") if table.animals is None else table.animals
    names, frames = (list(dict.fromkeys(column.tolist())) for column in (animals, table.files))
    rows = [names.index(name) for name in animals.tolist()]
    places = {file: place for place, file in enumerate(frames)}
    columns = [places[file] for file in table.files.tolist()]
    keypoints = np.full((len(names), len(frames), len(table.parts), 2), np.nan)
    confidence = np.full(keypoints.shape[:3], np.nan)
    keypoints[rows, columns] = table.keypoints
    if table.confidence is not None:
        confidence[rows, columns] = table.confidence
    return names, keypoints, confidence


def read_analysis(path: Path) -> KeypointTable:
    """Return the keypoints of a file; the numbers of frames are the names, and each track is an animal.

    A score above 1, which the interpolation between cells of a map can give, counts as 1.
    """
    with open_hdf5(path) as content:
        for name in ("tracks", "node_names"):
            if name not in content:
                raise HapteraError(f"{path} is not an analysis file of SLEAP: it has no {name!r}")
        parts = tuple(map(str, values_of(content["node_names"], f"{path}: node_names", "OS")))
        tracks = _ordered(content["tracks"], MATLAB, f"{path}: tracks")
        scores = None
        if "point_scores" in content:
            scores = _ordered(content["point_scores"], ("track", "node", "frame"), f"{path}: point_scores")
        named = values_of(content["track_names"], "track_names", "OS") if "track_names" in content else np.array([])
    if tracks.shape[1:3] != (2, len(parts)) or not tracks.size:
        raise HapteraError(f"{path}: tracks are {tracks.shape}; (tracks, 2, {len(parts)} nodes, frames) was expected")
    number, frames = len(tracks), tracks.shape[3]
    names = named.astype(str) if len(named) == number else np.array([f"track_{k}" for k in range(number)])
    keypoints = tracks.transpose(3, 0, 2, 1).reshape(frames * number, len(parts), 2).astype(float)
    keypoints[np.isnan(keypoints).any(2)] = np.nan
    confidence = None
    if scores is not None and np.isfinite(scores).any():
        confidence = np.clip(scores.transpose(2, 0, 1).reshape(keypoints.shape[:2]), 0, 1)
    files = np.repeat(np.arange(frames), number).astype(str)
    return KeypointTable(keypoints, parts, files, "sleap", confidence, np.tile(names, frames) if number > 1 else None)


def _ordered(data: Any, order: tuple[str, ...], what: str) -> np.ndarray:
    """Return an array with its axes in an order; they are in that of MATLAB unless the file says another."""
    values = values_of(data, what)
    if values.ndim != len(order):
        raise HapteraError(f"{what} are {values.shape}; {len(order)} axes, {', '.join(order)}, were expected")
    if "dims" not in data.attrs:
        return values
    dims = [str(name) for name in json.loads(attribute(data, "dims"))]
    if sorted(dims) != sorted(order):
        raise HapteraError(f"{what} have the axes {dims}; {', '.join(order)} were expected")
    return values.transpose([dims.index(name) for name in order])


def check_video_target(out: Path) -> None:
    """Refuse a file to which no table can be written."""
    if is_analysis(out):
        writable_file(out)
        return
    try:
        check_target(out)
    except WriteError:
        raise
    except HapteraError as error:
        raise HapteraError(f"{error}; .analysis.h5 for SLEAP") from error
