"""Moments: mean and variance of every channel of every layer, over all images or over some of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from holdfast.errors import HoldfastError


@dataclass(frozen=True)
class Moments:
    """Of the activations of one model on some images.

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
    def grouped(
        cls, layers: Mapping[str, np.ndarray], groups: int, covariance: Mapping[str, np.ndarray] | None = None
    ) -> Self:
        """From `(images, 2, channels)` of each layer: mean and mean square of each image.

        Args:
            layers: name -> the values.
            groups: at most so many; each has the least power of two of images that allows this, the last one the rest.
            covariance: layer -> matrix.
        """
        sizes = {len(values) for values in layers.values()}
        if len(sizes) > 1:
            raise HoldfastError(f"layers saw different numbers of images: {sorted(sizes)}; one is used more than once")
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
    def known(cls, layers: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Self:
        """From mean and variance of each layer, such as those that BatchNorm keeps."""
        first = np.concatenate([mean for mean, _ in layers.values()])[None]
        second = np.concatenate([var + mean**2 for mean, var in layers.values()])[None]
        return cls(tuple(layers), tuple(len(mean) for mean, _ in layers.values()), first, second, None)

    def merged(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Means and mean squares of groups of `size` images, a multiple of the present size; no incomplete group."""
        assert self.images is not None
        together = size // int(self.images[0])
        whole = int((self.images == self.images[0]).sum()) // together
        first, second = (
            values[: whole * together].reshape(whole, together, -1).mean(1) for values in (self.first, self.second)
        )
        return first, second

    def pooled(self, groups: np.ndarray | slice | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance, `(all channels,)` each, over some groups or all."""
        chosen = slice(None) if groups is None else groups
        weights = np.ones(1) if self.images is None else self.images[chosen].astype(float)
        weights = weights / weights.sum()
        mean = weights @ self.first[chosen]
        return mean, np.maximum(weights @ self.second[chosen] - mean**2, 0.0)

    def between_images(self) -> np.ndarray:
        """The variance between images of an image's own mean, `(all channels,)`, from that between groups."""
        if self.images is None or len(self.images) < 2:
            raise HoldfastError("the spread between images needs at least two groups of them")
        return self.first.var(0, ddof=1) * float(np.mean(self.images))

    def per_layer(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """`(all channels,)` cut into layers."""
        return dict(zip(self.names, np.split(values, np.cumsum(self.channels)[:-1]), strict=True))

    def like(self, other: "Moments") -> None:
        """Refuse moments of other layers."""
        if (self.names, self.channels) != (other.names, other.channels):
            raise HoldfastError(
                f"statistics of {len(self.names)} layers cannot be compared with those of {len(other.names)} others"
            )
