"""Classifier: a network together with what goes before it and what is taken from behind it.

Images in [0, 1] are normalised, brought into the network's own precision and passed on; of what it returns, the logits
are taken, in single precision or better. So adapters, streams and measures see one kind of model, whatever was brought.
"""

import torch
from torch import nn

from haptera.errors import HapteraError
from haptera.models.preprocessing import Preprocessing
from haptera.modules import find_logits, take_logits, unwrap

HALF = (torch.float16, torch.bfloat16)


class Classifier(nn.Module):
    """A network from images in [0, 1] to logits.

    Args:
        network: what was trained; `DataParallel`, `torch.compile` and the like are taken off.
        preprocessing: its mean and standard deviation are applied here, the rest is for whoever reads images.
        logits: which of its outputs are the logits, such as `logits`, `1` or `heads.0`; found by itself where possible.

    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(12, 5))
    >>> Classifier(network, Preprocessing(mean=(0.5,), std=(0.5,)))(torch.rand(4, 3, 2, 2)).shape
    torch.Size([4, 5])
    """

    def __init__(
        self, network: nn.Module, preprocessing: Preprocessing | None = None, logits: str | None = None
    ) -> None:
        super().__init__()
        self.network: nn.Module = unwrap(network)
        self.preprocessing = preprocessing or Preprocessing()
        self.mean, self.std = self.preprocessing.mean, self.preprocessing.std
        self.logits = logits
        self.training = self.network.training

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map `(batch, channels, height, width)` to `(batch, classes)`; outputs without logits are handed on."""
        if self.mean is not None and self.std is not None:
            images = normalise(images, self.mean, self.std)
        outputs = self.network(images.to(precision(self.network)) if images.is_floating_point() else images)
        logits = find_logits(outputs) if self.logits is None else take_logits(outputs, self.logits)
        if logits is None:
            return outputs
        return logits.float() if logits.dtype in HALF else logits


def normalise(images: torch.Tensor, mean: tuple[float, ...], std: tuple[float, ...]) -> torch.Tensor:
    """Return (x − mean) / std for every channel."""
    channels = images.shape[1]
    if len(mean) not in (1, channels):
        raise HapteraError(
            f"the model normalises {len(mean)} channels and the images have {channels}; give channels={len(mean)} "
            f"(--channels {len(mean)}), or another normalisation (--normalise)"
        )
    shape = (1, -1, *(1,) * (images.ndim - 2))
    return (images - images.new_tensor(mean).view(shape)) / images.new_tensor(std).view(shape)


def precision(network: nn.Module) -> torch.dtype:
    """Return the type of a network's numbers, single precision where it has none of its own."""
    return next((each.dtype for each in network.parameters() if each.is_floating_point()), torch.float32)


def classifier(network: nn.Module, preprocessing: Preprocessing | None = None, logits: str | None = None) -> nn.Module:
    """Return a network as it is where it takes images and gives logits by itself, else with what it lacks around it."""
    network = unwrap(network)
    plain = preprocessing is None or preprocessing == Preprocessing()
    if plain and logits is None and precision(network) is torch.float32:
        return network
    return Classifier(network, preprocessing, logits)
