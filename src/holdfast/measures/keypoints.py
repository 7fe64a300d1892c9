"""Scores of predicted keypoints: how far from the labels, in units of the animal, and how many are near enough.

Source: thesis chapter 5. The normalised error is the distance in pixels over the distance from nose to eye of that
individual, or over the root of the area of the box around its labels; PCK@t is the share of keypoints within t of that
length. Missing labels (NaN) do not count. Means are taken within each individual first, then over individuals, and so
are intervals, for frames of one video are not independent: Student's t over individuals, see `few_units`.
Differs: the length of an individual is the median over its frames, where the source does not say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.measures.facts import measure
from holdfast.measures.few_units import mean_of_units
from holdfast.nearest import hint
from holdfast.outputs import ASIDE, Outputs
from holdfast.table import Rows

HEAD = ("nose", "eye")
THRESHOLD = 0.3


@dataclass(frozen=True)
class Mean:
    """Of values that belong to individuals.

    Attributes:
        value: the mean of the individuals' means; NaN where nothing is labelled.
        low: lower end of a 95 % interval over individuals; NaN for one individual, and where all have the same mean.
        high: upper end of it.
        n: how many values there were.
        individuals: of how many individuals.
    """

    value: float
    low: float
    high: float
    n: int
    individuals: int


def keypoint_distances(predicted: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """`(frames, parts)`: pixels between two sets of keypoints `(frames, parts, 2)`; NaN where there is no label."""
    predicted, labelled = np.asarray(predicted, float), np.asarray(labelled, float)
    if predicted.shape != labelled.shape or labelled.ndim != 3 or labelled.shape[2] != 2:
        raise HoldfastError(
            f"predicted keypoints are {predicted.shape} and labels {labelled.shape}; "
            "(frames, parts, 2) was expected of both"
        )
    missing = ~np.isfinite(predicted).all(2) & np.isfinite(labelled).all(2)
    if missing.any():
        frame, part = np.argwhere(missing)[0]
        raise HoldfastError(
            f"{missing.sum()} labelled keypoints have no prediction (first: frame {frame}, part {part}); "
            "a finite number was expected for every one"
        )
    return np.sqrt(((predicted - labelled) ** 2).sum(2))


def head_lengths(labelled: np.ndarray, individuals: np.ndarray, ends: tuple[int, int]) -> np.ndarray:
    """`(frames,)`: of each frame's individual the median distance between two parts, over frames that have both."""
    found = np.sqrt(((labelled[:, ends[0]] - labelled[:, ends[1]]) ** 2).sum(1))
    lengths = np.empty(len(labelled))
    for name in np.unique(individuals):
        own = individuals == name
        known = found[own & np.isfinite(found)]
        if not len(known) or np.median(known) == 0:
            raise HoldfastError(
                f"individual {str(name)!r} has no frame in which both ends of the head are labelled, apart from each "
                "other; normalise by 'box' instead"
            )
        lengths[own] = np.median(known)
    return lengths


def box_sides(labelled: np.ndarray) -> np.ndarray:
    """`(frames,)`: the root of the area of the box around a frame's labels; NaN where that is empty."""
    known = np.isfinite(labelled)
    low = np.where(known, labelled, np.inf).min(1)
    high = np.where(known, labelled, -np.inf).max(1)
    area = np.prod(np.where(np.isfinite(high - low), high - low, 0.0), axis=1)
    return np.where(area > 0, np.sqrt(area), np.nan)


def keypoint_scales(
    labelled: np.ndarray, individuals: np.ndarray, parts: Sequence[str], normalise: str | None = None
) -> np.ndarray:
    """`(frames,)`: the length in which errors are counted.

    Args:
        labelled: `(frames, parts, 2)`.
        individuals: `(frames,)`, the name of each frame's individual.
        parts: their names.
        normalise: `box`, or two parts such as `nose,eye`; by default nose and eye where there are both, else the box.
    """
    lower = [part.lower() for part in parts]
    if normalise is None:
        normalise = ",".join(HEAD) if all(part in lower for part in HEAD) else "box"
    if normalise == "box":
        return box_sides(labelled)
    ends = [end.strip().lower() for end in normalise.split(",")]
    if len(ends) != 2:
        raise HoldfastError(f"normalise is {normalise!r}; box, or two parts such as nose,eye, was expected")
    for end in ends:
        if end not in lower:
            raise HoldfastError(f"normalise names the part {end!r}, which is not labelled;{hint(end, parts)}")
    return head_lengths(labelled, individuals, (lower.index(ends[0]), lower.index(ends[1])))


