"""Splits by individual: frames of one video are alike, so a test on other frames of it is not a test on other animals.

Source: thesis chapter 5: ten individuals are drawn, a share of their frames (5 or 50 %) is for training, their other
frames are the test within domain, and all other individuals are out of domain; three such shuffles. Across species: one
is left out. Differs: the share is taken of each individual's frames, at least one, so that nobody is left out by
chance; where every individual has a single frame, it is taken of the individuals.
A smaller share of the same shuffle is part of a larger one. Animals of one frame are on one side. A project of one
individual is split by time: the first frames are for training, the later ones for the test.
"""

import logging
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from haptera.checks import check_number
from haptera.errors import HapteraError, unknown
from haptera.pose.data import PoseData

log = logging.getLogger("haptera")
BY_TIME = (
    "%s has one individual, %r, so its first %d frames are for training and its last %d for the test; that tells how "
    "well later frames of this video are found, and nothing of other animals, cameras or days"
)


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of frames.

    Attributes:
        train: for learning.
        within: other frames of the same individuals; empty if training takes them all.
        out: frames of other individuals, or of the species left out.
    """

    train: np.ndarray
    within: np.ndarray
    out: np.ndarray

    def names(self) -> np.ndarray:
        """Return `train`, `within` or `out` for each frame."""
        found = np.full(sum(map(len, (self.train, self.within, self.out))), "within", dtype="<U6")
        found[self.train], found[self.out] = "train", "out"
        return found

    def text(self, data: PoseData) -> str:
        """Return the content of `split.csv`: whose each frame is, and whether it is `train`, `within` or `out`."""
        columns = {"file": data.files, "individual": data.individuals, "part": self.names()}
        return pd.DataFrame(columns).to_csv(index=False)


def split_individuals(
    data: PoseData, train: int | None = None, *, fraction: float = 0.5, shuffle: int = 0, seed: int = 0
) -> Split:
    """Return some individuals to learn from, and the others out of domain.

    Args:
        data: whose frames.
        train: how many individuals; a third by default, as in the source.
        fraction: of the frames of each of them, at least one frame.
        shuffle: another number, other individuals.
        seed: of all shuffles.
    """
    names = np.unique(data.individuals)
    number = max(1, round(len(names) / 3)) if train is None else train
    if not 0 < number < len(names):
        raise HapteraError(
            f"{number} of {len(names)} individuals for training; at least one, and at least one left, was expected"
        )
    random = np.random.default_rng([seed, shuffle])
    chosen = random.permutation(names)[:number]
    split = _divide(data, np.isin(data.individuals, chosen), fraction, random)
    if shared := set(data.files[split.train].tolist()) & set(data.files[split.out].tolist()):
        log.warning(
            "%s: %d frames show animals of both sides of the split, so their crops overlap; individuals by folder keep "
            "the animals of a frame together", data.name, len(shared),
        )  # fmt: skip
    return split


def split_time(data: PoseData, fraction: float = 0.5) -> Split:
    """Return the first frames to learn from and the others within domain; a warning says what that can tell.

    Args:
        data: frames of one video, in the order of the numbers in their names.
        fraction: of the frames, at least one on each side.
    """
    check_number("fraction", fraction, above=0, most=1, what="a share of the frames")
    names = sorted(set(data.files.tolist()), key=_in_time)
    if len(names) < 2:
        raise HapteraError(f"{data.name} has one frame; at least two were expected, one of them for the test")
    number = min(max(1, round(fraction * len(names))), len(names) - 1)
    first = np.isin(data.files, names[:number])
    log.warning(BY_TIME, data.name, str(data.individuals[0]), number, len(names) - number)
    return Split(np.flatnonzero(first), np.flatnonzero(~first), np.empty(0, int))


def _in_time(file: str) -> list[tuple[int, str]]:
    """Return what a name is sorted by, so that frame 10 comes after frame 9."""
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in re.split(r"(\d+)", file)]


def leave_species_out(data: PoseData, species: str, *, fraction: float = 0.9, seed: int = 0) -> Split:
    """Return all species but one to learn from, and that one out of domain.

    Args:
        data: with species.
        species: the one left out.
        fraction: of the frames of each other individual, at least one frame.
        seed: of the choice of frames.
    """
    if data.species is None:
        raise HapteraError(f"{data.name} does not say of which species its animals are")
    names = np.unique(data.species)
    if species not in names:
        raise unknown("species", species, map(str, names))
    if len(names) < 2:
        raise HapteraError(f"{data.name} has one species only, {species!r}; nothing is left to learn from")
    return _divide(data, data.species != species, fraction, np.random.default_rng(seed))


def _divide(data: PoseData, inside: np.ndarray, fraction: float, random: np.random.Generator) -> Split:
    check_number("fraction", fraction, above=0, most=1, what="a share of the frames")
    train, within = [], []
    single = len(np.unique(data.individuals)) == len(np.unique(data.files))
    owners = np.full(len(data), "all") if single else data.individuals
    for name in np.unique(owners[inside]):
        rows = np.flatnonzero(inside & (owners == name))
        _, first, image = np.unique(data.files[rows], return_index=True, return_inverse=True)
        frames = random.permutation(np.sort(first))  # one row of each image, so that its animals stay together
        number = max(1, round(fraction * len(frames)))
        learnt = np.isin(first[image], frames[:number])
        train.append(rows[learnt])
        within.append(rows[~learnt])
    return Split(np.sort(np.concatenate(train)), np.sort(np.concatenate(within)), np.flatnonzero(~inside))


def split_nothing(data: PoseData) -> Split:
    """Return all frames to learn from."""
    return Split(np.arange(len(data)), np.empty(0, int), np.empty(0, int))


def read_parts(path: Path, data: PoseData) -> np.ndarray:
    """Return `train`, `within` or `out` for each frame, from the `split.csv` of a training."""
    if not path.is_file():
        raise HapteraError(f"there is no split {path}")
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
        files, parts = frame["file"].tolist(), frame["part"].tolist()
    except KeyError as error:
        raise HapteraError(f"{path} is not a split of `haptera pose train`: it has no column {error}") from error
    except ValueError as error:
        raise HapteraError(f"{path} is not a split of `haptera pose train`: {error}") from error
    named = frame.get("individual", pd.Series([""] * len(files))).tolist()
    of_animals = dict(zip(zip(files, named, strict=True), parts, strict=True))
    of_frames: dict[str, set[str]] = {}
    for file, part in zip(files, parts, strict=True):
        of_frames.setdefault(file, set()).add(part)
    found: list[str] = []
    for file, individual in zip(data.files.tolist(), data.individuals.tolist(), strict=True):
        own = {of_animals[file, individual]} if (file, individual) in of_animals else of_frames.get(file, set())
        if not own:
            raise HapteraError(f"{path} does not say where {file} belongs; it is of other data")
        if len(own) > 1:
            raise HapteraError(
                f"{path} says that {file} is of {' and '.join(sorted(own))}, for one animal each, and does not know "
                f"{individual!r}; name individuals as for the training (--individual-by)"
            )
        found += own
    return np.array(found)


def read_split(path: Path, data: PoseData) -> dict[str, PoseData]:
    """Return `within` and `out`, where they have frames, from the `split.csv` of a training."""
    found = read_parts(path, data)
    sets = {name: np.flatnonzero(found == name) for name in ("within", "out")}
    chosen = {name: data.select(rows) for name, rows in sets.items() if len(rows)}
    if not chosen:
        raise HapteraError(f"{path} leaves no frames for a test")
    return chosen
