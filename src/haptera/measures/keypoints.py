"""Scores of predicted keypoints: how far from the labels, in units of the animal, and how many are near enough.

Source: thesis chapter 5. The normalised error is the distance in pixels over the distance from nose to eye of that
individual, or over the root of the area of the box around its labels (`keypoint_scales`); PCK@t is the share of
keypoints within t of that length. Missing labels (NaN) do not count. A missing prediction (NaN) of a labelled keypoint
is a miss to PCK; the error leaves it out, for it has no distance, and the column `missing` says how many there were.
Means are taken within each individual first, then over individuals, and so are intervals, for frames of one video are
not independent: Student's t over individuals, see `haptera.statistics.intervals`.
Differs: the length of a head is the median over the individual's frames, where the source does not say; a frame whose
labels span no box takes its individual's.
Object keypoint similarity (OKS) is that of the COCO keypoint evaluation: the mean over labelled parts of
exp(−d² / 2 s² k²), d the distance in pixels, s² the area of the object and k = 2σ how precisely a part can be labelled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from haptera.checks import check_number
from haptera.errors import HapteraError, hint
from haptera.measures.facts import measure
from haptera.outputs import ASIDE, Outputs
from haptera.statistics.intervals import mean_of_units
from haptera.table import Rows

THRESHOLD = 0.3
PIXEL_THRESHOLD = 5.0
HEAD = ("nose", "eye")
BOX = "box"
PIXELS = "pixels"
SIGMA = 0.1
"""The constant for parts of animals, for which COCO has no published value; the usual choice of DeepLabCut."""


@dataclass(frozen=True)
class Mean:
    """The mean of values that belong to individuals.

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
    """Return `(frames, parts)`: pixels between two sets of keypoints `(frames, parts, 2)`.

    NaN where there is no label, infinite where there is a label and no prediction.
    """
    predicted, labelled = np.asarray(predicted, float), np.asarray(labelled, float)
    if predicted.shape != labelled.shape or labelled.ndim != 3 or labelled.shape[2] != 2:
        raise HapteraError(
            f"predicted keypoints are {predicted.shape} and labels {labelled.shape}; "
            "(frames, parts, 2) was expected of both"
        )
    missing = ~np.isfinite(predicted).all(2)
    across, down = np.moveaxis(np.where(missing[:, :, None], 0.0, predicted) - labelled, 2, 0)
    apart = np.hypot(across, down)
    return np.where(np.isnan(apart), np.nan, np.where(missing, np.inf, apart))


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
    name: str,
    values: np.ndarray,
    individuals: np.ndarray,
    parts: Sequence[str],
    scale: str = "plain",
    missing: np.ndarray | None = None,
) -> Rows:
    """Rows of the table: all keypoints together, each part, and each individual; columns `part` and `individual`.

    Args:
        name: of the measure.
        values: `(frames, parts)`, NaN where nothing is labelled. A part without any label has no row. What is infinite
            is not averaged.
        individuals: `(frames,)`. One alone has no interval.
        parts: their names.
        scale: of the intervals, see `mean_over_individuals`.
        missing: `(frames, parts)`, which labelled keypoints have no prediction; those with an infinite value if left
            out. The column `missing` counts them.
    """
    missing = np.isinf(values) if missing is None else missing
    everybody, every = np.full(len(values), True), slice(None)
    groups: list[tuple[dict[str, str], np.ndarray, slice]] = [({}, everybody, every)]
    groups += [({"part": part}, everybody, slice(k, k + 1)) for k, part in enumerate(parts)]
    groups += [({"individual": str(one)}, individuals == one, every) for one in np.unique(individuals)]
    rows: Rows = []
    for place, own, columns in groups:
        mean = mean_over_individuals(values[own, columns], individuals[own], scale)
        unseen = int(missing[own, columns].sum())
        if mean.n or unseen:
            found = {"measure": name, "value": mean.value, "n": mean.n, "missing": unseen}
            ends = {} if np.isnan(mean.low) else {"low": mean.low, "high": mean.high}
            rows.append({"part": "", "individual": ""} | place | found | ends)
    return rows


