"""CCC, the continuously changing stream: two corruptions at a time, one fading while the next one grows.

Source: thesis chapter 4 and appendix C, algorithms 1 and 2, misprints corrected (severities are i/4; t ← t + k). Every
step of a path shows `speed` images, drawn at random from the data, mirrored and moved at random. It is generated while
it is read: batch i needs the walk up to i, which is arithmetic on small matrices, and no image before it. As in the
public generator, what the first corruption made is rounded to 256 grey levels before the second one sees it; of data
in 8 bits, as that generator writes it, what the second one made is rounded too, so both work on bytes.
Differs: any data, any model as yardstick, three rules for the path (`streams.calibration`), any length; images are
moved, where the generator cuts out and enlarges a random part, and nothing is encoded as JPEG at the end.
Cost: the two corruptions, and reading each file once (`benchmarks/ccc.py`); memory for the batch, a few pieces of
`PIECE` bytes, and up to 512 MB of decoded images.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import prod

import numpy as np
import pandas as pd
import torch

from haptera.batch import Batch, check_index
from haptera.catalog import entries, find
from haptera.checks import check_whole_number
from haptera.data.kept import KeptPixels
from haptera.errors import HapteraError, check_keys
from haptera.extras import compiles
from haptera.shifts import SampleRandom
from haptera.streams.base import Reader
from haptera.streams.calibration import RULES, Calibration, Path, find_path

SALT, MOVES = 0xCCC, 0x0A06
FADES = " > "
PIECE = 4 * 2**20
"""Bytes of images at a time. What a shift allocates for them is memory that the process holds already; for a whole
batch of large images every intermediate result would be new pages, which cost more than the arithmetic on them."""


@dataclass(frozen=True)
class Stage:
    """One step of the walk: a run of images under two shifts."""

    first: str
    second: str
    severities: tuple[float, float]
    expected: float

    def __call__(self, images: torch.Tensor, ids: torch.Tensor, seed: int) -> torch.Tensor:
        """Images, bytes or floats in [0, 1], under the first shift and then the second."""
        first, second = (find("shifts", name) for name in (self.first, self.second))
        if self.severities[0]:
            images = first(self.severities[0])(images, ids, seed)
            images = images if images.dtype == torch.uint8 else grey_levels(images)
        return second(self.severities[1])(images, ids, seed) if self.severities[1] else images


@dataclass(frozen=True)
class CCC(Reader):
    """A walk through pairs of shifts at a steady difficulty.

    Args:
        data: what is shown; the data of the calibration.
        calibration: accuracies of a fixed model, from `calibrate`.
        difficulty: `easy`, `medium`, `hard`, or the accuracy that the fixed model should keep.
        speed: images per step of a path; 1,000, 2,000 and 5,000 are published.
        length: how many images in all.
        rule: how a path is chosen: `steady`, `text` or `code`.
    """

    calibration: Calibration
    difficulty: str | float = "medium"
    speed: int = 1000
    length: int = 100_000
    rule: str = "steady"
    name: str = field(default="ccc", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.calibration.prints.get("data", self.data.fingerprint()) != self.data.fingerprint():
            raise HapteraError(f"the calibration was made on other data than {self.data.name}; calibrate on this data")
        check_keys("shift in the calibration", self.calibration.shifts, entries("shifts"))
        check_keys("rule", [self.rule], RULES)
        for key in ("speed", "length"):
            check_whole_number(key, getattr(self, key))
        self.calibration.target(self.difficulty)

    @property
    def samples(self) -> int:
        """The number of samples."""
        return self.length

    @property
    def walk_seed(self) -> int:
        """What the walk, its images and their shifts depend on."""
        return self.seed

    def __len__(self) -> int:
        return self.batches(self.length)

    @cached_property
    def _stages(self) -> list[Stage]:
        """Return the steps of the walk until there are enough images."""
        calibration, random = self.calibration, np.random.default_rng([self.walk_seed & 0xFFFFFFFF, SALT])
        names, target = calibration.shifts, calibration.target(self.difficulty)
        paths: dict[tuple[str, str], Path] = {}
        stages: list[Stage] = []
        first = names[random.integers(len(names))]
        while len(stages) * self.speed < self.length:
            others = [name for name in names if name != first]
            second = others[random.integers(len(others))]
            counts = calibration.counts[first, second]
            if (first, second) not in paths:
                paths[first, second] = find_path(counts, calibration.samples, target, self.rule)
            for row, column in paths[first, second]:
                severities = (row * calibration.step, column * calibration.step)
                stages.append(Stage(first, second, severities, counts[row, column] / calibration.samples))
            first = second
        return stages[: -(-self.length // self.speed)]

    def walk(self) -> pd.DataFrame:
        """The steps: `first`, `second`, `severity_1`, `severity_2`, `expected` accuracy, and the `start` of each."""
        stages = self._stages
        return pd.DataFrame(
            {
                "start": np.arange(len(stages)) * self.speed,
                "first": [stage.first for stage in stages],
                "second": [stage.second for stage in stages],
                "severity_1": [stage.severities[0] for stage in stages],
                "severity_2": [stage.severities[1] for stage in stages],
                "expected": [stage.expected for stage in stages],
            }
        )

    def __getitem__(self, index: int) -> Batch:
        check_index(index, self)
        ids = torch.from_numpy(self.places(index, self.length))
        draws = _random(ids, self.walk_seed, SALT).uniform(())
        places = (draws.double() * len(self.data)).long().clamp_(max=len(self.data) - 1).numpy()
        steps = ids.numpy() // self.speed
        flip, crop = self.calibration.flip, self.calibration.crop
        images = torch.from_numpy(np.empty((len(ids), *self._shape), np.float32))  # NumPy asks for large pages
        for rows in _runs(steps, max(1, PIECE // (4 * prod(self._shape)))):
            pixels = self._pixels(places[rows])
            piece = self.data.images(places[rows]) if pixels is None else pixels
            piece = flip_and_crop(piece, ids[rows], self.walk_seed, flip, crop)
            made = self._stages[steps[rows.start]](piece, ids[rows], self.walk_seed)
            if pixels is None:
                images[rows].copy_(made)
            else:  # NumPy does both in one pass, torch in two
                np.divide(made.numpy(), np.float32(255), out=images[rows].numpy())
        targets = None if self.data.targets is None else torch.from_numpy(self.data.targets[places])
        return Batch(images, targets, ids, {**self._columns(steps), "sample": self.data.rows[places]})

    @cached_property
    def _pixels(self) -> KeptPixels:
        """Return what reads images as bytes: each is drawn many times."""
        return KeptPixels(self.data)

    @cached_property
    def _shape(self) -> torch.Size:
        """Return the shape of one image."""
        return self.data.images(np.zeros(1, np.int64)).shape[1:]

    def _columns(self, steps: np.ndarray) -> dict[str, object]:
        """Return what the walk says about the samples of a batch: columns of the table."""
        stages = [self._stages[step] for step in steps]
        return {
            "shift": np.array([f"{stage.first}{FADES}{stage.second}" for stage in stages]),
            "severity_1": np.array([stage.severities[0] for stage in stages]),
            "severity_2": np.array([stage.severities[1] for stage in stages]),
            "expected": np.array([stage.expected for stage in stages]),
            "difficulty": self.calibration.target(self.difficulty),
        }


def _runs(steps: np.ndarray, most: int) -> Iterator[slice]:
    """Pieces of a batch within one step, each of at most so many samples."""
    bounds = [*np.flatnonzero(np.diff(steps, prepend=-1)).tolist(), len(steps)]
    for start, end in pairwise(bounds):
        for begin in range(start, end, most):
            yield slice(begin, min(begin + most, end))


def _random(ids: torch.Tensor, seed: int, salt: int) -> SampleRandom:
    """The numbers of samples, from kernels where there are some."""
    random = SampleRandom(ids, seed, salt)
    return random.fast() if compiles() else random


def flip_and_crop(images: torch.Tensor, ids: torch.Tensor, seed: int, flip: bool, crop: float) -> torch.Tensor:
    """`(batch, channels, height, width)`, mirrored with probability one half and moved by up to a share of the side.

    Both depend on the seed and on the sample's id alone. What a move uncovers shows the edge pixel again.
    """
    if not flip and not crop:
        return images
    draws = _random(ids, seed, MOVES).uniform((3,)).numpy()
    before = images.numpy()
    after = np.empty_like(before)
    mirrored = flip & (draws[:, 0] < 0.5)
    downs, rights = (_moves(draws[:, 1 + axis], int(before.shape[2 + axis] * crop / 2)) for axis in (0, 1))
    for old, new, mirror, down, right in zip(before, after, mirrored, downs, rights, strict=True):
        _move(old[:, :, ::-1] if mirror else old, new, down, right)
    return torch.from_numpy(after)


def _moves(draws: np.ndarray, most: int) -> list[int]:
    """Return by how many pixels to move, from -most to most."""
    return [int(move) - most for move in draws * (2 * most + 1)]


def _move(old: np.ndarray, new: np.ndarray, down: int, right: int) -> None:
    """Fill an image: what is in view of the old one as a slice, then the columns and the rows at the edges."""
    height, width = old.shape[1:]
    top, bottom, left, end = max(-down, 0), height - max(down, 0), max(-right, 0), width - max(right, 0)
    new[:, top:bottom, left:end] = old[:, top + down : bottom + down, left + right : end + right]
    new[:, top:bottom, :left] = new[:, top:bottom, left : left + 1]
    new[:, top:bottom, end:] = new[:, top:bottom, end - 1 : end]
    new[:, :top] = new[:, top : top + 1]
    new[:, bottom:] = new[:, bottom - 1 : bottom]


def grey_levels(images: torch.Tensor) -> torch.Tensor:
    """Round, in place, to the 256 values that a file of 8 bits can hold."""
    return images.mul_(255).round_().div_(255)
