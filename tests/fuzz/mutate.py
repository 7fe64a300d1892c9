"""Damage to files: one seeded change to one file of a folder, of the kinds that disks, tools and attackers make.

Any file may lose bytes, gain some, or have a few flipped. A file whose format is known is also changed in a way that
stays well-formed: a value of another type, a missing key, a shape that is not true, sizes beyond all memory.
"""

import io
import json
import math
import os
import shutil
import struct
import tomllib
import warnings
import zipfile
import zlib
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np

DEEP = "@deep@"
"""Stands for lists 100,000 deep, which no writer of JSON could write."""
VALUES: list[Any] = [
    None, True, False, [], {}, "", "text", "../../../etc/passwd", "os:system", DEEP, 0, 1, -1, 0.5, -0.5, 10**9, 2**40,
    -(2**63), 10**400, 1e308, math.nan, math.inf, "x" * 100_000, [1, 2, 3], [None], [[]], {"a": 1}, ["a"] * 1000, "1e9",
]  # fmt: skip


def mutate(folder: Path, random: Random) -> str:
    """Change one file; what was done, in words."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    ending = random.choice(sorted({path.suffix for path in files}))  # or images would be nearly all
    file = random.choice([path for path in files if path.suffix == ending])
    by_format = BY_ENDING.get(file.suffix.lower())
    change = by_format if by_format and random.random() < 0.7 else _any_file
    return f"{file.relative_to(folder)}: {change(file, random)}"


def _any_file(file: Path, random: Random) -> str:
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


def _json_text(content: Any) -> str:
    return json.dumps(content).replace(json.dumps(DEEP), "[" * 100_000 + "]" * 100_000)


def _json(file: Path, random: Random) -> str:
    content, said = change_tree(json.loads(file.read_text()), random)
    file.write_text(_json_text(content))
    return said


def _toml(file: Path, random: Random) -> str:
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
    return _json_text(value)


def _safetensors(file: Path, random: Random) -> str:
    content = file.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    metadata = header.get("__metadata__", {})
    key = next((key for key, text in metadata.items() if text.startswith("{")), None)
    if key is not None and random.random() < 0.8:
        inside, said = change_tree(json.loads(metadata[key]), random)
        metadata[key] = _json_text(inside)
    else:
        header, said = change_tree(header, random)
    text = _json_text(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])
    return said


def change_array(array: np.ndarray, random: Random) -> tuple[np.ndarray, str]:
    """Another type, another shape, or other values."""
    kind = random.choice(["text", "objects", "nan", "negative", "huge", "unsigned", "short", "empty", "deeper", "flat",
                          "complex", "times", "bytes", "scalar", "transposed", "bool", "structure"])  # fmt: skip
    flat = array.ravel()
    some = slice(0, max(1, len(flat) // 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind in ("nan", "negative", "huge", "unsigned"):
            values = {"nan": np.nan, "negative": -7, "huge": 2**40, "unsigned": 2**64 - 1}
            types = {"nan": float, "negative": np.int64, "huge": np.int64, "unsigned": np.uint64}
            numbers = flat if flat.dtype.kind in "fiub" else np.arange(len(flat))
            other = numbers.astype(types[kind])
            other[some] = values[kind]
            return other.reshape(array.shape), kind
        changed = {
            "text": lambda: np.full(array.shape, "text"),
            "objects": lambda: np.full(array.shape, None, object),
            "short": lambda: array[: len(array) // 2] if array.ndim else array,
            "empty": lambda: array[:0] if array.ndim else array,
            "deeper": lambda: array[..., None],
            "flat": lambda: flat,
            "complex": lambda: np.ones(array.shape, complex),
            "times": lambda: np.full(array.shape, np.datetime64("2020-01-01")),
            "bytes": lambda: np.full(array.shape, b"\xff\xfe"),
            "scalar": lambda: np.array(3),
            "transposed": lambda: array.T.copy(),
            "bool": lambda: np.ones(array.shape, bool),
            "structure": lambda: np.zeros(array.shape, [("a", "f4"), ("b", "i4")]),
        }[kind]()
    return changed, kind


def _npz(file: Path, random: Random) -> str:
    with np.load(file) as content:
        arrays = {key: content[key] for key in content.files}
    key = random.choice(sorted(arrays))
    kind = random.choice(["array", "array", "array", "array", "drop", "rename", "declared", "bomb", "provenance"])
    said = f"{kind} {key}"
    if kind == "provenance" and "provenance" in arrays:
        content, said = change_tree(json.loads(arrays["provenance"].tobytes()), random)
        arrays["provenance"] = np.frombuffer(_json_text(content).encode(), np.uint8)
    elif kind == "drop":
        del arrays[key]
    elif kind == "rename":
        arrays[f"{key}x"] = arrays.pop(key)
    elif kind == "declared":
        return f"{said} {_declared(file, key, arrays[key], random)}"
    elif kind == "bomb":
        _bomb(file, key)
        return said
    else:
        arrays[key], how = change_array(arrays[key], random)
        said = f"{key} {how}"
    np.savez(file, **arrays)
    return said


def _header(array: np.ndarray, random: Random) -> tuple[bytes, str]:
    """The array with a header that is not true."""
    longer = (2 * max(array.shape, default=1) + 1, *array.shape[1:])
    shape = random.choice([(10**12,), (2**40, 2**20), (10**18,) * 3, (-1,), (0, 10**15), longer])
    kind = random.choice([array.dtype.str, "<f8", "|O", "<U1000000000", "<c16", "V99", "|S0"])
    text = random.choice(
        [f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape!r}, }}", "(" * 5000, "{}", "'a'", "\x00" * 20]
    )
    padded = text.encode("latin1") + b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", min(len(padded), 65535)) + padded + array.tobytes()[:100_000], text[
        :80
    ]


def _declared(file: Path, key: str, array: np.ndarray, random: Random) -> str:
    content, said = _header(array, random)
    with np.load(file) as before:
        arrays = {name: before[name] for name in before.files if name != key}
    np.savez(file, **arrays)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(f"{key}.npy", content)
    return said


def _npy(file: Path, random: Random) -> str:
    array = np.load(file)
    if random.random() < 0.4:
        content, said = _header(array, random)
        file.write_bytes(content)
        return said
    changed, said = change_array(array, random)
    np.save(file, changed)
    return said


def _bomb(file: Path, key: str, gigabytes: int = 4) -> None:
    """An array of gigabytes of zeros that is a few megabytes of file: one deflated block, again and again."""
    count = gigabytes * 2**10
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    start = io.BytesIO()
    np.lib.format.write_array_header_1_0(start, {"descr": "|u1", "fortran_order": False, "shape": (count * 2**20,)})
    head = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = head.compress(start.getvalue()) + head.flush(zlib.Z_FULL_FLUSH) + block * count + packer.flush()
    size = min(len(start.getvalue()) + count * 2**20, 2**32 - 2)
    name = f"{key}.npy".encode()
    local = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 8, 0, 33, 0, len(data), size, len(name), 0)
    entry = struct.pack(
        "<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 8, 0, 33, 0, len(data), size, len(name), 0, 0, 0, 0, 0, 0
    )
    end = struct.pack(
        "<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(entry) + len(name), len(local) + len(name) + len(data), 0
    )
    file.write_bytes(local + name + data + entry + name + end)


def _hdf5(file: Path, random: Random) -> str:
    if not h5py.is_hdf5(file):
        return _any_file(file, random)
    with h5py.File(file, "r+") as content:
        names: list[str] = []
        content.visit(names.append)
        name = random.choice(names)
        kind = random.choice(["delete", "array", "array", "array", "attribute", "attribute", "declared", "external",
                              "storage", "virtual", "late", "reversed", "cycle"])  # fmt: skip
        item = content[name]
        if kind == "attribute":
            key = random.choice([*item.attrs, "rate", "unit", "conversion", "neurodata_type"])
            if key in item.attrs and random.random() < 0.5:
                del item.attrs[key]
                return f"{name} without {key}"
            item.attrs[key] = random.choice([0, -1.0, np.nan, np.inf, "text", b"\xff", [1.0, 2.0], 1e308, "degrees"])
            return f"{name} {key} is {item.attrs[key]!r}"
        data = item[()] if isinstance(item, h5py.Dataset) else None
        del content[name]
        if kind == "external":
            content[name] = h5py.ExternalLink("/etc/passwd", "/a")
        elif kind == "storage":
            content.create_dataset(name, (100,), "u1", external=[("/etc/passwd", 0, 100)])
        elif kind == "virtual":
            layout = h5py.VirtualLayout((100,), "f8")
            layout[:] = h5py.VirtualSource("/etc/passwd", "a", (100,))
            content.create_virtual_dataset(name, layout)
        elif kind == "declared":
            content.create_dataset(name, random.choice([(2**33,), (2**30, 4), (2**40,)]), "f8", chunks=True)
        elif kind == "cycle":
            content[name] = content["/"]
        elif data is None or kind == "delete" or not np.ndim(data) or not len(data):
            return f"{name} deleted"
        elif kind == "late":
            values = np.asarray(data, float) if data.dtype.kind in "fiub" else np.arange(len(data), dtype=float)
            values.ravel()[-1] = random.choice([1e7, 1e12, -1e9])
            content[name] = values
        elif kind == "reversed":
            content[name] = data[::-1]
        else:
            changed, how = change_array(np.asarray(data), random)
            if changed.dtype.kind in "OUMV":
                content.create_dataset(name, data=np.full(changed.shape, "text", object), dtype=h5py.string_dtype())
            else:
                content[name] = changed
            return f"{name} {how}"
    return f"{name} {kind}"


def _csv(file: Path, random: Random) -> str:
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


def _image(file: Path, random: Random) -> str:
    """A few bytes that say they are an image of a billion pixels, or something else under the name of an image."""
    kind = random.choice(["huge", "wide", "other", "pipe"])
    if kind == "pipe":
        file.unlink()
        os.mkfifo(file)
        return kind
    if kind == "other":
        shutil.copy(__file__, file)
        return kind
    sides = (30_000, 30_000) if kind == "huge" else (2**31 - 1, 1)
    header = struct.pack(">2L5B", *sides, 8, 0, 0, 0, 0)
    pieces = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")]
    chunks = [
        struct.pack(">L", len(data)) + name + data + struct.pack(">L", zlib.crc32(name + data)) for name, data in pieces
    ]
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
    return kind


BY_ENDING = {
    ".json": _json,
    ".toml": _toml,
    ".npz": _npz,
    ".npy": _npy,
    ".csv": _csv,
    ".safetensors": _safetensors,
    **dict.fromkeys((".h5", ".hdf5", ".nwb", ".mat"), _hdf5),
    **dict.fromkeys((".png", ".jpg"), _image),
}
