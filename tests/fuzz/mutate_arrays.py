"""Damage to arrays: npz, npy and HDF5 files with other types, shapes and sizes than a reader expects."""

import io
import json
import struct
import warnings
import zipfile
import zlib
from pathlib import Path
from random import Random

import h5py
import numpy as np
from tests.fuzz.mutate_text import any_file, change_tree, json_text


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


def npz(file: Path, random: Random) -> str:
    with np.load(file) as content:
        arrays = {key: content[key] for key in content.files}
    key = random.choice(sorted(arrays))
    kind = random.choice(["array", "array", "array", "array", "drop", "rename", "declared", "bomb", "provenance"])
    said = f"{kind} {key}"
    if kind == "provenance" and "provenance" in arrays:
        content, said = change_tree(json.loads(arrays["provenance"].tobytes()), random)
        arrays["provenance"] = np.frombuffer(json_text(content).encode(), np.uint8)
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


def npy(file: Path, random: Random) -> str:
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


def hdf5(file: Path, random: Random) -> str:
    if not h5py.is_hdf5(file):
        return any_file(file, random)
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
