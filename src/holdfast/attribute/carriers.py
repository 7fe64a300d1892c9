"""Carriers: which channels of a recording carry what an embedding was fitted to, with a test.

The estimator is fitted anew to the recording with decoys beside its channels: copies of every channel, shifted in time
by a random amount (by time alone, in a random order), so that they keep their statistics and lose what they say. A
channel that carries nothing is like its decoys to the encoder; one that carries something is attributed more than they
are. Its value is its attribution over the mean of its own decoys. The same of every decoy, over the other decoys of its
channel, is the null; p-values are those of a permutation test, corrected for the number of channels (Benjamini and
Hochberg, 1995).

The source has no such test: chapter 8 compares with known maps. The statistic is its map (G.2), summed over latents,
of inputs in units of their standard deviation. Of an inverted Jacobian, latents are the principal axes of the
embedding in units of their standard deviations too: an embedding often has a dimension that hardly moves, and how the
inputs would change with it is anybody's guess. Plain sums of |J⁺|, tried first, did not tell tuned cells from others.
Cost: a fit of `1 + copies` times the channels, `fits` times.
"""

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from scipy.stats import false_discovery_control
from sklearn.base import clone
from torch import nn

from holdfast.attribute.attribution import attribution_map
from holdfast.embed.encoder import encode_windows
from holdfast.errors import HoldfastError
from holdfast.progress import Progress

if TYPE_CHECKING:
    from holdfast.embed.estimator import ContrastiveEmbedding

log = logging.getLogger("holdfast")

IDLE = 1e-4
"""Axes with less than this share of the largest variance are left out."""


@dataclass(frozen=True, eq=False)
class Carriers:
    """What the test found.

    Attributes:
        table: a row for each channel: `channel`, `value` (its attribution over the mean of its decoys, about 1 for one
            that carries nothing), `low` and `high` over fits, `p`, `q` (p corrected for the number of channels),
            `carries`.
        null: the same values of all decoys.
        level: the rate of false discoveries.
        fits: how many.
    """

    table: pd.DataFrame
    null: np.ndarray
    level: float
    fits: int

    @property
    def channels(self) -> list[int]:
        """Those that carry something."""
        return [int(one) for one in self.table.loc[self.table["carries"], "channel"]]


def carriers(
    model: "ContrastiveEmbedding",
    signal: np.ndarray,
    *labels: np.ndarray,
    trials: np.ndarray | None = None,
    dimensions: "list[int] | None" = None,
    method: str = "inverted_jacobian",
    fits: int = 5,
    copies: int = 4,
    level: float = 0.05,
    seed: int = 0,
    progress: bool | None = False,
) -> Carriers:
    """Test every channel of a recording.

    Args:
        model: the settings of the fits; it is not changed and need not be fitted.
        signal: `(samples, channels)`.
        *labels: as in `fit`; none is by time.
        trials: as in `fit`.
        dimensions: of the embedding that the attribution is summed over, such as those of the label; all by default.
        method: of `attribute`.
        fits: how many; their values are averaged.
        copies: decoys of each channel.
        level: the rate of false discoveries among the channels that are named.
        seed: of the decoys and the fits.
        progress: show a bar; None does on a terminal.
    """
    if min(fits, copies) < 1 or fits * copies < 2:
        raise HoldfastError(f"fits is {fits}, copies {copies}; at least 1 each, and 2 decoys of a channel, expected")
    if not 0 < level < 1:
        raise HoldfastError(f"level is {level}; a rate between 0 and 1 was expected")
    signal = np.asarray(signal, np.float32)
    channels = signal.shape[1]
    real, decoys = np.empty((fits, channels)), np.empty((fits, copies, channels))
    before = log.level
    with Progress("attribute", fits, progress, unit="fits") as bar:
        for fit in range(fits):
            generator = np.random.default_rng([seed, fit])
            together = np.hstack([signal, *(_decoys(signal, bool(labels), generator) for _ in range(copies))])
            fitted = clone(model).set_params(random_state=seed + fit)
            try:
                log.setLevel(max(before, logging.WARNING))
                fitted.fit(together, *labels, trials=trials)
            finally:
                log.setLevel(before)
            encoder = _Chosen(fitted, together, dimensions, spread=method == "inverted_jacobian")
            values = attribution_map(encoder, together, method, standardised=True, seed=seed + fit).sum(0)
            values /= values.mean()  # fits differ in the scale of their embedding
            real[fit], decoys[fit] = values[:channels], values[channels:].reshape(copies, channels)
            bar.advance(f"fit {fit + 1}")
    beside = decoys.reshape(-1, channels)
    real /= beside.mean(0)
    others = (beside.sum(0) - beside) / (len(beside) - 1)
    value, pooled = real.mean(0), (beside / others).ravel()
    p = (1 + (pooled[None] >= value[:, None]).sum(1)) / (1 + len(pooled))
    q = false_discovery_control(p)
    table = pd.DataFrame(
        {
            "channel": np.arange(channels),
            "value": value,
            "low": real.min(0),
            "high": real.max(0),
            "p": p,
            "q": q,
            "carries": q <= level,
        }
    )
    return Carriers(table, pooled, level, fits)


class _Chosen(nn.Module):
    """Some dimensions of an encoder, as they are or along principal axes in units of their spread."""

    def __init__(
        self, fitted: "ContrastiveEmbedding", signal: np.ndarray, dimensions: "list[int] | None", spread: bool
    ) -> None:
        super().__init__()
        self.offset, self._encoder = fitted.offset_, fitted.encoders_[0]
        points = fitted.transform(signal)
        chosen = np.eye(points.shape[1])[:, slice(None) if dimensions is None else dimensions]
        if spread:
            centred = (points - points.mean(0)) @ chosen
            values, axes = np.linalg.eigh(centred.T @ centred / len(points))
            moves = values > IDLE * values[-1]
            chosen = chosen @ (axes[:, moves] / np.sqrt(values[moves]))
        self._axes = torch.from_numpy(chosen.astype(np.float32))

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        points = encode_windows(self._encoder, windows)
        return points @ self._axes.to(points.device)


def _decoys(signal: np.ndarray, by_label: bool, generator: np.random.Generator) -> np.ndarray:
    """Each channel shifted by an amount of its own, at least a tenth of the recording; by time alone, shuffled."""
    if not by_label:  # a shifted channel still tells what is close in time
        return np.column_stack([generator.permutation(channel) for channel in signal.T])
    least = max(len(signal) // 10, 1)
    most = max(len(signal) - least, least + 1)
    return np.column_stack([np.roll(channel, int(generator.integers(least, most))) for channel in signal.T])
