"""The length in which errors of keypoints are counted: of the head, of the box around the labels, or pixels.

Source: thesis chapter 5: the distance from nose to eye of that individual, or the root of the area of the bounding box.
Differs: the length of a head is the median over the individual's frames, where the source does not say; a frame whose
labels span no box takes its individual's.
"""

from collections.abc import Sequence

import numpy as np

from holdfast.errors import HoldfastError
from holdfast.nearest import hint

HEAD = ("nose", "eye")
BOX = "box"
PIXELS = "pixels"


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
    """`(frames,)`: the length in which errors are counted.

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
        raise HoldfastError(f"normalise is {normalise!r}; box, pixels, or two parts such as nose,eye, was expected")
    for end in ends:
        if end not in lower:
            raise HoldfastError(f"normalise names the part {end!r}, which is not labelled;{hint(end, parts)}")
    return head_lengths(labelled, individuals, (lower.index(ends[0]), lower.index(ends[1])))


def box_lengths(labelled: np.ndarray, individuals: np.ndarray) -> np.ndarray:
    """`(frames,)`: the side of each frame's box; where its labels span none, the median of its individual's, or of all.

    So a frame with a single label counts like the others.
    """
    sides = box_sides(labelled)
    if np.isnan(sides).all():
        raise HoldfastError("no frame has labels that span a box; normalise by 'pixels' or by two parts instead")
    for name in np.unique(individuals[np.isnan(sides)]):
        own = individuals == name
        known = sides[own & np.isfinite(sides)]
        sides[own & np.isnan(sides)] = np.median(known) if len(known) else np.nan
    return np.where(np.isnan(sides), np.nanmedian(sides), sides)
