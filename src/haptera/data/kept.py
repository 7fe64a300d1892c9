"""Images of data that is drawn from again and again, decoded once and kept as bytes."""

import threading
from math import prod
from typing import Any

import numpy as np
import torch

from haptera.data.base import Data

ROOM = 2**29
"""Bytes of the images that are kept: 3,500 of 224 x 224 pixels in colour."""


class KeptPixels:
    """What `data.pixels` gives, from memory where an image came before.

    Who draws at random is as likely to draw any image again, so the first that fit are kept and none makes room for
    another. A copy for another process, or a pickled one, begins empty. Calls from several threads do not mix.

    Args:
        data: what is read; nothing is kept of data that is in memory already, or that has no bytes.
        room: how many bytes may be kept.
    """

    def __init__(self, data: Data, room: int = ROOM) -> None:
        self._data, self._room = data, room
        self._forget()

    def _forget(self) -> None:
        self._places = np.full(len(self._data), -1, np.int64)
        self._kept: list[torch.Tensor] = []
        self._lock = threading.Lock()

    def __call__(self, positions: np.ndarray) -> torch.Tensor | None:
        """Return `(len(positions), channels, height, width)` in bytes, or None where the data has no bytes."""
        if not self._data.decodes:
            return self._data.pixels(positions)
        places = self._places[positions]
        if (places >= 0).all() and len(places):
            return torch.stack([self._kept[place] for place in places.tolist()])
        new = np.unique(positions[places < 0])
        read = self._data.pixels(new)
        if read is None:
            return None
        self._keep(new, read)
        rows = np.searchsorted(new, positions)
        return torch.stack(
            [
                read[row] if place < 0 else self._kept[place]
                for row, place in zip(rows.tolist(), places.tolist(), strict=True)
            ]
        )

    def _keep(self, positions: np.ndarray, images: torch.Tensor) -> None:
        with self._lock:
            for position, image in zip(positions.tolist(), images, strict=True):
                if self._places[position] < 0 and len(self._kept) < self._room // max(1, prod(image.shape)):
                    self._kept.append(image.clone())
                    self._places[position] = len(self._kept) - 1

    def __getstate__(self) -> dict[str, Any]:
        return {"_data": self._data, "_room": self._room}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()
