"""Probe: passes through a model that leave it as it was, whole ones, or to the layers that keep statistics.

A layer keeps statistics where it has `running_mean` and `running_var`, as BatchNorm has, frozen kinds of it included.
What reaches it is pooled over each image alone, so that images can be drawn anew without the model.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from haptera.adapters.passes import check_outputs, run
from haptera.adapters.sharing import share
from haptera.modules import unwrap

DRAWS = 200
LIVE = 1e-3
"""A channel whose kept variance is less than this share of the usual one is dead, and left out."""
FARTHEST = 3.0
"""The distance of one channel, at most: a single one shall not decide."""


@dataclass(frozen=True, eq=False)
class Reached:
    """What reached a layer, and what the layer kept from training.

    Attributes:
        name: of the layer.
        moments: `(images, 2, channels)`, mean and mean square of each image.
        mean: `(channels,)`, kept.
        variance: `(channels,)`, kept.
    """

    name: str
    moments: np.ndarray
    mean: np.ndarray
    variance: np.ndarray

    @property
    def trained(self) -> bool:
        """Say whether the statistics are other than those of a new layer."""
        return bool((self.mean != 0).any() or (self.variance != 1).any())

    def distance(self, weights: np.ndarray | None = None) -> np.ndarray:
        """Return how far the images are from what was kept: a mean over channels, in units of the kept deviation.

        For a channel it is the root of the squared difference of means, in kept standard deviations, and the squared
        logarithm of the ratio of deviations.

        Args:
            weights: `(draws, images)`, how often each image counts; each once by default.
        """
        times = np.ones((1, len(self.moments))) if weights is None else weights
        pooled = np.tensordot(times / times.sum(1, keepdims=True), self.moments, 1)
        live = self.variance > LIVE * np.median(self.variance)
        mean, variance = self.mean[live], self.variance[live]
        found = np.maximum(pooled[:, 1] - pooled[:, 0] ** 2, 1e-12)[:, live]
        moved, wider = (pooled[:, 0, live] - mean) / np.sqrt(variance), 0.5 * np.log(found / variance)
        distances: np.ndarray = np.minimum(np.hypot(moved, wider), FARTHEST).mean(1)
        return distances


def draw_weights(images: int, seed: int = 0) -> np.ndarray:
    """Return how often each image comes in draws with replacement: `(draws, images)`."""
    return np.random.default_rng(seed).multinomial(images, np.full(images, 1 / images), DRAWS).astype(float)


class Probe:
    """A copy of a model that shares its weights, to be asked.

    Args:
        model: any network; it stays as it was.
        batch_size: images per pass.
        evaluation: whether to set evaluation mode, or to leave each module in the mode in which it is.
    """

    def __init__(self, model: nn.Module, batch_size: int, evaluation: bool = True) -> None:
        self.batch_size = batch_size
        self.model = share(unwrap(model))
        if evaluation:
            self.model.eval()
        tensors = [*self.model.parameters(), *self.model.buffers()]
        self.device = tensors[0].device if tensors else torch.device("cpu")
        self.keeping = {
            name: layer
            for name, layer in self.model.named_modules()
            if not isinstance(layer, torch.jit.ScriptModule)  # which takes no hooks
            and torch.is_tensor(getattr(layer, "running_mean", None))
            and torch.is_tensor(getattr(layer, "running_var", None))
        }

    def logits(self, images: torch.Tensor, batch_size: int | None = None, seed: int = 0) -> np.ndarray:
        """Return `(images, classes)`; a model that draws does so with a seed, and the generators stay as they were."""
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []), torch.no_grad():
            torch.manual_seed(seed)
            parts = [self._pass(batch) for batch in images.split(batch_size or self.batch_size)]
        return np.concatenate(parts)

    def _pass(self, batch: torch.Tensor) -> np.ndarray:
        return check_outputs(run(self.model, batch.to(self.device)), len(batch)).float().cpu().numpy()

    def seconds_per_image(self, images: torch.Tensor) -> float:
        """Return how long a pass takes, after one that does not count."""
        self.logits(images[:2])
        start = time.perf_counter()
        self.logits(images[:8])
        return (time.perf_counter() - start) / min(len(images), 8)

    def first(self, images: torch.Tensor) -> Reached | None:
        """Return what reaches the first layer that keeps statistics; the passes end there."""
        with self._watching(stop=True) as taken:
            for batch in images.split(self.batch_size):
                with torch.no_grad(), torch.random.fork_rng(devices=[]):
                    try:
                        run(self.model, batch.to(self.device))
                    except _Reached:
                        continue
        return next(iter(self._reached(taken)), None)

    def every(self, images: torch.Tensor) -> tuple[np.ndarray, list[Reached]]:
        """Return the logits, and what reaches each layer that keeps statistics, in the order of the pass."""
        with self._watching(stop=False) as taken:
            logits = self.logits(images)
        return logits, self._reached(taken)

    def _reached(self, taken: dict[str, list[np.ndarray]]) -> list[Reached]:
        kept: list[Reached] = []
        for name, parts in taken.items():
            layer: Any = self.keeping[name]
            mean, variance = (getattr(layer, key).double().cpu().numpy() for key in ("running_mean", "running_var"))
            kept.append(Reached(name, np.concatenate(parts), mean, variance))
        return kept

    @contextmanager
    def _watching(self, stop: bool) -> Iterator[dict[str, list[np.ndarray]]]:
        """Take what reaches layers while it is entered."""
        taken: dict[str, list[np.ndarray]] = {}

        def take(name: str, values: torch.Tensor) -> None:
            flat = values.detach().float().flatten(2) if values.ndim > 2 else values.detach().float()[..., None]
            variance, mean = torch.var_mean(flat, 2, correction=0)
            pooled = torch.stack([mean.double(), variance.double() + mean.double().square()], 1)
            taken.setdefault(name, []).append(pooled.cpu().numpy())
            if stop:
                raise _Reached

        hooks = [
            layer.register_forward_pre_hook(lambda _, inputs, name=name: take(name, inputs[0]))
            for name, layer in self.keeping.items()
        ]
        try:
            yield taken
        finally:
            for hook in hooks:
                hook.remove()


class _Reached(BaseException):
    """Ends a pass; no model may take it for a failure of its own."""
