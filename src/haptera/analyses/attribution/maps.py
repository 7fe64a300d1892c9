"""Which inputs carry which latents, for each sample and as one map.

    found = sample_attributions(model, signal)              # (samples, latents, channels, window)
    found.map()                                             # (latents, channels): Σ over samples and window of |value|
    found.connections(0.1)                                  # 1 where the map exceeds a tenth of its largest entry

Source: thesis chapter 8, (8.4), (G.1) and (G.2). The text sums over samples (G.2), or takes the maximum (G.1).
Of a convolutional encoder every sample is a window of the signal, its ends repeated as `transform` does; the map sums
over the window as well.
Where the true map is known, `map_scores` scores another against it, by the area under the ROC curve and by average
precision (tables 8.1 and 8.2, which score the latents of one part only, z2). Of several parts each is scored by itself,
since the scale of a latent is arbitrary.
Cost: see `methods`; samples go through in blocks, and `attribution_map` keeps none of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import nn

from haptera.analyses.attribution import METHODS, methods
from haptera.contrastive.encoder import encode_windows
from haptera.errors import HapteraError, unknown
from haptera.recordings.windows import Offset

if TYPE_CHECKING:
    from haptera.contrastive.estimator import ContrastiveEmbedding

BASELINES = ("zero", "shuffled", "mean")
BLOCK = 4096
"""Samples that go through the encoder at once."""


@dataclass(frozen=True, eq=False)
class MapSettings:
    """How outputs are attributed to inputs.

    Attributes:
        standardised: take every input in units of its standard deviation, so that inputs of any scale can be compared.
            An inverted Jacobian depends on such units, as a least-squares fit does.
        baseline: what a feature is replaced by, where a method needs it: `zero`, `shuffled` (that of another sample),
            `mean`, or values `(inputs,)`.
        steps: of integrated gradients.
        orders: of Shapley values, for each sample.
        session_id: which session the data is, of an estimator with several.
        seed: of shuffled baselines and drawn orders.
    """

    standardised: bool = False
    baseline: str | np.ndarray = "zero"
    steps: int = methods.STEPS
    orders: int = 10
    session_id: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.steps, self.orders) < 1:
            raise HapteraError(f"steps is {self.steps}, orders {self.orders}; at least 1 was expected")


@dataclass(frozen=True, eq=False)
class SampleAttributions:
    """What each input has to do with each latent, at each sample.

    Attributes:
        values: `(samples, latents, inputs)`, or with a window `(samples, latents, channels, length)`.
        method: by which it was found.
    """

    values: np.ndarray
    method: str

    def map(self, by: str = "sum") -> np.ndarray:
        """Return the map `(latents, inputs)` of absolute values, over samples by `sum` (G.2) or `max` (G.1)."""
        return _fold(self.values, by, None)

    def connections(self, share: float, by: str = "sum") -> np.ndarray:
        """Return where the map exceeds a share of its largest entry, `(latents, inputs)` of booleans."""
        found = self.map(by)
        return np.asarray(found > share * found.max())


def sample_attributions(
    encoder: "nn.Module | ContrastiveEmbedding", data: Any, method: str = "inverted_jacobian", **settings: Any
) -> SampleAttributions:
    """Attribute the outputs of an encoder to its inputs, at every sample.

    Args:
        encoder: a fitted `ContrastiveEmbedding`; a module from `(batch, inputs)` to `(batch, latents)`; or one with an
            `offset`, from windows `(batch, channels, length)`.
        data: `(samples, inputs)`.
        method: one of `METHODS`.
        **settings: those of `MapSettings`.
    """
    parts = list(_blocks(encoder, data, method, MapSettings(**settings)))
    return SampleAttributions(np.concatenate(parts), method)


def attribution_map(
    encoder: "nn.Module | ContrastiveEmbedding",
    data: Any,
    method: str = "inverted_jacobian",
    *,
    by: str = "sum",
    **settings: Any,
) -> np.ndarray:
    """Return `sample_attributions(...).map(by)` without keeping the samples, for data of any length."""
    found: np.ndarray | None = None
    for part in _blocks(encoder, data, method, MapSettings(**settings)):
        found = _fold(part, by, found)
    assert found is not None
    return found


def _fold(values: np.ndarray, by: str, before: np.ndarray | None) -> np.ndarray:
    if by not in ("sum", "max"):
        raise unknown("by", by, ("sum", "max"))
    size = np.abs(values)
    if size.ndim == 4:
        size = size.sum(3) if by == "sum" else size.max(3)
    if by == "sum":
        return np.asarray(size.sum(0, dtype=float) + (0.0 if before is None else before))
    return np.asarray(size.max(0) if before is None else np.maximum(size.max(0), before))


def _blocks(
    encoder: "nn.Module | ContrastiveEmbedding", data: Any, method: str, settings: MapSettings
) -> Iterator[np.ndarray]:
    """Yield the attributions of a block of samples after another."""
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    module = (
        encoder if isinstance(encoder, nn.Module) else encoder.encoders_[encoder.model_.session(settings.session_id)]
    )
    signal = _read_signal(data)
    offset = getattr(module, "offset", None)
    window = None if offset is None else offset if isinstance(offset, Offset) else Offset(*offset)
    device = next((parameter.device for parameter in module.parameters()), torch.device("cpu"))
    units = _units(signal) if settings.standardised else np.ones(signal.shape[1], np.float32)
    function = _Points(module, window, torch.from_numpy(units).to(device))
    read = _Windows(signal / units, window)
    other = _Windows(_baseline(signal, settings.baseline, settings.seed) / units, window)
    calls: dict[str, Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor]] = {
        "inverted_jacobian": lambda x, _, __: methods.inverted_jacobian(function, x),
        "gradient": lambda x, _, __: methods.jacobians(function, x),
        "integrated_gradients": lambda x, b, _: methods.integrated_gradients(function, x, b, settings.steps),
        "feature_ablation": lambda x, b, _: methods.feature_ablation(function, x, b),
        "shapley": lambda x, b, start: methods.shapley_sampling(function, x, b, settings.orders, settings.seed + start),
    }
    was_training = module.training
    module.eval()
    try:
        for start in range(0, len(signal), BLOCK):
            rows = np.arange(start, min(start + BLOCK, len(signal)))
            yield calls[method](read(rows).to(device), other(rows).to(device), start).cpu().numpy()
    finally:
        module.train(was_training)


class _Windows:
    """Samples as an encoder takes them: rows, or windows with the ends of the signal repeated."""

    def __init__(self, signal: np.ndarray, offset: Offset | None) -> None:
        self.offset = offset
        self._signal = signal if offset is None else offset.pad(signal)

    def __call__(self, rows: np.ndarray) -> torch.Tensor:
        if self.offset is None:
            return torch.from_numpy(self._signal[rows])
        windows = self._signal[rows[:, None] + np.arange(len(self.offset))]
        return torch.from_numpy(np.ascontiguousarray(windows.transpose(0, 2, 1)))


class _Points(nn.Module):
    """An encoder of inputs in some units, whose outputs are `(batch, latents)`."""

    def __init__(self, encoder: nn.Module, window: Offset | None, units: torch.Tensor) -> None:
        super().__init__()
        self._encoder, self._has_window = encoder, window is not None
        self._units = units if window is None else units[:, None]

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        inputs = inputs * self._units
        points = encode_windows(self._encoder, inputs) if self._has_window else self._encoder(inputs)
        if points.ndim != 2:
            raise HapteraError(
                f"the encoder maps {tuple(inputs.shape)} to {tuple(points.shape)}; (batch, latents) was expected"
            )
        return points


def _read_signal(data: Any) -> np.ndarray:
    signal = np.ascontiguousarray(data, dtype=np.float32)
    if signal.ndim != 2 or not len(signal):
        raise HapteraError(f"data has shape {signal.shape}; (samples, inputs) was expected")
    if not np.isfinite(signal).all():
        raise HapteraError(f"data has {int((~np.isfinite(signal)).sum())} values that are NaN or infinite")
    return signal


def _baseline(signal: np.ndarray, baseline: str | np.ndarray, seed: int) -> np.ndarray:
    if isinstance(baseline, str):
        if baseline not in BASELINES:
            raise unknown("baseline", baseline, BASELINES)
        if baseline == "shuffled":
            return signal[np.random.default_rng(seed).permutation(len(signal))]
        value = np.zeros(1, np.float32) if baseline == "zero" else signal.mean(0)
        return np.broadcast_to(value, signal.shape)
    values = np.asarray(baseline, np.float32)
    if values.shape not in ((signal.shape[1],), signal.shape):
        raise HapteraError(f"baseline has shape {values.shape}; ({signal.shape[1]},) was expected")
    return np.broadcast_to(values, signal.shape)


def _units(signal: np.ndarray) -> np.ndarray:
    """Return standard deviations; 1 for an input that never changes."""
    spread = signal.std(0, dtype=float)
    return np.where(spread > 0, spread, 1.0).astype(np.float32)


@dataclass(frozen=True)
class MapScores:
    """How well a map tells connected inputs from others.

    Attributes:
        auroc: the chance that a connected entry has the larger value; .5 for a map that knows nothing.
        average_precision: mean precision over the connected entries; `connected` for a map that knows nothing.
        connected: the share of entries that are connected.
        n: entries.
    """

    auroc: float
    average_precision: float
    connected: float
    n: int


def map_scores(found: np.ndarray, true: np.ndarray, latents: "slice | list[int] | None" = None) -> MapScores:
    """Score a map.

    Args:
        found: `(latents, inputs)`, larger where connected.
        true: the same shape, 1 or True where connected.
        latents: only these rows; all by default.

    >>> map_scores(np.array([[0.9, 0.2], [0.8, 0.4]]), np.array([[1, 0], [1, 1]])).auroc
    1.0
    """
    found, true = np.asarray(found, float), np.asarray(true, bool)
    if found.shape != true.shape:
        raise HapteraError(f"the maps have shapes {found.shape} and {true.shape}; the same was expected")
    chosen = slice(None) if latents is None else latents
    values, connected = found[chosen].ravel(), true[chosen].ravel()
    if connected.all() or not connected.any():
        what = "every entry" if connected.all() else "no entry"
        raise HapteraError(f"{what} of the known map is connected; there is nothing to tell apart")
    return MapScores(
        float(roc_auc_score(connected, values)),
        float(average_precision_score(connected, values)),
        float(connected.mean()),
        len(values),
    )
