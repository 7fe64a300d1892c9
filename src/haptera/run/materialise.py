"""A corrupted data set on disk, in the layout of ImageNet-C or of CIFAR-10-C, for tools that read nothing else.

Images are those of the stream `corruptions` with the same seed and constants, in 8 bits; `open_data` reads them.
A part, which is one corruption at one severity (`imagenet-c`) or one corruption (`cifar-10-c`), is a piece of a ledger:
one that is missing, or of which an image was deleted, cut short or changed, is written again.
Differs: JPEG files have quality 95 by default, where ImageNet-C's have 85; classes that would be read back in another
order than the data's get their number in front.
Cost: parts that are finished are read once, about a gigabyte per second.
"""

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image

from haptera.checks import check_whole_number
from haptera.data import Data, FolderData
from haptera.data.encoded import THREADS
from haptera.errors import HapteraError, unknown
from haptera.files.fingerprint import fingerprint
from haptera.progress import Progress
from haptera.run.folder import PLAN
from haptera.run.ledger import Ledger, Piece
from haptera.run.locks import LOCK
from haptera.run.loop import versions
from haptera.shifts import Shift

log = logging.getLogger("haptera")

TABLES = {"imagenet-c": "imagenet", "cifar-10-c": "cifar"}
"""The layouts, each with the constants of the published data set."""
SEVERITIES = (1, 2, 3, 4, 5)
LABELS = Piece(fingerprint("labels"), "labels.npy", "labels")
AT_ONCE = 64
Batches = Iterable[tuple[np.ndarray, np.ndarray]]
"""Places in the data and their images `(batch, height, width, channels)` in 8 bits."""


@dataclass(frozen=True)
class Materialisation:
    """What a call did.

    Attributes:
        out: the folder.
        written: parts that this call wrote, such as `contrast/3`.
        kept: parts that were there.
        images: how many images each part holds.
    """

    out: Path
    written: list[str]
    kept: list[str]
    images: int


@dataclass(frozen=True)
class _Recipe:
    """Everything that decides the files."""

    data: Data
    layout: str
    seed: int
    table: str
    quality: int | str

    def about(self) -> dict[str, Any]:
        """Return what must not change between two runs into one folder."""
        own = {"layout": self.layout, "seed": self.seed, "table": self.table}
        own |= {"quality": self.quality} if self.layout == "imagenet-c" else {}
        return own | {"prints": {"source": self.data.fingerprint()}}

    def parts(self, shifts: Sequence[type[Shift]], severities: Sequence[int]) -> dict[str, tuple[Piece, list[Shift]]]:
        """Return the name of each part -> its piece, and the shifts whose images it holds one after the other."""
        made = {shift.name: [shift(float(severity), table=self.table) for severity in severities] for shift in shifts}
        if self.layout == "imagenet-c":
            made = {f"{name}/{one.severity:g}": [one] for name, group in made.items() for one in group}
        ending = "" if self.layout == "imagenet-c" else ".npy"
        return {
            name: (Piece(fingerprint(name), name + ending, name, {"images": len(self.data) * len(group)}), group)
            for name, group in made.items()
        }

    def pixels(self, shifts: Sequence[Shift], advance: Callable[[str], None]) -> Batches:
        """Yield places in the data and their images in 8 bits, under one shift after the other."""
        for shift in shifts:
            for start in range(0, len(self.data), AT_ONCE):
                places = np.arange(start, min(start + AT_ONCE, len(self.data)))
                images = shift(self.data.images(places), self.data.rows[places].tolist(), self.seed)
                yield places, images.mul(255).round_().byte().permute(0, 2, 3, 1).contiguous().numpy()
                advance(f"{shift.name} {shift.severity:g}")


