"""What the samples of the readers share."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

RANDOM = np.random.default_rng(0)
LOGITS, TARGETS = RANDOM.normal(size=(40, 5)).astype(np.float32), RANDOM.integers(0, 5, 40)
SPIKES, ANGLE = RANDOM.poisson(2, (60, 4)).astype(float), np.linspace(0, 6.2, 60)


@dataclass(frozen=True)
class Reader:
    """How to write a sample into a folder, and how to read it; a command's exit code, or None."""

    write: Callable[[Path], Any]
    read: Callable[[Path], int | None]


def images(folder: Path, names: list[str]) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(RANDOM.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(path)


def ignore(_: object) -> None:
    return None
