"""JSON files, read with a limit on their size and depth; every failure names the file."""

import json
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.files import check_plain_file

LARGEST = 2**27
"""Bytes. Python needs about ten times as much for what is inside."""
DEEPEST = 64


def read_json(path: Path, largest: int = LARGEST) -> Any:
    """Return what a JSON file holds.

    Args:
        path: of the file.
        largest: bytes beyond which it is refused.
    """
    size = check_plain_file(path)
    if size > largest:
        raise HoldfastError(f"{path} has {size:,} bytes; {largest:,} were expected at most")
    try:
        return parse_json(path.read_bytes(), str(path))
    except OSError as error:
        raise HoldfastError(f"cannot read {path}: {error.strerror or error}") from error


def parse_json(text: bytes | str, where: str) -> Any:
    """Return what a JSON text holds.

    Args:
        text: the JSON, in UTF-8 where it is bytes.
        where: what errors call it.
    """
    try:
        content = json.loads(text.decode("utf-8-sig") if isinstance(text, bytes) else text)
    except RecursionError as error:
        raise _too_deep(where) from error
    except ValueError as error:  # UnicodeDecodeError among them
        raise HoldfastError(f"{where} is not JSON: {error}") from error
    level, depth = [content], 0
    while level:  # not by recursion, which is what depth would break
        depth += 1
        if depth > DEEPEST:
            raise _too_deep(where)
        inside = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [item for items in inside for item in items if isinstance(item, dict | list)]
    return content


def _too_deep(where: str) -> HoldfastError:
    return HoldfastError(f"{where} has lists or tables within one another more than {DEEPEST} deep")
