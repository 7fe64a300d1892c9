"""One way in: what a path holds is seen from the path itself.

`digits` needs no path, so that a first run downloads nothing: scikit-learn's 1,797 grey images of 8 x 8, scaled up
bilinearly, cut once and for all into two halves.
"""

import os
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from haptera.data.arrays import ArrayData, NpzData
from haptera.data.arrow import ArrowData
from haptera.data.base import CorruptedImages, Data
from haptera.data.broken import drop_broken
from haptera.data.cifar import find_cifar, open_cifar
from haptera.data.corrupted import LABELS, find_corruptions, open_cifar_c, open_imagenet_c
from haptera.data.decode import Resize, check_size
from haptera.data.folder import FolderData
from haptera.data.groups import find_domains, open_domains
from haptera.data.hub import find_tables, open_tables
from haptera.data.items import ItemData
from haptera.data.listing import find_ground_truth, open_table, open_validation
from haptera.data.mapping import with_mapping
from haptera.data.named_mappings import find_mapping
from haptera.data.pixels import check_channels
from haptera.data.tars import COMPRESSED, TarData
from haptera.errors import HapteraError, hint, unknown
from haptera.own_code import find_object

SPLITS = ("train", "test", "all")
STOP, DROP = BROKEN = ("stop", "drop")
KINDS = "an .npz, .parquet, .arrow, .tar or .csv file, a folder or 'digits'"
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
    crop: float | str | None = None,
    interpolation: str | None = None,
    upright: bool = False,
    channels: int | None = None,
    mapping: str | Path | None = None,
    restrict: bool | None = None,
    broken: str = STOP,
    default: Resize | None = None,
) -> Data | CorruptedImages:
    """Open images for reading.

    Args:
        source: `digits` (the test half of scikit-learn's); a folder of images, of class folders or of domains, in the
            layout of ImageNet-C, CIFAR-10-C, CIFAR's binary form, ImageNet's flat validation folder, the Hugging Face
            hub or `datasets`; an `.npz`, `.parquet`, `.arrow`, `.tar` or `.csv` file, or a pattern of several, such
            as `val-*.tar` or `val-{000..009}.tar`. `module:object` or `file.py:object` is a data set of PyTorch, MAITE
            or haptera, or a function that returns one. A file that is called digits is `./digits`.
        size: height and width to which encoded images are brought; None if they are all of one size.
        crop: share of the shorter side that is kept in the centre, 0.875 by default; or `squash`.
        interpolation: how encoded images are resized, `bilinear` by default.
        upright: turn images as their EXIF orientation says.
        channels: 1 for grey, 3 for colour; None keeps arrays as they are and reads encoded images in colour.
        mapping: a CSV `class,accepted` from the data set's classes to the model's, or the name of a mapping that ships
            with haptera, such as `imagenet-r`.
        restrict: whether only the model's classes that occur in the mapping may be predicted; by default as the set is
            scored by its authors (`imagenet-r` and `imagenet-a` so), and not for a file.
        broken: what an image that cannot be decoded is: `stop`, an error when it is read; or `drop`, left out, which is
            found out by decoding all of them first.
        default: what holds for encoded images where size, crop or interpolation is not given, as a model asks for it.

    Returns:
        Data, or CorruptedImages for data in parts: corruptions and severities, or domains.
    """
    check_channels(channels)
    if broken not in BROKEN:
        raise unknown("value for broken:", str(broken), BROKEN)
    resize = _resize(size, crop, interpolation, upright, default or Resize())
    if mapping is None and restrict:
        raise HapteraError(NO_MAPPING)
    opened = _open(source, size, resize, channels)
    if broken == DROP:
        opened = drop_broken(opened)
    return opened if mapping is None else with_mapping(opened, *find_mapping(mapping, restrict), str(mapping))


def _resize(
    size: int | None, crop: float | str | None, interpolation: str | None, upright: bool, default: Resize
) -> Resize:
    """Return what was given, and the default for what was not."""
    resize = Resize(
        default.size if size is None else size,
        default.crop if crop is None else crop,
        default.interpolation if interpolation is None else interpolation,
        upright,
    )
    if resize.size is None and (crop, interpolation) != (None, None):
        given = "crop" if crop is not None else "interpolation"
        raise HapteraError(f"{given} is given and size is not; give size as well, such as size=224")
    return resize


def map_labelled(opened: dict[str, Data], mapping: str | Path | None, restrict: bool | None = None) -> None:
    """Map those data sets of several that have labels, in place; an error if none has."""
    if mapping is None:
        raise HapteraError(NO_MAPPING)
    labelled = [name for name, data in opened.items() if data.targets is not None]
    if not labelled:
        raise HapteraError(f"the mapping {mapping} maps classes, and none of the data has labels: {', '.join(opened)}")
    table, among = find_mapping(mapping, restrict)
    for name in labelled:
        mapped = with_mapping(opened[name], table, among, str(mapping))
        assert isinstance(mapped, Data)
        opened[name] = mapped


