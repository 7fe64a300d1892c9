"""Data sets in parts: corruptions and severities of the same samples, or domains, each with samples of its own.

Domains are `domain/class/file`, recognised by folders that share most of their class folders, such as those of
DomainNet, PACS or Office-Home. Their samples are numbered through, and classes are those of all domains together.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from haptera.data.base import CorruptedImages, CorruptedPart
from haptera.data.decode import Resize
from haptera.data.folder import SPLITS, FolderData, has_images, list_images, sub_folders
from haptera.errors import HapteraError

SHARED = 0.5
"""Share of all class folders that every domain must have."""


def group_parts(name: str, parts: Sequence[CorruptedPart], *, paired: bool) -> CorruptedImages:
    """Return parts as one data set, after a check that they fit together.

    Args:
        name: what it is called in messages.
        parts: their rows begin at 0 each; domains are numbered through here.
        paired: whether row i is the same sample in every part.
    """
    first = parts[0].data
    start = 0
    for part in parts:
        data = part.data
        if (data.targets is None) != (first.targets is None) or data.names != first.names:
            raise HapteraError(
                f"{data.name} and {first.name} have different classes; the same in every part was expected"
            )
        same = first.targets is None or np.array_equal(data.targets, first.targets)  # type: ignore[arg-type]
        if paired and (len(data) != len(first) or not same):
            raise HapteraError(
                f"{data.name} and {first.name} do not hold the same samples ({len(data)} and {len(first)}, or labels "
                "in another order); every severity of every corruption must"
            )
        if not paired:
            data.rows = data.rows + start
            start += len(data)
    return CorruptedImages(name, list(parts), paired)


def find_domains(root: Path) -> list[Path]:
    """Return the folders of the domains; empty if the folder is of another layout."""
    folders = [root / name for name in sub_folders(root)]
    classes = [set(sub_folders(folder)) for folder in folders]
    if len(folders) < 2 or not all(classes) or any(map(has_images, folders)):
        return []
    every, common = set.union(*classes), set.intersection(*classes)
    splits = set(map(str.lower, (folder.name for folder in folders))) | set(map(str.lower, every))
    return folders if len(common) >= max(2, SHARED * len(every)) and not splits & SPLITS else []


def open_domains(
    root: Path, folders: Sequence[Path], resize: Resize | None = None, channels: int | None = None
) -> CorruptedImages:
    """Return a part for each domain."""
    names = tuple(sorted({name for folder in folders for name in sub_folders(folder)}))
    parts = []
    for folder in folders:
        listing = list_images(folder)
        own = np.searchsorted(np.array(names), np.array(listing.names or ()))
        targets = None if listing.targets is None else own[listing.targets]
        whole = replace(listing, targets=targets, names=names)
        how = asdict(resize or Resize())
        data = FolderData(folder, **how, channels=channels, name=f"{root.name}/{folder.name}", listing=whole)
        parts.append(CorruptedPart(folder.name, float("nan"), data))
    return group_parts(root.name, parts, paired=False)
