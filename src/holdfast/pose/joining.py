"""Joining: predictions to labels by the names of frames and parts, and frames to the split that a training wrote."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from holdfast.deeplabcut import KeypointTable
from holdfast.errors import HoldfastError, unknown
from holdfast.pose.data import PoseData

log = logging.getLogger("holdfast")


def joined(
    predicted: KeypointTable, parts: Sequence[str], files: np.ndarray, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Predicted keypoints of the labelled frames that have some, and which frames these are.

    A frame is found by its path, or by the end of it: `img1.png` is `labeled-data/video/img1.png` if no other is.

    Args:
        predicted: the table of predictions.
        parts: those that are labelled; each must be predicted.
        files: names of the labelled frames.
        name: of the table, for messages.
    """
    for part in parts:
        if part not in predicted.parts:
            raise unknown(f"part in {name}", part, predicted.parts)
    order = [predicted.parts.index(part) for part in parts]
    by_end: dict[str, int | None] = {}
    for row, file in enumerate(predicted.files):
        pieces = str(file).split("/")
        for start in range(len(pieces)):
            end = "/".join(pieces[start:])
            by_end[end] = row if end not in by_end else None  # None: not the only one
    rows = [_found(str(file), by_end) for file in files]
    places = np.array([place for place, row in enumerate(rows) if row is not None], int)
    if not len(places):
        raise HoldfastError(f"no labelled frame is in {name}; it has {predicted.files[0]}, the labels {files[0]}")
    if len(places) < len(files):
        log.warning(
            "%s: %d of %d labelled frames have no prediction; they do not count",
            name,
            len(files) - len(places),
            len(files),
        )
    chosen = [row for row in rows if row is not None]
    return predicted.keypoints[chosen][:, order], places


def _found(file: str, by_end: dict[str, int | None]) -> int | None:
    pieces = file.split("/")
    ends = ("/".join(pieces[start:]) for start in range(len(pieces)))
    return next((row for end in ends if (row := by_end.get(end)) is not None), None)


def read_split(path: Path, data: PoseData) -> dict[str, PoseData]:
    """`within` and `out`, where they have frames, from the `split.csv` of a training."""
    if not path.is_file():
        raise HoldfastError(f"there is no split {path}")
    try:
        frame = pd.read_csv(path, dtype=str)
        parts = dict(zip(frame["file"], frame["part"], strict=True))
    except (KeyError, ValueError) as error:
        raise HoldfastError(f"{path} is no split of `holdfast pose train`: {error}") from error
    found = np.array([parts.get(file, "") for file in data.files])
    if (found == "").any():
        raise HoldfastError(f"{path} does not say where {data.files[found == ''][0]} belongs; it is of other data")
    sets = {name: np.flatnonzero(found == name) for name in ("within", "out")}
    chosen = {name: data.select(rows) for name, rows in sets.items() if len(rows)}
    if not chosen:
        raise HoldfastError(f"{path} leaves no frames for a test")
    return chosen
