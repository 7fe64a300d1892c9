"""Watch: the model as it is, and a record of how far each batch is from what the model was trained on.

Source: the size of a shift, thesis appendix A, (A.4): distance of the batch's statistics at BatchNorm layers from those
of training, in units of the training variance; the mean over layers of the root of the mean over channels.
Differs: what chance adds to the squared distance of a batch of n images is taken off, estimated from the spread between
its images, so that the size does not depend on n; a layer nearer to training than chance puts it has a size below 0.
Dead channels are left out, and the training variance has a floor (`haptera.statistics.moments`).
What no batch can tell about itself, as how often a channel fires that fires on one image of a hundred, reference images
can: with `reference`, what batches of the same n drawn from it have too much is taken off as well, and each size is
compared with theirs.
Cost: about a tenth of a forward pass (`benchmarks/diagnose.py`); a reference costs a pass over it, `DRAWS` draws
for each new n, and 8 bytes per image and channel for as long as the adapter lives.
"""

import logging
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from haptera.adapters.base import Adapter
from haptera.adapters.norm import per_image
from haptera.adapters.passes import check_logits, watch_layers
from haptera.batch import Batch
from haptera.errors import HapteraError, NotApplicable
from haptera.modules import hides_layers
from haptera.statistics.moments import scale

log = logging.getLogger("haptera")

DRAWS = 200
"""Batches of reference images that the sizes of one n are taken from."""
LEVEL = 0.95


