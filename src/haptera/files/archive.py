"""A quick way through `.npz` files as `numpy.savez` writes them: arrays that are stored as they are, not compressed.

The directory of the archive is read in one go, every array is checked against its CRC-32 and taken out of the file's
bytes. Headers that were seen before are not read as Python again, nor is the directory of an archive that is laid out
like an earlier one: the cells of a study mostly differ in data, times and CRC-32s alone. Whatever is unusual
(compression, encryption, an archive of gigabytes, anything that does not add up) is left to `zipfile` and NumPy, which
say what is wrong with it.
Cost: the file is held in memory beside its arrays.
Source: PKWARE's APPNOTE 6.3, sections 4.3.7, 4.3.12 and 4.3.16.
"""

import functools
import io
import struct
import tokenize
import zlib
from math import prod
from typing import Literal, NamedTuple

import numpy as np

END, ENTRY, LOCAL = struct.Struct("<4s4H2LH"), struct.Struct("<4s4x2H8x2L3H8xL"), struct.Struct("<4s4xH16x2H")
"""What is read of a record; times, versions and the like are passed over."""
CHANGES, LOCAL_CHANGES, CRC = slice(12, 20), slice(10, 18), 16
"""Bytes of a record that are others in every file: its time and its CRC-32; where that begins in the directory."""
LAYOUTS = 256
"""Layouts of archives that are remembered."""
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
        members = _members_as_before(content)
        if members is None:
            members = _members(content)
            if members is not None:
                _remember(content, members)
        return None if members is None else _arrays(content, members)
    except (struct.error, *BAD_HEADER):
        return None


class _Member(NamedTuple):
    """An array of an archive: where its record in the directory, its own record, its header and its data begin."""

    key: str
    entry: int
    local: int
    begin: int
    start: int
    stop: int
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    kind: np.dtype
    size: int


def _members(content: bytes) -> list[_Member] | None:
    """Return what the directory of an archive lists."""
    signature, disk, start, here, entries, size, at, comment = END.unpack_from(content, max(len(content) - END.size, 0))
    unusual = disk or start or here != entries or comment or at + size != len(content) - END.size
    if signature != b"PK\x05\x06" or unusual:
        return None
    members: dict[str, _Member] = {}
    for _ in range(entries):
        entry = at
        signature, flags, method, packed, full, name_length, extra, note, local = ENTRY.unpack_from(content, at)
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
        if key in members or not name.endswith(b".npy") or full < SHORTEST:
            return None
        prefix = 10 if content[begin + 6] == 1 else 12  # the version says how long the length of the header is
        start = begin + prefix + int.from_bytes(content[begin + 8 : begin + prefix], "little")
        shape, order, kind, count = _header(content[begin : min(start, begin + full)])
        if begin + full - start != count * kind.itemsize:
            return None
        members[key] = _Member(key, entry, local, begin, start, begin + full, shape, order, kind, count)
    return list(members.values()) if at == len(content) - END.size else None


def _arrays(content: bytes, members: list[_Member]) -> dict[str, np.ndarray] | None:
    """Return the arrays of members, copies that may be written to; None where one is not what its CRC-32 says."""
    view, arrays = memoryview(content), {}
    for key, entry, _, begin, start, stop, shape, order, kind, count in members:
        if zlib.crc32(view[begin:stop]) != int.from_bytes(content[entry + CRC : entry + CRC + 4], "little"):
            return None
        array = np.frombuffer(content, kind, count, start) if count else np.empty(0, kind)
        arrays[key] = (array if len(shape) == 1 else array.reshape(shape, order=order)).copy(order="K")
    return arrays


class _Layout(NamedTuple):
    """Archives that differ in data, times and CRC-32s alone: what is the same, where, and what it says."""

    size: int
    places: np.ndarray
    same: bytes
    members: list[_Member]


_seen: dict[bytes, _Layout] = {}
"""Last record of an archive -> its layout."""


def _members_as_before(content: bytes) -> list[_Member] | None:
    """Return what the directory of an archive lists that is laid out like an earlier one."""
    layout = _seen.get(content[-END.size :])
    if layout is None or layout.size != len(content):
        return None
    return layout.members if np.frombuffer(content, np.uint8)[layout.places].tobytes() == layout.same else None


def _remember(content: bytes, members: list[_Member]) -> None:
    """Keep the layout of an archive: every byte that was read to know its members."""
    read = np.zeros(len(content), bool)
    for each, following in zip(members, [*members[1:], None], strict=True):
        end = len(content) - END.size if following is None else following.entry
        read[each.entry : each.entry + CHANGES.start] = read[each.entry + CHANGES.stop : end] = True
        read[each.local : each.local + LOCAL_CHANGES.start] = True
        read[each.local + LOCAL_CHANGES.stop : each.start] = True
    places = np.flatnonzero(read)
    if len(_seen) >= LAYOUTS:
        _seen.clear()
    same = np.frombuffer(content, np.uint8)[places].tobytes()
    _seen[content[-END.size :]] = _Layout(len(content), places, same, members)


@functools.lru_cache(maxsize=4096)
def _header(text: bytes) -> tuple[tuple[int, ...], Literal["C", "F"], np.dtype, int]:
    """Return shape, order, type and number of entries, or raise one of `BAD_HEADER`."""
    stream = io.BytesIO(text)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError("another version")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, columns_first, kind = read(stream)
    if stream.read(1) or kind.hasobject or not kind.itemsize or min(shape, default=0) < 0:
        raise ValueError("not a plain array")
    return shape, "F" if columns_first else "C", kind, prod(shape)
