"""A data set whose classes are not the model's: a table says which of the model's count as right for each.

The table is a CSV with the header `class,accepted`: the data set's class by name (by its number if it has no
names), and the indices of the model's classes, in several rows or in one field separated by spaces or
semicolons. Samples of a class that is not in the table are dropped, which is logged.
"""

import csv
import logging
from collections.abc import Iterable, Mapping
from copy import copy
from pathlib import Path

import numpy as np
import torch

from haptera.data.base import Classes, CorruptedImages, CorruptedPart, Data
from haptera.errors import HapteraError, hint
from haptera.files.atomic import check_plain_file
from haptera.files.fingerprint import fingerprint

log = logging.getLogger("haptera")

HEADER = ["class", "accepted"]


class MappedData(Data):
    """The samples of a data set whose class the model knows, under any name.

    Args:
        source: labelled data.
        mapping: class of the data set -> the model's classes that count as right.
        restrict: whether only the model's classes that some class accepts may be predicted.
        where: what the mapping is called in messages.
    """

    def __init__(
        self,
        source: Data,
        mapping: Mapping[str, tuple[int, ...]],
        restrict: bool = False,
        where: str = "the mapping",
    ) -> None:
        if source.targets is None:
            raise HapteraError(f"{source.name} has no labels, so {where} has no classes to map")
        numbered = _numbered(source)
        kept = {number: name for number, name in numbered.items() if name in mapping}
        numbers = np.array(list(kept), np.int64)
        self._keep = np.flatnonzero(np.isin(source.targets, numbers))
        if len(self._keep) == 0:
            raise HapteraError(
                f"{where} names no class that has samples in {source.name}: the data has "
                f"{_shortlist(numbered.values())}; the mapping has {_shortlist(mapping)}"
            )
        self.name, self.decodes = source.name, source.decodes
        self.names = tuple(kept.values())
        self.rows = source.rows[self._keep]
        self.targets = np.searchsorted(numbers, source.targets[self._keep])
        dropped = len(source) - len(self._keep)
        self.classes = Classes(tuple(mapping[name] for name in kept.values()), restrict, dropped)
        self._source = source
        self._lost = tuple(name for name in numbered.values() if name not in mapping)

    def images(self, positions: np.ndarray) -> torch.Tensor:
        """Return `(len(positions), channels, height, width)`, float32 in [0, 1]."""
        return self._source.images(self._keep[np.asarray(positions, np.int64)])

    def pixels(self, positions: np.ndarray) -> torch.Tensor | None:
        """Return the same as bytes; None where the source has none."""
        return self._source.pixels(self._keep[np.asarray(positions, np.int64)])

    def fingerprint(self) -> str:
        """Return the fingerprint of the source, the classes that are kept, and what they accept."""
        return fingerprint("mapped", self._source, self.names, self.classes)

    @property
    def crop(self) -> float | None:
        """The share of the shorter side that is kept of image files; None where nothing is cut."""
        return self._source.crop

    def with_crop(self, crop: float) -> "MappedData":
        """Return the same images, cut in another way."""
        other = copy(self)
        other._source = self._source.with_crop(crop)
        return other

    @property
    def lost(self) -> tuple[str, ...]:
        """The classes of the source that were dropped."""
        return self._lost


def with_mapping(
    data: Data | CorruptedImages,
    mapping: Mapping[str, tuple[int, ...]],
    restrict: bool = False,
    where: str = "the mapping",
) -> Data | CorruptedImages:
    """Map a data set, or every part of a corrupted one, and log what that leaves out."""
    if isinstance(data, CorruptedImages):
        mapped = [MappedData(part.data, mapping, restrict, where) for part in data.parts]
        _report(mapped[0], data.name, mapping, where)
        parts = [CorruptedPart(old.shift, old.severity, new) for old, new in zip(data.parts, mapped, strict=True)]
        return CorruptedImages(data.name, parts, data.paired)
    one = MappedData(data, mapping, restrict, where)
    _report(one, data.name, mapping, where)
    return one


def read_mapping(path: str | Path) -> dict[str, tuple[int, ...]]:
    """Read the table: class of the data set -> sorted indices of the model's classes."""
    accepted: dict[str, set[int]] = {}
    check_plain_file(Path(path))
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            _check_header(next(reader, []), path)
            for row in reader:
                if any(field.strip() for field in row):
                    name, indices = _read_row(row, f"{path}, line {reader.line_num}")
                    accepted.setdefault(name, set()).update(indices)
    except OSError as error:
        raise HapteraError(f"cannot read the mapping {path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise HapteraError(f"cannot read the mapping {path} as CSV in UTF-8: {error}") from error
    if not accepted:
        raise HapteraError(f"the mapping {path} holds a header and no rows")
    return {name: tuple(sorted(indices)) for name, indices in accepted.items()}


def _check_header(header: list[str], path: str | Path) -> None:
    found = [field.strip() for field in header]
    if not any(found):
        raise HapteraError(
            f"the mapping {path} is empty; the header `class,accepted` and one row per class were expected"
        )
    if found != HEADER:
        missing = next((name for name in HEADER if name not in found), HEADER[0])
        near = hint(missing, [name for name in found if name not in HEADER])
        raise HapteraError(
            f"the header of the mapping {path} is {','.join(found)!r}; 'class,accepted' was expected"
            + (f" (for {missing!r}:{near})" if near else "")
        )


def _read_row(row: list[str], where: str) -> tuple[str, list[int]]:
    if len(row) != 2:
        raise HapteraError(
            f"{where}: found {len(row)} fields, expected class,accepted; several accepted classes are "
            "separated by spaces or semicolons"
        )
    name, texts = row[0].strip(), row[1].replace(";", " ").split()
    if not name:
        raise HapteraError(f"{where}: the class has no name")
    if not texts:
        raise HapteraError(f"{where}: nothing is accepted for {name!r}; leave the line out to drop the class")
    for text in texts:
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise HapteraError(f"{where}: {text!r} is not the index of a class of the model; 0, 1, 2, ... was expected")
    return name, [int(text) for text in texts]


def _numbered(data: Data) -> dict[int, str]:
    """Each class by number: all that have names, or all that occur."""
    if data.names is not None:
        return dict(enumerate(data.names))
    return {number: str(number) for number in np.unique(data.targets).tolist()}  # type: ignore[arg-type]


def _report(mapped: MappedData, name: str, mapping: Mapping[str, tuple[int, ...]], where: str) -> None:
    if mapped.lost:
        dropped = mapped.classes.dropped if mapped.classes else 0
        log.warning(
            "%s: %d of %d classes are not in %s (%s); %d of %d samples are dropped",
            *(name, len(mapped.lost), len(mapped.lost) + len(mapped.names or ()), where, _shortlist(mapped.lost)),
            *(dropped, dropped + len(mapped)),
        )
    if unused := set(mapping) - set(mapped.names or ()):
        log.info("%s: %d classes of %s are not in the data (%s)", name, len(unused), where, _shortlist(sorted(unused)))


def _shortlist(names: Iterable[str]) -> str:
    texts = [repr(name) for name in names]
    return ", ".join(texts[:3]) + (", ..." if len(texts) > 3 else "")
