"""Pieces of a table of scores, each finished by itself: predictions of a cell, and the frames of it that a page shows.

Both are known by the weights, the frames and the settings; prints of weights and frames are taken once for all cells.
Cost: a cell, the shift and the network on its frames; frames to show, the shift on one or two, kept at the width of a
panel.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from torch import nn

from haptera.files.fingerprint import fingerprint
from haptera.files.npz import read_npz
from haptera.outputs import Outputs
from haptera.pose.data import PoseData
from haptera.pose.evaluate import evaluate
from haptera.pose.predict import check_adapter
from haptera.pose.skeletons import PANEL, Frame
from haptera.run.ledger import Piece
from haptera.run.tasks import Task

INDIVIDUALS = 2
"""So many individuals of each set are shown on the page,"""
MOST = 32
"""unless that were more pictures than this; then one."""


def shift_title(shift: Any) -> str:
    """Return what messages and pages call a shift."""
    return f"{shift.name} {shift.severity:g}" if shift else "clean"


class Cell(Task[Outputs]):
    """One model on one set of frames under one shift, with one adapter.

    Args:
        names: of the model, the set and the adapter.
        model: what predicts.
        data: the set.
        prints: fingerprints of both.
        settings: of `evaluate`.
    """

    def __init__(
        self, names: tuple[str, str, str], model: nn.Module, data: PoseData, prints: tuple[str, str], **settings: Any
    ) -> None:
        self.names, self.model, self.data, self.settings = names, model, data, settings
        key = fingerprint(*prints, settings)
        self.piece = Piece(key, f"cells/{key}.npz", " · ".join((*names[:2], self.shift, names[2])))
        self.work = len(data)

    @property
    def shift(self) -> str:
        """What happens to the frames."""
        return shift_title(self.settings["shift"])

    def check(self) -> None:
        """Refuse an adapter for classes."""
        check_adapter(self.settings["adapter"](self.model))

    def make(self) -> Outputs:
        """Predict."""
        return evaluate(self.model, self.data, **self.settings)

    def write(self, result: Outputs, path: Path) -> None:
        """Write the predictions."""
        result.save(path)

    def read(self, path: Path) -> Outputs:
        """Read them."""
        return Outputs.load(path)


class Shown(Task[dict[str, np.ndarray]]):
    """The middle frame of some individuals of a set under a shift: `rows`, and `images` no wider than a panel.

    Args:
        data: the set.
        print_: its fingerprint.
        shift: what happens to the frames.
        batch_size: the frame is of the first batch of its individual.
        seed: of the shift.
        individuals: how many.
    """

    work = 0.1

    def __init__(self, data: PoseData, print_: str, shift: Any, batch_size: int, seed: int, individuals: int) -> None:
        self.data, self.shift, self.seed = data, shift, seed
        self.batch_size, self.individuals = batch_size, individuals
        key = fingerprint("shown", print_, shift, batch_size, seed, individuals, PANEL)
        self.piece = Piece(key, f"shown/{key}.npz", f"frames to show, {shift_title(shift)}")

    def make(self) -> dict[str, np.ndarray]:
        """Shift the frames, and make them smaller."""
        rows, images = [], []
        for individual in np.unique(self.data.individuals)[: self.individuals]:
            own = np.flatnonzero(self.data.individuals == individual)[: self.batch_size]
            row = own[[len(own) // 2]]
            image = self.data.images(row)
            if self.shift is not None:
                image = self.shift(image, self.data.rows[row], self.seed)
            pixels = (image[0].permute(1, 2, 0).numpy() * 255).round().astype(np.uint8)
            rows.append(row[0])
            images.append(_reduce(pixels))
        return {"rows": np.array(rows), "images": np.stack(images)}

    def write(self, result: dict[str, np.ndarray], path: Path) -> None:
        """Write an `.npz`."""
        with path.open("wb") as file:
            np.savez(file, **result)  # type: ignore[arg-type]

    def read(self, path: Path) -> dict[str, np.ndarray]:
        """Read it."""
        return read_npz(path)

    def frames(self, found: dict[str, np.ndarray], outputs: Outputs, caption: str) -> list[Frame]:
        """Return the pictures with the predictions and labels of a cell."""
        assert outputs.targets is not None
        frames = []
        for row, image in zip(found["rows"], found["images"], strict=True):
            factors = np.array([image.shape[1] / self.data.width, image.shape[0] / self.data.height])
            predicted, labelled = (
                (points[row] + 0.5) * factors - 0.5 for points in (outputs.arrays["keypoints"], outputs.targets)
            )
            frames.append(Frame(image, predicted, labelled, caption))
        return frames


def choose_shown(cells: Sequence[Cell]) -> tuple[list[int], int]:
    """Return which cells are shown, of each shift the largest severity, and how many individuals of each."""
    largest: dict[tuple[str, ...], float] = {}
    keys = []
    for cell in cells:
        shift = cell.settings["shift"]
        keys.append((*cell.names, shift.name if shift else ""))
        severity = shift.severity if shift else 0.0
        largest[keys[-1]] = max(severity, largest.get(keys[-1], severity))
    chosen = [
        place
        for place, (cell, key) in enumerate(zip(cells, keys, strict=True))
        if cell.settings["shift"] is None or cell.settings["shift"].severity == largest[key]
    ]
    return chosen, INDIVIDUALS if len(chosen) * INDIVIDUALS <= MOST else 1


def _reduce(pixels: np.ndarray) -> np.ndarray:
    """Return an image no wider than a panel."""
    height, width = pixels.shape[:2]
    if width <= PANEL:
        return pixels
    size = PANEL, max(1, round(height * PANEL / width))
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR, reducing_gap=2))