@measure(bounds=(0.0, float("inf")), higher_is_better=False, reads="keypoints")
def normalised_error(outputs: Outputs, normalise: str | None = None) -> Rows:
    """Distance to the label over the size of the individual; rows per part and individual as well.

    Args:
        outputs: with keypoints; others give no rows.
        normalise: `box`, `pixels`, or two parts; see `keypoint_scales`.
    """
    return [
        found.context | row | {"normalise": found.normalise}
        for found in _normalised(outputs, normalise)
        for row in keypoint_rows("normalised_error", found.errors, found.individuals, found.parts, "log")
    ]


@measure(bounds=(0.0, 1.0), higher_is_better=True, reads="keypoints")
def pck(outputs: Outputs, threshold: float | None = None, normalise: str | None = None) -> Rows:
    """Percentage of correct keypoints, as a share: those within `threshold` of the size of the individual.

    Args:
        outputs: with keypoints; others give no rows.
        threshold: 0.3 by default, 5 where errors are in pixels.
        normalise: `box`, `pixels`, or two parts; see `keypoint_scales`.
    """
    if threshold is not None:
        check_number("threshold", threshold, above=0, below=inf, what="a share of the size of the animal")
    rows: Rows = []
    for found in _normalised(outputs, normalise):
        most = threshold or (PIXEL_THRESHOLD if found.normalise == PIXELS else THRESHOLD)
        near = np.where(np.isnan(found.errors), np.nan, found.errors <= most)
        scores = keypoint_rows("pck", near, found.individuals, found.parts, "share", np.isinf(found.errors))
        rows += [found.context | row | {"threshold": most, "normalise": found.normalise} for row in scores]
    return rows


def object_keypoint_similarity(
    predicted: np.ndarray, labelled: np.ndarray, areas: np.ndarray, sigmas: np.ndarray | float = SIGMA
) -> np.ndarray:
    """Return `(frames,)`; NaN for a frame without a label. A labelled part without a prediction has a similarity of 0.

    Args:
        predicted: `(frames, parts, 2)`.
        labelled: `(frames, parts, 2)`, NaN where missing.
        areas: `(frames,)`, of each object in square pixels.
        sigmas: `(parts,)`, or one for all.
    """
    distances = keypoint_distances(predicted, labelled)
    areas = np.asarray(areas, float)
    if areas.shape != (len(distances),) or not (areas > 0).all():
        raise HapteraError(f"areas are {areas.shape}; {len(distances)} positive numbers were expected, one for each")
    deviations = 2 * np.broadcast_to(np.asarray(sigmas, float), distances.shape[1:])
    similar = np.exp(-(distances**2) / (2 * areas[:, None] * deviations**2))
    known = np.isfinite(similar)
    counts = known.sum(1)
    return np.where(counts > 0, np.where(known, similar, 0.0).sum(1) / np.maximum(counts, 1), np.nan)


@dataclass(frozen=True, eq=False)
class _Errors:
    """The frames of one context: errors `(frames, parts)` in units of the animal, and whose they are."""

    context: dict[str, Any]
    errors: np.ndarray
    individuals: np.ndarray
    parts: Sequence[str]
    normalise: str


def _normalised(outputs: Outputs, normalise: str | None) -> list[_Errors]:
    """The errors of each context but the individual."""
    if "keypoints" not in outputs.arrays or outputs.targets is None:
        return []
    parts = outputs.provenance.get("parts") or [str(k) for k in range(outputs.targets.shape[1])]
    individuals = outputs.context.get("individual", np.full(len(outputs), ""))
    distances = keypoint_distances(outputs.arrays["keypoints"], outputs.targets)
    normalise = find_normaliser(parts, normalise or outputs.provenance.get("normalise"))
    scales = keypoint_scales(outputs.targets, individuals, parts, normalise)
    keys = [key for key in outputs.context if key not in (*ASIDE, "individual")]
    found: dict[tuple[Any, ...], list[int]] = {}
    for place, values in enumerate(zip(*(outputs.context[key].tolist() for key in keys), strict=True)):
        found.setdefault(values, []).append(place)
    groups = {(): list(range(len(outputs)))} if not keys else dict(sorted(found.items()))
    errors = distances / scales[:, None]
    return [
        _Errors(dict(zip(keys, values, strict=True)), errors[rows], individuals[rows], parts, normalise)
        for values, rows in groups.items()
    ]


