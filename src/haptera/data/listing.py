"""Image files that a table lists: a CSV of paths and labels, and ImageNet's flat validation folder.

A CSV has a column of paths (`path`, `file`, `filename`, `image`, ...) relative to its own folder, and if there are
labels a column of them (`label`, `class`, `target`, ...): numbers, which are the classes, or names, which are numbered
in sorted order. Tabs and semicolons separate as well as commas.

ImageNet's validation images come in one folder, `ILSVRC2012_val_00000001.JPEG` and so on. Their classes are in
`ILSVRC2012_validation_ground_truth.txt`, by a numbering of its own, or in `LOC_val_solution.csv`, by WordNet id;
either lies in the folder, beside it, or in the folder `data` or `devkit` of a devkit beside it. Classes are numbered
by sorted WordNet id, as the weights that people use have them.
"""

import csv
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np

from haptera.data.decode import Resize
from haptera.data.folder import FolderData, Listing, has_images, list_images
from haptera.data.named_mappings import ilsvrc_index, wnid_index
from haptera.errors import HapteraError, nearest
from haptera.files.atomic import check_plain_file
from haptera.files.fingerprint import fingerprint

PATHS = ("path", "file", "filename", "file_name", "filepath", "file_path", "image", "image_path", "img_path")
LABELS = ("label", "labels", "class", "target", "category", "class_id", "y")
TRUTH = "ILSVRC2012_validation_ground_truth.txt"
SOLUTION = "LOC_val_solution.csv"
VALIDATION = re.compile(r"ILSVRC2012_val_(\d{8})\.jpe?g", re.IGNORECASE)


def open_table(path: Path, resize: Resize | None = None, channels: int | None = None) -> FolderData:
    """Return the images that a CSV lists."""
    rows = _read_rows(path)
    header = [field.strip().lower() for field in rows[0]]
    column = _find(header, PATHS, path, "paths")
    files = [row[column].strip() for row in rows[1:]]
    missing = next((file for file in files if not os.path.isfile(path.parent / file)), None)
    if missing is not None:
        line = files.index(missing) + 2
        raise HapteraError(
            f"{path}, line {line}: there is no file {path.parent / missing}; paths are relative to the table"
        )
    twice = next((file for file, count in Counter(files).most_common(1) if count > 1), None)
    if twice is not None:
        raise HapteraError(f"{path} lists {twice} twice; each image once was expected")
    targets, names = None, None
    if any(name in header for name in LABELS):
        targets, names = _read_labels([row[_find(header, LABELS, path, "labels")] for row in rows[1:]], path)
    else:
        _check_for_slips(header, path)
    stats = [(path.parent / file).stat() for file in files]
    lines = [f"{file}\t{stat.st_size}\t{stat.st_mtime_ns}" for file, stat in zip(files, stats, strict=True)]
    listing = Listing(tuple(files), targets, names, fingerprint("\n".join(lines), targets, names))
    how = asdict(resize or Resize())
    return FolderData(path.parent, **how, channels=channels, name=path.stem, listing=listing)


def find_ground_truth(folder: Path) -> Path | None:
    """Return the file with the classes of ImageNet's flat validation folder; None if the folder is another one."""
    if not has_images(folder):
        return None
    first = next((entry.name for entry in sorted(folder.iterdir())[:50] if VALIDATION.fullmatch(entry.name)), None)
    places = [folder, folder.parent, *folder.parent.glob("*devkit*"), *folder.parent.glob("*devkit*/data")]
    found = [place / name for place in places for name in (TRUTH, SOLUTION) if (place / name).is_file()]
    return found[0] if first and found else None


