"""Matching: which prediction is of which labelled animal.

Frames are joined by name (`haptera.pose.evaluate`), or, where predictions are of a video and named by numbers, by the
number in the name of the image, as DeepLabCut and SLEAP name the frames that they take out of it. With several animals
in a frame, predictions are matched by object keypoint similarity as DeepLabCut does to count errors: from the surest
on, each to the animal that it is most similar to; if that one is taken, or the similarity below 1e-6, it is left over.
The names that a tracker gives are not those of the labels, so they are not looked at unless `by="name"` asks for it.
"""

import logging
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from haptera.errors import HapteraError, check_keys, unknown
from haptera.files.keypoints import KeypointTable
from haptera.measures.keypoints import SIGMA, box_lengths, object_keypoint_similarity
from haptera.pose.evaluate import join_rows, match_files

log = logging.getLogger("haptera")

LEAST = 1e-6
BY_SIMILARITY, BY_NAME = "oks", "name"
MARKS = ("DLC", "DeepCut")
"""What DeepLabCut puts between the name of a video and that of a network."""


@dataclass(frozen=True, eq=False)
class Matches:
    """Predictions beside labels.

    Attributes:
        keypoints: `(rows, parts, 2)`, predicted for each labelled animal whose frame was predicted; NaN for none.
        confidence: `(rows, parts)`, or None.
        places: `(rows,)`, which label it is.
        similarity: OKS of each frame, `(predictions, animals)`.
        scores: how sure each prediction of a frame is.
        extra: how many predictions are of no labelled animal.
    """

    keypoints: np.ndarray
    confidence: np.ndarray | None
    places: np.ndarray
    similarity: tuple[np.ndarray, ...]
    scores: tuple[np.ndarray, ...]
    extra: int


def match_predictions(
    predicted: KeypointTable,
    labels: KeypointTable,
    name: str,
    *,
    areas: np.ndarray | None = None,
    sigma: float = SIGMA,
    by: str = BY_SIMILARITY,
) -> Matches:
    """Return predictions beside the labels that they are of.

    Args:
        predicted: a table of predictions.
        labels: a table of labels; frames of which nothing is predicted are left out.
        name: of the table of predictions, for messages.
        areas: `(labels,)`, of each animal in square pixels; of the box around its labels where there is none.
        sigma: see `object_keypoint_similarity`.
        by: `oks`, or `name` where animals have the same names in both tables.
    """
    check_keys("way to match animals", [by], (BY_SIMILARITY, BY_NAME))
    predicted, _ = predicted.of_animals()
    for part in labels.parts:
        if part not in predicted.parts:
            raise unknown(f"part in {name}", part, predicted.parts)
    order = [predicted.parts.index(part) for part in labels.parts]
    files = named_by_number(predicted.files, labels.files, name)
    frames, theirs = (list(dict.fromkeys(map(str, column))) for column in (files, predicted.files))
    rows, _ = join_rows(match_files(theirs, frames, name), frames, theirs, name)
    areas = animal_areas(labels.keypoints, areas)
    found = np.full(len(files), -1)
    similarity, scores, extra = [], [], 0
    own, said = (_by_frame(column) for column in (files, predicted.files))
    for frame, row in zip(frames, rows, strict=True):
        if row is None:
            continue
        mine, other = own[frame], said[theirs[row]]
        matrix = _similarity(predicted.keypoints[other][:, order], labels.keypoints[mine], areas[mine], sigma)
        sure = _sureness(predicted, other)
        if np.isfinite(labels.keypoints[mine]).any():  # a frame without a label says nothing of what was found in it
            similarity.append(matrix)
            scores.append(sure)
        pairs = _pairs(matrix, sure) if by == BY_SIMILARITY else _named(predicted, labels, other, mine, name)
        if predicted.animals is None and len(mine) == 1:
            pairs = [(0, 0)]  # one animal and one prediction, however far apart
        for one, two in pairs:
            found[mine[two]] = other[one]
        extra += len(other) - len(pairs)
    places = np.array(
        [place for frame, row in zip(frames, rows, strict=True) if row is not None for place in own[frame]]
    )
    places.sort()
    there = found[places] >= 0
    keypoints = np.where(there[:, None, None], predicted.keypoints[found[places]][:, order], np.nan)
    confidence = None
    if predicted.confidence is not None:
        confidence = np.where(there[:, None], predicted.confidence[found[places]][:, order], np.nan)
    return Matches(keypoints, confidence, places, tuple(similarity), tuple(scores), extra)


