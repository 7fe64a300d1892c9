"""Images that cannot be decoded, found before the first batch: a stream must know its length before it begins.

`drop_broken` decodes every image once, which takes as long as a pass over the data; what it finds is named and counted.
"""

import logging
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from haptera.data.base import CorruptedImages, CorruptedPart, Data
from haptera.data.encoded import THREADS, EncodedData
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint

log = logging.getLogger("haptera")

NAMED = 3
"""How many broken images a message names."""


class IntactData(Data):
    """The images of a data set without some of them.

    Args:
        source: the data set.
        kept: `(images,)`, positions in the source.
    """

    def __init__(self, source: Data, kept: np.ndarray) -> None:
        self.name, self.names, self.classes = source.name, source.names, source.classes
        self.decodes, self.rows = source.decodes, source.rows[kept]
        self.targets = None if source.targets is None else source.targets[kept]
        self._source, self._kept = source, kept

    def images(self, positions: np.ndarray) -> torch.Tensor:
        """Return `(len(positions), channels, height, width)`, float32 in [0, 1]."""
        return self._source.images(self._kept[np.asarray(positions, np.int64)])

    def pixels(self, positions: np.ndarray) -> torch.Tensor | None:
        """Return the same as bytes; None where the source has none."""
        return self._source.pixels(self._kept[np.asarray(positions, np.int64)])

    @property
    def crop(self) -> float | None:
        """The share of the shorter side that is kept of image files; None where nothing is cut."""
        return self._source.crop

    def with_crop(self, crop: float) -> "IntactData":
        """Return the same images, cut in another way."""
        return IntactData(self._source.with_crop(crop), self._kept)

    def fingerprint(self) -> str:
        """Return the fingerprint of the source and of what is kept."""
        return fingerprint("intact", self._source, self._kept)


def drop_broken(data: Data | CorruptedImages) -> Data | CorruptedImages:
    """Return a data set without the images that cannot be decoded; of paired parts, without those broken in any."""
    parts = [part.data for part in data.parts] if isinstance(data, CorruptedImages) else [data]
    intact = [_decodes(part) for part in parts]
    if isinstance(data, Data):
        return _keep(data, intact[0])
    if data.paired:
        intact = [np.logical_and.reduce(intact)] * len(parts)
    kept = [_keep(part, good) for part, good in zip(parts, intact, strict=True)]
    every = [CorruptedPart(old.shift, old.severity, new) for old, new in zip(data.parts, kept, strict=True)]
    return CorruptedImages(data.name, every, data.paired)


def _keep(data: Data, intact: np.ndarray) -> Data:
    if intact.all():
        return data
    if not intact.any():
        raise HapteraError(f"{data.name}: none of its {len(data)} images can be decoded")
    return IntactData(data, np.flatnonzero(intact))


def _decodes(data: Data) -> np.ndarray:
    """Return `(images,)`, whether each can be decoded; others are named in a warning."""
    intact = np.ones(len(data), bool)
    if not isinstance(data, EncodedData):
        return intact
    said: list[str] = []

    def check(position: int) -> None:
        try:
            data.decode(position)
        except HapteraError as error:
            intact[position] = False
            said.append(str(error))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(check, range(len(data))))
    if said:
        more = f" and {len(said) - NAMED} more" if len(said) > NAMED else ""
        log.warning(
            "%s: %d of %d images are dropped: %s%s",
            data.name,
            len(said),
            len(data),
            "; ".join(sorted(said)[:NAMED]),
            more,
        )
    return intact
