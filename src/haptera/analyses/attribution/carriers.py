"""Carriers: which channels of a recording carry what an embedding was fitted to, as a map and with a test.

The estimator is fitted anew to the recording with decoys beside its channels: copies of every channel, shifted in time
by a random amount (by time alone, in a random order), so that they keep their statistics and lose what they say. A
channel that carries nothing is like its decoys to the encoder; one that carries something is attributed more than they
are. All fits see the same decoys, so that channels and decoys alike are averaged over fits, and whatever a channel has
to do with the label by chance, a decoy can have too. The value of a channel is its attribution over the mean of its
decoys but the last; the value of a decoy is the same over the other decoys of its channel, as many. The values of all
decoys are the null; p-values are those of a permutation test, corrected for the number of channels (Benjamini and
Hochberg, 1995).

The source has no such test: chapter 8 compares with known maps. The statistic is its map (G.2), summed over latents,
of inputs in units of their standard deviation. The Jacobian is inverted with all of its rows, and those of the label
are looked at then, where it has dimensions of its own (8.4). Of an inverted Jacobian, latents are the principal axes of
the embedding in units of their standard deviations too: an embedding often has a dimension that hardly moves, and how
the inputs would change with it is anybody's guess. Plain sums of |J⁺|, tried first, did not tell tuned cells from
others. A label's own dimensions stay what they are, as the text's do, but for their units: they are whitened by the
symmetric root.
Where time shapes the embedding beside a label, decoys have a structure in time of their own, and the encoder finds room
for it at the cost of the latents: of six, two decoys beside every channel left an R² of .51, none .95. The map is then
of fits that see no decoys, or of a model that is there already.
Fits differ in the orientation of their embedding; before their maps are averaged, each is turned towards the first.
Cost: a fit of `1 + copies` times the channels, `fits` times, and fits of the channels alone where time is learnt from.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from scipy.stats import false_discovery_control
from sklearn.base import clone
from torch import nn

from haptera.analyses.attribution import DecoyTest
from haptera.analyses.attribution.assumptions import Assumptions, check_assumptions
from haptera.analyses.attribution.maps import attribution_map
from haptera.analyses.embedding.alignment import procrustes
from haptera.contrastive.encoder import encode_windows
from haptera.contrastive.model_file import known_settings, own_settings
from haptera.contrastive.parts import learns_from_time
from haptera.errors import HapteraError
from haptera.files.fingerprint import SCHEMA, fingerprint
from haptera.run.ledger import Piece
from haptera.run.tasks import Task, finish

if TYPE_CHECKING:
    from haptera.contrastive.estimator import ContrastiveEmbedding

log = logging.getLogger("haptera")

TEST, ALONE, GIVEN = "test", "channels alone", "given model"
"""Whose map is shown: that of the fits with decoys, of fits without them, or of a model that was fitted before."""
IDLE = 1e-4
"""Axes with less than this share of the largest variance are left out."""


@dataclass(frozen=True, eq=False)
class Carriers:
    """The map and the test.

    Attributes:
        table: a row for each channel: `channel`, `value` (its attribution over the mean of its decoys, about 1 for one
            that carries nothing), `low` and `high` over fits, `p`, `q` (p corrected for the number of channels),
            `carries`; without a test, `channel` alone.
        map: `(latents, channels)`, the mean over fits; of those of the test, its sums over latents are tested.
        map_of: whose map it is: `TEST`, `ALONE` or `GIVEN`.
        null: the values of all decoys.
        level: the rate of false discoveries.
        fits: how many; 0 if there was no test.
        assumptions: what could be seen of the premises of theorem 2 in the first fit.
    """

    table: pd.DataFrame
    map: np.ndarray
    null: np.ndarray
    level: float
    fits: int
    assumptions: Assumptions
    map_of: str = TEST

    @property
    def channels(self) -> list[int]:
        """Return those that carry something."""
        return [int(one) for one in self.table.loc[self.table["carries"], "channel"]] if self.fits else []

    @property
    def least(self) -> int:
        """Return how many channels at least must stand out for the test to name them, with so many decoys."""
        return math.ceil(len(self.table) / (self.level * (1 + len(self.null))) - 1e-9)


class DecoyFit(Task["ContrastiveEmbedding"]):
    """A fit to the channels of a recording, with decoys or without, to be made with the settings of a model."""

    def __init__(
        self,
        model: "ContrastiveEmbedding",
        together: np.ndarray,
        labels: Sequence[np.ndarray],
        trials: np.ndarray | None,
        name: str,
    ) -> None:
        self.model, self.together, self.labels, self.trials = model, together, labels, trials
        settings = known_settings(model.get_params(deep=False))
        key = fingerprint(SCHEMA, "fit beside decoys", settings, together, list(labels), trials)
        self.piece = Piece(key, f"fits/{name.replace(' ', '-')}-{key[:8]}.safetensors", f"fit {name}")

    def make(self) -> "ContrastiveEmbedding":
        """Fit the estimator."""
        before = log.level
        try:
            log.setLevel(max(before, logging.WARNING))
            return self.model.fit(self.together, *self.labels, trials=self.trials)
        finally:
            log.setLevel(before)

    def write(self, result: "ContrastiveEmbedding", path: Path) -> None:
        """Write the model."""
        result.save(path)

    def read(self, path: Path) -> "ContrastiveEmbedding":
        """Read it again; what a user wrote is taken from the settings."""
        return type(self.model).load(path, **own_settings(self.model.get_params(deep=False)))


def carriers(
    model: "ContrastiveEmbedding",
    signal: np.ndarray,
    *labels: np.ndarray,
    trials: np.ndarray | None = None,
    dimensions: "list[int] | None" = None,
    test: DecoyTest | None = None,
    fitted: "ContrastiveEmbedding | None" = None,
    out: Path | str | None = None,
    progress: bool | None = False,
) -> Carriers:
    """Test every channel of a recording.

    Args:
        model: the settings of the fits; it is not changed and need not be fitted.
        signal: `(samples, channels)`.
        *labels: as in `fit`; none is by time.
        trials: as in `fit`.
        dimensions: of the embedding that the attribution is summed over, such as those of the label; all by default.
        test: how many fits and decoys, and by which method.
        fitted: a model of these channels with these settings, whose map is shown where time is learnt from, and where
            there is no test.
        out: a folder for the fits, which are not made again.
        progress: show a bar; None does on a terminal.
    """
    test = test or DecoyTest()
    signal = np.asarray(signal, np.float32)
    if not test.fits:
        if fitted is None:
            raise HapteraError("fits is 0, and no model with this Jacobian term is there to map; fit one, or make fits")
        seen = check_assumptions(fitted, signal, *labels, trials=trials)
        table, found = pd.DataFrame({"channel": np.arange(signal.shape[1])}), _maps([fitted], signal, dimensions, test)
        return Carriers(table, found[0], np.empty(0), test.level, 0, seen, GIVEN)
    generator = np.random.default_rng(test.seed)
    together = np.hstack([signal, *(_decoys(signal, bool(labels), generator) for _ in range(test.copies))])
    of = ALONE if labels and learns_from_time(model.hybrid) else TEST
    of = GIVEN if of == ALONE and fitted is not None else of

    def task(inputs: np.ndarray, fit: int, name: str) -> DecoyFit:
        return DecoyFit(clone(model).set_params(random_state=test.seed + fit), inputs, labels, trials, name)

    tasks = [task(together, fit, str(fit + 1)) for fit in range(test.fits)]
    tasks += [task(signal, fit, f"{fit + 1} alone") for fit in range(test.fits) if of == ALONE]
    done = finish(tasks, out, "attribution", progress=progress).finished
    maps = _maps(done[: test.fits], together, dimensions, test)
    shown, first, inputs = maps[..., : signal.shape[1]], done[0], together
    if of != TEST:
        alone = done[test.fits :] if fitted is None else [fitted]
        shown, first, inputs = _maps(alone, signal, dimensions, test), alone[0], signal
    table, null = compare_with_decoys(maps.sum(1).reshape(test.fits, 1 + test.copies, -1), test.level)
    seen = check_assumptions(first, inputs, *labels, trials=trials)
    return Carriers(table, shown.mean(0), null, test.level, test.fits, seen, of)


def _maps(
    fitted: "Sequence[ContrastiveEmbedding]", signal: np.ndarray, dimensions: "list[int] | None", test: DecoyTest
) -> np.ndarray:
    """Return the map of every fit, `(fits, latents, channels)`, each with a mean of 1: their scales differ."""
    aligned = _align(fitted, signal, dimensions, inverted=test.method == "inverted_jacobian")
    maps = [
        attribution_map(one, signal, test.method, standardised=True, seed=test.seed + fit)[: one.tested]
        for fit, one in enumerate(aligned)
    ]
    return np.stack([one / one.mean() for one in maps])


def compare_with_decoys(attributions: np.ndarray, level: float = 0.05) -> tuple[pd.DataFrame, np.ndarray]:
    """Compare each channel with the decoys of all channels.

    Args:
        attributions: `(fits, 1 + decoys, channels)`, each channel before its decoys, the same in all fits.
        level: the rate of false discoveries among the channels that are named.

    Returns:
        The table of `Carriers`, and the null.
    """
    mean = attributions.mean(0)
    decoys = mean[1:]
    value = mean[0] / decoys[:-1].mean(0)
    null = (decoys * (len(decoys) - 1) / (decoys.sum(0) - decoys)).ravel()
    p = (1 + (null[None] >= value[:, None]).sum(1)) / (1 + len(null))
    q = false_discovery_control(p)
    each = attributions[:, 0] / attributions[:, 1:-1].mean(1)
    columns = {"channel": np.arange(len(value)), "value": value, "low": each.min(0), "high": each.max(0)}
    return pd.DataFrame(columns | {"p": p, "q": q, "carries": q <= level}), null


class _TurnedEncoder(nn.Module):
    """An encoder of windows, followed by a linear map of its outputs, of which the first `tested` are looked at."""

    def __init__(self, fitted: "ContrastiveEmbedding", axes: np.ndarray, tested: int) -> None:
        super().__init__()
        self.offset, self.tested, self._encoder = fitted.offset_, tested, fitted.encoders_[0]
        self._axes = torch.from_numpy(axes.astype(np.float32))

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        points = encode_windows(self._encoder, windows)
        return points @ self._axes.to(points.device)


def _align(
    fitted: "Sequence[ContrastiveEmbedding]", signal: np.ndarray, dimensions: "list[int] | None", inverted: bool
) -> list[_TurnedEncoder]:
    """Return encoders of some dimensions, turned to the first.

    To be inverted, their axes are principal ones in units of their spread, or the chosen dimensions themselves in such
    units, and all other dimensions follow them: the inverse of a few rows of a Jacobian is not those of its inverse
    (8.4).
    """
    embeddings = [one.transform(signal) for one in fitted]
    centred = [points - points.mean(0) for points in embeddings]
    every = np.eye(embeddings[0].shape[1])
    chosen = every[:, slice(None) if dimensions is None else dimensions]
    others = every[:, [] if dimensions is None else np.setdiff1d(np.arange(len(every)), dimensions)]
    axes = [_principal(points, chosen, own=dimensions is not None) if inverted else chosen for points in centred]
    tested = min(one.shape[1] for one in axes)
    axes = [one[:, :tested] for one in axes]
    target = centred[0] @ axes[0]
    turned = [one @ procrustes(points @ one, target).rotation for one, points in zip(axes, centred, strict=True)]
    if inverted:
        turned = [np.hstack([one, _principal(at, others)]) for one, at in zip(turned, centred, strict=True)]
    return [_TurnedEncoder(one, turn, tested) for one, turn in zip(fitted, turned, strict=True)]


def _principal(centred: np.ndarray, of: np.ndarray, own: bool = False) -> np.ndarray:
    """Return principal axes of some dimensions, columns in units of their spread, widest first, but those that idle.

    With `own` and where none idles, they are turned back to the dimensions (the symmetric root).
    """
    if not of.shape[1]:
        return of
    points = centred @ of
    values, axes = np.linalg.eigh(points.T @ points / len(points))
    moves = values > IDLE * values[-1]
    scaled = axes[:, moves] / np.sqrt(values[moves])
    return np.asarray(of @ (scaled @ axes.T if own and moves.all() else scaled[:, ::-1]))


def _decoys(signal: np.ndarray, by_label: bool, generator: np.random.Generator) -> np.ndarray:
    """Shift each channel by an amount of its own, at least a tenth of the recording; by time alone, shuffle it."""
    if not by_label:  # a shifted channel still tells what is close in time
        return np.column_stack([generator.permutation(channel) for channel in signal.T])
    least = max(len(signal) // 10, 1)
    most = max(len(signal) - least, least + 1)
    return np.column_stack([np.roll(channel, int(generator.integers(least, most))) for channel in signal.T])