def _open(source: str | Path, size: int | None, resize: Resize, channels: int | None) -> Data | CorruptedImages:
    """Open what a path holds; arrays must have a size that was given, and are not resized."""
    if source == "digits":
        return digits(size=resize.size or 32, channels=channels)
    if source == "":
        raise HapteraError("the name of the data is empty; a file, a folder or 'digits' was expected")
    if names_object(source):
        return _import_data(str(source), size, channels)
    path = Path(source).expanduser().absolute()
    if os.path.isdir(path):  # which is false, and no error, for a name that no file can have
        return _open_folder(path, size, resize, channels)
    paths = [path] if os.path.exists(path) else match_files(path)
    if not paths:
        raise _missing(source, path)
    return _open_files(paths, str(source), size, resize, channels)


def _open_folder(path: Path, size: int | None, resize: Resize, channels: int | None) -> Data | CorruptedImages:
    if (path / LABELS).is_file():
        return open_cifar_c(path, size=size, channels=channels)
    if file := find_cifar(path):
        return open_cifar(file, size=size, channels=channels)
    if tables := find_tables(path):
        return open_tables(path, tables, resize, channels)
    if shards := sorted(path.glob("[!.]*.tar")):
        return TarData(shards, resize, channels, path.name)
    if corruptions := find_corruptions(path):
        return open_imagenet_c(path, corruptions, resize=resize, channels=channels)
    if truth := find_ground_truth(path):
        return open_validation(path, truth, resize, channels)
    if domains := find_domains(path):
        return open_domains(path, domains, resize, channels)
    return FolderData(path, **asdict(resize), channels=channels)


def _open_files(
    paths: list[Path], source: str, size: int | None, resize: Resize, channels: int | None
) -> Data | CorruptedImages:
    """Open one file, or several of one kind that a pattern names."""
    kinds = {"".join(path.suffixes[-2:]).lower() if ".tar." in path.name else path.suffix.lower() for path in paths}
    kind = kinds.pop()
    if kinds:
        raise HapteraError(f"{source} names files of several kinds: {kind}, {', '.join(kinds)}; one was expected")
    if kind == ".tar" or kind in COMPRESSED:
        return TarData(paths, resize, channels)
    if kind in (".parquet", ".arrow"):
        return ArrowData(paths, resize, channels)
    if len(paths) > 1:
        raise HapteraError(f"{source} names {len(paths)} files; only .tar, .parquet and .arrow files are read together")
    if kind in (".csv", ".tsv"):
        return open_table(paths[0], resize, channels)
    if file := find_cifar(paths[0]):
        return open_cifar(file, size=size, channels=channels)
    if kind != ".npz":
        raise HapteraError(f"{source} is a file of kind {kind!r}; {KINDS} was expected")
    return NpzData(paths[0], channels=channels, size=size)


def match_files(path: Path) -> list[Path]:
    """Return the files that a pattern names, sorted: `*`, `?` and `[...]` as in a shell, `{000..009}` counts."""
    if counted := re.search(r"\{(\d+)\.\.(\d+)\}", path.name):
        first, last = counted[1], counted[2]
        names = [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
        paths = [path.with_name(path.name.replace(counted[0], name)) for name in names]
        if missing := next((each for each in paths if not each.is_file()), None):
            raise HapteraError(f"there is no file {missing}, which {path.name} names")
        return paths
    try:
        return sorted(each for each in path.parent.glob(path.name) if each.is_file())
    except (ValueError, OSError):
        return []


def names_object(source: str | Path) -> bool:
    """Whether a text names an object of a module or a Python file, not a file or folder.

    >>> names_object("my_data.py:validation"), names_object("photos"), names_object("C:/photos")
    (True, False, False)
    """
    place, _, name = str(source).rpartition(":")
    return len(place) > 1 and name.isidentifier() and not os.path.exists(source)


def _import_data(source: str, size: int | None, channels: int | None) -> Data | CorruptedImages:
    found = find_object(source, "data set")
    if size is not None:
        raise HapteraError(f"size is {size}, and images of {source} come as they are; resize them there")
    made = found() if callable(found) and not hasattr(found, "__getitem__") else found
    if isinstance(made, Data | CorruptedImages):
        return made
    return ItemData(made, channels=channels, name=source)


def _missing(source: str | Path, path: Path) -> HapteraError:
    if not path.parent.is_dir():
        return HapteraError(f"no data at {source}: there is no folder {path.parent}")
    try:
        beside = [entry.name for entry in path.parent.iterdir() if not entry.name.startswith(".")]
    except OSError:
        beside = []
    place, _, settings = str(source).partition(":")
    if "=" in settings and os.path.exists(place):
        return HapteraError(
            f"no data at {source}: data take no settings after a colon; size, crop and mapping are settings of their "
            f"own, such as --size 224 or size=224 beside data={place!r}"
        )
    near = hint(path.name, [*beside, *(["digits"] if str(source) == path.name else [])], cutoff=0.6)
    return HapteraError(f"no data at {source};{near} {KINDS} was expected")
