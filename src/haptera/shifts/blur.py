"""Blur: what lens and motion take away.

Source: the corruptions of ImageNet-C; lengths are for the side at which a table was published (224 or 32 pixels) and
scale with the shorter side. Every filter here is linear with weights that sum to 1, so a grey image stays as it is.

- The normal kernel is cut at 4 standard deviations and edges are repeated, as scipy's filter does in mode "nearest".
- Motion: taps along a line at whole pixels, one side of a normal kernel, edges repeated, as the peer; a fraction of
  a tap at the end of the line makes it continuous in the radius.
- Zoom: the mean of the image and its enlarged copies, as the peer; what is cut off is cut off evenly on both sides.

Cost: two products with banded matrices per channel, for zoom two per channel and copy; a pass over the
image for each tap of the motion.
"""

from functools import lru_cache
from math import ceil, cos, exp, radians, sin

import numpy as np
import torch
from torch.nn.functional import pad

from haptera.shifts.base import SampleRandom, Shift, knots
from haptera.shifts.pixels import Pixels

Band = tuple[tuple[slice, torch.Tensor], ...]
"""A matrix whose weights lie near the diagonal, as blocks of some 32 rows with the columns that they see."""

_BLOCK = 32
_PIXELS_AT_ONCE = 2**18  # what a core keeps close
SMALLEST_TAP = 1e-6
UNNOTICED = 0.1  # grey levels
WIDEST = 30.0  # pixels, about a hundred weights to each side


class GaussianBlur(Shift):
    """Convolves with a normal kernel."""

    name = "gaussian_blur"
    tables = knots(imagenet=(0, 1, 2, 3, 4, 6), cifar=(0, 0.4, 0.6, 0.7, 0.8, 1))

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """Blur along the rows, then along the columns."""
        (sigma,) = self.constants()
        return gaussian_filter(images, sigma * self.scale(images))

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels | None:
        """The same filter, sums in 16 bits, of which many products would lose too much: of large images in floats."""
        (sigma,) = self.constants()
        sigma *= self.scale(pixels)
        return gaussian_bytes(pixels, sigma) if sigma <= WIDEST else None


