"""A corrupted data set on disk, in the layout of ImageNet-C or of CIFAR-10-C, for tools that read nothing else.

Images are those of the stream `corruptions` with the same seed and constants, in 8 bits; `open_data` reads them.
A part, which is one corruption at one severity (`imagenet-c`) or one corruption (`cifar-10-c`), is written beside its
place and renamed, so a part that is there is whole, and a stopped run goes on with the parts that are missing.
Differs: JPEG files have quality 95 by default, where ImageNet-C's have 85; classes that would be read back in another
order than the data's get their number in front.
"""

import json
import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image

from haptera.data import Data, FolderData
from haptera.data.folder import THREADS
from haptera.errors import HapteraError, Unfinished, WriteError, unknown
from haptera.files.atomic import umask, whole, writable_folder, write_text
from haptera.files.json import read_json
from haptera.files.schema import TEXT, check, table_of, whole_number
from haptera.progress import Progress
from haptera.run.cells import locked
from haptera.run.loop import versions
from haptera.shifts import Shift

log = logging.getLogger("haptera")

TABLES = {"imagenet-c": "imagenet", "cifar-10-c": "cifar"}
"""The layouts, each with the constants of the published data set."""
SEVERITIES = (1, 2, 3, 4, 5)
MANIFEST = "manifest.json"
AT_ONCE = 64

Step = Callable[[str], None]


