"""Moments: mean and variance of every channel of every layer, over all images or over some, and which channels live.

A dead ReLU, or a filter that weight decay has emptied, leaves a channel whose variance is zero or rounding: divided by
it, any distance is infinite or noise. A channel is dead where its variance is below `DEAD` of what is typical of its
layer on every side that is compared; it is left out. Where one side varies and the other hardly does, as in a channel
that fires on one image of a thousand, the variance to divide by is at least `FLOOR` of the typical one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from haptera.errors import HapteraError

DEAD, FLOOR = 1e-4, 1e-2
"""Shares of the typical variance of a layer; 1e-4 is above what float32 leaves of a constant channel."""


@dataclass(frozen=True)
class Moments:
    """The moments of the activations of one model on some images.

    Attributes:
        names: of the layers, in the order of the model.
        channels: of each layer.
        first: `(groups, all channels)`, mean of each group of images.
        second: `(groups, all channels)`, mean square.
        images: `(groups,)`, how many are in each; None where the statistics are those of training.
        covariance: layer -> `(channels, channels)`, where it was asked for.
    """

    names: tuple[str, ...]
    channels: tuple[int, ...]
    first: np.ndarray
    second: np.ndarray
    images: np.ndarray | None
    covariance: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of_images(
        cls, layers: Mapping[str, np.ndarray], groups: int, covariance: Mapping[str, np.ndarray] | None = None
    ) -> Self:
        """Read `(images, 2, channels)` of each layer: mean and mean square of each image.

        Args:
            layers: name -> the values.
            groups: at most so many; each has the least power of two of images that allows this, the last one the rest.
            covariance: layer -> matrix.
        """
        sizes = {len(values) for values in layers.values()}
        if len(sizes) > 1:
            raise HapteraError(f"layers saw different numbers of images: {sorted(sizes)}; one is used more than once")
        (total,) = sizes
        size = 1
        while total > groups * size:
            size *= 2
        edges = np.arange(0, total, size)
        counts = np.diff(np.append(edges, total))
        stacked = [
            np.add.reduceat(values.astype(np.float64), edges, axis=0) / counts[:, None, None]
            for values in layers.values()
        ]
        first, second = (np.concatenate([values[:, k] for values in stacked], 1) for k in (0, 1))
        channels = tuple(values.shape[2] for values in layers.values())
        return cls(tuple(layers), channels, first, second, counts, dict(covariance or {}))

    @classmethod
    def of_statistics(cls, layers: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Self:
        """Take mean and variance of each layer, such as those that BatchNorm keeps."""
        first = np.concatenate([mean for mean, _ in layers.values()])[None]
        second = np.concatenate([var + mean**2 for mean, var in layers.values()])[None]
        return cls(tuple(layers), tuple(len(mean) for mean, _ in layers.values()), first, second, None)

    def merge(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return means and mean squares of full groups of `size` images, a multiple of the present size."""
        assert self.images is not None
        together = size // int(self.images[0])
        whole = int((self.images == self.images[0]).sum()) // together
        first, second = (
            values[: whole * together].reshape(whole, together, -1).mean(1) for values in (self.first, self.second)
        )
        return first, second

    def pool(self, groups: np.ndarray | slice | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance, `(all channels,)` each, over some groups or all."""
        chosen = slice(None) if groups is None else groups
        weights = np.ones(1) if self.images is None else self.images[chosen].astype(float)
        weights = weights / weights.sum()
        mean = weights @ self.first[chosen]
        return mean, np.maximum(weights @ self.second[chosen] - mean**2, 0.0)

    def between_images(self) -> np.ndarray:
        """The variance between images of an image's own mean, `(all channels,)`, from that between groups."""
        if self.images is None or len(self.images) < 2:
            raise HapteraError("the spread between images needs at least two groups of them")
        return self.first.var(0, ddof=1) * float(np.mean(self.images))

    def per_layer(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """Return `(all channels,)` cut into layers."""
        return dict(zip(self.names, np.split(values, np.cumsum(self.channels)[:-1]), strict=True))

    def like(self, other: "Moments") -> None:
        """Refuse moments of other layers."""
        if (self.names, self.channels) != (other.names, other.channels):
            raise HapteraError(
                f"statistics of {len(self.names)} layers cannot be compared with those of {len(other.names)} others"
            )


def typical_variance(var: np.ndarray) -> float:
    """The median variance of a layer's channels, `(channels,)`, without dead ones; 0 if none varies.

    >>> typical_variance(np.array([0.0, 0.0, 0.0, 2.0, 4.0]))
    3.0
    """
    largest = float(var.max(initial=0.0))
    return float(np.median(var[var > DEAD * largest])) if largest > 0 else 0.0


def live(*sides: np.ndarray) -> np.ndarray:
    """Return `(channels,)`, whether a channel of one layer varies on any side; the first one says what is typical."""
    typical = next((found for var in sides if (found := typical_variance(var)) > 0), 0.0)
    return np.maximum.reduce(sides) > DEAD * typical


def variance_floor(var: np.ndarray) -> float:
    """The least variance to divide by in a layer with these; 1 where none varies."""
    return FLOOR * typical_variance(var) or 1.0


def scale(var: np.ndarray) -> np.ndarray:
    """Return what to divide squared distances of one layer by: its variances with a floor, infinity for dead channels.

    >>> scale(np.array([0.0, 0.001, 1.0, 4.0, 1.0]))
    array([ inf, 0.01, 1.  , 4.  , 1.  ])
    """
    return np.where(live(var), np.maximum(var, variance_floor(var)), np.inf)
