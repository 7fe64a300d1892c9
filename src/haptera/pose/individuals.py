"""Individuals: whose frame it is, by the folder of its image, a table, a pattern, or the name of the animal.

Who is who decides what a test says: frames of one individual are on one side of a split, and intervals are over
individuals. By default the folder, which is the video, stands for one. Animals of one frame then belong together, which
is right for a split, for they share camera and light. `animal` takes their names instead, for a project in which a name
is the same animal in every video.
"""

import logging
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from haptera.errors import HapteraError, unknown

log = logging.getLogger("haptera")

FOLDER, ANIMAL, IMAGE = "folder", "animal", "image"
PATTERN = "pattern:"
KEYS = ("video", "folder", "file", "image")
"""What the first column of a table of individuals may be called."""


def is_rule(by: str | None) -> bool:
    """Say whether a text says how to find individuals in names, rather than which field of a file has them."""
    return by is None or by in (FOLDER, ANIMAL, IMAGE) or by.startswith(PATTERN) or by.endswith(".csv")


def name_individuals(
    files: Sequence[str] | np.ndarray, by: str | None = None, animals: np.ndarray | None = None
) -> np.ndarray:
    """Return `(rows,)`: the individual of each row.

    Args:
        files: the images, with `/` between folders.
        by: `folder` (the default), `image`, `animal`, `pattern:REGEX`, whose first group, or all that it finds in a
            path, is the name, or a `.csv` with the columns `video` (or `file`) and `individual`.
        animals: which of several animals in a frame it is.

    >>> name_individuals(["day1/rex_003.png", "day2/rex_001.png"], "pattern:([a-z]+)_").tolist()
    ['rex', 'rex']
    """
    paths = [PurePosixPath(str(file).replace("\\", "/")) for file in files]
    if by is None or by == FOLDER:
        return np.array(name_folders(paths))
    if by == IMAGE:
        return np.array([str(path) for path in paths])
    if by == ANIMAL:
        if animals is None:
            raise HapteraError("individuals are asked for by animal, and the labels do not name animals in a frame")
        return np.asarray(animals).astype(str)
    if by.startswith(PATTERN):
        return np.array(_by_pattern(paths, by.removeprefix(PATTERN)))
    if by.endswith(".csv"):
        return np.array(_by_table(paths, Path(by)))
    raise unknown("way to name individuals", by, [FOLDER, IMAGE, ANIMAL, "pattern:REGEX", "a .csv"])


def name_folders(paths: Sequence[PurePosixPath]) -> list[str]:
    """Return the folder of each path; a warning says where two folders of one name become one individual."""
    folders: dict[str, PurePosixPath] = {}
    for path in paths:
        other = folders.setdefault(path.parent.name, path.parent)
        if other != path.parent:
            log.warning(
                "%s and %s are taken for one individual, %r; --individual-by, or individual=, says another rule",
                other, path.parent, path.parent.name,
            )  # fmt: skip
            break
    return [path.parent.name or "all" for path in paths]


def _by_pattern(paths: list[PurePosixPath], pattern: str) -> list[str]:
    try:
        found = [(path, re.search(pattern, str(path))) for path in paths]
    except re.error as error:
        raise HapteraError(f"the pattern {pattern!r} of individuals is not a regular expression: {error}") from error
    names = []
    for path, match in found:
        if match is None or not (match.group(1) if match.re.groups else match.group()):
            raise HapteraError(f"the pattern {pattern!r} finds no individual in {path}")
        names.append(match.group(1) if match.re.groups else match.group())
    return names


def _by_table(paths: list[PurePosixPath], table: Path) -> list[str]:
    """Return the individual of each path: that of its file, or else of its folder."""
    if not table.is_file():
        raise HapteraError(f"there is no table of individuals {table}")
    try:
        frame = pd.read_csv(table, dtype=str, keep_default_na=False)
    except (ValueError, OSError) as error:  # pandas' own errors are ValueErrors
        raise HapteraError(f"cannot read the table of individuals {table}: {error}") from error
    key = next((name for name in KEYS if name in frame), None)
    if key is None or "individual" not in frame:
        raise HapteraError(
            f"{table} has the columns {', '.join(map(str, frame.columns))}; video (or file) and individual expected"
        )
    names: dict[str, str] = {}
    for name, individual in zip(frame[key], frame["individual"], strict=True):
        name = name.replace("\\", "/").strip("/")
        if names.setdefault(name, individual) != individual:
            raise HapteraError(f"{table} says that {name} is {names[name]!r} and {individual!r}; one was expected")
    found, used = [], set()
    for path in paths:
        tails = ["/".join(path.parts[start:]) for start in range(len(path.parts))]
        known = next((tail for tail in (*tails, path.parent.name) if tail in names), None)
        if known is None:
            raise HapteraError(f"{table} does not say whose {path} is; neither its file nor its folder is there")
        found.append(names[known])
        used.add(known)
    if rest := [name for name in names if name not in used]:
        log.warning("%s names %s, of which there is no labelled frame", table, ", ".join(rest[:5]))
    return found
