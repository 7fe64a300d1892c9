"""Data sets that are sequences of items: PyTorch's map-style data sets, and those of MAITE.

An item is `(image, target)` or `(image, target, metadata)`. The image is `(channels, height, width)`, uint8 or floats
in [0, 1], or a picture of Pillow; the target is the number of the class, or one number per class of which the largest
counts. MAITE is a set of protocols by which test and evaluation tools exchange data sets and models: its data sets also
have `metadata` with an id and the names of classes, and each item its own id. The other way needs nothing: every
`Data` is such a data set itself.

Targets and ids are read once, when the data is opened, which decodes every image unless the data set can be asked for
them alone (`targets` of torchvision's, `get_target` of MAITE's `FieldwiseDataset`).
"""

from typing import Any

import numpy as np
import torch
from PIL import Image

from haptera.data.base import Data, sample_fingerprint
from haptera.data.pixels import Layout, check_channels, check_values, to_images
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint


class ItemData(Data):
    """Images of a sequence of items, read as they are needed.

    Ids that are whole numbers become the rows, by which the randomness of shifts is drawn; else rows are positions.

    Args:
        dataset: images of one size; labels for all of them or for none (None).
        channels: 3 repeats grey as colour, 1 turns colour into grey, None keeps what there is.
        name: what it is called in messages; MAITE's id or the name of the class by default.
    """

    def __init__(self, dataset: Any, *, channels: int | None = None, name: str | None = None) -> None:
        check_channels(channels)
        if missing := [need for need in ("__getitem__", "__len__") if not hasattr(dataset, need)]:
            raise HapteraError(
                f"a {type(dataset).__name__} is not a sequence of items: it lacks {' and '.join(missing)}"
            )
        about = getattr(dataset, "metadata", None)
        self._about = about if isinstance(about, dict) else {}
        self.name = name or str(self._about.get("id", type(dataset).__name__))
        if len(dataset) == 0:
            raise HapteraError(f"{self.name} holds no images; at least one was expected")
        self._dataset = dataset
        self._layout = Layout("NCHW", *self._image(0).shape)
        self._channels = channels or self._layout.channels
        self.targets, self.rows = self._read_facts()
        self.names = self._class_names()
        self._fingerprint: str | None = None

    def images(self, positions: np.ndarray) -> torch.Tensor:
        """Return `(len(positions), channels, height, width)`, float32 in [0, 1]."""
        shape = (self._layout.channels, self._layout.height, self._layout.width)
        pixels = [self._image(position) for position in np.asarray(positions, np.int64).tolist()]
        for position, image in zip(positions, pixels, strict=True):
            if image.shape != shape:
                raise HapteraError(
                    f"{self.name}: image {position} has shape {image.shape} (channels, height, width), the first "
                    f"has {shape}; give a data set whose images are of one size"
                )
        block = np.stack(pixels) if pixels else np.empty((0, *shape), np.uint8)
        check_values(block, self.name)
        return to_images(block, self._layout, self._channels)

    def fingerprint(self) -> str:
        """Return the fingerprint of every image, label and setting; the first call reads all images."""
        if self._fingerprint is None:
            self._fingerprint = fingerprint("items", sample_fingerprint(self), self.names, self.rows, self._channels)
        return self._fingerprint

    def _image(self, position: int) -> np.ndarray:
        """Return `(channels, height, width)`."""
        item = self._dataset[position]
        if not isinstance(item, tuple | list) or len(item) not in (2, 3):
            raise HapteraError(
                f"{self.name}: item {position} is a {type(item).__name__}; (image, target) or "
                "(image, target, metadata) was expected"
            )
        if isinstance(item[0], Image.Image):
            grey = item[0].mode in ("L", "1")
            pixels = np.asarray(item[0].convert("L" if grey else "RGB"))
            image = pixels[None] if grey else pixels.transpose(2, 0, 1)
        else:
            image = _array(item[0])
        if image.ndim != 3 or image.shape[0] not in (1, 3) or 0 in image.shape:
            raise HapteraError(
                f"{self.name}: image {position} has shape {image.shape}; (1 or 3, height, width) was expected"
            )
        return image

    def _read_facts(self) -> tuple[np.ndarray | None, np.ndarray]:
        """Return the targets and the rows."""
        given = getattr(self._dataset, "targets", None)
        size = len(self._dataset)
        if given is not None and len(given) == size and not self._about:
            found: list[tuple[Any, Any]] = [(target, None) for target in given]
        else:
            found = [self._fact(position) for position in range(size)]
        targets = [self._target(target, position) for position, (target, _) in enumerate(found)]
        absent = [position for position, target in enumerate(targets) if target is None]
        if absent and len(absent) < size:
            raise HapteraError(
                f"{self.name}: item {absent[0]} has no target, others have one; all or none was expected"
            )
        ids = [own for _, own in found]
        whole = all(isinstance(own, int | np.integer) and own >= 0 for own in ids) and len(set(ids)) == size
        rows = np.array(ids, np.int64) if whole else np.arange(size)
        return (None if absent else np.array(targets, np.int64)), rows

    def _fact(self, position: int) -> tuple[Any, Any]:
        """Return the target and the id of an item, without its image where the data set allows that."""
        if hasattr(self._dataset, "get_target") and hasattr(self._dataset, "get_metadata"):
            target, about = self._dataset.get_target(position), self._dataset.get_metadata(position)
        else:
            _, target, about = (*self._dataset[position], None)[:3]
        return target, about.get("id") if isinstance(about, dict) else None

    def _target(self, target: Any, position: int) -> int | None:
        if target is None:
            return None
        scores = _array(target)
        whole = scores.ndim == 0 and scores.dtype.kind in "iu" and scores >= 0
        if whole:
            return int(scores)
        if scores.ndim != 1 or len(scores) == 0:
            raise HapteraError(
                f"{self.name}: the target of item {position} is {target!r}; the number of a class, or one number per "
                "class, was expected"
            )
        return int(scores.argmax())

    def _class_names(self) -> tuple[str, ...] | None:
        names = self._about.get("index2label") or dict(enumerate(getattr(self._dataset, "classes", None) or ()))
        if not names or self.targets is None:
            return None
        size = max([*names, int(self.targets.max())]) + 1
        return tuple(str(names.get(index, index)) for index in range(size))


def _array(values: Any) -> np.ndarray:
    return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
