"""A study file, written: what `holdfast.settings.read_study` reads."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.files import write_text


def write_study(path: Path, content: Mapping[str, Any], remarks: Sequence[str] = ()) -> None:
    """Write a study file with remarks at its top."""
    write_text(path, "".join(f"# {remark}\n" for remark in remarks) + toml(content))


def toml(content: Mapping[str, Any]) -> str:
    """A mapping as TOML: plain values first, then a `[[key]]` for each table of a list.

    >>> print(toml({"seeds": [0, 1], "adapters": [{"use": "tent", "lr": 1e-3}]}), end="")
    seeds = [0, 1]
    <BLANKLINE>
    [[adapters]]
    use = "tent"
    lr = 0.001
    """
    tables = {key: value for key, value in content.items() if _is_tables(value)}
    text = "".join(f"{_key(key)} = {_value(key, value)}\n" for key, value in content.items() if key not in tables)
    for key, entries in tables.items():
        for entry in entries:
            lines = "".join(f"{_key(name)} = {_value(name, value)}\n" for name, value in entry.items())
            text += f"\n[[{_key(key)}]]\n{lines}"
    return text


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, Mapping) for entry in value)


def _key(key: str) -> str:
    plain = key.isascii() and key.replace("-", "_").isidentifier()
    return key if plain else json.dumps(key, ensure_ascii=False)


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(key, item) for item in value)}]"
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(name)} = {_value(name, item)}" for name, item in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    raise HoldfastError(
        f"{key} is {value!r}, which a study file cannot hold; a number, a text, true, false or a list was expected"
    )
