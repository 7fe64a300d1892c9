"""Damage to files: one seeded change to one file of a folder, of the kinds that disks, tools and attackers make.

Any file may lose bytes, gain some, or have a few flipped. A file whose format is known is also changed in a way that
stays well-formed: a value of another type, a missing key, a shape that is not true, sizes beyond all memory.
"""

import os
import shutil
import struct
import zlib
from pathlib import Path
from random import Random

from tests.fuzz.mutate_arrays import hdf5, npy, npz
from tests.fuzz.mutate_text import any_file, csv, json_file, safetensors, toml_file


def mutate(folder: Path, random: Random) -> str:
    """Change one file; what was done, in words."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    ending = random.choice(sorted({path.suffix for path in files}))  # or images would be nearly all
    file = random.choice([path for path in files if path.suffix == ending])
    by_format = BY_ENDING.get(file.suffix.lower())
    change = by_format if by_format and random.random() < 0.7 else any_file
    return f"{file.relative_to(folder)}: {change(file, random)}"


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
    ".json": json_file,
    ".toml": toml_file,
    ".npz": npz,
    ".npy": npy,
    ".csv": csv,
    ".safetensors": safetensors,
    **dict.fromkeys((".h5", ".hdf5", ".nwb", ".mat"), hdf5),
    **dict.fromkeys((".png", ".jpg"), _image),
}