def animal_areas(keypoints: np.ndarray, areas: np.ndarray | None = None) -> np.ndarray:
    """Return `(rows,)`: the area of each animal in square pixels; that of the box around its labels where none is said.

    Where no animal's labels span a box, it is 1, and OKS is one of pixels.
    """
    given = np.full(len(keypoints), np.nan) if areas is None else np.asarray(areas, float)
    if (given > 0).all():
        return given
    try:
        boxes = box_lengths(keypoints, np.full(len(keypoints), "")) ** 2
    except HapteraError:
        boxes = np.ones(len(keypoints))
    return np.where(given > 0, given, boxes)


def named_by_number(predicted: np.ndarray, files: np.ndarray, name: str) -> np.ndarray:
    """Return the labelled frames by their numbers, where predictions are of a video and have numbers for names.

    >>> named_by_number(np.array(["0", "1"]), np.array(["labeled-data/clip/img0001.png"]), "clipDLC.csv").tolist()
    ['1']
    """
    plain = [PurePosixPath(str(file)) for file in files]
    if not all(str(each).isdecimal() for each in predicted) or not all(path.parent.name for path in plain):
        return files
    videos = sorted({path.parent.name for path in plain})
    own = [video for video in videos if _is_of(Path(name).name, video)]
    chosen = max(own, key=len) if own else videos[0]
    if len(videos) > 1 and not own:
        raise HapteraError(
            f"{name} has numbers of frames and does not say of which video; the labels are of {', '.join(videos)}; let "
            "its name begin with that of the video"
        )
    if not own:
        log.warning(
            "%s has numbers of frames and does not say of which video; they are taken as those of %s, the only one "
            "with labels; let its name begin with that of its video",
            *(name, chosen),
        )
    numbers = []
    for path in plain:
        digits = re.findall(r"\d+", path.stem)
        if not digits:
            raise HapteraError(f"{name} has numbers of frames, and the labelled frame {path} has none in its name")
        numbers.append(str(int(digits[-1])) if path.parent.name == chosen else str(path))
    return np.array(numbers)


def _is_of(name: str, video: str) -> bool:
    """Say whether a table is called after a video, as `rexDLC_net.csv` and `rex.csv` are after `rex`.

    `rex2DLC_net.csv` is not: in a name that DeepLabCut gave, all that is before its own mark is the video. SLEAP's own
    names are `labels.000_rex.analysis.h5`.
    """
    if not name.startswith(video):
        return re.search(rf"\.\d+_{re.escape(video)}\.analysis\.h5$", name) is not None
    rest = name[len(video) :]
    return rest.startswith(MARKS) or not (rest[:1].isalnum() or any(mark in rest for mark in MARKS))


def _by_frame(files: np.ndarray) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row, file in enumerate(map(str, files)):
        found.setdefault(file, []).append(row)
    return found


def _similarity(predicted: np.ndarray, labelled: np.ndarray, areas: np.ndarray, sigma: float) -> np.ndarray:
    """Return `(predictions, animals)`; 0 where nothing is labelled."""
    number = len(labelled)
    spread = np.repeat(predicted, number, 0), np.tile(labelled, (len(predicted), 1, 1))
    found = object_keypoint_similarity(*spread, np.tile(areas, len(predicted)), sigma)
    return np.nan_to_num(found, nan=0.0).reshape(len(predicted), number)


def _sureness(table: KeypointTable, rows: list[int]) -> np.ndarray:
    """Return the mean confidence of the parts of each prediction; 1 where the table has none."""
    if table.confidence is None:
        return np.ones(len(rows))
    own = table.confidence[rows]
    known = np.isfinite(own)
    return np.where(known, own, 0.0).sum(1) / np.maximum(known.sum(1), 1)


def _pairs(matrix: np.ndarray, scores: np.ndarray) -> list[tuple[int, int]]:
    taken: set[int] = set()
    pairs = []
    for row in np.argsort(-scores, kind="stable").tolist():
        best = int(matrix[row].argmax())
        if best not in taken and matrix[row, best] >= LEAST:
            taken.add(best)
            pairs.append((row, best))
    return pairs


def _named(
    predicted: KeypointTable, labels: KeypointTable, other: list[int], mine: list[int], name: str
) -> list[tuple[int, int]]:
    if predicted.animals is None or labels.animals is None:
        raise HapteraError(f"animals are matched by name, and {name} or the labels do not name them")
    names = {animal: place for place, animal in enumerate(labels.animals[mine].tolist())}
    said = predicted.animals[other].tolist()
    return [(place, names[animal]) for place, animal in enumerate(said) if animal in names]
