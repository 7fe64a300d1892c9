"""Joining: predictions to labels by the names of frames and parts."""

import logging
from collections.abc import Sequence

import numpy as np

from haptera.errors import HapteraError, unknown
from haptera.files.deeplabcut import KeypointTable

log = logging.getLogger("haptera")


def joined(
    predicted: KeypointTable, parts: Sequence[str], files: np.ndarray, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted keypoints of the labelled frames that have some, and which frames these are.

    A frame is found by its folder, the video, and its file name; by the file name alone only where one of the tables
    has no folders. A name that fits several frames is an error.

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
    rows = match_files([str(file) for file in predicted.files], [str(file) for file in files], name)
    places = np.array([place for place, row in enumerate(rows) if row is not None], int)
    if not len(places):
        raise HapteraError(
            f"no labelled frame is in {name}; it has {predicted.files[0]}, the labels {files[0]}; the same folder, the "
            "video, and the same file name were expected"
        )
    if len(places) < len(files):
        log.warning(
            "%s: %d of %d labelled frames have no prediction; they do not count",
            name,
            len(files) - len(places),
            len(files),
        )
    chosen = [row for row in rows if row is not None]
    return predicted.keypoints[chosen][:, order], places


def match_files(predicted: Sequence[str], labelled: Sequence[str], name: str) -> list[int | None]:
    """Return for each labelled frame the row of its prediction, or None.

    >>> match_files(["rex/1.png", "ina/1.png"], ["labeled-data/ina/1.png", "labeled-data/tom/1.png"], "said.csv")
    [1, None]
    """
    by_name: dict[str, list[int]] = {}
    for row, file in enumerate(predicted):
        by_name.setdefault(file.rpartition("/")[2], []).append(row)
    rows: list[int | None] = []
    taken: dict[int, str] = {}
    for label in labelled:
        candidates = by_name.get(label.rpartition("/")[2], [])
        shared = {row: pieces for row in candidates if (pieces := _shared(predicted[row], label))}
        best = [row for row, pieces in shared.items() if pieces == max(shared.values())]
        if len(best) > 1:
            both = " or ".join(predicted[row] for row in best[:2])
            raise HapteraError(f"the labelled frame {label} could be {both} of {name}; give the folders of both tables")
        rows.append(best[0] if best else None)
        if best and best[0] in taken:
            raise HapteraError(
                f"{predicted[best[0]]} of {name} could be {taken[best[0]]} or {label}; predict the folder above the "
                "videos, so that names have the video in front, or give the labels of that video alone"
            )
        taken |= dict.fromkeys(best, label)
    return rows


def _shared(one: str, two: str) -> int:
    """Return how many last pieces two paths share; 0 unless these are file and folder, or all of one of them."""
    first, second = one.split("/")[::-1], two.split("/")[::-1]
    least = min(len(first), len(second))
    same = next((k for k, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), least)
    return same if same >= min(2, least) else 0