def head_lengths(labelled: np.ndarray, individuals: np.ndarray, ends: tuple[int, int]) -> np.ndarray:
    """`(frames,)`: of each frame's individual the median distance between two parts, over frames that have both."""
    found = np.linalg.norm(labelled[:, ends[0]] - labelled[:, ends[1]], axis=1)
    lengths = np.empty(len(labelled))
    for name in np.unique(individuals):
        own = individuals == name
        known = found[own & np.isfinite(found)]
        if not len(known) or np.median(known) == 0:
            raise HapteraError(
                f"individual {str(name)!r} has no frame in which both ends of the head are labelled, apart from each "
                "other; normalise by 'box' instead"
            )
        lengths[own] = np.median(known)
    return lengths


def box_sides(labelled: np.ndarray) -> np.ndarray:
    """Return `(frames,)`: the root of the area of the box around a frame's labels; NaN where that is empty."""
    known = np.isfinite(labelled)
    low = np.where(known, labelled, np.inf).min(1)
    high = np.where(known, labelled, -np.inf).max(1)
    area = np.prod(np.where(np.isfinite(high - low), high - low, 0.0), axis=1)
    return np.where(area > 0, np.sqrt(area), np.nan)


def find_normaliser(parts: Sequence[str], normalise: str | None = None) -> str:
    """Return by what errors are divided, as it was asked for or, by default, as the parts allow.

    Nose and eye where there are both, else the box around the labels; one part alone has neither, so its errors are in
    pixels.

    >>> find_normaliser(["Nose", "Eye", "tail"]), find_normaliser(["snout", "tail"]), find_normaliser(["snout"])
    ('nose,eye', 'box', 'pixels')
    """
    if normalise:
        return normalise
    lower = [part.lower() for part in parts]
    if all(part in lower for part in HEAD):
        return ",".join(HEAD)
    return BOX if len(parts) > 1 else PIXELS


def keypoint_scales(
    labelled: np.ndarray, individuals: np.ndarray, parts: Sequence[str], normalise: str | None = None
) -> np.ndarray:
    """Return `(frames,)`: the length in which errors are counted.

    Args:
        labelled: `(frames, parts, 2)`.
        individuals: `(frames,)`, the name of each frame's individual.
        parts: their names.
        normalise: `box`, `pixels`, or two parts such as `nose,eye`; see `find_normaliser` for the default.
    """
    normalise = find_normaliser(parts, normalise)
    if normalise == PIXELS:
        return np.ones(len(labelled))
    if normalise == BOX:
        return box_lengths(labelled, individuals)
    lower = [part.lower() for part in parts]
    ends = [end.strip().lower() for end in normalise.split(",")]
    if len(ends) != 2:
        raise HapteraError(f"normalise is {normalise!r}; box, pixels, or two parts such as nose,eye, was expected")
    for end in ends:
        if end not in lower:
            raise HapteraError(f"normalise names the part {end!r}, which is not labelled;{hint(end, parts)}")
    return head_lengths(labelled, individuals, (lower.index(ends[0]), lower.index(ends[1])))


def box_lengths(labelled: np.ndarray, individuals: np.ndarray) -> np.ndarray:
    """`(frames,)`: the side of each frame's box; where its labels span none, the median of its individual's, or of all.

    So a frame with a single label counts like the others.
    """
    sides = box_sides(labelled)
    if np.isnan(sides).all():
        raise HapteraError("no frame has labels that span a box; normalise by 'pixels' or by two parts instead")
    for name in np.unique(individuals[np.isnan(sides)]):
        own = individuals == name
        known = sides[own & np.isfinite(sides)]
        sides[own & np.isnan(sides)] = np.median(known) if len(known) else np.nan
    return np.where(np.isnan(sides), np.nanmedian(sides), sides)
