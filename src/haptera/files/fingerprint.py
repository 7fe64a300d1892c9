"""Fingerprints: a change of weights, data, settings or schema is a new cell, so nothing stale is ever read.

A fingerprint is a BLAKE2 hash over a canonical walk of the object: numbers, texts, containers, arrays, tensors,
dataclasses, partials, bound methods, classes and functions by name, and whatever has a `fingerprint()` of its own.
"""

import hashlib
import inspect
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any, Protocol

import numpy as np

from haptera.errors import HapteraError

SMALL = 2**20
"""Bytes of a file that is read at once."""
SCHEMA = 1
"""Raised when the meaning of a saved cell changes; older cells are then run again."""


PLAIN = bool | int | float | str | tuple | None
"""What is told from another by its text."""


class _Hash(Protocol):
    def update(self, data: Any, /) -> None: ...


def fingerprint(*objects: object) -> str:
    """32 hexadecimal digits that change when any of the objects does.

    >>> fingerprint({"a": 1, "b": 2.0}) == fingerprint({"b": 2.0, "a": 1})
    True
    >>> fingerprint(1) == fingerprint(1.0)
    False
    """
    hasher = hashlib.blake2b(digest_size=16)
    for thing in objects:
        _feed(hasher, thing)
    return hasher.hexdigest()


class _Record(list[bytes]):
    """Keeps what a hash would be fed."""

    def update(self, data: Any, /) -> None:
        """Keep a copy."""
        self.append(bytes(data))


def encode(thing: object) -> bytes:
    """Return what a fingerprint takes in of an object, so that many fingerprints can share the walk through it.

    >>> join_fingerprint([encode(1), encode_sequence([encode("a"), encode(2)])]) == fingerprint(1, ("a", 2))
    True
    """
    record = _Record()
    _feed(record, thing)
    return b"".join(record)


def encode_sequence(items: Sequence[bytes]) -> bytes:
    """Return what a fingerprint takes in of a list or a tuple of encoded objects."""
    return b"".join((_head("sequence", str(len(items))), *items))


def join_fingerprint(encoded: Iterable[bytes]) -> str:
    """Return the fingerprint of encoded objects; the same as that of the objects themselves."""
    return of_bytes(b"".join(encoded))


def of_bytes(content: bytes) -> str:
    """Return the fingerprint of a file with this content."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def of_file(path: Path | str) -> str:
    """Return the fingerprint of a file's content, whatever its name and date."""
    with open(path, "rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size <= SMALL:  # at once, without a buffer
            return of_bytes(file.read())
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def of_folder(path: Path) -> str:
    """Return the fingerprint of all files in a folder, their names and contents."""
    files = sorted(each for each in path.rglob("*") if each.is_file())
    with ThreadPoolExecutor() as pool:
        return fingerprint(
            list(zip((str(each.relative_to(path)) for each in files), pool.map(of_file, files), strict=True))
        )


def _feed(hasher: _Hash, thing: object) -> None:
    if hasattr(thing, "fingerprint") and not isinstance(thing, type):
        _put(hasher, "own", thing.fingerprint())
    elif thing is None or isinstance(thing, bool | int | float | str | bytes | np.generic):
        _put(hasher, type(thing).__name__, repr(thing))
    elif isinstance(thing, Path):
        _put(hasher, "path", str(thing))
    elif isinstance(thing, np.ndarray):
        _put(hasher, "array", f"{thing.dtype.str}{thing.shape}")
        hasher.update(np.ascontiguousarray(thing).data if thing.dtype != object else repr(thing.tolist()).encode())
    elif isinstance(thing, Mapping):
        _put(hasher, "mapping", str(len(thing)))
        for key in sorted(thing, key=repr):
            _feed(hasher, key)
            _feed(hasher, thing[key])
    elif isinstance(thing, list | tuple):
        _put(hasher, "sequence", str(len(thing)))
        for item in thing:
            _feed(hasher, item)
    elif isinstance(thing, set | frozenset):
        _feed(hasher, sorted(thing, key=repr))
    elif isinstance(thing, partial):
        _feed(hasher, [thing.func, thing.args, thing.keywords])
    elif isinstance(thing, MethodType):  # a bound one: what it is bound to decides what it does
        _feed(hasher, [thing.__func__, thing.__self__])
    elif isinstance(thing, type) or hasattr(thing, "__qualname__"):
        _put(hasher, "name", f"{thing.__qualname__}:{_source(thing)}")
        if isinstance(thing, FunctionType):
            _feed(hasher, _surroundings(thing))
    elif is_dataclass(thing):
        _feed(hasher, [type(thing), {field.name: getattr(thing, field.name) for field in fields(thing)}])
    elif hasattr(thing, "untyped_storage"):  # a tensor; torch is not imported for the sake of arrays
        _feed_tensor(hasher, thing)
    else:
        raise HapteraError(
            f"cannot tell one {type(thing).__name__} from another; give it a fingerprint() method, "
            "or make it a dataclass of plain values"
        )


def _feed_tensor(hasher: _Hash, tensor: Any) -> None:
    torch = sys.modules["torch"]  # there is a tensor, so it is there; importing it would break the import contract
    _put(hasher, "tensor", f"{tensor.dtype}{tuple(tensor.shape)}")
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    if flat.numel():
        hasher.update(flat.view(torch.uint8).numpy().data)


def _put(hasher: _Hash, kind: str, text: str) -> None:
    hasher.update(_head(kind, text))


def _head(kind: str, text: str) -> bytes:
    data = f"{kind}:{text}".encode()
    return len(data).to_bytes(8, "little") + data


def of_model(model: Any) -> str:
    """Fingerprint an `nn.Module`: weights, buffers, plain attributes of its modules, the source of their classes.

    A dataclass of plain values is plain, such as what the cells of score maps mean (`haptera.pose.Maps`).
    """
    modules = {name: (type(module).__qualname__, _plain(vars(module))) for name, module in model.named_modules()}
    sources = sorted({_source(kind) for kind in {type(module) for module in model.modules()}})  # reading source is slow
    return fingerprint(modules, sources, dict(model.state_dict()))


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in attributes.items() if key[0] != "_" and key != "training"}
    return {key: text for key, value in own.items() if (text := _text(value))}


def _text(value: Any) -> str:
    """Return the text of a plain value; nothing of others."""
    if isinstance(value, PLAIN):
        return repr(value)
    if not is_dataclass(value) or isinstance(value, type):
        return ""
    values = {field.name: getattr(value, field.name, None) for field in fields(value)}
    plain = all(isinstance(each, PLAIN) for each in values.values())
    return f"{type(value).__qualname__}({values})" if plain else ""


def _surroundings(function: FunctionType) -> list[Any]:
    """What a function reads besides its arguments: defaults, enclosed variables, and plain global ones."""
    variables = inspect.getclosurevars(function)
    return [function.__defaults__, function.__kwdefaults__, dict(variables.nonlocals), _plain(variables.globals)]


def _source(thing: Any) -> str:
    """The code of a user's class or function: when it changes, so may its results. Ours is covered by the schema."""
    if (thing.__module__ or "").partition(".")[0] in ("torch", "haptera", "builtins"):
        return str(thing.__module__)
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):  # typed into a console
        return ""
