"""Images in one array in memory."""

from collections.abc import Sequence

import numpy as np
import torch

from holdfast.data.base import Data
from holdfast.data.labels import read_ids, read_labels, read_names
from holdfast.data.pixels import check_channels, check_values, read_layout, to_images
from holdfast.fingerprint import fingerprint

Array = np.ndarray | torch.Tensor | Sequence[int]


class ArrayData(Data):
    """Images in an array, held as they came and not copied; do not change it afterwards.

    Args:
        images: `(N, H, W)`, `(N, H, W, 1 or 3)` or `(N, 1 or 3, H, W)`; uint8, or floats in [0, 1].
        labels: `(N,)` integers, or None.
        name: what it is called in messages.
        classes: the names of the classes, or None.
        ids: `(N,)`, the number of each sample in its source; by default 0 to N - 1.
        channels: 3 repeats grey as colour, 1 turns colour into grey, None keeps what there is.

    >>> data = ArrayData(np.zeros((5, 8, 8), np.uint8), [0, 1, 0, 1, 1], channels=3)
    >>> data.images(np.array([3, 4])).shape
    torch.Size([2, 3, 8, 8])
    """

    def __init__(
        self,
        images: np.ndarray | torch.Tensor,
        labels: Array | None = None,
        name: str = "array",
        classes: Sequence[str] | np.ndarray | None = None,
        *,
        ids: Array | None = None,
        channels: int | None = None,
    ) -> None:
        check_channels(channels)
        pixels = _as_array(images)
        self._layout = read_layout(pixels.shape, name)
        check_values(pixels, name)
        samples = len(pixels)
        self.name = name
        self.targets = None if labels is None else read_labels(_as_array(labels), samples, name)
        self.names = None if classes is None else read_names(np.asarray(classes), self.targets, name)
        self.rows = np.arange(samples) if ids is None else read_ids(_as_array(ids), samples, name)
        self._channels = channels or self._layout.channels
        self._pixels: np.ndarray | None = pixels
        self._fingerprint: str | None = None

    def images(self, positions: np.ndarray) -> torch.Tensor:
        """`(len(positions), channels, height, width)`, float32 in [0, 1]."""
        return to_images(self._array()[np.asarray(positions, np.int64)], self._layout, self._channels)

    def fingerprint(self) -> str:
        """Of the bytes, taken at the first call."""
        if self._fingerprint is None:
            self._fingerprint = fingerprint("array", self._array(), self.targets, self.names, self.rows, self._channels)
        return self._fingerprint

    def _array(self) -> np.ndarray:
        assert self._pixels is not None
        return self._pixels


def _as_array(values: Array) -> np.ndarray:
    if not isinstance(values, torch.Tensor):
        return np.asarray(values)
    values = values.detach().cpu()
    return (values.float() if values.dtype == torch.bfloat16 else values).numpy()  # NumPy has no bfloat16
