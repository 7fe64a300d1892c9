"""Watch: the model as it is, and a record of how far each batch is from what the model was trained on.

Source: the size of a shift, thesis appendix A, (A.4): distance of the batch's statistics at BatchNorm layers from those
of training, in units of the training variance; the mean over layers of the root of the mean over channels.
Differs: the squared distance of means that chance gives a batch of this size is subtracted, so that small batches do
not look shifted; a batch of one image has no spread to take it from, and is recorded as it is.
Cost: about a tenth of a forward pass (`benchmarks/diagnose.py`).
"""

from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from holdfast.adapters.base import Adapter
from holdfast.adapters.norm import per_image
from holdfast.errors import NotApplicable


class Watch(Adapter):
    """Predicts as the model does; `record` has `shift_size`, and `shift_size:LAYER` for each BatchNorm layer.

    Args:
        model: a model with BatchNorm layers.
        window: take statistics of the last inputs together, up to this many.
        frozen: do not watch either.
    """

    def __init__(self, model: nn.Module, *, window: int = 0, frozen: bool = False) -> None:
        super().__init__(model, window=window, frozen=frozen)
        self._layers = {
            name: layer
            for name, layer in self.model.named_modules()
            if isinstance(layer, _BatchNorm) and layer.running_mean is not None
        }
        if not self._layers:
            raise NotApplicable("there is no BatchNorm layer with statistics in the model")

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict a batch, and record its distance at every layer that it meets."""
        sizes: dict[str, torch.Tensor] = {}

        def look(layer: Any, values: tuple[torch.Tensor], name: str) -> None:
            sizes[name] = shift_size(values[0], layer.running_mean, layer.running_var)

        hooks = [
            layer.register_forward_pre_hook(lambda own, values, name=name: look(own, values, name))
            for name, layer in self._layers.items()
        ]
        try:
            outputs = self.predict(inputs)
        finally:
            for hook in hooks:
                hook.remove()
        found = torch.stack(list(sizes.values())).tolist() if sizes else []
        self.record["shift_size"] = sum(found) / len(found) if found else float("nan")
        self.record |= {f"shift_size:{name}": size for name, size in zip(sizes, found, strict=True)}
        return outputs


def shift_size(inputs: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> torch.Tensor:
    """√(mean over channels of W² / var) of the statistics of `(batch, channels, ...)` from given ones; one number."""
    images = per_image(inputs)
    own_mean, second = images.mean(0)
    own_var = (second - own_mean**2).clamp_min(0)
    off = (own_mean - mean) ** 2
    if len(images) > 1:
        off = off - images[:, 0].var(0) / len(images)
    distance = off + (own_var.sqrt() - var.sqrt()) ** 2
    known = var > 0
    return (distance[known] / var[known]).mean().clamp_min(0).sqrt()
