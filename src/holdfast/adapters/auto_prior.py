"""AutoPrior: the number N of images that training statistics should count for, chosen from unlabelled images.

Source: thesis appendix A, proposition 1: the N with the least expected distance between the statistics in use and those
of the target, here the lower bound L, its mean over channels (normalised by the source) and layers.
Differs: the source knows the target; here the images seen so far estimate it, less the noise of that estimate, and the
spread between images is measured instead of set to the whole variance (`holdfast.theory.prior`).
Cost: one more pass over each BatchNorm layer's input.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from holdfast.adapters.norm import Blend, per_image

FIRST_PRIOR = 16.0
"""Until the first batch was seen."""


class AutoPrior(nn.Module):
    """Watches the inputs of BatchNorm layers; what it has seen is state, as everything of an adapter is.

    Attributes:
        prior: the N in use.
    """

    def __init__(self, layers: Sequence[Blend]) -> None:
        super().__init__()
        self.layers = list(layers)  # no modules of this one: the model has them
        channels = sum(len(layer.mean) for layer in layers)
        self.sums: torch.Tensor
        self.images: torch.Tensor
        self.chosen: torch.Tensor
        self.register_buffer("sums", torch.zeros(3, channels, dtype=torch.float64))
        self.register_buffer("images", torch.zeros((), dtype=torch.int64))
        self.register_buffer("chosen", torch.tensor(FIRST_PRIOR, dtype=torch.float64))
        self._seen: dict[int, torch.Tensor] = {}

    @property
    def prior(self) -> float:
        """N."""
        return float(self.chosen)

    def use(self) -> None:
        """Hand N to the layers."""
        self._seen.clear()
        for layer in self.layers:
            layer.prior = self.prior

    def choose(self, n: int) -> None:
        """Add the batch that just went through, and choose N for the next one of this size."""
        from holdfast.live_channels import scale as divisor
        from holdfast.theory.prior import PRIORS, Statistics, lower_bound

        seen = [self._seen.get(id(layer)) for layer in self.layers]
        if any(part is None for part in seen):
            return  # a layer that this batch did not meet
        moments = torch.cat([part for part in seen if part is not None], 2).double()
        self.sums += torch.stack([moments[:, 0].sum(0), moments[:, 1].sum(0), (moments[:, 0] ** 2).sum(0)]).to(
            self.sums
        )
        self.images += len(moments)
        m = int(self.images)
        mean, second, of_means = (self.sums / m).cpu().numpy()
        between = np.maximum(of_means - mean**2, 0) * (m / (m - 1) if m > 1 else 1)
        source = Statistics(*(self._source(name) for name in ("source_mean", "source_var")))
        off = np.sqrt(np.maximum((mean - source.mean) ** 2 - between / m, 0))  # less what noise adds to it
        spread = np.maximum(second - mean**2, 0) + (between / m if m > 1 else 0)
        target = Statistics(source.mean + off, spread, between)
        edges = np.cumsum([len(layer.mean) for layer in self.layers])[:-1]
        scale = np.concatenate([divisor(part) for part in np.split(source.var, edges)])
        candidates = [*PRIORS[1:], 2.0**20] if n == 1 else [*PRIORS, 2.0**20]
        distances = [
            np.mean([np.mean(part) for part in np.split(lower_bound(source, target, n, N) / scale, edges)])
            for N in candidates
        ]
        self.chosen.fill_(candidates[int(np.argmin(distances))])

    def _source(self, name: str) -> np.ndarray:
        return torch.cat([getattr(layer, name) for layer in self.layers]).double().cpu().numpy()

    def watch(self, blend: Blend, inputs: torch.Tensor) -> None:
        """Take the moments of what a layer is about to normalise."""
        self._seen[id(blend)] = per_image(inputs.detach())
