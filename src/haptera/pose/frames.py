"""Images of frames, all of one size: in an array, in files, or crops around animals.

Files are read when they are needed. Each is made as large as fits into `size`, with black to the right and below. Where
there are several animals in a frame, each has a box in it, and what is read is that crop: a frame with three animals
is three images, so that a network, an adapter or a score for one animal takes them as they are.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from haptera.data.decode import Resize, decode
from haptera.data.encoded import THREADS
from haptera.data.pixels import Layout, check_values, read_layout, to_images
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint
from haptera.pose.orientation import read_sizes

MARGIN = 0.25
"""Of the longer side of the box around an animal's labels; so much is added on every side."""
LEAST_MARGIN = 8.0
UPRIGHT = Resize(upright=True)


class ArrayFrames:
    """Images in one array `(frames, height, width, 3)` or in any other layout of `ArrayData`, not copied.

    Attributes:
        height: in pixels.
        width: in pixels.
        factors: `(frames, 2)`, by what x and y of the source were multiplied.
        corners: `(frames, 2)`, x and y of the first pixel that is shown.
        animals: None, as a frame has one.
    """

    animals: np.ndarray | None = None

    def __init__(self, images: np.ndarray, name: str) -> None:
        self._layout = read_layout(images.shape, name)
        check_values(images, name)
        self._images = images
        self.height, self.width = self._layout.height, self._layout.width
        self.factors, self.corners = np.ones((len(images), 2)), np.zeros((len(images), 2))

    def read(self, positions: np.ndarray) -> torch.Tensor:
        """Return images `(len(positions), 3, height, width)`, float32 in [0, 1]."""
        return to_images(self._images[positions], self._layout, 3)

    def fingerprint(self) -> str:
        """Return the fingerprint of the bytes."""
        return fingerprint("frames", self._images)


