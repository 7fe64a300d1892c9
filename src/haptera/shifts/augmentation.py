"""A shift as an augmentation of MAITE, which changes the images of a batch `(images, targets, metadata)`.

Randomness comes from the id of each image where it is a whole number, as in the data sets of haptera, so that an image
is shifted in the same way in any batch.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from haptera.shifts.base import Shift

Batch = tuple[Sequence[Any], Sequence[Any], Sequence[dict[str, Any]]]


class MaiteAugmentation:
    """A shift that is called with batches of MAITE.

    Args:
        shift: what is done to the images.
        seed: another seed, other randomness.

    >>> from haptera.shifts import Contrast
    >>> images, targets, about = MaiteAugmentation(Contrast(3))(([np.zeros((3, 8, 8))], [0], [{"id": 7}]))
    >>> images[0].shape, targets, about
    ((3, 8, 8), [0], [{'id': 7}])
    """

    def __init__(self, shift: Shift, seed: int = 0) -> None:
        self.shift, self.seed = shift, seed
        self.metadata: dict[str, Any] = {"id": f"{shift.name}-{shift.severity:g}"}

    def __call__(self, batch: Batch, /) -> Batch:
        """Return the batch with its images shifted, float32 in [0, 1]; what was given stays as it was."""
        images, targets, about = batch
        if not len(images):
            return batch
        ids = [_number(each.get("id")) for each in about]
        shifted = self.shift(torch.stack([_pixels(image) for image in images]), ids, self.seed)
        return list(shifted.numpy()), targets, about


def _number(id_: Any) -> int:
    """Return the number by which an image draws its randomness; that of a text is its checksum."""
    return int(id_) if isinstance(id_, int | np.integer) else zlib.crc32(str(id_).encode())


def _pixels(image: Any) -> torch.Tensor:
    pixels = np.array(image.detach().cpu() if isinstance(image, torch.Tensor) else image)
    scale = 255 if pixels.dtype == np.uint8 else 1
    return torch.from_numpy(pixels).float() / scale
