"""PoseData: frames with the keypoints of one animal each, and which individual and species it is.

Several animals in a frame are several rows, each with a crop of that frame (`haptera.pose.frames`); `files` then has
the frame once for each of them, and `animals` says which it is. It is a data set like any other, so streams, shifts and
adapters take it; keypoints are found by `rows`, the number of a frame in its source, which a batch carries as `ids`. x
runs to the right and y down, in pixels; the centre of the first pixel is (0, 0). Frames are images of one size, in an
array or in files that are read when they are needed.
"""

import logging
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Self

import numpy as np
import torch

from haptera.data import Data
from haptera.errors import HapteraError, hint
from haptera.files.fingerprint import fingerprint
from haptera.pose.frames import ArrayFrames, FileFrames

log = logging.getLogger("haptera")


class PoseData(Data):
    """Labelled frames.

    A label outside the frame counts as missing, and a remark in the log says how many there were.

    Args:
        images: an array `(frames, height, width, 3)`, uint8 or floats in [0, 1]; the paths of image files; or
            `FileFrames`, with boxes for several animals in a frame.
        keypoints: `(frames, parts, 2)`, x and y in pixels of the images as they are; NaN where missing.
        parts: the names of the parts.
        individuals: `(frames,)`, whose frame it is; all the same one if left out.
        species: `(frames,)`, or None.
        files: `(frames,)`, what a frame is called in tables; the paths, or numbers.
        skeleton: pairs of parts between which a line is drawn.
        areas: `(frames,)`, of each animal in square pixels of the images as they are, for OKS.
        size: height and width, for image files of different sizes; keypoints are scaled likewise.
        name: what it is called in messages.
    """

    def __init__(
        self,
        images: np.ndarray | Sequence[str | Path] | FileFrames,
        keypoints: np.ndarray,
        parts: Sequence[str],
        individuals: Sequence[str] | np.ndarray | None = None,
        *,
        species: Sequence[str] | np.ndarray | None = None,
        files: Sequence[str] | np.ndarray | None = None,
        skeleton: Sequence[tuple[str, str]] = (),
        areas: Sequence[float] | np.ndarray | None = None,
        size: tuple[int, int] | None = None,
        name: str = "poses",
    ) -> None:
        frames = len(images.factors) if isinstance(images, FileFrames) else len(images)
        if not frames:
            raise HapteraError(f"{name} has no frames")
        self.frames: ArrayFrames | FileFrames
        if isinstance(images, FileFrames):
            self.frames, called = images, [f"frame{row:06d}" for row in range(frames)]
        elif isinstance(images, np.ndarray) and images.dtype.kind != "U":
            if size is not None and size != images.shape[1:3]:
                raise HapteraError(f"{name}: size is for image files, and images are an array")
            self.frames, called = ArrayFrames(images, name), [f"frame{row:06d}" for row in range(frames)]
        else:
            self.frames, called = _open_files(images, keypoints, size), [str(path) for path in images]
        self.parts, self.name = tuple(map(str, parts)), name
        if len(set(self.parts)) != len(self.parts):
            twice = next(part for part in self.parts if self.parts.count(part) > 1)
            raise HapteraError(f"{name}: the part {twice!r} is there twice")
        self.keypoints = self._read_keypoints(keypoints)
        self.individuals = _column(individuals, frames, "individuals", name, "all")
        self.species = None if species is None else _column(species, frames, "species", name)
        self.files = _column(called if files is None else files, frames, "files", name)
        self.areas = None if areas is None else np.asarray(areas, float) * self.frames.factors.prod(1)
        self.skeleton = tuple((str(one), str(two)) for one, two in skeleton)
        for part in (part for pair in self.skeleton for part in pair):
            if part not in self.parts:
                raise HapteraError(f"{name}: the skeleton names {part!r}, which is not a part;{hint(part, self.parts)}")
        self.rows = np.arange(frames)
        self.targets = None
        self._inside = np.arange(frames)

    @property
    def animals(self) -> np.ndarray | None:
        """`(frames,)`: which of several animals in a frame it is, or None."""
        return None if self.frames.animals is None else self.frames.animals[self._inside]

    @property
    def factors(self) -> np.ndarray:
        """`(frames, 2)`: by what x and y of the images as they were read were multiplied."""
        return self.frames.factors[self._inside]

    @property
    def height(self) -> int:
        """The height of every frame, in pixels."""
        return self.frames.height

    @property
    def width(self) -> int:
        """The width of every frame, in pixels."""
        return self.frames.width

    def images(self, positions: np.ndarray) -> torch.Tensor:
        """Return frames `(len(positions), 3, height, width)`, float32 in [0, 1]."""
        return self.frames.read(self._inside[np.asarray(positions, np.int64)])

    def select(self, positions: np.ndarray) -> Self:
        """Return some frames, which keep their numbers in the source; nothing is copied but the labels."""
        positions = np.asarray(positions)
        chosen = copy(self)
        for key in ("keypoints", "individuals", "species", "files", "areas", "rows", "_inside"):
            column = getattr(self, key)
            setattr(chosen, key, None if column is None else column[positions])
        if not len(chosen):
            raise HapteraError(f"no frame of {self.name} is left")
        return chosen

    def in_source(self, keypoints: np.ndarray) -> np.ndarray:
        """Return keypoints `(frames, parts, 2)` of these frames in pixels of the images as they were read."""
        factors, corners = (each[self._inside][:, None] for each in (self.frames.factors, self.frames.corners))
        return (keypoints + 0.5) / factors - 0.5 + corners

    def fingerprint(self) -> str:
        """Return the fingerprint of the images, taken anew at each call, and of all labels."""
        columns = (self.keypoints, self.parts, self.individuals, self.species, self.rows)
        return fingerprint("pose", self.frames.fingerprint(), *columns)

    def _read_keypoints(self, keypoints: np.ndarray) -> np.ndarray:
        keypoints, name = np.array(keypoints, float), self.name
        expected = (len(self.frames.factors), len(self.parts), 2)
        if keypoints.shape != expected:
            raise HapteraError(f"{name}: keypoints are {keypoints.shape}; (frames, parts, 2) = {expected} expected")
        if np.isinf(keypoints).any():
            raise HapteraError(f"{name}: {np.isinf(keypoints).sum()} coordinates are infinite; NaN stands for missing")
        keypoints = (keypoints - self.frames.corners[:, None] + 0.5) * self.frames.factors[:, None] - 0.5
        keypoints[np.isnan(keypoints).any(2)] = np.nan
        with np.errstate(invalid="ignore"):
            outside = ((keypoints < -0.5) | (keypoints > [self.width - 0.5, self.height - 0.5])).any(2)
        if outside.any():
            frame, part = np.argwhere(outside)[0]
            log.warning(
                "%s: %d keypoints lie outside their frame and count as missing (first: frame %d, %s)",
                name, outside.sum(), frame, self.parts[part],
            )  # fmt: skip
            keypoints[outside] = np.nan
        if np.isnan(keypoints).all():
            raise HapteraError(f"{name}: no keypoint is labelled in any frame")
        return keypoints


def _open_files(
    images: np.ndarray | Sequence[str | Path], keypoints: np.ndarray, size: tuple[int, int] | None
) -> FileFrames:
    labels = np.asarray(keypoints, float)
    known = labels if labels.ndim == 3 and len(labels) == len(images) else None  # others are refused later
    return FileFrames([Path(path) for path in images], size, keypoints=known)


def _column(
    values: Sequence[str] | np.ndarray | None, frames: int, what: str, name: str, default: str = ""
) -> np.ndarray:
    column = np.full(frames, default) if values is None else np.asarray(values).astype(str)
    if column.shape != (frames,):
        raise HapteraError(f"{name}: {what} are {column.shape}; one for each of {frames} frames was expected")
    return column