def fit_shape(sizes: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return `(frames, 2)`: height and width of images `(frames, 2)` made as large as fits into a size."""
    fit = np.minimum(size[0] / sizes[:, 0], size[1] / sizes[:, 1])
    return np.maximum(np.rint(sizes * fit[:, None]).astype(int), 1)


def fit_pixels(image: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """Return an image `(height, width, 3)`, uint8, of another height and width."""
    height, width = shape.tolist()
    if image.shape[:2] == (height, width):
        return image
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))


class FileFrames:
    """Images in files; of one size, or each made as large as fits into `size`, with black to the right and below.

    Args:
        images: paths, or what would be in the files.
        size: height and width; that of the images, or of the largest box, if None.
        boxes: `(frames, 4)`, first and last x and y (x, y, x, y) of what is shown of each image; all of it if None.
        animals: `(frames,)`, whose box it is.
        keypoints: `(frames, parts, 2)`, labels, which may say whether images are turned; see `read_sizes`.
        declared: `(frames, 2)`, heights and widths that a file of labels names, which may say it too.

    Attributes:
        height: in pixels.
        width: in pixels.
        factors: `(frames, 2)`, by what x and y of the source were multiplied.
        corners: `(frames, 2)`, x and y of the first pixel that is shown.
        animals: whose box it is; None where a frame has one animal.
    """

    def __init__(
        self,
        images: Sequence[Path | bytes],
        size: tuple[int, int] | None,
        boxes: np.ndarray | None = None,
        animals: np.ndarray | None = None,
        *,
        keypoints: np.ndarray | None = None,
        declared: np.ndarray | None = None,
    ) -> None:
        self._images, self.animals = list(images), animals
        missing = [path for path in self._images if isinstance(path, Path) and not path.is_file()]
        if missing:
            raise HapteraError(f"{len(missing)} of {len(self._images)} images are not there, the first is {missing[0]}")
        sizes, self._turned = read_sizes(self._images, keypoints, declared)
        self._boxes = None if boxes is None else clip_boxes(boxes, sizes)
        self.corners = np.zeros((len(sizes), 2), int) if self._boxes is None else self._boxes[:, :2]
        if self._boxes is not None:
            sizes = (self._boxes[:, 2:] - self._boxes[:, :2] + 1)[:, ::-1]
            size = (int(sizes[:, 0].max()), int(sizes[:, 1].max())) if size is None else size
        others = np.flatnonzero((sizes != sizes[0]).any(1))
        if size is None and len(others):
            one, two = (f"{sizes[row][1]} x {sizes[row][0]}" for row in (others[0], 0))
            raise HapteraError(
                f"{self._name(int(others[0]))} is {one} and {self._name(0)} is {two} (width x height); "
                "give size=(height, width), --size on the command line, to bring images to one"
            )
        self.height, self.width = (int(side) for side in (sizes[0] if size is None else size))
        if min(self.height, self.width) < 1:
            raise HapteraError(f"size is {size}; a height and a width of at least 1 were expected")
        self._shapes = fit_shape(sizes, (self.height, self.width))
        self.factors = (self._shapes / sizes)[:, ::-1]

    def read(self, positions: np.ndarray) -> torch.Tensor:
        """Return images `(len(positions), 3, height, width)`, float32 in [0, 1]."""
        pixels = np.zeros((len(positions), self.height, self.width, 3), np.uint8)
        with ThreadPoolExecutor(THREADS) as pool:
            for row, image in enumerate(pool.map(self._one, np.asarray(positions).tolist())):
                pixels[row, : image.shape[0], : image.shape[1]] = image
        return to_images(pixels, Layout("NHWC", 3, self.height, self.width), 3)

    def _one(self, position: int) -> np.ndarray:
        resize = UPRIGHT if self._turned[position] else None
        image = decode(self._images[position], 3, resize, self._name(position))
        if self._boxes is not None:
            left, top, right, bottom = self._boxes[position].tolist()
            image = image[top : bottom + 1, left : right + 1]
        return fit_pixels(image, self._shapes[position])

    def _name(self, position: int) -> str:
        image = self._images[position]
        return str(image) if isinstance(image, Path) else f"image {position}"

    def fingerprint(self) -> str:
        """Return the fingerprint of every file's path, size and time of change, and of what is shown of it."""
        found: list[object] = []
        for image in self._images:
            if isinstance(image, bytes):
                found.append(image)
            else:
                stat = image.stat()
                found.append((str(image), stat.st_size, stat.st_mtime_ns))
        shown = [] if self._boxes is None else [self._boxes]
        shown += [self._turned] if self._turned.any() else []
        return fingerprint("frames", found, self.height, self.width, *shown)


def label_boxes(keypoints: np.ndarray, around: np.ndarray | None = None, margin: float = MARGIN) -> np.ndarray:
    """Return `(rows, 4)`: the box around each animal's keypoints `(rows, parts, 2)`, with a margin; x, y, x, y.

    Args:
        keypoints: NaN where missing; at least one of each animal is there.
        around: `(rows, 4)`, what else is inside, such as boxes of a file; NaN for none.
        margin: of the longer side, at least 8 pixels.
    """
    points = keypoints if around is None else np.concatenate([keypoints, around.reshape(-1, 2, 2)], 1)
    known = np.isfinite(points)
    low = np.where(known, points, np.inf).min(1)
    high = np.where(known, points, -np.inf).max(1)
    more = np.maximum(margin * (high - low).max(1), LEAST_MARGIN)[:, None]
    return np.concatenate([np.floor(low - more), np.ceil(high + more)], 1)


def clip_boxes(boxes: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return boxes `(rows, 4)` as whole pixels inside images of sizes `(rows, 2)`."""
    last = np.tile(sizes[:, ::-1] - 1, 2)
    outside = np.flatnonzero((boxes[:, :2] > last[:, :2]).any(1) | (boxes[:, 2:] < 0).any(1))
    if len(outside):
        row = outside[0]
        raise HapteraError(
            f"the box {boxes[row].tolist()} of row {row} lies outside its image of {sizes[row][1]} x {sizes[row][0]}"
        )
    return np.clip(np.rint(boxes), 0, last).astype(int)
