"""The layout of ImageNet-C: `corruption/severity/class/file`, or `group/corruption/severity/class/file`.

It is recognised by folders that hold nothing but folders named 1 to 5. Every part must hold the same files,
so that row i is the same image at every severity; the list of them is kept once.
"""

from dataclasses import replace
from pathlib import Path

from haptera.data.base import CorruptedImages, CorruptedPart
from haptera.data.folder import FolderData
from haptera.data.scan import Listing, has_images, list_images, sub_folders
from haptera.errors import HapteraError

SEVERITIES = frozenset("12345")


def find_corruptions(root: Path) -> list[Path]:
    """The folders of the corruptions; empty if the folder is of another layout."""
    found: list[Path] = []
    for name in sub_folders(root):
        folder = root / name
        inner = [folder] if _is_corruption(folder) else [folder / below for below in sub_folders(folder)]
        if not inner or not all(map(_is_corruption, inner)):
            return []
        found += inner
    return found


def open_imagenet_c(
    root: Path, corruptions: list[Path], *, size: int | None = None, channels: int | None = None
) -> CorruptedImages:
    """Read every severity of every corruption."""
    by_name: dict[str, Path] = {}
    for folder in corruptions:
        if folder.name in by_name:
            raise HapteraError(
                f"{root} holds the corruption {folder.name!r} twice: {by_name[folder.name]} and {folder}"
            )
        by_name[folder.name] = folder
    parts = []
    first: tuple[Path, Listing] | None = None
    for shift, folder in sorted(by_name.items()):
        for severity in sub_folders(folder):
            place = folder / severity
            listing = list_images(place)
            if first is None:
                first = place, listing
            _check_same(place, listing, *first)
            shared = replace(first[1], digest=listing.digest)
            name = f"{root.name}/{shift}/{severity}"
            data = FolderData(place, size=size, channels=channels, name=name, listing=shared)
            parts.append(CorruptedPart(shift, float(severity), data))
    return CorruptedImages(root.name, parts)


def _is_corruption(folder: Path) -> bool:
    names = sub_folders(folder)
    return bool(names) and SEVERITIES.issuperset(names) and not has_images(folder)


def _check_same(place: Path, found: Listing, first: Path, expected: Listing) -> None:
    if (found.files, found.names) == (expected.files, expected.names):
        return
    odd = set(found.files) ^ set(expected.files) or set(found.names or ()) ^ set(expected.names or ())
    raise HapteraError(
        f"{place} holds {len(found.files)} images and {first} holds {len(expected.files)}; every severity of "
        f"every corruption must hold the same files, but {min(odd)} is in one of them only (if these are "
        "classes with numbered folders and not corruptions, rename the folders)"
    )