@dataclass(frozen=True)
class Materialised:
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
class _Job:
    """Everything that decides the files."""

    data: Data
    out: Path
    layout: str
    seed: int
    table: str
    quality: int | str

    def settings(self) -> dict[str, Any]:
        """What must not change between two runs into one folder."""
        own = {"layout": self.layout, "seed": self.seed, "table": self.table}
        own |= {"quality": self.quality} if self.layout == "imagenet-c" else {}
        return own | {"data": self.data.fingerprint()}

    def pixels(self, shift: Shift, advance: Step) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Places in the data and their images `(batch, height, width, channels)` in 8 bits, under a shift."""
        for start in range(0, len(self.data), AT_ONCE):
            places = np.arange(start, min(start + AT_ONCE, len(self.data)))
            images = shift(self.data.images(places), self.data.rows[places].tolist(), self.seed)
            yield places, images.mul(255).round_().byte().permute(0, 2, 3, 1).contiguous().numpy()
            advance(f"{shift.name} {shift.severity:g}")


@dataclass
class _Manifest:
    """`manifest.json`: how the files came about, and which parts are finished."""

    path: Path
    content: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, job: _Job) -> "_Manifest":
        """The one of the folder, or a new one; an error if it is of something else."""
        path = job.out / MANIFEST
        if not path.is_file():
            if any(entry.name != ".lock" for entry in job.out.iterdir()):
                raise HapteraError(f"{job.out} is not empty and has no {MANIFEST}; give an empty folder, or a new one")
            settings = job.settings()
            name, print_ = job.data.name, settings.pop("data")
            about = {"data": name, "fingerprint": print_, "images": len(job.data), "versions": versions()}
            return cls(path, {**settings, **about, "parts": {}})
        content = read_manifest(path)
        before = content | {"data": content["fingerprint"]}
        for key, now in job.settings().items():
            if before.get(key) != now:
                said = f"other data ({content.get('data')})" if key == "data" else f"{key} {before.get(key)!r}"
                wanted = job.data.name if key == "data" else repr(now)
                raise HapteraError(f"{job.out} was begun with {said}, this is {wanted}; give another folder")
        if content.get("versions") != versions():
            log.warning("%s was begun with other versions: %s", job.out, content.get("versions"))
        return cls(path, content)

    def add(self, part: str, count: int) -> None:
        """One more part is finished."""
        self.content["parts"][part] = count
        write_text(self.path, json.dumps(self.content, indent=1))


def read_manifest(path: Path) -> dict[str, Any]:
    """Return what the `manifest.json` of a folder says."""
    return check(read_json(path), {"fingerprint": TEXT, "parts": table_of(whole_number())}, str(path))


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
) -> Materialised:
    """Write a data set under every shift at every severity, whatever of it is missing.

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
    job = _Job(data, Path(out), layout, seed, table or TABLES[layout], quality)
    made = {shift.name: [shift(float(severity), table=job.table) for severity in severities] for shift in shifts}
    if layout == "cifar-10-c":
        parts = made
    else:
        parts = {f"{name}/{one.severity:g}": [one] for name, group in made.items() for one in group}
    writable_folder(job.out)
    with locked(job.out):
        manifest = _Manifest.of(job)
        _tidy_up(job.out)
        place, write = (_npy_place, _write_npy) if layout == "cifar-10-c" else (_folder_place, _write_folder)
        missing = [part for part in parts if not place(job, part).exists()]
        for part in parts:
            if part not in missing:  # whether it was noted or not: a run may have been stopped in between
                manifest.content["parts"][part] = len(data) * len(parts[part])
        steps = sum(len(parts[part]) for part in missing) * -(-len(data) // AT_ONCE)
        write_text(manifest.path, json.dumps(manifest.content, indent=1))
        with Progress(job.out.name, steps, progress, unit="batches") as bar:
            for done, part in enumerate(missing):
                try:
                    write(job, place(job, part), parts[part], bar.advance)
                    manifest.add(part, len(data) * len(parts[part]))
                except WriteError as error:
                    finished = len(parts) - len(missing) + done
                    raise Unfinished(
                        f"{error}; {finished} of {len(parts)} parts are finished, the same call goes on"
                    ) from error
    return Materialised(job.out, missing, [part for part in parts if part not in missing], len(data))


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
    if quality != "png" and (isinstance(quality, bool) or not isinstance(quality, int) or not 1 <= quality <= 100):
        raise HapteraError(f"quality is {quality!r}; a whole number from 1 to 100, or 'png', was expected")


def _tidy_up(out: Path) -> None:
    """Remove what a killed run left half-written; only for who holds the lock."""
    for left in out.glob(".*.part"):
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        else:
            left.unlink()


def _npy_place(job: _Job, part: str) -> Path:
    return job.out / f"{part}.npy"


def _write_npy(job: _Job, place: Path, shifts: Sequence[Shift], advance: Step) -> None:
    """All severities of a corruption, one after the other, and the labels if they are not there yet."""
    labels = job.out / "labels.npy"
    if not labels.exists():
        with whole(labels) as file:
            np.save(file, np.tile(np.asarray(job.data.targets, np.int64), len(shifts)))
    with whole(place) as file:
        begun = False
        for shift in shifts:
            for _, pixels in job.pixels(shift, advance):
                if not begun:
                    _begin_npy(file, (len(shifts) * len(job.data), *pixels.shape[1:]))
                    begun = True
                file.write(pixels.data)


def _begin_npy(file: BinaryIO, shape: tuple[int, ...]) -> None:
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def _folder_place(job: _Job, part: str) -> Path:
    return job.out / part


def _write_folder(job: _Job, place: Path, shifts: Sequence[Shift], advance: Step) -> None:
    """One corruption at one severity: written into a hidden folder, which is renamed when it is complete."""
    # A name that nobody can guess: a link put there before would lead the files elsewhere.
    beside = Path(tempfile.mkdtemp(dir=job.out, prefix=f".{place.parent.name}-{place.name}.", suffix=".part"))
    try:
        beside.chmod(0o777 & ~umask())
        files = [beside / name for name in _file_names(job.data, job.quality)]
        folders = {file.parent for file in files} | {beside / name for name in class_folders(job.data)}
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(THREADS) as pool:
            for places, pixels in job.pixels(shifts[0], advance):
                qualities = [job.quality] * len(places)
                list(pool.map(write_image, [files[one] for one in places], pixels, qualities))
        place.parent.mkdir(exist_ok=True)
        beside.rename(place)
    except OSError as error:
        raise WriteError(f"cannot write {place}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def write_image(path: Path, pixels: np.ndarray, quality: int | str) -> None:
    """One image file of `(height, width, channels)` bytes."""
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    if quality == "png":
        image.save(path, format="PNG")
    else:
        image.save(path, format="JPEG", quality=int(quality))


def class_folders(data: Data) -> list[str]:
    """A folder name for each class, such that they sort as the classes do; none without labels."""
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
    """Where each sample goes, by place in the data: the source's name, or the number of the sample."""
    endings = (".png",) if quality == "png" else (".jpeg", ".jpg")
    width = len(str(int(data.rows.max())))
    names = _source_names(data) or [f"{row:0{width}d}{endings[0]}" for row in data.rows.tolist()]
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


def _source_names(data: Data) -> list[str] | None:
    """The files of a folder, relative to their class; None for any other data."""
    if not isinstance(data, FolderData):
        return None
    return [name if data.names is None else name.partition("/")[2] for name in data._files]
