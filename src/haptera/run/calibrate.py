"""Calibration: how often one fixed model is right under every ordered pair of shifts at every pair of severities.

Source: thesis chapter 4, "Calibration to desired baseline accuracy". The published matrices cannot be had, and the
user's own model is the better yardstick for the user's data. Images are mirrored, moved, shifted, and rounded between
the two shifts, as the stream does it; the published subset was not cropped, so its accuracies are a little too high.
Cost: pairs x (5 / step + 1)² x samples forward passes. Every pair is a file, so a stopped calibration goes on.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn

from haptera import __version__
from haptera.adapters import NoAdaptation
from haptera.adapters.passes import check_outputs
from haptera.correctness import check_classes, correct
from haptera.data import Data
from haptera.errors import HapteraError
from haptera.files.atomic import whole, writable_folder, write_text
from haptera.files.fingerprint import of_model
from haptera.progress import Progress, duration
from haptera.run.execute import in_processes, in_this_process
from haptera.shifts import Shift
from haptera.streams.augment import augmented, grey_levels
from haptera.streams.calibration import Calibration, read_settings, severity_grid

log = logging.getLogger("haptera")

Pair = tuple[type[Shift], type[Shift]]


def calibrate(
    model: nn.Module,
    data: Data,
    out: str | Path,
    shifts: Sequence[type[Shift]],
    *,
    samples: int = 1000,
    step: float = 0.25,
    flip: bool = True,
    crop: float = 0.125,
    seed: int = 0,
    batch_size: int = 64,
    jobs: int = 1,
    progress: bool | None = None,
) -> Calibration:
    """Measure every ordered pair of shifts, going on where an earlier call stopped.

    Args:
        model: the yardstick, from images to logits, on the device where it shall run.
        data: labelled; a random subset of `samples` is used, with each class in proportion.
        out: a folder; one file per pair.
        shifts: at least two.
        samples: how many images; all if there are fewer.
        step: between severities; it must divide 5. 0.25 is published, 1 is for the impatient.
        flip: mirror images at random, as the stream will.
        crop: move them at random by up to this share of the side.
        seed: of the subset, of flips and crops, and of the shifts.
        batch_size: samples per forward pass.
        jobs: processes on this machine, each with an equal share of the cores.
        progress: show a bar; by default on a terminal or in a notebook.
    """
    grid = severity_grid(step)
    if len(set(shifts)) < max(2, len(shifts)):
        raise HapteraError(f"a calibration needs at least two shifts, each once; found {_names(shifts) or 'none'}")
    for name, value in (("samples", samples), ("batch_size", batch_size), ("jobs", jobs)):
        if not isinstance(value, int) or value < 1:
            raise HapteraError(f"{name} is {value!r}; a whole number of at least 1 was expected")
    if data.targets is None:
        raise HapteraError(f"a calibration needs labels; {data.name} has none")
    chosen = _subset(data.targets, samples, seed)
    folder = writable_folder(Path(out))
    settings = {
        "shifts": [shift.name for shift in shifts],
        "samples": len(chosen),
        "step": float(step),
        "flip": flip,
        "crop": float(crop),
        "seed": seed,
        "prints": {"model": of_model(model), "data": data.fingerprint()},
    }
    _check_same(folder, settings)
    yardstick = _Yardstick(model, data, chosen, grid, flip, crop, seed, batch_size)
    clean, classes = yardstick.clean()
    content = settings | {"clean": clean, "classes": classes, "haptera": __version__}
    write_text(folder / "calibration.json", json.dumps(content, indent=1))
    pairs = [(one, two) for one in shifts for two in shifts if one is not two]
    missing = [pair for pair in pairs if not _file(folder, pair).is_file()]
    if missing:
        passes = len(missing) * len(grid) ** 2 * len(chosen)
        _measure(yardstick, missing, f"{len(missing)} of {len(pairs)} pairs, {passes:,}", folder, jobs, progress)
    return Calibration.load(folder)


def _measure(
    yardstick: "_Yardstick", missing: Sequence[Pair], how_much: str, folder: Path, jobs: int, progress: bool | None
) -> None:
    """Every missing pair into its file."""
    jobs = min(jobs, len(missing))
    seconds = [each / jobs for each in yardstick.seconds(missing)]
    log.info("to measure: %s forward passes, about %s", how_much, duration(sum(seconds)))
    work, indices = partial(_measure_one, yardstick, missing, folder.resolve()), range(len(missing))
    ended = in_processes(work, indices, jobs) if jobs > 1 else in_this_process(work, indices)
    with Progress("calibration", len(missing), progress, unit="pairs", seconds=sum(seconds)) as bar:
        for index, failure in ended:
            if failure:
                raise HapteraError(f"{_names(missing[index])} could not be measured: {failure}")
            bar.advance(_names(missing[index]), seconds[index])


def _measure_one(yardstick: "_Yardstick", pairs: Sequence[Pair], folder: Path, index: int) -> str:
    counts = yardstick.matrix(*pairs[index])
    with whole(_file(folder, pairs[index])) as file:
        np.save(file, counts)
    return ""


class _Yardstick:
    """One model on one subset: counts of right answers."""

    def __init__(
        self,
        model: nn.Module,
        data: Data,
        chosen: np.ndarray,
        grid: np.ndarray,
        flip: bool,
        crop: float,
        seed: int,
        batch_size: int,
    ) -> None:
        self.model, self.data, self.chosen, self.grid, self.seed = NoAdaptation(model), data, chosen, grid, seed
        self.flip, self.crop, self.batch_size = flip, crop, batch_size

    def batches(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, np.ndarray]]:
        """Images as the stream shows them, their ids and targets."""
        assert self.data.targets is not None
        for start in range(0, len(self.chosen), self.batch_size):
            places = self.chosen[start : start + self.batch_size]
            ids = torch.arange(start, start + len(places))
            images = augmented(self.data.images(places), ids, self.seed, self.flip, self.crop)
            yield images, ids, self.data.targets[places]

    def right(self, images: torch.Tensor, targets: np.ndarray) -> int:
        """How many answers count as right."""
        return int(correct(self.model(images).float().cpu().numpy(), targets, self.data.classes).sum())

    def clean(self) -> tuple[int, int]:
        """Right answers on clean images, and how many classes the model chooses from."""
        right, classes = 0, self.data.classes
        for images, _, targets in self.batches():
            outputs = check_outputs(self.model(images), len(images)).shape[1]
            check_classes(classes, outputs, self.data.names)
            right += self.right(images, targets)
        return right, outputs if classes is None else len(classes.columns(outputs))

    def matrix(self, first: type[Shift], second: type[Shift]) -> np.ndarray:
        """`(grid, grid)`, right answers under the first shift at the row's severity, the second at the column's."""
        counts = np.zeros((len(self.grid), len(self.grid)), np.int64)
        for images, ids, targets in self.batches():
            for row, one in enumerate(self.grid):
                once = grey_levels(first(float(one))(images, ids, self.seed)) if one else images
                for column, two in enumerate(self.grid):
                    counts[row, column] += self.right(second(float(two))(once, ids, self.seed), targets)
        return counts

    def seconds(self, pairs: Sequence[Pair]) -> list[float]:
        """About how long each pair will take, from one batch through the model and through each shift."""
        images, ids, targets = next(self.batches())
        batches, points = len(self.chosen) / len(images), len(self.grid)
        forward = _timed(lambda: self.right(images, targets))
        each = {shift: _timed(partial(shift(2.5), images, ids)) for pair in pairs for shift in pair}
        return [batches * (points**2 * (forward + each[two]) + points * each[one]) for one, two in pairs]


def _timed(work: Callable[[], object]) -> float:
    """Seconds, once everything is warm."""
    work()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _subset(targets: np.ndarray, samples: int, seed: int) -> np.ndarray:
    """Random places, each class in proportion: a shift costs some classes far more than others."""
    places = np.random.default_rng([seed & 0xFFFFFFFF, len(targets)]).permutation(len(targets))
    _, classes, sizes = np.unique(targets[places], return_inverse=True, return_counts=True)
    by_class = np.argsort(classes, kind="stable")
    within = np.empty(len(targets))
    within[by_class] = np.arange(len(targets)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return places[np.argsort((within + 0.5) / sizes[classes], kind="stable")[:samples]]


def _names(shifts: Sequence[type[Shift]]) -> str:
    return " + ".join(shift.name for shift in shifts)


def _file(folder: Path, pair: tuple[type[Shift], type[Shift]]) -> Path:
    return folder / "pairs" / f"{pair[0].name} {pair[1].name}.npy"


def _check_same(folder: Path, settings: dict) -> None:
    """Refuse to go on with a calibration of something else."""
    if not (folder / "calibration.json").is_file():
        return
    before = read_settings(folder)
    for key, value in settings.items():
        if before.get(key) != value:
            what = next((k for k in value if before[key].get(k) != value[k]), key) if key == "prints" else key
            raise HapteraError(f"{folder} holds a calibration with another {what}; use another folder, or delete it")
