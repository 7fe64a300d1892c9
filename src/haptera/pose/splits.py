"""Splits by individual: frames of one video are alike, so a test on other frames of it is not a test on other animals.

Source: thesis chapter 5: ten individuals are drawn, a share of their frames (5 or 50 %) is for training, their other
frames are the test within domain, and all other individuals are out of domain; three such shuffles. Across species: one
is left out. Differs: the share is taken of each individual's frames, at least one, so that nobody is left out by
chance; where every individual has a single frame, it is taken of the individuals.
A smaller share of the same shuffle is part of a larger one.
"""

from dataclasses import dataclass

import numpy as np

from haptera.errors import HapteraError, unknown
from haptera.pose.data import PoseData


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
        """`(frames,)`: `train`, `within` or `out`."""
        found = np.full(sum(map(len, (self.train, self.within, self.out))), "within", dtype="<U6")
        found[self.train], found[self.out] = "train", "out"
        return found


def split_individuals(
    data: PoseData, train: int | None = None, *, fraction: float = 0.5, shuffle: int = 0, seed: int = 0
) -> Split:
    """Some individuals to learn from, the others out of domain.

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
    return _divided(data, np.isin(data.individuals, chosen), fraction, random)


def leave_species_out(data: PoseData, species: str, *, fraction: float = 0.9, seed: int = 0) -> Split:
    """All species but one to learn from; that one is out of domain.

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
    return _divided(data, data.species != species, fraction, np.random.default_rng(seed))


def _divided(data: PoseData, inside: np.ndarray, fraction: float, random: np.random.Generator) -> Split:
    if not 0 < fraction <= 1:
        raise HapteraError(f"fraction is {fraction}; a share of the frames above 0 and up to 1 was expected")
    train, within = [], []
    single = len(np.unique(data.individuals)) == len(data)
    owners = np.full(len(data), "all") if single else data.individuals
    for name in np.unique(owners[inside]):
        frames = random.permutation(np.flatnonzero(inside & (owners == name)))
        number = max(1, round(fraction * len(frames)))
        train.append(frames[:number])
        within.append(frames[number:])
    return Split(np.sort(np.concatenate(train)), np.sort(np.concatenate(within)), np.flatnonzero(~inside))
