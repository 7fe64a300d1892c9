"""JSON files, read with a limit on their size and depth, and values made plain enough for JSON to hold."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from haptera.errors import HapteraError
from haptera.files.atomic import check_plain_file

LARGEST = 2**27
"""Bytes. Python needs about ten times as much for what is inside."""
DEEPEST = 64


def plain(value: Any) -> Any:
    """Return numbers of Python instead of NumPy's, None for what is not finite; inside lists and mappings too.

    A frame becomes a list of its rows, a series and a dataclass a mapping, an array a list.

    >>> plain({"a": (np.float32(0.5), float("nan")), 1: "b"})
    {'a': [0.5, None], '1': 'b'}
    """
    if value is None or type(value) in (str, int, bool):  # most of what there is
        return value
    if hasattr(value, "to_dict"):  # pandas, which is not imported here, for that costs half a second
        value = value.to_dict("records") if value.ndim == 2 else value.to_dict()
    elif is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value


def read_json(path: Path, largest: int = LARGEST) -> Any:
    """Return what a JSON file holds.

    Args:
        path: of the file.
        largest: bytes beyond which it is refused.
    """
    size = check_plain_file(path)
    if size > largest:
        raise HapteraError(f"{path} has {size:,} bytes; {largest:,} were expected at most")
    try:
        return parse_json(path.read_bytes(), str(path))
    except OSError as error:
        raise HapteraError(f"cannot read {path}: {error.strerror or error}") from error


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
        raise HapteraError(f"{where} is not JSON: {error}") from error
    brackets = text.count(b"{") + text.count(b"[") if isinstance(text, bytes) else text.count("{") + text.count("[")
    if brackets > DEEPEST:
        _check_depth(content, where)
    return content


def _check_depth(content: Any, where: str) -> None:
    """Refuse lists and tables that are too deep within one another."""
    level, depth = [content], 0
    while level:  # not by recursion, which is what depth would break
        depth += 1
        if depth > DEEPEST:
            raise _too_deep(where)
        inside = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [item for items in inside for item in items if isinstance(item, dict | list)]


def _too_deep(where: str) -> HapteraError:
    return HapteraError(f"{where} has lists or tables within one another more than {DEEPEST} deep")