def mean_over_individuals(values: np.ndarray, individuals: np.ndarray, scale: str = "plain") -> Mean:
    """The mean of the individuals' means, with an interval over individuals.

    Args:
        values: `(frames,)` or `(frames, parts)`; NaN does not count.
        individuals: `(frames,)`.
        scale: of the interval, `log` for errors, `share` for shares, `plain` for differences; see `mean_of_units`.

    >>> found = mean_over_individuals(np.array([1.0, 1.0, 4.0, np.nan]), np.array(["a", "a", "b", "b"]))
    >>> found.value, found.n, found.individuals
    (2.5, 3, 2)
    """
    values = values.reshape(len(values), -1)
    known = np.isfinite(values)
    names, codes = np.unique(individuals, return_inverse=True)
    totals = np.bincount(codes, np.where(known, values, 0.0).sum(1), len(names))
    counts = np.bincount(codes, known.sum(1), len(names))
    mean = mean_of_units(totals[counts > 0] / counts[counts > 0], scale)
    return Mean(mean.value, *mean.ends, int(counts.sum()), mean.units)


def keypoint_rows(
    name: str, values: np.ndarray, individuals: np.ndarray, parts: Sequence[str], scale: str = "plain"
) -> Rows:
    """Rows of the table: all keypoints together, each part, and each individual; columns `part` and `individual`.

    Args:
        name: of the measure.
        values: `(frames, parts)`, NaN where nothing is labelled. A part without any label has no row.
        individuals: `(frames,)`. One alone has no interval.
        parts: their names.
        scale: of the intervals, see `mean_over_individuals`.
    """
    found: list[tuple[dict[str, str], Mean]] = [({}, mean_over_individuals(values, individuals, scale))]
    found += [({"part": part}, mean_over_individuals(values[:, k], individuals, scale)) for k, part in enumerate(parts)]
    for individual in np.unique(individuals):
        own = individuals == individual
        found.append(({"individual": str(individual)}, mean_over_individuals(values[own], individuals[own], scale)))
    empty = {"part": "", "individual": ""}
    return [
        empty | place | {"measure": name, "value": mean.value, "n": mean.n} | _ends(mean)
        for place, mean in found
        if mean.n
    ]


def _ends(mean: Mean) -> dict[str, float]:
    return {} if np.isnan(mean.low) else {"low": mean.low, "high": mean.high}


@measure(bounds=(0.0, float("inf")), higher_is_better=False, reads="keypoints")
def normalised_error(outputs: Outputs, normalise: str | None = None) -> Rows:
    """Distance to the label over the size of the individual; rows per part and individual as well.

    Args:
        outputs: with keypoints; others give no rows.
        normalise: `box`, or two parts; see `keypoint_scales`.
    """
    return [
        context | row
        for context, values, individuals, parts in _normalised(outputs, normalise)
        for row in keypoint_rows("normalised_error", values, individuals, parts, "log")
    ]


@measure(bounds=(0.0, 1.0), higher_is_better=True, reads="keypoints")
def pck(outputs: Outputs, threshold: float = THRESHOLD, normalise: str | None = None) -> Rows:
    """Percentage of correct keypoints, as a share: those within `threshold` of the size of the individual."""
    if not 0 < threshold < float("inf"):
        raise HoldfastError(f"threshold is {threshold}; a share of the size of the animal above 0 was expected")
    return [
        context | row | {"threshold": threshold}
        for context, values, individuals, parts in _normalised(outputs, normalise)
        for near in [np.where(np.isnan(values), np.nan, values <= threshold)]
        for row in keypoint_rows("pck", near, individuals, parts, "share")
    ]


def _normalised(
    outputs: Outputs, normalise: str | None
) -> list[tuple[dict[str, Any], np.ndarray, np.ndarray, Sequence[str]]]:
    """For each context but the individual: errors `(frames, parts)` in units of the animal, and whose they are."""
    if "keypoints" not in outputs.arrays or outputs.targets is None:
        return []
    parts = outputs.provenance.get("parts") or [str(k) for k in range(outputs.targets.shape[1])]
    individuals = outputs.context.get("individual", np.full(len(outputs), ""))
    distances = keypoint_distances(outputs.arrays["keypoints"], outputs.targets)
    normalise = normalise or outputs.provenance.get("normalise")
    scales = keypoint_scales(outputs.targets, individuals, parts, normalise)
    keys = [key for key in outputs.context if key not in (*ASIDE, "individual")]
    found: dict[tuple[Any, ...], list[int]] = {}
    for place, values in enumerate(zip(*(outputs.context[key].tolist() for key in keys), strict=True)):
        found.setdefault(values, []).append(place)
    groups = {(): list(range(len(outputs)))} if not keys else dict(sorted(found.items()))
    return [
        (dict(zip(keys, values, strict=True)), distances[rows] / scales[rows, None], individuals[rows], parts)
        for values, rows in groups.items()
    ]
