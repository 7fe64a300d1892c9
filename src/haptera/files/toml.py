"""TOML files, read with a limit on their size and depth; every failure names the file."""

import tomllib
from pathlib import Path
from typing import Any

from haptera.errors import HapteraError
from haptera.files.atomic import check_plain_file

LARGEST = 2**20
"""Bytes. The reader is written in Python, and people write these files by hand."""


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Return what a TOML file holds.

    Args:
        path: of the file.
        what: what errors call it, such as `study file`.
    """
    size = check_plain_file(path)
    if size > LARGEST:
        raise HapteraError(f"{what} {path} has {size:,} bytes; {LARGEST:,} were expected at most")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except RecursionError as error:
        raise HapteraError(f"{what} {path} has lists or tables too deep within one another") from error
    except (OSError, ValueError) as error:  # TOMLDecodeError and UnicodeDecodeError among them
        raise HapteraError(f"{what} {path}: {error}") from error


def parse_value(text: str) -> Any:
    """Return a value as TOML writes it, or the text itself.

    >>> parse_value("0.5"), parse_value("[1, 2]"), parse_value("easy")
    (0.5, [1, 2], 'easy')
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
