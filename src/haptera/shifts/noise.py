"""Noise: the sensor's own disturbances, and noise of one norm, the yardstick of relative stability.

Source: the corruptions of ImageNet-C and CIFAR-C as in thesis chapter 2, constants in the classes, between severities
linear (appendix C). Differs: repeatable per sample. Normal noise ends at 4.2 standard deviations (`shifts.base`); the
others are exact to the 24 bits of their uniform deviates. Noise of one norm, η, uniform on a sphere, is equation (4) of
"Relative stability toward diffeomorphisms indicates performance in deep nets". It is not a shift: images with it are
not clipped, for then its norm would depend on the image.
Cost: a pass over the images and 2 to 3 ns per random value; for shot noise about 11 ns per value, twice that off the
grid of grey levels, and once per c a table of up to 256 KB, in 5 to 50 ms.

Poisson counts, `poisson_counts`: a sum of Poisson counts is a Poisson count. The mean λ = x c of a value x is cut at a
grid of 256 grey levels, λ = k c / 255 + rest. The first part is read from Walker's alias table of level k (A. J.
Walker, An efficient method for generating discrete random variables with general distributions, 1977), one look-up for
any λ; the rest, nothing at all for an image of 8 bits, is counted by inversion, and hardly ever more than 0. It is
exact to the 24 bits of a uniform deviate: every probability of a table is the true one, rounded to 2^-24. A value
within 2.4e-7 of a grey level counts as that level. Above `TABLE_LIMIT` photons at full brightness, where tables would
grow and the noise is faint, the counts come from numpy's own generator.
"""

from collections.abc import Callable
from functools import lru_cache
from math import ceil, floor
from zlib import crc32

import numpy as np
import torch
from scipy.stats import poisson

from haptera.shifts.base import SampleRandom, Shift, knots
from haptera.shifts.pixels import Pixels
from haptera.shifts.sample_random import quantiles

LEVELS = 255
TABLE_LIMIT = 512.0
NOISELESS = 2.0**50  # the noise of so many photons is below what a float32 can show
_BITS = 24
_SNAP = 2.0**-14  # of a grey level; a float32 near 1, times 255, is off by up to 2^-15
_PIECE = 1 << 17  # values at a time: intermediate results stay in the cache of a core
ROUNDING = 16
"""Times the precision of the numbers, relative to what changes: a change of less than that is rounding."""


class GaussianNoise(Shift):
    """Adds normal noise to every pixel and channel.

    >>> images = torch.full((2, 1, 4, 4), 0.5)
    >>> GaussianNoise(severity=3)(images, ids=[10, 11], seed=0).shape
    torch.Size([2, 1, 4, 4])
    """

    name = "gaussian_noise"
    tables = knots(imagenet=(0, 0.08, 0.12, 0.18, 0.26, 0.38), cifar=(0, 0.04, 0.06, 0.08, 0.09, 0.10))

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """x + σ n."""
        (sigma,) = self.constants()
        return random.normal(images.shape[1:]).to(images).mul_(sigma).add_(images)

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels:
        """The same with deviates in 1/32 of a grey level."""
        from haptera.shifts.kernels.noise import add_normal

        (sigma,) = self.constants()
        levels = np.round(quantiles() * np.float32(32 * LEVELS * sigma)).clip(-32767, 32767).astype(np.int16)
        return _each_value(add_normal, pixels, random, levels)


