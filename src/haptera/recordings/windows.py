"""Offset: which samples around the current one an encoder looks at.

Source: thesis, chapter 7, "CEBRA models". `right` counts the current sample, so the window of a sample runs from `left`
samples before it to `right − 1` after it. In training an index is moved inwards until its window fits; before a
transform the ends of the signal are repeated, so that every sample has an output.
Cost: a window is a copy of `left + right` rows.
"""

from dataclasses import dataclass

import numpy as np

from haptera.errors import HapteraError


@dataclass(frozen=True)
class Offset:
    """Samples before the current one, and samples from the current one on.

    >>> Offset(5, 5).positions(20).tolist()
    [15, 16, 17, 18, 19, 20, 21, 22, 23, 24]
    """

    left: int
    right: int

    def __post_init__(self) -> None:
        if self.left < 0 or self.right < 1:
            raise HapteraError(f"the offset is ({self.left}, {self.right}); at least (0, 1) was expected")

    def __len__(self) -> int:
        return self.left + self.right

    def positions(self, index: int | np.ndarray) -> np.ndarray:
        """Every sample of the window of each index, `(..., length)`."""
        return np.asarray(index)[..., None] + np.arange(-self.left, self.right)

    def clamp(self, indices: np.ndarray, samples: int) -> np.ndarray:
        """Indices moved inwards to `left … samples − right`, where a whole window fits."""
        return np.clip(indices, self.left, samples - self.right)

    def windows(self, signal: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """The windows `(indices, length, channels)` of a signal `(samples, channels)`, indices clamped."""
        return signal[self.positions(self.clamp(indices, len(signal)))]

    def pad(self, signal: np.ndarray) -> np.ndarray:
        """The signal with its ends repeated `left` and `right − 1` times: as many windows as samples."""
        return np.pad(signal, ((self.left, self.right - 1), (0, 0)), mode="edge")
