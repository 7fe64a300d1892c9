"""Selection: which part of a data set are these images, and are some of them there twice?

Sizes of the usual test sets are facts of their publications. Copies are found by a hash of the pixels, exactly; images
are read in random order for as long as there is time, and the sentence says how many were looked at.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from haptera.analyses.preflight.check import FINE, WARNING, Check
from haptera.data import Data
from haptera.words import count

SUBSET, TWICE = "Which part of a data set is it?", "Are some of the images there twice?"
AT_ONCE = 256
TOLERABLE = 0.01
"""The share of copies that does not matter."""
FEWEST = 20
"""Labels, of which nothing can be said with fewer."""


@dataclass(frozen=True)
class KnownSet:
    """A test set that people use."""

    name: str
    images: int
    classes: int
    channels: int
    side: int | None = None


KNOWN = (
    KnownSet("CIFAR-10", 10_000, 10, 3, 32),
    KnownSet("CIFAR-100", 10_000, 100, 3, 32),
    KnownSet("SVHN", 26_032, 10, 3, 32),
    KnownSet("STL-10", 8_000, 10, 3, 96),
    KnownSet("Tiny ImageNet (validation)", 10_000, 200, 3, 64),
    KnownSet("MNIST or Fashion-MNIST", 10_000, 10, 1, 28),
    KnownSet("ImageNet (validation)", 50_000, 1000, 3),
    KnownSet("ImageNet-V2", 10_000, 1000, 3),
    KnownSet("ImageNet-Sketch", 50_889, 1000, 3),
    KnownSet("ImageNet-R", 30_000, 200, 3),
    KnownSet("ImageNet-A", 7_500, 200, 3),
)


def check_subset(data: Data, shape: tuple[int, ...], outputs: int) -> Check:
    """Compare images and classes with the usual test sets, and with the outputs of the model.

    Args:
        data: the images.
        shape: of one of them, `(channels, height, width)`.
        outputs: of the model.
    """
    n = len(data)
    near = [known for known in KNOWN if _could_be(known, data, shape, outputs)]
    numbers: dict[str, Any] = {"images": n}
    told = [count(n, "image")]
    if data.targets is not None:
        present, counts = np.unique(data.targets, return_counts=True)
        classes = outputs if data.classes is None else len(data.classes.accepted)
        numbers |= {"present": len(present), "classes": classes, "fewest": int(counts.min()), "most": int(counts.max())}
        told = [
            f"{told[0]} of {len(present):,} of {count(classes, 'class').removesuffix('s')}{'es' if classes > 1 else ''}"
        ]
        if data.classes is None and n >= max(FEWEST, 2 * classes) and (missing := classes - len(present)):
            return _missing(present, missing, told[0], numbers)
    if near and n < near[0].images:
        numbers |= {"whole": near[0].images, "share": n / near[0].images}
        names = " or ".join(known.name for known in near if known.images == near[0].images)
        told.append(f"if it is {names}, {n / near[0].images:.1%} of its {near[0].images:,}")
    return Check("subset", SUBSET, FINE, "; ".join(told), numbers)


def _missing(present: np.ndarray, missing: int, told: str, numbers: dict[str, Any]) -> Check:
    """Return the verdict on images that leave classes out, although there are enough of them."""
    if present[-1] == len(present) - 1:
        why = f"only the first {len(present):,} occur, as in the first rows of a set that is sorted by class"
    else:
        why = f"{missing:,} never occur"
    sentence = f"{told}: {why}; take images of all classes, or give a mapping if the labels are of another data set"
    return Check("subset", SUBSET, WARNING, sentence, numbers | {"missing": missing})


def _could_be(known: KnownSet, data: Data, shape: tuple[int, ...], outputs: int) -> bool:
    classes = len(data.names) if data.names is not None else outputs
    size = known.side is None or shape[1:] == (known.side, known.side)
    return size and (known.channels, known.classes) == (shape[0], classes) and (known.side is not None or shape[1] > 96)


@dataclass(frozen=True)
class Hashes:
    """Hashes of images.

    Attributes:
        places: hash -> where it was seen.
        read: how many images were looked at.
    """

    places: dict[bytes, list[int]]
    read: int


def hash_images(data: Data, seconds: float, seed: int) -> Hashes:
    """Hash images in random order, until the time is over; the first few hundred in any case."""
    places: dict[bytes, list[int]] = {}
    read, start = 0, time.perf_counter()
    for positions in _parts(len(data), seed):
        for position, image in zip(positions.tolist(), data.images(positions).numpy(), strict=True):
            key = blake2b(np.ascontiguousarray(image).data, digest_size=16).digest()
            places.setdefault(key, []).append(position)
        read += len(positions)
        if time.perf_counter() - start > seconds:
            break
    return Hashes(places, read)


def _parts(total: int, seed: int) -> Iterator[np.ndarray]:
    order = np.random.default_rng(seed).permutation(total)
    yield from (order[start : start + AT_ONCE] for start in range(0, total, AT_ONCE))


def check_duplicates(data: Data, hashes: Hashes, reference: Data | None, known: Hashes | None) -> Check:
    """Count images that are there twice, and those that the reference has as well."""
    groups = [places for places in hashes.places.values() if len(places) > 1]
    extra = sum(len(places) - 1 for places in groups)
    numbers: dict[str, Any] = {"read": hashes.read, "copies": extra, "share": extra / hashes.read}
    told = f"{extra:,} of {count(hashes.read, 'image')} that were looked at are copies of others"
    worth = extra / hashes.read > TOLERABLE
    if groups and data.targets is not None:
        labels = sum(len(np.unique(data.targets[places])) > 1 for places in groups)
        numbers["other_labels"] = labels
        told += f", {labels:,} of the groups with different labels" if labels else ""
    told += ": leave them out" if worth else ""
    if reference is not None and known is not None:
        both = sum(len(places) for key, places in hashes.places.items() if key in known.places)
        numbers |= {"reference_read": known.read, "in_reference": both}
        told += f"; {both:,} are among {count(known.read, 'image')} of {reference.name}"
        if both / hashes.read > TOLERABLE:
            worth, told = True, told + ": test on images that the model was not trained on"
    return Check("duplicates", TWICE, WARNING if worth else FINE, told, numbers)
