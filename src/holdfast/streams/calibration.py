"""Calibration: how often one fixed model is right under every ordered pair of shifts at every pair of severities.

Source: thesis chapter 4, "Calibration to desired baseline accuracy". The published matrices cannot be had, and the
user's own model is the better yardstick for the user's data. Cost: pairs x (5 / step + 1)² x samples forward passes.
Every pair is a file, so a stopped calibration goes on.
"""

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import nn

from holdfast import __version__
from holdfast.data import Data
from holdfast.errors import HoldfastError, unknown
from holdfast.files import whole, writable_folder, write_text
from holdfast.fingerprint import fingerprint, of_model
from holdfast.progress import Progress
from holdfast.shifts import Shift
from holdfast.streams.augment import augmented

log = logging.getLogger("holdfast")

DIFFICULTIES = {"easy": 0.447, "medium": 0.223, "hard": 0.025}
"""Shares of the way from chance to clean accuracy: 34, 17 and 2 % for a ResNet-50 with 76.1 % among 1,000 classes."""


@dataclass(frozen=True)
class Calibration:
    """What was measured.

    Attributes:
        counts: (first shift, second shift) -> `(grid, grid)` int, right answers at severities (row, column) x step.
        samples: out of how many.
        step: between severities.
        clean: right answers on clean data.
        classes: how many the model chooses from.
        flip: whether images were mirrored at random, as the stream does.
        crop: by which share of the side they were moved at random.
        prints: fingerprints of the model and of the data.
    """

    counts: dict[tuple[str, str], np.ndarray]
    samples: int
    step: float
    clean: int
    classes: int
    flip: bool
    crop: float
    prints: dict[str, str] = field(default_factory=dict)

    @property
    def shifts(self) -> list[str]:
        """The names of the shifts, in order."""
        return list(dict.fromkeys(first for first, _ in self.counts))

    def target(self, difficulty: str | float) -> float:
        """An accuracy: of a difficulty by name, or as it is given."""
        if isinstance(difficulty, str):
            if difficulty not in DIFFICULTIES:
                raise unknown("difficulty", difficulty, DIFFICULTIES)
            chance = 1 / self.classes
            return chance + DIFFICULTIES[difficulty] * (self.clean / self.samples - chance)
        if not 0 <= difficulty <= 1:
            raise HoldfastError(f"difficulty is {difficulty}; an accuracy from 0 to 1, or {', '.join(DIFFICULTIES)}")
        return float(difficulty)

    def fingerprint(self) -> str:
        """Changes when any count or setting does."""
        settings = (self.samples, self.step, self.clean, self.classes, self.flip, self.crop, self.prints)
        return fingerprint({" ".join(pair): matrix for pair, matrix in self.counts.items()}, settings)

    @classmethod
    def load(cls, folder: str | Path) -> "Calibration":
        """Read what `calibrate` wrote, once it is complete."""
        folder = Path(folder)
        settings = _settings(folder)
        counts = {}
        for first in settings["shifts"]:
            for second in settings["shifts"]:
                path = folder / "pairs" / f"{first} {second}.npy"
                if first != second:
                    if not path.is_file():
                        raise HoldfastError(
                            f"the calibration {folder} is not complete: {first}, {second} is missing; "
                            "the command that began it goes on from there"
                        )
                    counts[first, second] = np.load(path)
        names = ("samples", "step", "clean", "classes", "flip", "crop", "prints")
        return cls(counts, **{name: settings[name] for name in names})


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
    batch_size: int = 250,
    progress: bool | None = None,
) -> Calibration:
    """Measure every ordered pair of shifts, going on where an earlier call stopped.

    Args:
        model: the yardstick, from images to logits.
        data: labelled; a random subset of `samples` is used.
        out: a folder; one file per pair.
        shifts: at least two.
        samples: how many images; all if there are fewer.
        step: between severities; it must divide 5. 0.25 is published, 1 is for the impatient.
        flip: mirror images at random, as the stream will.
        crop: move them at random by up to this share of the side.
        seed: of the subset, of flips and crops, and of the shifts.
        batch_size: samples per forward pass.
        progress: show a bar; by default on a terminal or in a notebook.
    """
    grid = _grid(step)
    if len(shifts) < 2:
        raise HoldfastError("a calibration needs at least two shifts")
    if data.targets is None:
        raise HoldfastError(f"a calibration needs labels; {data.name} has none")
    chosen = np.random.default_rng([seed & 0xFFFFFFFF, len(data)]).permutation(len(data))[:samples]
    yardstick = _Yardstick(model, data, chosen, grid, flip, crop, seed, batch_size)
    folder = writable_folder(Path(out))
    settings = {
        "shifts": [shift.name for shift in shifts],
        "samples": len(chosen),
        "step": step,
        "flip": flip,
        "crop": crop,
        "seed": seed,
        "prints": {"model": of_model(model), "data": data.fingerprint()},
    }
    _check_same(folder, settings)
    clean, classes = yardstick.clean()
    content = settings | {"clean": clean, "classes": classes, "holdfast": __version__}
    write_text(folder / "calibration.json", json.dumps(content, indent=1))
    pairs = [(one, two) for one in shifts for two in shifts if one is not two]
    missing = [pair for pair in pairs if not _file(folder, pair).is_file()]
    log.info(
        "%d of %d pairs to measure, %s forward passes",
        len(missing),
        len(pairs),
        f"{len(missing) * len(grid) ** 2 * len(chosen):,}",
    )
    with Progress("calibration", len(missing), progress, unit="pairs") as bar:
        for pair in missing:
            counts = yardstick.matrix(*pair)
            with whole(_file(folder, pair)) as file:
                np.save(file, counts)
            bar.advance(" + ".join(shift.name for shift in pair))
    return Calibration.load(folder)


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
        self.model, self.data, self.chosen, self.grid, self.seed = model.eval(), data, chosen, grid, seed
        self.flip, self.crop, self.batch_size = flip, crop, batch_size

    def batches(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Images as the stream shows them, their ids and targets."""
        assert self.data.targets is not None
        for start in range(0, len(self.chosen), self.batch_size):
            places = self.chosen[start : start + self.batch_size]
            ids = torch.arange(start, start + len(places))
            images = augmented(self.data.images(places), ids, self.seed, self.flip, self.crop)
            yield images, ids, torch.from_numpy(self.data.targets[places])

    @torch.no_grad()
    def _right(self, images: torch.Tensor, targets: torch.Tensor) -> int:
        return int((self.model(images).argmax(1) == targets).sum())

    @torch.no_grad()
    def clean(self) -> tuple[int, int]:
        """Right answers on clean images, and how many classes the model has."""
        right = classes = 0
        for images, _, targets in self.batches():
            logits = self.model(images)
            right, classes = right + int((logits.argmax(1) == targets).sum()), logits.shape[1]
        return right, classes

    def matrix(self, first: type[Shift], second: type[Shift]) -> np.ndarray:
        """`(grid, grid)`, right answers under the first shift at the row's severity, the second at the column's."""
        counts = np.zeros((len(self.grid), len(self.grid)), np.int64)
        for images, ids, targets in self.batches():
            for row, one in enumerate(self.grid):
                once = first(float(one))(images, ids, self.seed)
                for column, two in enumerate(self.grid):
                    counts[row, column] += self._right(second(float(two))(once, ids, self.seed), targets)
        return counts


def _grid(step: float) -> np.ndarray:
    points = round(5 / step) if step > 0 else 0
    if points < 1 or abs(points * step - 5) > 1e-9:
        raise HoldfastError(f"step is {step}; a number that divides 5, such as 0.25, 0.5 or 1, was expected")
    return np.linspace(0, 5, points + 1)


def _file(folder: Path, pair: tuple[type[Shift], type[Shift]]) -> Path:
    return folder / "pairs" / f"{pair[0].name} {pair[1].name}.npy"


def _settings(folder: Path) -> dict:
    path = folder / "calibration.json"
    if not path.is_file():
        raise HoldfastError(f"{folder} is no calibration: it has no calibration.json; `holdfast calibrate` makes one")
    try:
        return dict(json.loads(path.read_text()))
    except ValueError as error:
        raise HoldfastError(f"cannot read {path}: {error}") from error


def _check_same(folder: Path, settings: dict) -> None:
    """Refuse to go on with a calibration of something else."""
    if not (folder / "calibration.json").is_file():
        return
    before = _settings(folder)
    for key, value in settings.items():
        if before.get(key) != value:
            what = next((k for k in value if before[key].get(k) != value[k]), key) if key == "prints" else key
            raise HoldfastError(f"{folder} holds a calibration with another {what}; use another folder, or delete it")