class ShotNoise(Shift):
    """Counts photons: full brightness is c of them on average. The constant is 1 / c, the light of one photon."""

    name = "shot_noise"
    tables = knots(
        imagenet=(0, 1 / 60, 1 / 25, 1 / 12, 1 / 5, 1 / 3), cifar=(0, 1 / 500, 1 / 250, 1 / 100, 1 / 75, 1 / 50)
    )

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """Poisson(x c) / c."""
        (photon,) = self.constants()
        if photon * NOISELESS <= 1:
            return images.clone()
        return poisson_counts(images, 1 / photon, random).mul_(photon)

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels | None:
        """The same tables; a grey level is an entry of its own, and so is what a count shows."""
        from haptera.shifts.kernels.noise import count_photons

        (photon,) = self.constants()
        if photon * TABLE_LIMIT < 1:
            return None
        table, lowest = (part.numpy() for part in alias_table(1 / photon))
        counts = np.arange(int(lowest.max()) + len(table) // (LEVELS + 1) + 1)
        shown = np.rint(np.minimum(counts * photon, 1) * LEVELS).astype(np.uint8)
        return _each_value(count_photons, pixels, random, table, lowest, shown)


class ImpulseNoise(Shift):
    """Replaces a share of all values, of every channel by itself: half of them by 1, half by 0."""

    name = "impulse_noise"
    tables = knots(imagenet=(0, 0.03, 0.06, 0.09, 0.17, 0.27), cifar=(0, 0.01, 0.02, 0.03, 0.05, 0.07))

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """Deviates in the outer shares of [−1, 1) push a value far out of range, and the base clamps it."""
        (amount,) = self.constants()
        deviates = random.uniform(images.shape[1:]).mul_(2).sub_(1)
        pushes = torch.nn.functional.hardshrink(deviates, 1 - amount)  # 0 inside; outside at least 0.73 in size
        return torch.add(images, pushes.to(images), alpha=4)

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels:
        """The same deviates, compared as whole numbers of 24 bits."""
        from haptera.shifts.kernels.noise import add_impulses

        (amount,) = self.constants()
        edge, half = float(np.float32(1 - amount)), 2 ** (_BITS - 1)
        return _each_value(add_impulses, pixels, random, ceil((1 - edge) * half), floor((1 + edge) * half))


class SpeckleNoise(Shift):
    """Adds normal noise in proportion to the value it falls on."""

    name = "speckle_noise"
    tables = knots(imagenet=(0, 0.15, 0.2, 0.35, 0.45, 0.6), cifar=(0, 0.06, 0.1, 0.12, 0.16, 0.2))

    def apply(self, images: torch.Tensor, random: SampleRandom) -> torch.Tensor:
        """x + x σ n."""
        (sigma,) = self.constants()
        return torch.addcmul(images, images, random.normal(images.shape[1:]).to(images), value=sigma)

    def apply_bytes(self, pixels: Pixels, random: SampleRandom) -> Pixels:
        """x (1 + σ n)."""
        from haptera.shifts.kernels.noise import scale_normal

        (sigma,) = self.constants()
        factors = 1 + np.float32(sigma) * quantiles()
        return _each_value(scale_normal, pixels, random, factors)


def _each_value(kernel: Callable[..., None], pixels: Pixels, random: SampleRandom, *numbers: object) -> Pixels:
    """Run a kernel that gives every value a random number of its own."""
    source = pixels.array.reshape(len(pixels.array), -1)
    out = np.empty_like(source)
    kernel(source, out, pixels.step, random.states(), *numbers)
    return pixels.like(out)


def sphere_noise(images: torch.Tensor, radius: float, ids: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """η for each of `(batch, ...)` images, of norm `radius`; given by the seed and the sample's id alone."""
    random = SampleRandom(ids, seed, salt=crc32(b"sphere_noise"))
    noise = random.normal(images.shape[1:]).to(images.device, torch.promote_types(images.dtype, torch.float32))
    norms = noise.flatten(1).double().norm(dim=1).to(noise.dtype)
    return (noise * (radius / norms).reshape(-1, *[1] * (images.ndim - 1))).to(images.dtype)


def squared_changes(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """`(batch,)`, ‖after − before‖² of `(batch, ...)`, in double precision; 0 where it is rounding and nothing else.

    >>> one = torch.ones(1, 3)
    >>> squared_changes(one, one + 1e-6).tolist(), squared_changes(one, one + 0.5).tolist()
    ([0.0], [0.75])
    """
    squares = (after - before).flatten(1).square().sum(1, dtype=torch.float64)
    norms = before.flatten(1).square().sum(1, dtype=torch.float64)
    precision = torch.finfo(before.dtype).eps
    return torch.where(squares > (ROUNDING * precision) ** 2 * norms, squares, 0.0)


def poisson_counts(images: torch.Tensor, peak: float, random: SampleRandom) -> torch.Tensor:
    """Map `(batch, ...)` in [0, 1] to counts of mean `images * peak`, float32 (float64 above `TABLE_LIMIT`).

    >>> poisson_counts(torch.tensor([[0.0, 1.0]]), peak=2.0, random=SampleRandom([5])).shape
    torch.Size([1, 2])
    """
    if peak > TABLE_LIMIT:
        return _counts_by_numpy(images, peak, random)
    table, lowest = (part.to(images.device) for part in alias_table(peak))
    values = images.reshape(-1)
    counts = torch.empty(values.shape, device=images.device)
    first = random.uniform(images.shape[1:]).to(images.device).reshape(-1)
    second = None
    for start in range(0, len(values), _PIECE):
        piece = slice(start, start + _PIECE)
        scaled = values[piece].float() * LEVELS
        levels = (scaled + _SNAP).int()
        rests = torch.nn.functional.hardshrink(scaled.sub_(levels), _SNAP)
        counts[piece] = _look_up(levels, first[piece], table, lowest)
        if rests.max() > 0:
            if second is None:  # only now, and always for the whole batch: the numbers do not depend on the pieces
                second = random.uniform(images.shape[1:]).to(images.device).reshape(-1)
            _add_inverted(counts[piece], rests.mul_(peak / LEVELS), second[piece])
    return counts.reshape(images.shape)


def _look_up(levels: torch.Tensor, uniform: torch.Tensor, table: torch.Tensor, lowest: torch.Tensor) -> torch.Tensor:
    """Counts at grey levels: the high bits of a deviate choose a bin, the low ones the bin or its alias."""
    bins = len(table) // (LEVELS + 1)
    shift = _BITS - (bins.bit_length() - 1)
    mask = (1 << shift) - 1
    words = (uniform * 2.0**_BITS).int()
    own = words >> shift
    entries = table.index_select(0, torch.add(own, levels, alpha=bins))
    counts = entries >> shift
    keeps = (words & mask).sub_(entries & mask).bitwise_right_shift_(31)  # all ones below the threshold, else 0
    counts.add_(own.sub_(counts).bitwise_and_(keeps))  # torch.where, at a third of its time
    return counts.add_(lowest.index_select(0, levels)) if lowest.any() else counts


@lru_cache(maxsize=32)
def alias_table(peak: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Walker's tables of Poisson(k peak / LEVELS) for every grey level k.

    Returns:
        `(levels * bins,)` int32, the alias in the high bits and the threshold in the low ones, of 24 together, and
        `(levels,)` int32, the count that bin 0 stands for.
    """
    means = np.arange(LEVELS + 1)[:, None] * (peak / LEVELS)
    tail = 2.0 ** -(_BITS + 2)
    lowest = np.maximum(poisson.ppf(tail, means), 0)  # of a mean of 0, scipy says -1
    spread = int((poisson.isf(tail, means) - lowest).max()) + 1
    bins = 1 << max(spread - 1, 1).bit_length()
    capacity = (1 << _BITS) // bins
    shares = _whole_shares(np.asarray(poisson.pmf(lowest + np.arange(bins), means)))
    aliases = np.broadcast_to(np.arange(bins), shares.shape).copy()
    thresholds = np.zeros_like(shares)
    rows = np.arange(LEVELS + 1)
    open_bins = np.ones(shares.shape, bool)
    # The poorest bin is filled up by the richest and closed; all levels in step. At the end every bin is exactly full.
    for _ in range(bins):
        poorest = np.where(open_bins, shares, 1 << (_BITS + 1)).argmin(1)
        richest = np.where(open_bins, shares, -1).argmax(1)
        missing = capacity - shares[rows, poorest]
        needy = missing > 0
        aliases[rows[needy], poorest[needy]] = richest[needy]
        thresholds[rows[needy], poorest[needy]] = shares[rows[needy], poorest[needy]]
        shares[rows, richest] -= missing
        open_bins[rows, poorest] = False
    entries = aliases * capacity + thresholds
    return torch.from_numpy(entries.astype(np.int32).ravel()), torch.from_numpy(lowest.astype(np.int32).ravel())


def _whole_shares(probabilities: np.ndarray) -> np.ndarray:
    """Rows of probabilities as whole numbers that sum to 2^24, by largest remainder."""
    wanted = probabilities / probabilities.sum(1, keepdims=True) * (1 << _BITS)
    shares = np.floor(wanted).astype(np.int64)
    missing = (1 << _BITS) - shares.sum(1, keepdims=True)
    rank = (wanted - shares).argsort(1)[:, ::-1].argsort(1)
    return shares + (rank < missing)


def _add_inverted(counts: torch.Tensor, means: torch.Tensor, uniform: torch.Tensor) -> None:
    """Adds counts of small means: the number of terms of the distribution function that a deviate has passed."""
    where = (uniform >= torch.exp(-means)).nonzero().squeeze(1)
    mean, deviate = means[where].double(), uniform[where].double()
    term = torch.exp(-mean)
    passed, order = term.clone(), 0
    while len(where):
        order += 1
        counts[where] += 1
        term = term * mean / order
        passed = passed + term
        going = deviate >= passed
        where, mean, deviate, term, passed = (part[going] for part in (where, mean, deviate, term, passed))


def _counts_by_numpy(images: torch.Tensor, peak: float, random: SampleRandom) -> torch.Tensor:
    """Draw counts one by one, for severities near 0, which are rare."""
    means = (images.double() * peak).cpu().numpy()
    counts = [one.poisson(mean) for one, mean in zip(random.generators(), means, strict=True)]
    return torch.from_numpy(np.stack(counts)).to(images.device, torch.float64)
