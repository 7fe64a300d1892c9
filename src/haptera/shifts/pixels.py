"""Images as bytes: which axis holds the channels, and the ways there and back.

Bytes come `(batch, height, width, channels)`, as files and cameras give them, or `(batch, channels, height, width)`, as
networks take them, in a NumPy array or a tensor, and go back as they came. A shift that has arithmetic of its own for
bytes writes `apply_bytes` on top of `haptera.shifts.kernels`; any other goes through floats and is rounded.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from haptera.errors import HapteraError

COLOURS = (1, 3)


@dataclass(frozen=True)
class Pixels:
    """A batch of images in bytes.

    Attributes:
        array: contiguous, `(batch, height, width, channels)` where `last`, else `(batch, channels, height, width)`.
        last: whether the channels are the last axis.
    """

    array: np.ndarray
    last: bool

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """As a shift sees it, whatever the layout: `(batch, channels, height, width)`."""
        shape = self.array.shape
        return (shape[0], shape[3], shape[1], shape[2]) if self.last else (shape[0], shape[1], shape[2], shape[3])

    @property
    def step(self) -> int:
        """Bytes from a pixel to the next one of its row."""
        return self.shape[1] if self.last else 1

    def planes(self) -> np.ndarray:
        """Return `(images, height, width · step)`, rows in which the next pixel is `step` bytes on."""
        batch, channels, height, width = self.shape
        return self.array.reshape(batch if self.last else batch * channels, height, width * self.step)

    @property
    def planes_each(self) -> int:
        """How many of `planes` an image has."""
        return 1 if self.last else self.shape[1]

    def like(self, planes: np.ndarray) -> "Pixels":
        """Other bytes in the same layout."""
        return replace(self, array=planes.reshape(self.array.shape))

    def values(self) -> torch.Tensor:
        """Return `(batch, channels, height, width)`, float32 in [0, 1], contiguous."""
        images = torch.from_numpy(self.array if self.array.flags.writeable else self.array.copy())
        return (images.permute(0, 3, 1, 2) if self.last else images).contiguous().float().div_(255)

    def rounded(self, images: torch.Tensor) -> "Pixels":
        """Images in [0, 1] as bytes, to the nearest, in the same layout."""
        whole = images.mul(255).round_().to(torch.uint8)
        return replace(self, array=(whole.permute(0, 2, 3, 1) if self.last else whole).contiguous().numpy())


def read_bytes(images: np.ndarray | torch.Tensor, name: str) -> Pixels:
    """Find the channels by their number, 1 or 3; where both ends have such a number, they come first.

    >>> read_bytes(np.zeros((2, 32, 32, 3), np.uint8), "fog").last
    True
    """
    array = images.detach().cpu().numpy() if isinstance(images, torch.Tensor) else images
    if array.ndim != 4:
        raise HapteraError(
            f"{name} takes bytes (batch, height, width, channels) or channels first, found {array.shape}"
        )
    last = array.shape[3] in COLOURS and array.shape[1] not in COLOURS
    return Pixels(np.ascontiguousarray(array), last)