def materialise(
    data: Data,
    shifts: Sequence[type[Shift]],
    out: str | Path,
    *,
    severities: Sequence[int] = SEVERITIES,
    layout: str = "imagenet-c",
    seed: int = 0,
    table: str | None = None,
    quality: int | str = 95,
    progress: bool | None = None,
) -> Materialisation:
    """Write a data set under every shift at every severity, whatever of it is missing or damaged.

    Args:
        data: what is read; `cifar-10-c` needs labels.
        shifts: classes of shifts.
        out: the folder; what an earlier call with the same settings finished there is kept.
        severities: whole numbers from 1 to 5; all of them for `cifar-10-c`.
        layout: `imagenet-c`, corruption/severity/class/file, or `cifar-10-c`, one array per corruption.
        seed: of the shifts.
        table: which published constants, `imagenet` or `cifar`; by default those of the layout.
        quality: of JPEG files, 1 to 100, or `png`.
        progress: show a bar; by default on a terminal or in a notebook.
    """
    if layout not in TABLES:
        raise unknown("layout", str(layout), TABLES)
    _check(data, shifts, severities, layout, quality)
    recipe = _Recipe(data, layout, seed, table or TABLES[layout], quality)
    parts = recipe.parts(shifts, severities)
    with Ledger(out, "corrupted data set", noun="part") as ledger:
        _plan(ledger, recipe, [piece for piece, _ in parts.values()])
        if layout == "cifar-10-c" and ledger.missing([LABELS]):
            with ledger.writing(LABELS) as file:
                np.save(file, np.tile(np.asarray(data.targets, np.int64), len(severities)))
        missing = [piece.title for piece in ledger.missing(piece for piece, _ in parts.values())]
        steps = sum(len(parts[name][1]) for name in missing) * -(-len(data) // AT_ONCE)
        with Progress(Path(out).name, steps, progress, unit="batches") as bar:
            for piece, group in map(parts.__getitem__, missing):
                if layout == "cifar-10-c":
                    with ledger.writing(piece) as file:
                        write_array(file, len(group) * len(data), recipe.pixels(group, bar.advance))
                else:
                    with ledger.writing_folder(piece) as folder:
                        write_folder(folder, data, recipe.pixels(group, bar.advance), quality)
    return Materialisation(Path(out), missing, [name for name in parts if name not in missing], len(data))


def _plan(ledger: Ledger, recipe: _Recipe, pieces: list[Piece]) -> None:
    """Add the parts of this call to those of earlier ones; an error if the folder is of something else."""
    about = recipe.about()
    if not ledger.exists and any(entry.name != LOCK for entry in ledger.folder.iterdir()):
        raise HapteraError(f"{ledger.folder} is not empty and has no {PLAN}; give an empty folder, or a new one")
    ledger.check_same(about)
    if ledger.exists and ledger.about.get("versions") != versions():
        log.warning("%s was begun with other versions: %s", ledger.folder, ledger.about.get("versions"))
    about |= {"source": recipe.data.name, "images": len(recipe.data), "versions": versions()} | ledger.about
    labels = [LABELS] if recipe.layout == "cifar-10-c" else []
    ledger.plan([*labels, *({piece.key: piece for piece in (*ledger.pieces.values(), *pieces)}.values())], about)


def _check(
    data: Data, shifts: Sequence[type[Shift]], severities: Sequence[int], layout: str, quality: int | str
) -> None:
    if not isinstance(data, Data):
        raise HapteraError(f"one data set that is not corrupted yet was expected, found {type(data).__name__}")
    for shift in shifts:
        if not (isinstance(shift, type) and issubclass(shift, Shift)):  # parts on disk are told apart by its name alone
            raise HapteraError(f"shifts to materialise are classes, such as Fog; found {shift!r}")
    names = [shift.name for shift in shifts]
    if not names or not severities:
        raise HapteraError("at least one shift and one severity were expected")
    if len(set(names)) < len(names):
        raise HapteraError(f"the shift {next(name for name in names if names.count(name) > 1)!r} is given twice")
    for severity in severities:
        if severity not in SEVERITIES or list(severities).count(severity) > 1:
            raise HapteraError(f"severities are {list(severities)}; of the numbers 1 to 5, each once, were expected")
    if layout == "cifar-10-c":
        if tuple(severities) != SEVERITIES:
            raise HapteraError("the layout cifar-10-c holds severities 1 to 5 in one file; leave severities out")
        if data.targets is None:
            raise HapteraError(f"the layout cifar-10-c has a file of labels, and {data.name} has none")
    if quality != "png":
        check_whole_number("quality", quality, 1, 100, "'png' or a whole number")


def write_folder(folder: Path, data: Data, batches: Batches, quality: int | str) -> None:
    """Write every image of the data into the folder of its class.

    Args:
        folder: an empty folder.
        data: whose classes and file names are kept.
        batches: the images.
        quality: of JPEG files, 1 to 100, or `png`.
    """
    files = [folder / name for name in _file_names(data, quality)]
    for each in {file.parent for file in files} | {folder / name for name in class_folders(data)}:
        each.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(THREADS) as pool:
        for places, pixels in batches:
            list(pool.map(write_image, [files[one] for one in places], pixels, [quality] * len(places)))


def write_array(file: BinaryIO, rows: int, batches: Batches) -> None:
    """Write images, of which there are `rows` in all, as one array in the format of `.npy` files."""
    for number, (_, pixels) in enumerate(batches):
        if number == 0:
            header = {"descr": "|u1", "fortran_order": False, "shape": (rows, *pixels.shape[1:])}
            np.lib.format.write_array_header_1_0(file, header)
        file.write(pixels.data)


def write_image(path: Path, pixels: np.ndarray, quality: int | str) -> None:
    """Write one image file of `(height, width, channels)` bytes."""
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    if quality == "png":
        image.save(path, format="PNG")
    else:
        image.save(path, format="JPEG", quality=int(quality))


def class_folders(data: Data) -> list[str]:
    """Return a folder name for each class, such that they sort as the classes do; none without labels."""
    if data.targets is None:
        return []
    count = max(int(data.targets.max()) + 1, len(data.names or ()))
    numbers = [f"{label:0{len(str(count - 1))}d}" for label in range(count)]
    if data.names is None:
        return numbers
    plain = [re.sub(r"[/\\\0]", "_", name) for name in data.names]
    if plain == list(data.names) == sorted(set(plain)) and not any(name.startswith(".") for name in plain):
        return plain
    return [f"{number}_{name}" for number, name in zip(numbers, plain, strict=True)]


def _file_names(data: Data, quality: int | str) -> list[str]:
    """Return where each sample goes, by place in the data: the source's name, or the number of the sample."""
    endings = (".png",) if quality == "png" else (".jpeg", ".jpg")
    width = len(str(int(data.rows.max())))
    names = [f"{row:0{width}d}{endings[0]}" for row in data.rows.tolist()]
    if isinstance(data, FolderData):
        names = [name if data.names is None else name.partition("/")[2] for name in data._files]
    if any(not name.lower().endswith(endings) for name in names):
        stems = [str(Path(name).with_suffix("")) for name in names]
        below = [f"{stem}{endings[0]}" for stem in stems]
        folders = [0] * len(names) if data.targets is None else data.targets.tolist()
        unique = len(set(zip(folders, below, strict=True))) == len(names)
        names = below if unique else [f"{name}{endings[0]}" for name in names]
    if data.targets is None:
        return names
    classes = class_folders(data)
    return [f"{classes[target]}/{name}" for target, name in zip(data.targets.tolist(), names, strict=True)]
