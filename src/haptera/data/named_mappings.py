"""Mappings that ship by name: test sets of ImageNet whose classes are a subset or a grouping of its 1,000.

`imagenet` and `imagenet-sketch` have a folder for each WordNet id, `imagenet-r` and `imagenet-a` for 200 of them, and
`imagenet-v2` folders that are called 0 to 999 and come in another order when they are sorted as texts. `objectnet`
maps 113 of its 313 folders to 125 classes of ImageNet, and `imagenet-d` 181 of the 345 classes of DomainNet, in 164
groups, as its authors' code does (464 classes, 38 of them birds; the text prints 463 and 39).

Source: thesis section 3.5 for ImageNet-D; the published lists of the others. R and A are scored among their own 200
classes, as their authors do; all others among all of the model's. The order of the model's classes is that of the
sorted WordNet ids, as in PyTorch's weights.
"""

import csv
from functools import cache
from importlib.resources import files
from pathlib import Path

from haptera.data.mapping import read_mapping
from haptera.errors import HapteraError, hint, unknown

Table = dict[str, tuple[int, ...]]
WNIDS = ("imagenet", "imagenet-sketch", "imagenet-r", "imagenet-a")
GROUPS = ("imagenet-d", "objectnet")
NAMES = (*WNIDS, "imagenet-v2", *GROUPS)
AMONG_THEIR_OWN = ("imagenet-r", "imagenet-a")
"""Sets whose published accuracy is among the classes of the set, not all of the model's."""


def find_mapping(mapping: str | Path, restrict: bool | None = None) -> tuple[Table, bool]:
    """Return the mapping behind a name or a file, and whether only its classes may be predicted.

    Args:
        mapping: a file, or one of `NAMES`; a file of that name is `./imagenet-r`.
        restrict: what the caller says; None for what its authors do.
    """
    if str(mapping) in NAMES:
        return named_mapping(str(mapping)), str(mapping) in AMONG_THEIR_OWN if restrict is None else restrict
    path = Path(mapping).expanduser()
    if not path.exists():
        near = hint(str(mapping), NAMES)
        raise HapteraError(
            f"there is no file {mapping};{near} a CSV of a mapping or one of {', '.join(NAMES)} was expected"
        )
    return read_mapping(path), bool(restrict)


def named_mapping(name: str) -> Table:
    """Return class of the data set -> indices of the model's classes that count as right.

    >>> named_mapping("imagenet-r")["n01443537"]
    (1,)
    >>> len(named_mapping("objectnet"))
    113
    """
    if name not in NAMES:
        raise unknown("mapping", name, NAMES)
    if name in GROUPS:
        return {row["class"]: tuple(map(int, row["accepted"].split())) for row in _table(name)}
    classes = list(enumerate(_table("imagenet")))
    if name == "imagenet-v2":
        return {str(index): (index,) for index, _ in classes}
    letter = name.removeprefix("imagenet-")
    kept = [(index, row) for index, row in classes if name not in AMONG_THEIR_OWN or letter in row["sets"]]
    return {row["wnid"]: (index,) for index, row in kept}


def wnid_index() -> dict[str, int]:
    """Return WordNet id -> index of the class."""
    return {row["wnid"]: index for index, row in enumerate(_table("imagenet"))}


def ilsvrc_index() -> dict[int, int]:
    """Return number of the class in the ground truth of ILSVRC 2012, from 1 -> index of the class."""
    return {int(row["ilsvrc"]): index for index, row in enumerate(_table("imagenet"))}


@cache
def _table(name: str) -> list[dict[str, str]]:
    text = (files("haptera.data") / "tables" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
