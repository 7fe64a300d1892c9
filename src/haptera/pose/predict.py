"""Prediction: keypoints and confidence for a data set, an array of frames, or a folder of images.

Images of different sizes are predicted size by size, each as it is, or brought to one `size` as in training; keypoints
are in pixels of the images as they are, either way. Cost: that of the network; decoding is a maximum
over the cells of each score map (`benchmarks/pose.py`).
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from haptera.adapters import Adapter, BatchNorm, NoAdaptation, Watch, share
from haptera.adapters.passes import arrange, device_of, takes_channels_last
from haptera.adapters.wrapper import Wrapper
from haptera.data import Data
from haptera.data.decode import header_size
from haptera.data.folder import SUFFIXES
from haptera.errors import HapteraError, Unfinished, WriteError
from haptera.files.deeplabcut import KeypointTable, check_target
from haptera.files.fingerprint import fingerprint, of_model
from haptera.files.npz import read_npz
from haptera.pose.frames import ArrayFrames, FileFrames
from haptera.pose.network import PoseNetwork
from haptera.pose.orientation import warn_of_turned
from haptera.progress import Progress
from haptera.run.folder import PLAN
from haptera.run.journal import JOURNAL
from haptera.run.ledger import Piece
from haptera.run.locks import LOCK
from haptera.run.tasks import Task, finish

Shown = Data | np.ndarray | Sequence[str | Path]
Pictures = Shown | Path
T = TypeVar("T")
R = TypeVar("R")
AT_ONCE = 8
"""Batches that are kept together while a table is not finished."""


@dataclass(frozen=True, eq=False)
class Poses:
    """What a model says about frames.

    Attributes:
        keypoints: `(frames, parts, 2)`, x and y in pixels.
        confidence: `(frames, parts)`, from 0 to 1.
    """

    keypoints: np.ndarray
    confidence: np.ndarray

    def table(self, parts: Sequence[str], files: Sequence[str], scorer: str = "haptera") -> KeypointTable:
        """Return the predictions as a table of DeepLabCut."""
        return KeypointTable(self.keypoints, tuple(parts), np.asarray(files).astype(str), scorer, self.confidence)


def predict(
    model: nn.Module,
    images: Pictures,
    *,
    size: tuple[int, int] | None = None,
    batch_size: int = 32,
    progress: bool | None = False,
) -> Poses:
    """Return keypoints of every frame.

    Args:
        model: a `PoseModel` or another `PoseNetwork`, which is not changed, or an adapter around one.
        images: a data set; an array `(frames, height, width, 3)`, uint8 or floats in [0, 1]; paths of image files; or
            a folder, whose images are taken as `list_frames` lists them.
        size: height and width to which image files are brought; as the model says if left out, see `PoseModel.size`.
        batch_size: frames in a pass.
        progress: None shows it where somebody is looking.
    """
    pose_model(model)  # what is none is refused before anything is read
    if isinstance(images, Path):
        images = list_frames(images)
    if not isinstance(images, Data | np.ndarray):
        warn_of_turned(_check_paths(images))
    return _predict(model, images, size, batch_size, progress)


def _predict(
    model: nn.Module, images: Shown, size: tuple[int, int] | None, batch_size: int, progress: bool | None
) -> Poses:
    """Predict what is no folder; nothing is said of how images are turned."""
    inner = pose_model(model)
    size = inner.size if size is None else size
    device = device_of(inner)
    frames = len(images)
    keypoints = np.empty((frames, len(inner.parts), 2), np.float32)
    confidence = np.empty((frames, len(inner.parts)), np.float32)
    if not isinstance(model, Adapter):
        model = share(model).eval()  # whoever is training it goes on as before
    with Progress("frames", -(-frames // batch_size), progress, "batches") as bar, torch.inference_mode():
        channels_last: bool | None = False if isinstance(model, Adapter) else None  # an adapter sees to it itself
        for rows, batch, factors in _batches(images, batch_size, size):
            inputs = batch.to(device)
            if channels_last is None:
                channels_last = takes_channels_last(model, model, inputs)
            found = inner.decode(model(arrange(inputs, channels_last)))
            points, confidence[rows] = (values.cpu().numpy() for values in found)
            keypoints[rows] = points if factors is None else (points + 0.5) / factors[:, None] - 0.5
            bar.advance("")
    return Poses(keypoints, confidence)


class _Part(Task[Poses]):
    """Some of the images of a table."""

    def __init__(self, model: PoseNetwork, paths: Sequence[Path], identity: str, **settings: Any) -> None:
        self.model, self.paths, self.settings, self.work = model, paths, settings, len(paths)
        stats = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
        key = fingerprint(identity, stats, settings)
        self.piece = Piece(key, f"frames/{key}.npz", paths[0].name)

    def make(self) -> Poses:
        return _predict(self.model, self.paths, **self.settings, progress=False)

    def write(self, result: Poses, path: Path) -> None:
        with path.open("wb") as file:
            np.savez(file, keypoints=result.keypoints, confidence=result.confidence)

    def read(self, path: Path) -> Poses:
        return Poses(**read_npz(path))


def predict_table(
    model: PoseNetwork,
    images: Path,
    out: Path,
    scorer: str = "haptera",
    *,
    size: tuple[int, int] | None = None,
    batch_size: int = 32,
    progress: bool | None = None,
) -> KeypointTable:
    """Write the keypoints of image files as a table of DeepLabCut, and return it.

    Args:
        model: what predicts.
        images: a folder, whose images are taken as `list_frames` lists them, or one image.
        out: a `.csv` or `.h5`. Until it is finished, what is finished of it is kept beside it in a folder of the name
            with `.unfinished`, from which the same call goes on.
        scorer: who the table says predicted.
        size: see `predict`.
        batch_size: frames in a pass.
        progress: None shows it where somebody is looking.
    """
    check_target(out)
    paths, root = list_frames(images), images if images.is_dir() else images.parent
    warn_of_turned(paths)
    identity, step = of_model(model), AT_ONCE * batch_size
    groups = [paths[start : start + step] for start in range(0, len(paths), step)]
    parts = [_Part(model, group, identity, size=size, batch_size=batch_size) for group in groups]

    def collect(found: list[Poses]) -> KeypointTable:
        columns = (np.concatenate([getattr(each, name) for each in found]) for name in ("keypoints", "confidence"))
        return Poses(*columns).table(model.parts, [path.relative_to(root).as_posix() for path in paths], scorer)

    return finish_table(parts, out, collect, lambda table: table.write(out), progress)


def finish_table(
    tasks: Sequence[Task[T]],
    out: Path,
    collect: Callable[[list[T]], R],
    write: Callable[[R], None],
    progress: bool | None,
) -> R:
    """Make the pieces of a table in a folder beside it, write the table, and remove the folder.

    Args:
        tasks: the pieces.
        out: the table; the folder has its name with `.unfinished`.
        collect: from the finished pieces to the result.
        write: writes the result to `out`.
        progress: None shows it where somebody is looking.
    """
    unfinished = out.with_name(f"{out.name}.unfinished")
    result = collect(finish(tasks, unfinished, "pose table", noun="piece", progress=progress).finished)
    try:
        write(result)
    except WriteError as error:
        raise Unfinished(f"{error}; what is predicted is kept in {unfinished}, the same command goes on") from error
    shutil.rmtree(unfinished / "frames", ignore_errors=True)
    for name in (PLAN, JOURNAL, LOCK):
        (unfinished / name).unlink(missing_ok=True)
    with suppress(OSError):  # files of others are in it
        unfinished.rmdir()
    return result


def pose_model(model: nn.Module) -> PoseNetwork:
    """Return the pose network itself, or the one within an adapter."""
    if isinstance(model, Adapter):
        check_adapter(model)
    inner = model.model if isinstance(model, Adapter) else model
    if not isinstance(inner, PoseNetwork):
        raise HapteraError(
            f"a PoseModel, or an adapter around one, was expected; found {type(inner).__name__}, which "
            "haptera.pose.as_network makes one of"
        )
    return inner


def check_adapter(adapter: Adapter) -> None:
    """Refuse our adapters for classes: score maps of keypoints have no entropy over classes to minimise.

    Those of `haptera.pose` are for keypoints.
    """
    while isinstance(adapter, Wrapper):
        adapter = adapter.inner
    kind = type(adapter)
    ours = kind.__module__.startswith("haptera.") and not kind.__module__.startswith("haptera.pose.")
    if ours and not isinstance(adapter, NoAdaptation | Watch | BatchNorm):
        raise HapteraError(
            f"the adapter {kind.__name__} learns from probabilities of classes, which keypoints do not have; none, "
            "watch, batchnorm, keypoint_labels or an adapter of your own was expected"
        )


def list_frames(folder: Path) -> list[Path]:
    """Return the images in a folder and in those below it, sorted."""
    if folder.is_file() and folder.suffix.lower() in SUFFIXES:
        return [folder]
    if folder.is_file():
        raise HapteraError(f"{folder} is neither a video nor an image ({', '.join(SUFFIXES)})")
    if not folder.is_dir():
        raise HapteraError(f"there is no folder of images {folder}")
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    if not found:
        raise HapteraError(f"there are no images ({', '.join(SUFFIXES)}) in {folder}")
    return found


def _batches(
    images: Pictures, batch_size: int, size: tuple[int, int] | None
) -> Iterator[tuple[np.ndarray, torch.Tensor, np.ndarray | None]]:
    """Yield rows and pixels of some images at a time, all of one size, and by what x and y were multiplied for that."""
    if isinstance(images, Data | np.ndarray):
        read = images.images if isinstance(images, Data) else _reader(images)
        for rows in _cut(np.arange(len(images)), batch_size):
            yield rows, read(rows), None
        return
    assert not isinstance(images, Path)
    paths = _check_paths(images)
    sizes, codes = np.unique([header_size(path) for path in paths], axis=0, return_inverse=True)
    for code in range(len(sizes)):
        own = np.flatnonzero(codes == code)
        frames = FileFrames([paths[row] for row in own], size)
        for rows in _cut(np.arange(len(own)), batch_size):
            yield own[rows], frames.read(rows), frames.factors[rows]


def _check_paths(images: Sequence[str | Path]) -> list[Path]:
    paths = [Path(path) for path in images]
    if missing := [path for path in paths if not path.is_file()]:
        raise HapteraError(f"there is no image {missing[0]}")
    return paths


def _reader(images: np.ndarray) -> Callable[[np.ndarray], torch.Tensor]:
    frames = ArrayFrames(images, "images")
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[-1] != 3:
        return frames.read
    # Channels stay last in memory, where networks of convolutions want them, so that nothing is turned around twice.
    return lambda rows: torch.from_numpy(images[rows]).permute(0, 3, 1, 2).float().div_(255)


def _cut(rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
    return (rows[start : start + size] for start in range(0, len(rows), size))
