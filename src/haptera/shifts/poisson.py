"""Poisson counts, one per value of an image: exact, repeatable per sample, and fast.

The idea: a sum of Poisson counts is a Poisson count. The mean λ = x c of a value x is cut at a grid of 256 grey levels,
λ = k c / 255 + rest. The first part is read from Walker's alias table of level k, one look-up for any λ; the rest,
nothing at all for an image of 8 bits, is counted by inversion, and hardly ever more than 0.

Exact up to the 24 bits of a uniform deviate: every probability of a table is the true one rounded to a multiple of
2^-24. A value within 2.4e-7 of a grey level counts as that level. Above `TABLE_LIMIT` photons at full brightness, where
tables would grow and the noise is faint, the counts come from numpy's own generator.
Source: A. J. Walker, An efficient method for generating discrete random variables with general distributions, 1977.
Cost: about 11 ns per value, twice that off the grid, and once per c a table of up to 256 KB, in 5 to 50 ms.
"""

from functools import lru_cache

import numpy as np
import torch
from scipy.stats import poisson

from haptera.shifts.random import SampleRandom

LEVELS = 255
TABLE_LIMIT = 512.0
NOISELESS = 2.0**50  # the noise of so many photons is below what a float32 can show
_BITS = 24
_SNAP = 2.0**-14  # of a grey level; a float32 near 1, times 255, is off by up to 2^-15
_PIECE = 1 << 17  # values at a time: intermediate results stay in the cache of a core


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
