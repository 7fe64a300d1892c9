"""Files are written beside their place and renamed, so a finished file is a whole file; only plain files are read.

What a file says about its own size is believed only as far as the file could hold it (`check_expansion`).
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from haptera.errors import HapteraError, WriteError

HALF_WRITTEN = ".*.part"
"""The names of files and folders that are not finished."""
EXPANDED = 2**28
"""Bytes that any file may expand to in memory."""
EXPANSION = 50
"""How many times its own size a larger one may expand to; what people compress is rarely half as sparse."""


def check_plain_file(path: Path) -> int:
    """Return the size in bytes of a plain file; refuse folders, and pipes and devices, which may never end."""
    try:
        found = os.stat(path)
    except FileNotFoundError as error:
        raise HapteraError(f"there is no file {path}") from error
    except (OSError, ValueError) as error:
        raise HapteraError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe or a device"
        raise HapteraError(f"cannot read {path}: it is {what}, a file was expected")
    return found.st_size


def check_expansion(size: int, stored: int, what: str) -> None:
    """Refuse to allocate `size` bytes for what is stored in `stored` bytes, if no honest file expands so far."""
    if size > max(EXPANDED, EXPANSION * stored):
        raise HapteraError(
            f"{what} says that it holds {size:,} bytes, and is stored in {stored:,}; that is damaged, or a trap"
        )


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that becomes `path` when the block ends well, and vanishes when it does not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}") from error
    try:
        with open(temporary, "wb", opener=lambda *_: handle) as file:  # with a name, for those who write by name
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~umask())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}") from error
    finally:
        Path(temporary).unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path, beside: Path) -> Iterator[Path]:
    """Make a hidden folder that becomes `path` when the block ends well, and vanishes when it does not.

    Args:
        path: what is there, a damaged one, is replaced.
        beside: the folder in which the hidden one is made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A name that nobody can guess: a link put there before would lead the files elsewhere.
        hidden = Path(tempfile.mkdtemp(dir=beside, prefix=f".{path.name}.", suffix=".part"))
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
    try:
        hidden.chmod(0o777 & ~umask())
        yield hidden
        if path.exists():
            shutil.rmtree(path)
        hidden.rename(path)
        sync_folder(path.parent)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def sweep(paths: Iterable[Path]) -> None:
    """Remove what killed runs left half-written."""
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make sure that a rename in a folder outlives a power cut; where a system cannot, it does so by itself."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(handle)
    except OSError:  # some network drives
        return
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole."""
    with whole(path) as file:
        file.write(text.encode())


def writable_folder(path: Path) -> Path:
    """Make a folder, or say why it cannot be written to before any work is done."""
    if path.exists() and not path.is_dir():
        raise WriteError(f"cannot write into {path}: it is a file, a folder was expected")
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise WriteError(f"cannot write into {path}: {error.strerror}") from error
    return path


def writable_file(path: Path) -> Path:
    """Make the folder of a file, or say why the file cannot be written before any work is done."""
    if path.is_dir():
        raise WriteError(f"cannot write {path}: it is a folder, a file was expected")
    writable_folder(path.parent)
    return path


def umask() -> int:
    """Return the permissions that new files of this process do not get."""
    current = os.umask(0)
    os.umask(current)
    return current
