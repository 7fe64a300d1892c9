"""Damage to the bytes of any file, and to JSON, TOML, safetensors and CSV in ways that stay well-formed."""

import json
import math
import os
import struct
import tomllib
from pathlib import Path
from random import Random
from typing import Any

DEEP = "@deep@"
"""Stands for lists 100,000 deep, which no writer of JSON could write."""


VALUES: list[Any] = [
    None, True, False, [], {}, "", "text", "../../../etc/passwd", "os:system", DEEP, 0, 1, -1, 0.5, -0.5, 10**9, 2**40,
    -(2**63), 10**400, 1e308, math.nan, math.inf, "x" * 100_000, [1, 2, 3], [None], [[]], {"a": 1}, ["a"] * 1000, "1e9",
]  # fmt: skip


def any_file(file: Path, random: Random) -> str:
    content = bytearray(file.read_bytes())
    kind = random.choice(
        ["flip", "flip", "truncate", "append", "empty", "zeros", "pipe", "folder", "swap", "unreadable"]
    )
    if kind == "flip" and content:
        for _ in range(random.choice([1, 3, 30])):
            content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    elif kind == "truncate":
        del content[random.randrange(len(content) + 1) :]
    elif kind == "append":
        content += random.randbytes(1000)
    elif kind == "empty":
        content.clear()
    elif kind == "zeros" and content:
        start = random.randrange(len(content))
        content[start : start + 64] = bytes(len(content[start : start + 64]))
    elif kind in ("pipe", "folder", "unreadable"):
        file.unlink()
        if kind == "unreadable":
            file.symlink_to(file)  # a link that leads nowhere
            return kind
        os.mkfifo(file) if kind == "pipe" else file.mkdir()
        return kind
    elif kind == "swap":
        content = bytearray(
            random.choice([b"\x89HDF\r\n\x1a\n", b"PK\x03\x04", b"\x93NUMPY\x01\x00", b"{", b"\xff\xfe"]) + content
        )
    file.write_bytes(content)
    return kind


def _value(random: Random) -> Any:
    return random.choice(VALUES)


def change_tree(content: Any, random: Random) -> tuple[Any, str]:
    """Change one place of a tree of dictionaries and lists."""
    places: list[tuple[Any, Any]] = []
    stack = [content]
    while stack:
        item = stack.pop()
        keys = list(item) if isinstance(item, dict) else range(min(len(item), 50)) if isinstance(item, list) else ()
        for key in keys:
            places.append((item, key))
            stack.append(item[key])
    if not places or random.random() < 0.05:
        return _value(random), "all of it"
    inside, key = random.choice(places)
    kind = random.choice(["value", "value", "value", "delete", "rename", "repeat"])
    if kind == "delete":
        del inside[key]
    elif kind == "rename" and isinstance(inside, dict):
        inside[f"{key}x"] = inside.pop(key)
    elif kind == "repeat" and isinstance(inside, list):
        inside *= 100
    else:
        kind, inside[key] = "value", _value(random)
        return content, f"{key} is {str(inside[key])[:40]}"
    return content, f"{kind} {key}"


def json_text(content: Any) -> str:
    return json.dumps(content).replace(json.dumps(DEEP), "[" * 100_000 + "]" * 100_000)


def json_file(file: Path, random: Random) -> str:
    content, said = change_tree(json.loads(file.read_text()), random)
    file.write_text(json_text(content))
    return said


def toml_file(file: Path, random: Random) -> str:
    content, said = change_tree(tomllib.loads(file.read_text()), random)
    content = content if isinstance(content, dict) else {"data": content}
    file.write_text("".join(f"{json.dumps(key)} = {_toml_value(value)}\n" for key, value in content.items()))
    return said


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    if value is None:
        return "1979-05-27"  # a date: TOML has no null, and JSON no dates
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf"
    return json_text(value)


def safetensors(file: Path, random: Random) -> str:
    content = file.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    metadata = header.get("__metadata__", {})
    key = next((key for key, text in metadata.items() if text.startswith("{")), None)
    if key is not None and random.random() < 0.8:
        inside, said = change_tree(json.loads(metadata[key]), random)
        metadata[key] = json_text(inside)
    else:
        header, said = change_tree(header, random)
    text = json_text(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])
    return said


def csv(file: Path, random: Random) -> str:
    rows = [line.split(",") for line in file.read_text().splitlines()]
    kind = random.choice(["cell", "cell", "cell", "cell", "drop column", "drop row", "twice", "many", "quote"])
    row = random.randrange(len(rows))
    if kind == "cell":
        junk = [
            "",
            "text",
            "nan",
            "inf",
            "-1",
            "1e400",
            "9" * 400,
            "\x00",
            '"',
            "x" * 200_000,
            "ü",
            "=1+1",
            "1;2",
            "0x10",
            "1e9",
        ]
        rows[row][random.randrange(len(rows[row]))] = random.choice(junk)
    elif kind == "drop column":
        place = random.randrange(len(rows[0]))
        rows = [each[:place] + each[place + 1 :] for each in rows]
    elif kind == "drop row":
        del rows[row]
    elif kind == "twice":
        rows.insert(row, rows[row])
    elif kind == "many":
        rows += [rows[-1]] * 2000
    elif kind == "quote":
        rows[row][0] = '"' + rows[row][0]
    file.write_text("\n".join(",".join(each) for each in rows) + "\n", encoding="utf-8")
    return f"{kind}, row {row}"
