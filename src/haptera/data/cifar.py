"""CIFAR-10 and CIFAR-100 in their own binary form, as in `cifar-10-binary.tar.gz`, unpacked.

A record is the label, of one byte (CIFAR-10) or two (CIFAR-100: coarse, then fine), and 3,072 bytes of pixels: planes
of red, green and blue, 32 x 32 each. Of a folder the test part is read. The "python version" is made of pickles, which
can run code when they are loaded, and is refused.
"""

from pathlib import Path

import numpy as np

from haptera.data.arrays import ArrayData
from haptera.errors import HapteraError

PIXELS = 3 * 32 * 32
FORMS = {"test_batch.bin": (1, "batches.meta.txt"), "test.bin": (2, "fine_label_names.txt")}
"""Test file -> bytes of labels before the pixels, and the file that names the classes."""
PICKLES = ("test_batch", "data_batch_1", "batches.meta")


def find_cifar(path: Path) -> Path | None:
    """Return the file of images if a path is a folder or file of CIFAR in binary form; None for anything else."""
    if path.is_dir():
        if all((path / name).is_file() for name in PICKLES[:2]):
            raise HapteraError(
                f"{path} is the python version of CIFAR, made of pickles, which can run code when they are loaded; "
                "take the binary version"
            )
        return next((path / name for name in FORMS if (path / name).is_file()), None)
    training = path.name == "train.bin" or (path.name.startswith("data_batch_") and path.suffix == ".bin")
    return path if path.name in FORMS or training else None


def open_cifar(path: Path, *, size: int | None = None, channels: int | None = None) -> ArrayData:
    """Return the images of a binary file, mapped into memory."""
    labels, names = FORMS["test.bin" if path.name in ("test.bin", "train.bin") else "test_batch.bin"]
    stored = path.stat().st_size
    if stored == 0 or stored % (labels + PIXELS):
        raise HapteraError(
            f"{path} has {stored:,} bytes; a multiple of {labels + PIXELS:,}, the size of an image with its label, was "
            "expected: it is cut short, or not a file of CIFAR"
        )
    records = np.memmap(path, np.uint8, "r").reshape(-1, labels + PIXELS)
    images = records[:, labels:].reshape(-1, 3, 32, 32)
    targets = records[:, labels - 1].astype(np.int64)
    data = ArrayData(images, targets, str(path), _read_names(path.parent / names), channels=channels)
    data._layout.check_size(size, str(path))
    data.name = path.parent.name
    return data


def _read_names(path: Path) -> list[str] | None:
    """Return the names of the classes, a line each, if the file is there."""
    if not path.is_file():
        return None
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line.strip() for line in lines if line.strip()]
