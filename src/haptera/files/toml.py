"""TOML files: read with a limit on their size and depth, and written; every failure names the file or the key."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from haptera.errors import HapteraError
from haptera.files.atomic import check_plain_file, write_text

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


def write_toml(path: Path, content: Mapping[str, Any], remarks: Sequence[str] = ()) -> None:
    """Write keys and values as a TOML file, with remarks at its top."""
    write_text(path, "".join(f"# {remark}\n" for remark in remarks) + toml(content))


def toml(content: Mapping[str, Any]) -> str:
    """Return keys and values as TOML.

    >>> print(toml({"seeds": [0], "data": {"path": "val/"}}), end="")
    seeds = [
        0,
    ]
    <BLANKLINE>
    [data]
    path = "val/"
    """
    try:
        return tomli_w.dumps(content)
    except TypeError as error:
        key, value = next(_foreign(content))
        raise HapteraError(
            f"{key} is {value!r}, which a study file cannot hold; a number, a text, true, false or a list was expected"
        ) from error


def _foreign(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Find the values that TOML has no type for, each with the key it belongs to."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _foreign(item, str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _foreign(item, key)
    elif not isinstance(value, bool | int | float | str):
        yield key, value
