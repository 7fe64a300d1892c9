"""Calibration: how often one fixed model is right under every ordered pair of shifts at every pair of severities.

Source: thesis chapter 4, "Calibration to desired baseline accuracy". The published matrices cannot be had, and the
user's own model is the better yardstick for the user's data. The published subset was not cropped, so its accuracies
are a little too high.
Cost: pairs x (5 / step + 1)² x samples forward passes. Every pair is a piece of a ledger, so a stopped calibration
goes on, and one whose file was damaged is measured again.
"""

import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from haptera import __version__
from haptera.adapters import NoAdaptation
from haptera.adapters.passes import check_outputs
from haptera.checks import check_whole_number
from haptera.correctness import check_classes, correct
from haptera.data import Data
from haptera.errors import HapteraError
from haptera.files.atomic import whole
from haptera.files.fingerprint import fingerprint, of_model
from haptera.files.npz import map_npy
from haptera.files.schema import FLAG, TEXT, Kind, check, list_of, number, shown, table_of, whole_number
from haptera.outputs_schema import CLASSES
from haptera.progress import Progress
from haptera.run.execute import in_processes, in_this_process
from haptera.run.folder import PLAN
from haptera.run.ledger import Ledger, Piece
from haptera.shifts import Shift
from haptera.streams.calibration import Calibration, severity_grid
from haptera.streams.walk import flip_and_crop, grey_levels
from haptera.words import duration

log = logging.getLogger("haptera")