class Watch(Adapter):
    """Predicts as the model does; `record` has `shift_size`, and `shift_size:LAYER` for each BatchNorm layer.

    With a reference it also has `shift_limit`, the 95th percentile of the sizes of reference batches of the same number
    of images, and `shift_p`, the share of them that are at least as large.
    A batch of one image has no spread between images, and so no size: give a window.
    Of a model whose layers cannot be seen (ONNX, TorchScript, a function) the predictions are watched: `entropy` and
    `largest` of their mean, and their mean `confidence`.

    Args:
        model: a model with BatchNorm layers, or one whose layers cannot be seen.
        reference: batches of images that the model was made for; read once.
        settings: `window`, to take statistics of the last inputs together, up to so many; `frozen`, not to watch.
    """

    outputs_only = True

    def __init__(self, model: nn.Module, *, reference: Iterable[Batch] | None = None, **settings: Any) -> None:
        super().__init__(model, **settings)
        self._hidden = hides_layers(self.model)
        self._layers = {
            name: layer
            for name, layer in self.model.named_modules()
            if isinstance(layer, _BatchNorm) and layer.running_mean is not None and layer.running_var is not None
        }
        if not self._layers and (reference is not None or not self._hidden):
            raise NotApplicable("there is no BatchNorm layer with statistics in the model")
        self._training = {name: _statistics(layer) for name, layer in self._layers.items()}
        self._reference: dict[str, torch.Tensor] = {}
        self._by_number: dict[int, tuple[dict[str, float], torch.Tensor]] = {}
        self._single = False
        if reference is not None:
            self._reference = self._per_image(reference)

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict a batch, and record its distance at every layer that it meets."""
        if not self._layers:
            return self._watch_outputs(inputs)
        outputs, seen = self._look(inputs)
        if len(inputs) < 2 and not self._single:
            self._single = True
            log.warning("watch: one image has no spread between images to tell a shift from chance; give a window")
        chance, known = self._reference_batches(len(inputs)) if self._reference and len(inputs) > 1 else ({}, None)
        squares = {
            name: squared_size(images, *self._training[name]) - chance.get(name, 0.0) for name, images in seen.items()
        }
        found = _root(torch.stack(list(squares.values()))).tolist() if squares else []
        self.record["shift_size"] = sum(found) / len(found) if found else float("nan")
        self.record |= {f"shift_size:{name}": size for name, size in zip(squares, found, strict=True)}
        if known is not None:
            self.record["shift_limit"] = float(known.quantile(LEVEL))
            above = int((known >= self.record["shift_size"]).sum())
            self.record["shift_p"] = (1 + above) / (1 + len(known))
        return outputs

    def _watch_outputs(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict a batch, and record what its predictions show by themselves."""
        outputs = check_logits(self.predict(inputs), type(self).__name__)
        mean = outputs.softmax(1).mean(0)
        self.record["entropy"] = float(torch.special.entr(mean).sum())
        self.record["largest"] = float(mean.max())
        self.record["confidence"] = float(outputs.softmax(1).amax(1).mean())
        return outputs

    def _look(self, inputs: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Outputs, and layer -> mean and mean square of each image, `(batch, 2, channels)`."""
        seen: dict[str, torch.Tensor] = {}

        def look(name: str, values: torch.Tensor) -> None:
            seen[name] = per_image(values).double().cpu()

        with watch_layers(self._layers, look, inputs_of=(_BatchNorm,)):
            return self.predict(inputs), seen

    def _per_image(self, reference: Iterable[Batch]) -> dict[str, torch.Tensor]:
        parts: dict[str, list[torch.Tensor]] = {name: [] for name in self._layers}
        for batch in reference:
            if not isinstance(batch, Batch):
                raise HapteraError(
                    f"reference of watch holds a {type(batch).__name__}; a stream of batches was expected"
                )
            for name, images in self._look(batch.inputs.to(self.device))[1].items():
                parts[name].append(images.float())
        found = {name: torch.cat(values) for name, values in parts.items() if values}
        if not found or len(next(iter(found.values()))) < 2:
            raise HapteraError("the reference of watch has fewer than two images; a few hundred were expected")
        return found

    def _reference_batches(self, n: int) -> tuple[dict[str, float], torch.Tensor]:
        """Return, for batches of n reference images, layer -> what n adds to its square, and `(DRAWS,)` sizes."""
        if n not in self._by_number:
            images = len(next(iter(self._reference.values())))
            places = torch.randint(images, (DRAWS, n), generator=torch.Generator().manual_seed(n))
            chance, sizes = {}, []
            for name, values in self._reference.items():
                squares = torch.stack([squared_size(values[own].double(), *self._training[name]) for own in places])
                chance[name] = float(squares.mean() - squared_size(values.double(), *self._training[name]))
                sizes.append(_root(squares - chance[name]))
            self._by_number[n] = chance, torch.stack(sizes).mean(0)
        return self._by_number[n]


def squared_size(images: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, divisor: torch.Tensor) -> torch.Tensor:
    """Return the mean over channels of (W² − what chance adds) / divisor, one number; NaN for one image.

    Images are `(batch, 2, channels)`, the mean and mean square of each over positions; mean, variance of training and
    divisor, which is infinite for channels to leave out, are `(channels,)`.
    """
    n, (own_mean, second) = len(images), images.mean(0)
    known = torch.isfinite(divisor)
    if n < 2 or not known.any():
        return images.new_tensor(float("nan"))
    noise = images[:, 0].var(0) / n  # of the mean
    own_var = (second - own_mean**2).clamp_min(0) + noise  # so that its expectation is the variance
    # √ is concave: its expectation is below √ of the variance by Var / (8 var^1.5), with Var that of the estimate.
    of_var = (images[:, 1] - 2 * own_mean * images[:, 0]).var(0) / n
    root = own_var.sqrt() * (1 + (of_var / own_var.square().clamp_min(1e-30)).clamp_max(1) / 8)
    squared = (own_mean - mean) ** 2 - noise + own_var + var - 2 * var.sqrt() * root
    return (squared[known] / divisor[known]).mean()


def _statistics(layer: _BatchNorm) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mean and variance of training, and what distances are divided by."""
    mean, var = (torch.as_tensor(values).double().cpu() for values in (layer.running_mean, layer.running_var))
    return mean, var, torch.from_numpy(scale(var.numpy()))


def _root(squares: torch.Tensor) -> torch.Tensor:
    return squares.sign() * squares.abs().sqrt()
