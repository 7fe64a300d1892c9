"""Files are written beside their place and renamed, so a finished file is a whole file."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from holdfast.errors import WriteError


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that becomes `path` when the block ends well, and vanishes when it does not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}") from error
    finally:
        Path(temporary).unlink(missing_ok=True)


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


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
