"""Yardstick: one fixed model on one subset of images, and how often it is right under two shifts, one after the other.

Images are mirrored, moved, shifted, and rounded between the two shifts, as the stream `ccc` does it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn

from haptera.adapters import NoAdaptation
from haptera.adapters.passes import check_outputs
from haptera.checks import check_whole_number
from haptera.correctness import check_classes, correct
from haptera.data import Data
from haptera.errors import HapteraError
from haptera.shifts import Shift
from haptera.streams.augment import augmented, grey_levels
from haptera.streams.calibration import severity_grid

Pair = tuple[type[Shift], type[Shift]]


@dataclass(frozen=True)
class Scale:
    """The images and the severities at which a calibration is measured.

    Attributes:
        samples: how many images; all if there are fewer.
        step: between severities; it must divide 5. 0.25 is published, 1 is for the impatient.
        flip: mirror images at random, as the stream will.
        crop: move them at random by up to this share of the side.
        seed: of the subset, of flips and crops, and of the shifts.
    """

    samples: int = 1000
    step: float = 0.25
    flip: bool = True
    crop: float = 0.125
    seed: int = 0

    def __post_init__(self) -> None:
        severity_grid(self.step)
        check_whole_number("samples", self.samples, 1)


class Yardstick:
    """Counts of right answers.

    Args:
        model: from images to logits.
        data: labelled; a random subset is used, with each class in proportion.
        scale: which images and severities.
        batch_size: images in a forward pass.
    """

    def __init__(self, model: nn.Module, data: Data, scale: Scale, batch_size: int) -> None:
        if data.targets is None:
            raise HapteraError(f"a calibration needs labels; {data.name} has none")
        self.model, self.data, self.scale, self.batch_size = NoAdaptation(model), data, scale, batch_size
        self.places = _subset(data.targets, scale.samples, scale.seed)
        self.grid = severity_grid(scale.step)

    def batches(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, np.ndarray]]:
        """Yield images as the stream shows them, their ids and targets."""
        assert self.data.targets is not None
        for start in range(0, len(self.places), self.batch_size):
            places = self.places[start : start + self.batch_size]
            ids = torch.arange(start, start + len(places))
            images = augmented(self.data.images(places), ids, self.scale.seed, self.scale.flip, self.scale.crop)
            yield images, ids, self.data.targets[places]

    def right(self, images: torch.Tensor, targets: np.ndarray) -> int:
        """Return how many answers are right."""
        return int(correct(self.model(images).float().cpu().numpy(), targets, self.data.classes).sum())

    def clean(self) -> tuple[int, int]:
        """Return the right answers on clean images, and how many classes the model chooses from."""
        right, classes = 0, self.data.classes
        for images, _, targets in self.batches():
            outputs = check_outputs(self.model(images), len(images)).shape[1]
            check_classes(classes, outputs, self.data.names)
            right += self.right(images, targets)
        return right, outputs if classes is None else len(classes.columns(outputs))

    def matrix(self, first: type[Shift], second: type[Shift]) -> np.ndarray:
        """`(grid, grid)`, right answers under the first shift at the row's severity, the second at the column's."""
        counts, seed = np.zeros((len(self.grid), len(self.grid)), np.int64), self.scale.seed
        for images, ids, targets in self.batches():
            for row, one in enumerate(self.grid):
                once = grey_levels(first(float(one))(images, ids, seed)) if one else images
                for column, two in enumerate(self.grid):
                    counts[row, column] += self.right(second(float(two))(once, ids, seed), targets)
        return counts

    def seconds(self, pairs: Sequence[Pair]) -> list[float]:
        """Return about how long each pair takes, from one batch through the model and through each shift."""
        images, ids, targets = next(self.batches())
        batches, points = len(self.places) / len(images), len(self.grid)
        forward = _timed(lambda: self.right(images, targets))
        each = {shift: _timed(partial(shift(2.5), images, ids)) for pair in pairs for shift in pair}
        return [batches * (points**2 * (forward + each[two]) + points * each[one]) for one, two in pairs]


def _timed(work: Callable[[], object]) -> float:
    """Return the seconds that something takes once everything is warm."""
    work()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _subset(targets: np.ndarray, samples: int, seed: int) -> np.ndarray:
    """Return random places, each class in proportion: a shift costs some classes far more than others."""
    places = np.random.default_rng([seed & 0xFFFFFFFF, len(targets)]).permutation(len(targets))
    _, classes, sizes = np.unique(targets[places], return_inverse=True, return_counts=True)
    by_class = np.argsort(classes, kind="stable")
    within = np.empty(len(targets))
    within[by_class] = np.arange(len(targets)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return places[np.argsort((within + 0.5) / sizes[classes], kind="stable")[:samples]]