Pair = tuple[type[Shift], type[Shift]]
NAME = Kind("the name of a shift", lambda value: isinstance(value, str) and bool(re.fullmatch(r"[\w.:-]+", value)))
"""Pairs of shifts are names of files, which must not lead out of the folder."""
ABOUT = {
    "shifts": list_of(NAME),
    "samples": whole_number(1),
    "step": number(0, 5),
    "clean": whole_number(),
    "classes": whole_number(2),
    "flip": FLAG,
    "crop": number(0, 1),
    "prints": table_of(TEXT),
}


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
    """One fixed model on one subset of images, and how often it is right under two shifts, one after the other.

    Images are mirrored, moved, shifted, and rounded between the two shifts, as the stream `ccc` does it.

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
            images = flip_and_crop(self.data.images(places), ids, self.scale.seed, self.scale.flip, self.scale.crop)
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


def calibrate(
    model: nn.Module,
    data: Data,
    out: str | Path,
    shifts: Sequence[type[Shift]],
    scale: Scale | None = None,
    *,
    batch_size: int = 64,
    jobs: int = 1,
    progress: bool | None = None,
) -> Calibration:
    """Measure every ordered pair of shifts, going on where an earlier call stopped.

    Args:
        model: the yardstick, from images to logits, on the device where it shall run.
        data: labelled; a random subset is used, with each class in proportion.
        out: a folder; one file per pair.
        shifts: at least two.
        scale: on which images and at which severities; `Scale()` if left out.
        batch_size: samples per forward pass.
        jobs: processes on this machine, each with an equal share of the cores.
        progress: show a bar; by default on a terminal or in a notebook.
    """
    scale = scale or Scale()
    if len(set(shifts)) < max(2, len(shifts)):
        names = " + ".join(shift.name for shift in shifts)
        raise HapteraError(f"a calibration needs at least two shifts, each once; found {names or 'none'}")
    check_whole_number("batch_size", batch_size)
    check_whole_number("jobs", jobs)
    yardstick = Yardstick(model, data, scale, batch_size)
    about: dict[str, Any] = {"shifts": [shift.name for shift in shifts]} | asdict(scale)
    about |= {"samples": len(yardstick.places), "step": float(scale.step), "crop": float(scale.crop)}
    about |= {"prints": {"model": of_model(model), "data": data.fingerprint()}}
    pairs = [(one, two) for one in shifts for two in shifts if one is not two]
    with Ledger(out, "calibration", noun="pair") as ledger:
        ledger.check_same(about)
        clean, classes = yardstick.clean()
        pieces = [_piece(one.name, two.name) for one, two in pairs]
        ledger.plan(pieces, about | {"clean": clean, "classes": classes, "haptera": __version__})
        if missing := ledger.missing():
            _measure(yardstick, ledger, missing, [pairs[pieces.index(piece)] for piece in missing], jobs, progress)
    return load_calibration(out)


def _measure(
    yardstick: Yardstick,
    ledger: Ledger,
    pieces: Sequence[Piece],
    pairs: Sequence[Pair],
    jobs: int,
    progress: bool | None,
) -> None:
    """Measure pairs, each into its file, and note those that are finished."""
    jobs = min(jobs, len(pairs))
    seconds = [each / jobs for each in yardstick.seconds(pairs)]
    passes = len(pairs) * len(yardstick.grid) ** 2 * len(yardstick.places)
    much = f"{len(pairs)} of {len(ledger.pieces)} pairs, {passes:,} forward passes"
    log.info("to measure: %s, about %s", much, duration(sum(seconds)))
    work = partial(_measure_one, yardstick, pairs, [ledger.path(piece).resolve() for piece in pieces])
    ended = in_processes(work, range(len(pairs)), jobs) if jobs > 1 else in_this_process(work, range(len(pairs)))
    with Progress("calibration", len(pairs), progress, unit="pairs", seconds=sum(seconds)) as bar:
        for index, failure in ended:
            if failure:
                ledger.fail(pieces[index], failure)
                raise HapteraError(f"{pieces[index].title} could not be measured: {failure}")
            ledger.done(pieces[index])
            bar.advance(pieces[index].title, seconds[index])


def _measure_one(yardstick: Yardstick, pairs: Sequence[Pair], files: Sequence[Path], index: int) -> str:
    counts = yardstick.matrix(*pairs[index])
    with whole(files[index]) as file:
        np.save(file, counts)
    return ""


def load_calibration(folder: str | Path) -> Calibration:
    """Return what `calibrate` measured, once it is complete; files that are not what they were are refused."""
    ledger = Ledger(folder, "calibration", noun="pair")
    if not ledger.exists:
        command = f"haptera calibrate --model ... --data ... --out {folder}"
        raise HapteraError(f"there is no calibration in {folder}; make one with: {command}")
    about = _check_about(ledger)
    counts, points = {}, len(severity_grid(about["step"]))
    for first in about["shifts"]:
        for second in about["shifts"]:
            piece = _piece(first, second)
            if first != second:
                if not ledger.path(piece).is_file():
                    raise HapteraError(
                        f"the calibration {folder} is not complete: {first}, {second} is missing; "
                        "the command that began it goes on from there"
                    )
                counts[first, second] = _read_counts(ledger.checked(piece), points, about["samples"])
    names = ("samples", "step", "clean", "classes", "flip", "crop", "prints")
    return Calibration(counts, **{name: about[name] for name in names})


def _check_about(ledger: Ledger) -> dict[str, Any]:
    """Return what the plan of a calibration says, after checking that it can be."""
    path = ledger.folder / PLAN
    about = check(ledger.about, ABOUT, str(path))
    for name in ("clean", "classes"):
        if about[name] > (about["samples"] if name == "clean" else CLASSES):
            raise HapteraError(f"{path}: {name} is {about[name]:,}, of {about['samples']:,} samples")
    if len(set(about["shifts"])) < max(2, len(about["shifts"])):
        raise HapteraError(f"{path}: shifts are {shown(about['shifts'])}; at least two, each once, were expected")
    try:
        severity_grid(about["step"])
    except HapteraError as error:
        raise HapteraError(f"{path}: {error}") from error
    return about


def _read_counts(path: Path, points: int, samples: int) -> np.ndarray:
    """Read the counts of a pair: right answers out of `samples` at each of `points` x `points` severities."""
    counts = np.array(map_npy(path))
    if counts.shape != (points, points) or counts.dtype.kind not in "iu":
        raise HapteraError(f"{path} holds {counts.dtype} {counts.shape}; counts ({points}, {points}) were expected")
    if ((counts < 0) | (counts > samples)).any():
        wrong = counts[(counts < 0) | (counts > samples)][0]
        raise HapteraError(f"{path} counts {wrong:,} right answers; 0 to {samples:,} was expected")
    return counts.astype(np.int64)


def _piece(first: str, second: str) -> Piece:
    return Piece(fingerprint(first, second), f"pairs/{first} {second}.npy", f"{first} + {second}")