def open_validation(folder: Path, truth: Path, resize: Resize | None = None, channels: int | None = None) -> FolderData:
    """Return ImageNet's flat validation folder, or a part of it, with the classes of its ground truth."""
    listing = list_images(folder)
    wrong = next((file for file in listing.files if not VALIDATION.fullmatch(file)), None)
    if wrong is not None:
        raise HapteraError(f"{folder / wrong} is beside images of ImageNet's validation set and not one of them")
    numbers = [int(VALIDATION.fullmatch(file)[1]) for file in listing.files]  # type: ignore[index]
    known = _read_solution(truth) if truth.name == SOLUTION else _read_truth(truth)
    if beyond := [number for number in numbers if number not in known]:
        raise HapteraError(f"{truth} has classes of {len(known)} images and none for number {beyond[0]}")
    targets = np.array([known[number] for number in numbers], np.int64)
    kept = Listing(listing.files, targets, tuple(wnid_index()), fingerprint(listing.digest, targets))
    data = FolderData(folder, **asdict(resize or Resize()), channels=channels, name=folder.name, listing=kept)
    data.rows = np.array(numbers, np.int64) - 1
    return data


def _read_rows(path: Path) -> list[list[str]]:
    check_plain_file(path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            start = file.read(4096)
            file.seek(0)
            separator = max(",;\t", key=start.partition("\n")[0].count)
            rows = [row for row in csv.reader(file, delimiter=separator, strict=True) if any(map(str.strip, row))]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise HapteraError(f"cannot read the table {path} as CSV in UTF-8: {error}") from error
    if len(rows) < 2:
        raise HapteraError(f"{path} lists no images; a header and a row for each image were expected")
    odd = next((number for number, row in enumerate(rows, 1) if len(row) != len(rows[0])), None)
    if odd is not None:
        raise HapteraError(f"{path}, row {odd}: found {len(rows[odd - 1])} fields, the header has {len(rows[0])}")
    return rows


def _find(header: Sequence[str], usual: Sequence[str], path: Path, what: str) -> int:
    found = [header.index(name) for name in usual if name in header]
    if not found:
        raise HapteraError(
            f"{path} has the columns {', '.join(header)}; one of {what}, called {', '.join(usual[:4])} or the like, "
            "was expected"
        )
    return found[0]


def _check_for_slips(header: Sequence[str], path: Path) -> None:
    """Refuse a table without labels one of whose columns is almost called so: it would pass for unlabelled."""
    for name in header:
        if near := nearest(name, LABELS, cutoff=0.8):
            raise HapteraError(f"{path} has no column of labels, but one called {name!r}; did you mean {near!r}?")


def _read_labels(texts: list[str], path: Path) -> tuple[np.ndarray | None, tuple[str, ...] | None]:
    texts = [text.strip() for text in texts]
    empty = [line for line, text in enumerate(texts, 2) if not text]
    if len(empty) == len(texts):
        return None, None
    if empty:
        raise HapteraError(
            f"{path}, line {empty[0]}: there is no label; labels for all images or for none were expected"
        )
    if all(text.isascii() and text.isdigit() and len(text) < 10 for text in texts):
        return np.array(texts).astype(np.int64), None
    names = sorted(set(texts))
    return np.searchsorted(np.array(names), np.array(texts)).astype(np.int64), tuple(names)


def _read_truth(path: Path) -> dict[int, int]:
    """Return number of the image -> class, of a file with a number of ILSVRC in each line."""
    index = ilsvrc_index()
    lines = path.read_text(encoding="ascii", errors="replace").split()
    wrong = next((line for line, text in enumerate(lines, 1) if not text.isdigit() or int(text) not in index), None)
    if wrong is not None:
        raise HapteraError(f"{path}, line {wrong}: {lines[wrong - 1]!r} is not one of ILSVRC's classes, 1 to 1000")
    return {number: index[int(text)] for number, text in enumerate(lines, 1)}


def _read_solution(path: Path) -> dict[int, int]:
    """Return number of the image -> class, of lines such as `ILSVRC2012_val_00048981,n03995372 85 1 499 272`."""
    index, known = wnid_index(), {}
    with open(path, encoding="ascii", errors="replace", newline="") as file:
        for line, row in enumerate(islice(csv.reader(file), 1, None), 2):
            image, wnid = (row[0].rpartition("_")[2], row[1].split()[:1]) if len(row) == 2 else ("", [])
            if not image.isdigit() or not wnid or wnid[0] not in index:
                raise HapteraError(
                    f"{path}, line {line}: found {','.join(row)[:60]!r}; ImageId,WordNet id was expected"
                )
            known[int(image)] = index[wnid[0]]
    return known
