"""One way in: what a path holds is seen from the path itself.

`digits` needs no path, so that a first run downloads nothing: scikit-learn's 1,797 grey images of 8 x 8, scaled up
bilinearly, cut once and for all into two halves.
"""

import os
from pathlib import Path

import numpy as np
import torch

from haptera.data.arrays import ArrayData, NpzData
from haptera.data.base import CorruptedImages, Data
from haptera.data.corrupted import LABELS, find_corruptions, open_cifar_c, open_imagenet_c
from haptera.data.folder import FolderData
from haptera.data.mapping import read_mapping, with_mapping
from haptera.data.pixels import check_channels, check_size
from haptera.errors import HapteraError, hint, unknown

SPLITS = ("train", "test", "all")
NO_MAPPING = "restrict needs a mapping: it keeps the model's classes that the mapping accepts"


def digits(split: str = "test", size: int = 32, *, channels: int | None = None) -> ArrayData:
    """Handwritten digits; the rows are their numbers in scikit-learn's set, whichever split they are in.

    Args:
        split: `train` or `test`, each half of every class, or `all`.
        size: height and width.
        channels: 3 repeats the grey, None and 1 keep it.
    """
    from sklearn.datasets import load_digits

    if split not in SPLITS:
        raise unknown("split of digits", split, SPLITS)
    check_size(size)
    bunch = load_digits()
    rows = _rows(bunch.target, split)
    small = torch.from_numpy(bunch.images[rows]).float().div_(16).unsqueeze(1)
    images = torch.nn.functional.interpolate(
        small, size=(size, size), mode="bilinear", align_corners=False, antialias=False
    ).clamp_(0, 1)
    names = [str(name) for name in bunch.target_names]
    return ArrayData(images, bunch.target[rows], "digits", names, ids=rows, channels=channels)


def _rows(targets: np.ndarray, split: str) -> np.ndarray:
    """Return `(samples,)`: of each class a random half, always the same, in the order of the source."""
    if split == "all":
        return np.arange(len(targets))
    generator = np.random.default_rng(0)
    train = np.zeros(len(targets), bool)
    for label in np.unique(targets):
        members = generator.permutation(np.flatnonzero(targets == label))
        train[members[: len(members) // 2]] = True
    return np.flatnonzero(train if split == "train" else ~train)


def open_data(
    source: str | Path,
    *,
    size: int | None = None,
    channels: int | None = None,
    mapping: str | Path | None = None,
    restrict: bool = False,
) -> Data | CorruptedImages:
    """Open images for reading.

    Args:
        source: `digits` (the test half of scikit-learn's), an `.npz` file, a folder of images or of class
            folders, or a folder in the layout of ImageNet-C or CIFAR-10-C. A file that is called digits is
            `./digits`.
        size: height and width to which image files are brought; None if they are all of one size.
        channels: 1 for grey, 3 for colour; None keeps arrays as they are and reads image files in colour.
        mapping: a CSV `class,accepted` from the data set's classes to the model's.
        restrict: whether only the model's classes that occur in the mapping may be predicted.

    Returns:
        Data, or CorruptedImages for a folder that holds corruptions and severities.
    """
    check_size(size)
    check_channels(channels)
    if mapping is None:
        if restrict:
            raise HapteraError(NO_MAPPING)
        return _open(source, size, channels)
    table = read_mapping(Path(mapping).expanduser())
    return with_mapping(_open(source, size, channels), table, restrict, str(mapping))


def map_labelled(opened: dict[str, Data], mapping: str | Path | None, restrict: bool = False) -> None:
    """Map those data sets of several that have labels, in place; an error if none has."""
    if mapping is None:
        raise HapteraError(NO_MAPPING)
    labelled = [name for name, data in opened.items() if data.targets is not None]
    if not labelled:
        raise HapteraError(f"the mapping {mapping} maps classes, and none of the data has labels: {', '.join(opened)}")
    table = read_mapping(Path(mapping).expanduser())
    for name in labelled:
        mapped = with_mapping(opened[name], table, restrict, str(mapping))
        assert isinstance(mapped, Data)
        opened[name] = mapped


def _open(source: str | Path, size: int | None, channels: int | None) -> Data | CorruptedImages:
    if source == "digits":
        return digits(size=size or 32, channels=channels)
    if source == "":
        raise HapteraError("the name of the data is empty; a file, a folder or 'digits' was expected")
    path = Path(source).expanduser().absolute()
    if os.path.isdir(path):  # which is false, and no error, for a name that no file can have
        if (path / LABELS).is_file():
            return open_cifar_c(path, size=size, channels=channels)
        if corruptions := find_corruptions(path):
            return open_imagenet_c(path, corruptions, size=size, channels=channels)
        return FolderData(path, size=size, channels=channels)
    if not os.path.exists(path):
        raise _missing(source, path)
    if path.suffix.lower() != ".npz":
        raise HapteraError(
            f"{source} is a file of kind {path.suffix!r}; an .npz file with 'images', a folder or 'digits' was expected"
        )
    return NpzData(path, channels=channels, size=size)


def _missing(source: str | Path, path: Path) -> HapteraError:
    if not path.parent.is_dir():
        return HapteraError(f"no data at {source}: there is no folder {path.parent}")
    try:
        beside = [entry.name for entry in path.parent.iterdir() if not entry.name.startswith(".")]
    except OSError:
        beside = []
    near = hint(path.name, [*beside, *(["digits"] if str(source) == path.name else [])], cutoff=0.6)
    return HapteraError(f"no data at {source};{near} an .npz file, a folder or 'digits' was expected")
