"""Whether images are turned as EXIF says: where the labels, or the size that a file of COCO declares, say so.

A camera may store an image lying on its side, and say in EXIF how to turn it. Who labelled it saw it turned, or not:
OpenCV's `imread`, through which DeepLabCut 3 loads images, turns them; Pillow, from which it has their sizes, does not,
nor do those who read COCO's keypoints with `IMREAD_IGNORE_ORIENTATION`, such as HRNet. So the labels decide: a declared
size, or labels outside of the image one way and inside the other. Images of which neither says it go with the others of
their file, and stay as they are stored where those do not agree. Cost: nothing that reading the header does not.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from haptera.data.decode import read_header
from haptera.words import count

log = logging.getLogger("haptera")

SIDEWAYS = 5
"""The first orientation of EXIF that makes width of height."""
Source = Path | bytes


def read_sizes(
    images: Sequence[Source], keypoints: np.ndarray | None = None, declared: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return `(images, 2)`, heights and widths as they are read, and which images are to be turned.

    An image that is there several times is opened once. What is turned is logged where there are labels or sizes.

    Args:
        images: files, or what is in them.
        keypoints: `(images, parts, 2)`, x and y in pixels; nothing is turned without labels or sizes.
        declared: `(images, 2)`, heights and widths that a file of labels names; NaN where it names none.
    """
    headers = {image: read_header(image) for image in dict.fromkeys(images)}
    sizes = np.array([headers[image][:2] for image in images])
    odd = {image: orientation for image, (*_, orientation) in headers.items() if orientation > 1}
    if not odd:
        return sizes, np.zeros(len(sizes), bool)
    votes: dict[Source, set[bool]] = {image: set() for image in odd}
    for row, image in enumerate(images):
        if odd.get(image, 1) >= SIDEWAYS:
            own, said = (None if given is None else given[row] for given in (keypoints, declared))
            votes[image] |= _votes(sizes[row], own, said)
    common = set().union(*votes.values())
    turned = {image: (own if len(own) == 1 else common) == {True} for image, own in votes.items()}
    if keypoints is not None or declared is not None:
        _tell(odd, votes, turned, common)
    rows = np.array([turned.get(image, False) for image in images])
    sideways = np.array([odd.get(image, 1) >= SIDEWAYS for image in images])
    return np.where((rows & sideways)[:, None], sizes[:, ::-1], sizes), rows


def warn_of_turned(images: Sequence[Source]) -> None:
    """Warn of images without labels that EXIF says are to be turned."""
    read_sizes(images, np.full((len(images), 1, 2), np.nan))


def _votes(size: np.ndarray, keypoints: np.ndarray | None, declared: np.ndarray | None) -> set[bool]:
    """Return {True} if an image must have been turned, {False} if it must not, nothing if it may be either."""
    if size[0] == size[1]:
        return set()
    if declared is not None and sorted(declared) == sorted(size):
        return {bool((declared != size).any())}
    known = np.empty((0, 2)) if keypoints is None else keypoints[np.isfinite(keypoints).all(-1)]
    if not len(known):
        return set()
    furthest = known.max(0)[::-1]
    stored, turned = ((furthest <= side - 0.5).all() for side in (size, size[::-1]))
    return {bool(turned)} if stored != turned else set()


def _tell(
    odd: Mapping[Source, int], votes: Mapping[Source, set[bool]], turned: Mapping[Source, bool], common: set[bool]
) -> None:
    """Say what was turned, and warn of images of which nothing says it."""
    if done := sum(turned.values()):
        log.info("turned as EXIF says, for the labels are of turned images: %s", count(done, "image"))
    unknown = [image for image in odd if len(votes[image]) != 1]
    if unknown and len(common) != 1:
        first = unknown[0] if isinstance(unknown[0], Path) else "an image inside a file"
        log.warning(
            "EXIF says that %s to be turned (first: %s, orientation %d); nothing says whether those who labelled or "
            "trained on such images saw them turned, and they are read as they are stored",
            f"{count(len(unknown), 'image')} {'is' if len(unknown) == 1 else 'are'}", first, odd[unknown[0]],
        )  # fmt: skip
