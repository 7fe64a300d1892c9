"""Images in a folder: one sub-folder per class, or a flat one without labels.

Files are listed in a fixed order; hidden ones are not seen, links are followed. The fingerprint is of every file's
relative path, size and time of change, not of its content: reading hundreds of gigabytes before the first batch would
cost too much.
"""

import logging
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from haptera.data.decode import CROP, INTERPOLATION, Resize
from haptera.data.encoded import EncodedData
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint

log = logging.getLogger("haptera")

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")
SPLITS = {"train", "training", "val", "valid", "validation", "test", "testing"}


@dataclass(frozen=True)
class Listing:
    """What a folder holds.

    Attributes:
        files: paths relative to the folder, with `/`, sorted within each class.
        targets: `(files,)`, index of the class, or None in a flat folder.
        names: the sorted names of the sub-folders, empty ones included, or None in a flat folder.
        digest: changes when a file comes, goes, or is written.
    """

    files: tuple[str, ...]
    targets: np.ndarray | None
    names: tuple[str, ...] | None
    digest: str


def list_images(root: Path) -> Listing:
    """All images below a folder: of class folders, or of a flat one."""
    names = sub_folders(root)
    groups = [sorted(_walk(f"{root}/{name}", f"{name}/")) for name in names]
    flat = sorted(_walk(str(root), "", deep=False))
    if flat and any(groups):
        full = next(name for name, group in zip(names, groups, strict=True) if group)
        raise HapteraError(
            f"{root} holds images ({flat[0][0]}, ...) beside folders of images ({full}/, ...); "
            "either one folder per class or one flat folder was expected"
        )
    if not flat and not any(groups):
        raise HapteraError(
            f"no images in {root}: {_contents(root)}; {', '.join(SUFFIXES)} are read, .npy beside labels.npy"
        )
    if flat:
        return Listing(tuple(path for path, *_ in flat), None, None, _digest(flat, []))
    if set(map(str.lower, names)) <= SPLITS:
        raise HapteraError(
            f"{root} holds the parts of a data set ({', '.join(names)}), not its classes; "
            f"open one of them, such as {root / names[0]}"
        )
    for name, group in zip(names, groups, strict=True):
        if not group:
            log.warning("%s: the class folder %r holds no images; it is kept as a class", root, name)
    entries = [entry for group in groups for entry in group]
    targets = np.repeat(np.arange(len(names)), [len(group) for group in groups])
    return Listing(tuple(path for path, *_ in entries), targets, tuple(names), _digest(entries, names))


def sub_folders(root: str | Path) -> list[str]:
    """The names of the folders in a folder, sorted."""
    return sorted(folder.name for folder in _entries(root)[0])


def has_images(root: str | Path) -> bool:
    """Return whether there are images in the folder itself."""
    return any(_is_image(file) for file in _entries(root)[1])


def file_digest(path: Path) -> str:
    """Return a text that changes when a file is written: its name, size and time of change."""
    stat = path.stat()
    return fingerprint(path.name, stat.st_size, stat.st_mtime_ns)


def _walk(
    folder: str, prefix: str, *, deep: bool = True, above: tuple[str, ...] = ()
) -> Iterator[tuple[str, int, int]]:
    """Yield relative path, size and time of change of every image; `above` are the folders on the way here."""
    folders, files = _entries(folder)
    above = (*above, os.path.realpath(folder))
    for file in filter(_is_image, files):
        try:
            stat = file.stat()
        except OSError as error:
            raise HapteraError(f"cannot read {file.path}: {error.strerror}") from error
        yield f"{prefix}{file.name}", stat.st_size, stat.st_mtime_ns
    for inner in folders if deep else ():
        if inner.is_symlink() and os.path.realpath(inner.path) in above:
            raise HapteraError(f"{inner.path} is a link to a folder that it is in; remove the link")
        yield from _walk(inner.path, f"{prefix}{inner.name}/", above=above)


def _entries(folder: str | Path) -> tuple[list[os.DirEntry[str]], list[os.DirEntry[str]]]:
    """The folders and the files in a folder that are not hidden."""
    folders: list[os.DirEntry[str]] = []
    files: list[os.DirEntry[str]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if _is_folder(entry):
                    folders.append(entry)
                elif entry.is_file() or entry.is_symlink():
                    files.append(entry)
                elif _is_image(entry):  # a pipe or a device, from which reading may never end
                    log.warning("%s is not a file; it is left out", entry.path)
    except OSError as error:
        raise HapteraError(f"cannot list the folder {folder}: {error.strerror}") from error
    return folders, files


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:  # such as a link to itself
        raise HapteraError(f"cannot read {entry.path}: {error.strerror}") from error


def _is_image(entry: os.DirEntry[str]) -> bool:
    return entry.name.lower().endswith(SUFFIXES)


def _digest(entries: list[tuple[str, int, int]], names: list[str]) -> str:
    # One text: to walk over millions of numbers one by one would take longer than to list the files.
    return fingerprint("/".join(names), "\n".join(f"{path}\t{size}\t{time}" for path, size, time in entries))


def _call(root: Path) -> str:
    """Return what a folder is called; a number alone, such as a severity, would look like a count in a sentence.

    >>> _call(Path("/data/val")), _call(Path("/data/contrast/2"))
    ('val', 'contrast/2')
    """
    return f"{root.parent.name}/{root.name}".lstrip("/") if root.name.isdecimal() else root.name


def _contents(root: Path) -> str:
    """Return what there is instead of images."""
    files = [Path(name) for _, _, names in os.walk(root) for name in names if not name.startswith(".")]
    if not files:
        return "it holds no files"
    kinds = Counter(file.suffix.lower() or "no suffix" for file in files).most_common(5)
    return "found " + ", ".join(f"{count} of {kind}" for kind, count in kinds)


class FolderData(EncodedData):
    """Images in a folder.

    Args:
        root: holds `class/.../file.jpg` (or png and the like, in any case), or the images themselves.
        size: an image that is size x size is left alone, any other is resized and cut in the centre; None if all are of
            one size.
        crop: share of the shorter side that is kept, or `squash`: all of the image, made a square.
        interpolation: how it is resized, as Pillow calls it.
        upright: turn images as their EXIF orientation says.
        channels: 1 for grey; 3 or None for colour.
        name: what it is called in messages; by default the folder's name, after that of the folder around it if it is a
            number.
        listing: the files, if they have been listed already.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        size: int | None = None,
        crop: float | str = CROP,
        interpolation: str = INTERPOLATION,
        upright: bool = False,
        channels: int | None = None,
        name: str | None = None,
        listing: Listing | None = None,
    ) -> None:
        super().__init__(Resize(size, crop, interpolation, upright), channels)
        self._root = Path(root).expanduser().absolute()
        listing = listing or list_images(self._root)
        self.name = name or _call(self._root)
        self.targets, self.names = listing.targets, listing.names
        self.rows = np.arange(len(listing.files))
        self._files = listing.files
        self._fingerprint = fingerprint("folder", listing.digest, self._resize, self._channels)
        self._prepare()

    def fingerprint(self) -> str:
        """Return the fingerprint of every file's path, size and time of change at opening, and of the settings."""
        return self._fingerprint

    def _source(self, position: int) -> Path:
        return self._root / self._files[position]

    def _place(self, position: int) -> str:
        return str(self._root / self._files[position])
