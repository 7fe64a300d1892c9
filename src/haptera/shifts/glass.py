"""Glass: pixels show what is near them, as behind frosted glass.

Source: glass blur of ImageNet-C. Blur; then visit all pixels from the bottom right to the top left and give each the
value of one at a random offset from −δ to δ − 1 in both directions; repeat; blur again. The published code means to
swap the two, but its line `x[p], x[q] = x[q], x[p]` copies q to p in colour images, since NumPy gives views; published
images and accuracies come from the copy, so it is the copy here.

The copies depend on each other, so the peer's loop is sequential. Ours makes the same copies in the same order of
dependence, but many at a time: two of them meet only if they are less than 2δ apart in both directions, so pixel
(row, column) may run at time 2δ·row + column, counted from the bottom right, and the next iteration 4δ² later; all
copies of one time are independent. For given offsets the result is the loop's, bit for bit.
Differs: the peer rounds to 8 bits between the steps.
Cost: about (2δ + 1) · side steps in NumPy of some 10 µs each for a batch, and 10 ns per copy.
"""

from functools import lru_cache
from itertools import pairwise

import numpy as np
import torch

from haptera.shifts.base import SampleRandom, Shift, knots
from haptera.shifts.blur import gaussian_filter

_COPIES_AT_ONCE = 2**22


class GlassBlur(Shift):
    """Blurs, copies pixels from nearby, blurs again; constants: width of the blur, largest offset, iterations."""

    name = "glass_blur"
    tables = knots(
        imagenet=((0, 0, 0), (0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
        cifar=((0, 0, 0), (0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    )

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """Offsets are rounded and at least 1; iterations are rounded."""
        sigma, delta, iterations = self.constants()
        scale = self.scale(images)
        blurred = gaussian_filter(images, sigma * scale)
        shuffled = _shuffle(blurred, random, max(1, round(delta * scale)), int(iterations + 0.5))
        return gaussian_filter(shuffled, sigma * scale)


def _shuffle(images: torch.Tensor, random: SampleRandom, delta: int, iterations: int) -> torch.Tensor:
    """Give every pixel the value of a random one nearby."""
    if not iterations:
        return images
    height, width = images.shape[-2:]
    places, _ = _schedule(height, width, delta, iterations)
    if not len(places):  # no pixel is far enough from the edges
        return images
    across = np.arange(-delta, delta)
    offsets = (across[:, None] * width + across).ravel()
    chosen = random.uniform((len(places),)).mul_(len(offsets)).numpy()
    shuffled = torch.empty_like(images)
    at_once = max(1, _COPIES_AT_ONCE // len(places))
    for start in range(0, len(images), at_once):
        some = slice(start, start + at_once)
        partners = offsets.take(chosen[some].T.astype(np.intp)) + places[:, None]
        order = torch.from_numpy(pull(partners, height, width, delta, iterations)).to(images.device)
        for image, out, source in zip(images[some], shuffled[some], order, strict=True):
            torch.index_select(image.flatten(1), 1, source, out=out.view(len(out), -1))
    return shuffled


def pull(partners: np.ndarray, height: int, width: int, delta: int, iterations: int) -> np.ndarray:
    """Return where each pixel comes from after all copies, `(images, height · width)`.

    `partners` are `(copies, images)`, the pixel (row · width + column) from which each in the schedule is copied.
    """
    places, starts = _schedule(height, width, delta, iterations)
    images = partners.shape[1]
    sources = np.repeat(np.arange(height * width, dtype=np.int32)[:, None], images, axis=1)
    flat = sources.reshape(-1)
    targets = partners * images
    targets += np.arange(images)
    for start, stop in pairwise(starts):
        sources[places[start:stop]] = flat.take(targets[start:stop])
    return np.ascontiguousarray(sources.T)


@lru_cache(maxsize=8)
def _schedule(height: int, width: int, delta: int, iterations: int) -> tuple[np.ndarray, list[int]]:
    """Return `(copies,)` the visited pixels in order of time, and where each time starts."""
    rows, columns = np.arange(height - delta, delta, -1), np.arange(width - delta, delta, -1)
    times = 2 * delta * np.arange(len(rows))[:, None] + np.arange(len(columns))
    times = (4 * delta**2 * np.arange(iterations)[:, None, None] + times).ravel()
    places = np.broadcast_to(rows[:, None] * width + columns, (iterations, len(rows), len(columns))).ravel()
    counts = np.bincount(times)
    return places[np.argsort(times, kind="stable")], [0, *np.cumsum(counts[counts > 0]).tolist()]
