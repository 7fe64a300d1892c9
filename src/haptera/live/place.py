"""Place: how large the shift in a window is, where in the network, and which known corruption it is like.

The size of a layer is that of `haptera.adapters.watch`: distance of mean and deviation from those of the reference, in
units of the reference's deviation, less what chance adds for so many images; here from five moving sums for each
channel, whose weights fall by half every third of a window, so that memory is flat and a step costs what its images do.
Layers behind weights that an adapter changes show what adaptation left of a shift; the first layer shows the shift.
Without a profile, the statistics that BatchNorm layers keep are the reference: those of training images, with their
augmentation and in the last epochs of training, so that ordinary images have a size as well; what changes is a shift.
Likeness is the cosine between changes of statistics (`haptera.analyses.diagnosis.known_shifts`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from haptera.checks import check_whole_number
from haptera.errors import HapteraError
from haptera.live.profile import Profile
from haptera.statistics.moments import scale

_SUMS = ("m", "s", "mm", "ss", "ms")
"""Mean, mean square, and their products."""


@dataclass(frozen=True)
class Place:
    """Where a shift is.

    Attributes:
        size: of the shift, corrected for the number of images; NaN with fewer than two.
        where: the layer at which it is largest; "" where nothing is known.
        layers: layer -> size.
        nearest: the known corruption whose change of statistics is most alike, such as `fog`; "" where none is known.
        cosine: how alike; NaN where none is known.
    """

    size: float
    where: str
    layers: Mapping[str, float]
    nearest: str
    cosine: float


UNKNOWN = Place(float("nan"), "", {}, "", float("nan"))


@dataclass(frozen=True)
class LayerStatistics:
    """Mean and variance of every channel at some layers, one after the other: what a window is compared with.

    Attributes:
        names: of the layers.
        channels: of each.
        mean: `(channels of all,)`.
        var: the same.
    """

    names: tuple[str, ...]
    channels: tuple[int, ...]
    mean: np.ndarray
    var: np.ndarray

    @classmethod
    def of_profile(cls, profile: Profile) -> "LayerStatistics | None":
        """Return those of reference images; None for a model without BatchNorm layers."""
        moments = profile.moments
        return None if moments is None else cls(tuple(moments.names), tuple(moments.channels), *moments.pool())

    @classmethod
    def of_network(cls, model: nn.Module, names: Collection[str] | None = None) -> "LayerStatistics | None":
        """Return those that BatchNorm layers keep, which are of training images; None where none keeps any.

        Args:
            model: the network.
            names: of the layers that count; all if left out.
        """
        kept = {
            name: (layer.running_mean, layer.running_var)
            for name, layer in model.named_modules()
            if isinstance(layer, _BatchNorm) and (names is None or name in names)
        }
        known = {
            name: tuple(each.detach().double().cpu().numpy().copy() for each in both if each is not None)
            for name, both in kept.items()
        }
        known = {name: both for name, both in known.items() if len(both) == 2 and all(map(_finite, both))}
        if not known:
            return None
        mean, var = (np.concatenate(values) for values in zip(*known.values(), strict=True))
        return cls(tuple(known), tuple(len(both[0]) for both in known.values()), mean, var)


class ShiftWindow:
    """The moments of the last images, compared with those of a reference.

    Args:
        reference: a profile, whose known corruptions give a shift its name, or statistics of layers alone; without
            BatchNorm layers nothing is known.
        window: images.
    """

    def __init__(self, reference: Profile | LayerStatistics, window: int = 256) -> None:
        check_whole_number("window", window, 2, what="a number of images")
        profile = reference if isinstance(reference, Profile) else None
        own = LayerStatistics.of_profile(reference) if isinstance(reference, Profile) else reference
        self.window, self._changes = window, np.zeros((0, 0))
        self._names = () if own is None else own.names
        channels = 0 if own is None else sum(own.channels)
        self._sums, self._weights = np.zeros((len(_SUMS), channels)), np.zeros(2)
        if own is None:
            return
        self._channels, self._mean, self._var = own.channels, own.mean, own.var
        self._starts = np.cumsum([0, *self._channels[:-1]])
        self._divisor = np.concatenate([scale(part) for part in np.split(self._var, self._starts[1:])])
        self._live = np.isfinite(self._divisor)
        self._alive = np.add.reduceat(self._live.astype(float), self._starts)
        self._unit = np.repeat(1 / np.sqrt(self._channels), self._channels) / np.sqrt(self._divisor)
        if profile is None:
            return
        self._known = profile.known.frame
        if profile.known.changes.shape[1:] == (2 * channels,) and len(self._known) == len(profile.known.changes):
            norms = np.linalg.norm(profile.known.changes, axis=1, keepdims=True)
            self._changes = profile.known.changes / np.maximum(norms, 1e-30)

    def update(self, moments: Mapping[str, np.ndarray]) -> None:
        """Add some images: layer -> `(images, 2, channels)`, as `Signals.take_moments` returns."""
        if not self._names:
            return
        for name, channels in zip(self._names, self._channels, strict=True):
            found = moments[name].shape if name in moments else "nothing"
            if name not in moments or moments[name].shape[1:] != (2, channels):
                raise HapteraError(f"moments of layer {name} are {found}; (images, 2, {channels}) was expected")
        mean, second = (np.concatenate([moments[name][:, k] for name in self._names], 1, dtype=float) for k in (0, 1))
        count, keep = len(mean), 0.5 ** (3 / self.window)
        weights = keep ** np.arange(count - 1, -1, -1)
        parts = (mean, second, mean**2, second**2, mean * second)
        if not count or not np.isfinite(mean).all() or not np.isfinite(second).all():
            return  # a batch that says nothing
        self._sums *= keep**count
        self._sums += np.stack([weights @ part for part in parts])
        self._weights *= np.array([keep, keep**2]) ** count
        self._weights += [weights.sum(), np.square(weights).sum()]

    def begin(self) -> None:
        """Forget all images, since what comes now is other data."""
        self._sums[...], self._weights[...] = 0.0, 0.0

    def place(self) -> Place:
        """Compare the window with the reference."""
        if not self._names or self._weights[0] ** 2 < 2 * self._weights[1] * (1 - 1e-9) or not self._weights[0]:
            return UNKNOWN
        n = self._weights[0] ** 2 / self._weights[1]  # images of the same weight that know as much
        m, s, mm, ss, ms = self._sums / self._weights[0]
        more = n / (n - 1)
        noise = np.maximum(mm - m**2, 0.0) * more / n
        own_var = np.maximum(s - m**2, 0.0) + noise
        of_var = np.maximum(ss - s**2 - 4 * m * (ms - m * s) + 4 * m**2 * (mm - m**2), 0.0) * more / n
        root = np.sqrt(own_var) * (1 + np.minimum(of_var / np.maximum(own_var**2, 1e-30), 1) / 8)
        squares = (m - self._mean) ** 2 - noise + own_var + self._var - 2 * np.sqrt(self._var) * root
        sums = np.add.reduceat(np.where(self._live, squares / self._divisor, 0.0), self._starts)
        known = self._alive > 0
        values = np.full(len(self._names), np.nan)
        values[known] = sums[known] / self._alive[known]
        sizes = np.sign(values) * np.sqrt(np.abs(values))
        if not known.any():
            return UNKNOWN
        change = np.concatenate([(m - self._mean) * self._unit, (np.sqrt(own_var) - np.sqrt(self._var)) * self._unit])
        where = self._names[int(np.nanargmax(sizes))]
        layers = dict(zip(self._names, sizes.tolist(), strict=True))
        return Place(float(np.nanmean(sizes)), where, layers, *self._likeness(change))

    def state(self) -> dict[str, Any]:
        """Return everything that changes, as plain numbers and NumPy arrays."""
        return {"sums": self._sums.copy(), "weights": self._weights.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, to the same numbers."""
        for name, own in (("sums", self._sums), ("weights", self._weights)):
            values = np.asarray(state[name], float)
            if values.shape != own.shape:
                raise HapteraError(f"{name} of the state has shape {values.shape}; {own.shape} was expected")
            own[...] = values

    def _likeness(self, change: np.ndarray) -> tuple[str, float]:
        """Return the name of the known corruption that is most alike, and its cosine."""
        norm = float(np.linalg.norm(change))
        if not len(self._changes) or not norm:
            return "", float("nan")
        cosines = self._changes @ change / norm
        best = int(cosines.argmax())
        return str(self._known["shift"].iloc[best]), float(cosines[best])


def _finite(values: np.ndarray) -> bool:
    return bool(np.isfinite(values).all())
