"""A quick way through `.npz` files as `numpy.savez` writes them: arrays that are stored as they are, not compressed.

The directory of the archive is read in one go, every array is checked against its CRC-32 and taken out of the file's
bytes, and headers that were seen before are not read as Python again. Whatever is unusual (compression, encryption, an
archive of gigabytes, anything that does not add up) is left to `zipfile` and NumPy, which say what is wrong with it.
Cost: the file is held in memory beside its arrays.
Source: PKWARE's APPNOTE 6.3, sections 4.3.7, 4.3.12 and 4.3.16.
"""

import functools
import io
import struct
import tokenize
import zlib
from math import prod

import numpy as np

END, ENTRY, LOCAL = struct.Struct("<4s4H2LH"), struct.Struct("<4s4x2H4x3L3H8xL"), struct.Struct("<4s4xH16x2H")
"""What is read of a record; times, versions and the like are passed over."""
LARGEST = 2**26
"""Bytes of a file that is held in memory beside its arrays."""
BAD_HEADER = (ValueError, SyntaxError, TypeError, tokenize.TokenError, RecursionError, MemoryError, EOFError, KeyError)
"""NumPy reads a header as a Python literal, which fails in as many ways."""
STORED, SHORTEST = 0, 12
LEGAL_FLAGS = 0x0800
"""Names in UTF-8; every other flag is left to zipfile."""


def stored_arrays(content: bytes) -> dict[str, np.ndarray] | None:
    """Return the arrays of an archive; None where it is not a plain one, and somebody else must say why.

    >>> file = io.BytesIO()
    >>> np.savez(file, a=np.arange(3))
    >>> stored_arrays(file.getvalue())
    {'a': array([0, 1, 2])}
    """
    try:
        return _arrays(content)
    except (struct.error, *BAD_HEADER):
        return None


def _arrays(content: bytes) -> dict[str, np.ndarray] | None:
    signature, disk, start, here, entries, size, at, comment = END.unpack_from(content, max(len(content) - END.size, 0))
    unusual = disk or start or here != entries or comment or at + size != len(content) - END.size
    if signature != b"PK\x05\x06" or unusual:
        return None
    arrays: dict[str, np.ndarray] = {}
    view = memoryview(content)
    for _ in range(entries):
        signature, flags, method, crc, packed, full, name_length, extra, note, local = ENTRY.unpack_from(content, at)
        if signature != b"PK\x01\x02" or flags & ~LEGAL_FLAGS or method != STORED or packed != full:
            return None
        name = content[at + ENTRY.size : at + ENTRY.size + name_length]
        at += ENTRY.size + name_length + extra + note
        signature, method, length, extra = LOCAL.unpack_from(content, local)
        named = content[local + LOCAL.size : local + LOCAL.size + length]
        begin = local + LOCAL.size + length + extra
        if signature != b"PK\x03\x04" or method != STORED or named != name or begin + full > len(content):
            return None
        key = name.decode("utf-8").removesuffix(".npy")
        if zlib.crc32(view[begin : begin + full]) != crc or key in arrays or not name.endswith(b".npy"):
            return None
        array = _array(content, begin, full)
        if array is None:
            return None
        arrays[key] = array
    return arrays if at == len(content) - END.size else None


def _array(content: bytes, begin: int, size: int) -> np.ndarray | None:
    """Return the array of a member, which begins somewhere and has some bytes; a copy that may be written to."""
    if size < SHORTEST:
        return None
    short = content[begin + 6] == 1  # the version, which says how long the length of the header is
    start = begin + (10 if short else 12)
    stop = start + int.from_bytes(content[begin + 8 : start], "little")
    if stop > begin + size:
        return None
    shape, columns_first, kind = _header(content[begin:stop])
    count = prod(shape)
    if kind.hasobject or not kind.itemsize or min(shape, default=0) < 0 or begin + size - stop != count * kind.itemsize:
        return None
    array = np.frombuffer(content, kind, count, stop) if count else np.empty(0, kind)
    return (array if len(shape) == 1 else array.reshape(shape, order="F" if columns_first else "C")).copy(order="K")


@functools.lru_cache(maxsize=4096)
def _header(text: bytes) -> tuple[tuple[int, ...], bool, np.dtype]:
    stream = io.BytesIO(text)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError("another version")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    header = read(stream)
    if stream.read(1):
        raise ValueError("a header is followed by data")
    return header