class MotionBlur(Shift):
    """Smears along a line at a random angle between -45 and 45 degrees; constants: radius, width of the kernel."""

    name = "motion_blur"
    tables = knots(
        imagenet=((0, 0), (10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
        cifar=((0, 0), (6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    )

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """One line per image."""
        radius, sigma = self.constants()
        scale = self.scale(images)
        return motion_filter(images, random.uniform().mul(90).sub(45), radius * scale, sigma * scale)

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels:
        """The same line, sums in single precision."""
        radius, sigma = self.constants()
        scale = self.scale(pixels)
        degrees = random.uniform().mul(90).sub(45).repeat_interleave(pixels.planes_each)
        return pixels.like(motion_planes(pixels.planes(), pixels.step, degrees, radius * scale, sigma * scale))


class ZoomBlur(Shift):
    """The mean of the image and enlarged copies of it; constants: largest factor, step between factors."""

    name = "zoom_blur"
    tables = knots(
        imagenet=((1, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
        cifar=((1, 0.01), (1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    )

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """(x + Σ zoom(x)) / (n + 1); the factors begin with 1, as the peer's do."""
        largest, step = self.constants()
        factors = [float(factor) for factor in np.arange(1, largest, step)]
        work = at_least_single(images)
        total = work.clone()
        for some, out in zip(portions(work), portions(total), strict=True):
            for factor in factors:
                out += some if factor == 1 else zoom(some, factor)
        return total.div_(len(factors) + 1)

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels:
        """The same, sums in single precision."""
        from haptera.shifts.kernels.zoom import add_zoomed

        largest, step = self.constants()
        factors = tuple(float(factor) for factor in np.arange(1, largest, step))
        planes = pixels.planes()
        out = np.empty_like(planes)
        add_zoomed(planes, out, pixels.step, 2, *_zoom_runs(factors[1:], *pixels.shape[2:], pixels.step))
        return pixels.like(out)


def gaussian_filter(images: torch.Tensor, sigma: float) -> torch.Tensor:
    """Return `(batch, channels, height, width)` convolved with a normal kernel of width `sigma` pixels, edges repeated.

    Written as two products with a banded matrix, which on a CPU is several times faster than a convolution.
    """
    rows, columns = (_filter_band(side, sigma) for side in images.shape[-2:])
    return mix_columns(columns, mix_rows(rows, at_least_single(images)))


def gaussian_kernel(sigma: float, reach: int) -> torch.Tensor:
    """Return `(2 reach + 1,)` weights of a normal kernel, sum 1, float64."""
    offsets = torch.arange(-reach, reach + 1).double()
    kernel = torch.exp(-0.5 * (offsets / max(sigma, 1e-9)) ** 2)
    return kernel / kernel.sum()


def gaussian_bytes(pixels: Pixels, sigma: float) -> Pixels:
    """The same on bytes, without the outermost weights, which together are less than a tenth of a grey level."""
    from haptera.shifts.kernels.normal import blur_separably

    planes = pixels.planes()
    out = np.empty_like(planes)
    blur_separably(planes, out, pixels.step, _whole_weights(sigma))
    return pixels.like(out)


@lru_cache(maxsize=64)
def _whole_weights(sigma: float) -> np.ndarray:
    """Return `(reach + 1,)` uint16, the weights of the centre and of each pair of neighbours, in 65,536ths."""
    whole = np.floor(2**17 * _noticed_weights(sigma).astype(np.float64)).astype(np.int64)
    whole[0] = min(2**16 - whole[1:].sum(), 2**16 - 1)  # with what the pairs lost
    return whole.astype(np.uint16)


@lru_cache(maxsize=64)
def _noticed_weights(sigma: float) -> np.ndarray:
    """Return `(reach + 1,)` float32, the weights from the centre on as far as they can be noticed in bytes."""
    radius = int(4 * sigma + 0.5)
    weights = gaussian_kernel(sigma, radius)[radius:].double().numpy()
    beyond = 2 * np.cumsum(weights[::-1])[::-1]  # of this weight and all behind it, on both sides
    weights = weights[: max(int(np.sum(255 * beyond >= UNNOTICED)), 1)]
    return (weights / (2 * weights.sum() - weights[0])).astype(np.float32)


def motion_filter(images: torch.Tensor, degrees: torch.Tensor, radius: float, sigma: float) -> torch.Tensor:
    """Smear each image along a line of its own, to one side, over 2 radius + 1 pixels, edges repeated."""
    taps, total = _motion_taps(radius, sigma)
    height, width = images.shape[-2:]
    work = at_least_single(images)
    blurred = work * (taps[0] / total)
    margin = len(taps) - 1
    for image, out, angle in zip(work.split(1), blurred.unbind(), map(radians, degrees.tolist()), strict=True):
        wide = pad(image, (margin,) * 4, mode="replicate")[0] if margin else image[0]
        for i, tap in enumerate(taps[1:], start=1):
            top, left = (margin + ceil(i * along - 0.5) for along in (sin(angle), cos(angle)))
            out.add_(wide[:, top : top + height, left : left + width], alpha=tap / total)
    return blurred


def _motion_taps(radius: float, sigma: float) -> tuple[list[float], float]:
    """Weights along the line, and their sum."""
    length = 2 * radius + 1
    taps = [exp(-0.5 * (i / max(sigma, 1e-9)) ** 2) * min(1.0, length - i) for i in range(ceil(length))]
    taps = [tap for tap in taps if tap > SMALLEST_TAP]
    return taps, sum(taps)


def motion_planes(planes: np.ndarray, step: int, degrees: torch.Tensor, radius: float, sigma: float) -> np.ndarray:
    """The same for `(planes, height, width · step)`, uint8 or float32, and an angle for each."""
    from haptera.shifts.kernels.filters import sum_taps

    taps, total = _motion_taps(radius, sigma)
    angles = np.radians(degrees.double().numpy())[:, None]
    downs, rights = (
        np.ceil(np.arange(len(taps)) * along - 0.5).astype(np.int64) for along in (np.sin(angles), np.cos(angles))
    )
    out = np.empty_like(planes)
    sum_taps(planes, out, step, len(taps) - 1, False, downs, rights, np.array(taps, np.float32) / np.float32(total))
    return out


def zoom(images: torch.Tensor, factor: float) -> torch.Tensor:
    """Enlarge about the centre, bilinearly, and cut to the size it had."""
    rows, columns = (_zoom_band(side, factor) for side in images.shape[-2:])
    return mix_columns(columns, mix_rows(rows, at_least_single(images)))


def zoom_matrix(side: int, factor: float) -> torch.Tensor:
    """`(side, seen)`: the middle `seen = ⌈side / factor⌉` pixels, spread over at least `side`, evenly cut to `side`."""
    seen = ceil(side / factor)
    below, share = (part[:, None] for part in zoom_places(side, factor))
    matrix = torch.zeros(side, seen, dtype=torch.float64).scatter_(1, below, 1 - share)
    return matrix.scatter_add_(1, (below + 1).clamp(max=seen - 1), share).float()


def zoom_places(side: int, factor: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `(side,)` the first one of the two pixels that each is mixed from, and the share of the second one."""
    seen = ceil(side / factor)
    spread = round(seen * factor)
    places = (torch.arange(side) + (spread - side) // 2) * (seen - 1) / max(spread - 1, 1)
    below = places.long().clamp(0, max(seen - 2, 0))
    return below, (places - below).double()


def at_least_single(images: torch.Tensor) -> torch.Tensor:
    """Half precision as single precision, anything else as it is."""
    return images.to(torch.promote_types(images.dtype, torch.float32))


def portions(images: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Views of a few images at a time, small enough for the cache."""
    return images.split(max(1, _PIXELS_AT_ONCE // images[0].numel()))


def mix_rows(band: Band, images: torch.Tensor) -> torch.Tensor:
    """Return `(height, seen)` weights times `(..., seen, width)`."""
    pieces = [block.to(images) @ images[..., seen, :] for seen, block in band]
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces, -2)


def mix_columns(band: Band, images: torch.Tensor) -> torch.Tensor:
    """Return `(batch, channels, height, seen)` times `(width, seen)` weights, turned.

    Every image is a product of its own: in one large product, sums depend on the batch.
    """
    mixed = images.new_empty(*images.shape[:-1], sum(len(block) for _, block in band))
    wide, out, done = images.flatten(1, 2), mixed.flatten(1, 2), 0
    for seen, block in band:
        weights = block.to(images).T.expand(len(images), -1, -1)
        out[..., done : done + len(block)].baddbmm_(wide[..., seen], weights, beta=0)
        done += len(block)
    return mixed


def as_band(matrix: torch.Tensor, first: int = 0, rows: int = _BLOCK) -> Band:
    """Cut a matrix into blocks of about `rows` rows, all of about the same size; column 0 of it sees pixel `first`.

    A block of one row would be a product with a vector, whose last bit depends on the batch.
    """
    band = []
    for block in matrix.tensor_split(ceil(len(matrix) / rows) if len(matrix) > 2 * rows else 1):
        used = block.any(0).nonzero()
        low, high = int(used[0]), int(used[-1]) + 1
        band.append((slice(first + low, first + high), block[:, low:high].contiguous()))
    return tuple(band)


@lru_cache(maxsize=64)
def _filter_band(side: int, sigma: float) -> Band:
    """Return a matrix whose row i holds the weights with which pixel i sees the others."""
    radius = int(4 * sigma + 0.5)
    seen = (torch.arange(side)[:, None] + torch.arange(-radius, radius + 1)).clamp(0, side - 1)
    weights = gaussian_kernel(sigma, radius).expand(side, -1)
    return as_band(torch.zeros(side, side, dtype=torch.float64).scatter_add_(1, seen, weights).float())


@lru_cache(maxsize=64)
def _zoom_runs(factors: tuple[float, ...], height: int, width: int, step: int) -> tuple[np.ndarray, ...]:
    """What `kernels.zoom.add_zoomed` wants to know about the factors."""
    rows, row_shares, starts, offsets, shares = [], [], [], [], []
    for factor in factors:
        below, share = (part.numpy() for part in zoom_places(height, factor))
        rows.append(below + (height - ceil(height / factor)) // 2)
        row_shares.append(share)
        below, share = (part.numpy() for part in zoom_places(width, factor))
        moves = below + (width - ceil(width / factor)) // 2 - np.arange(width)
        first = np.flatnonzero(np.diff(moves, prepend=moves[0] - 1))
        starts.append(np.append(first, width) * step)
        offsets.append(moves[first] * step)
        shares.append(share.repeat(step))
    most = max(map(len, offsets), default=0)
    starts = [np.pad(one, (0, most + 1 - len(one)), mode="edge") for one in starts]
    offsets = [np.pad(one, (0, most - len(one))) for one in offsets]
    whole, single = (np.int64, (len(factors), -1)), (np.float32, (len(factors), -1))
    return tuple(
        np.array(part, kind).reshape(shape if factors else (0, 1))
        for part, (kind, shape) in zip(
            (rows, row_shares, starts, offsets, shares), (whole, single, whole, whole, single), strict=True
        )
    )


@lru_cache(maxsize=64)
def zoom_band(side: int, factor: float) -> Band:
    """`zoom_matrix` as a band, for layers that are made at the smaller size."""
    return as_band(zoom_matrix(side, factor))


@lru_cache(maxsize=512)
def _zoom_band(side: int, factor: float) -> Band:
    return as_band(zoom_matrix(side, factor), first=(side - ceil(side / factor)) // 2)
