"""Opaque models: what gives logits and shows neither gradients nor layers, such as a file for another runtime.

An `OpaqueModel` is an `nn.Module` that says so by its attribute `opaque`, which adapters look at: those that need
outputs only work, the others say why not. What it runs is shared by its copies and left behind when it is pickled.
Batches that the inside does not take are cut into pieces, or filled up with copies of their last image.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from haptera.errors import HapteraError, first_line
from haptera.files.fingerprint import fingerprint
from haptera.models.classifier import Classifier
from haptera.models.preprocessing import Preprocessing


@dataclass(frozen=True)
class InputShape:
    """What a model takes; None is any number.

    Attributes:
        least: the smallest batch.
        most: the largest batch.
        channels: of an image.
        height: of an image.
        width: of an image.
    """

    least: int = 1
    most: int | None = None
    channels: int | None = None
    height: int | None = None
    width: int | None = None

    @property
    def preprocessing(self) -> Preprocessing:
        """Return the size of the images, where it is known and a square."""
        return Preprocessing(size=self.height if self.height == self.width else None)

    def check(self, images: torch.Tensor, what: str) -> None:
        """Refuse images of another shape."""
        expected = (self.channels, self.height, self.width)
        found = tuple(images.shape[1:])
        if len(found) != 3 or any(own not in (None, other) for own, other in zip(expected, found, strict=True)):
            words = " x ".join("any" if each is None else str(each) for each in expected)
            raise HapteraError(
                f"{what} takes images of {words} (channels x height x width), and these are "
                f"{' x '.join(map(str, found))}; give size and channels (--size, --channels), or export the model anew"
            )

    def pieces(self, images: torch.Tensor) -> list[torch.Tensor]:
        """Return a batch in pieces that are not too large."""
        return list(images.split(self.most)) if self.most and len(images) > self.most else [images]

    def fill(self, images: torch.Tensor) -> torch.Tensor:
        """Return a batch that is not too small: its last image again and again."""
        lacking = self.least - len(images)
        return torch.cat([images, images[-1:].expand(lacking, -1, -1, -1)]) if lacking > 0 else images


class OpaqueModel(nn.Module, ABC):
    """A model of which only the outputs are seen.

    Args:
        what: it is called in messages.
        opaque: why there are neither gradients nor layers, in half a sentence.
        print_: a text that is another one when the model is.
        shape: of its inputs.
    """

    content: torch.Tensor

    def __init__(self, what: str, opaque: str, print_: str, shape: InputShape | None = None) -> None:
        super().__init__()
        self.what, self.opaque, self.shape = what, opaque, shape or InputShape()
        bytes_ = np.frombuffer(print_.encode(), np.uint8).copy()
        self.register_buffer("content", torch.from_numpy(bytes_))  # fingerprints of models read buffers

    @abstractmethod
    def answer(self, images: torch.Tensor) -> Any:
        """Return the outputs for images `(batch, channels, height, width)`, float32 on the CPU: arrays or tensors."""

    def forward(self, images: torch.Tensor) -> Any:
        """Return the outputs as tensors on the device of the images."""
        self.shape.check(images, self.what)
        answers = []
        with torch.no_grad():
            for piece in self.shape.pieces(images):
                outputs = self._answer(self.shape.fill(piece.detach().float().cpu().contiguous()))
                answers.append(_map_arrays(partial(_first, n=len(piece), device=images.device), outputs, self.what))
        return answers[0] if len(answers) == 1 else _join(answers)

    def _answer(self, images: torch.Tensor) -> Any:
        try:
            return self.answer(images)
        except HapteraError:
            raise
        except Exception as error:
            shape = " x ".join(map(str, images.shape))
            raise HapteraError(f"{self.what} fails on images of {shape}: {first_line(error)}") from error

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__dict__ = self.__dict__ | {"_buffers": {"content": self.content.clone()}}
        return made


class CallableModel(OpaqueModel):
    """A Python function from an array `(batch, channels, height, width)`, float32 in [0, 1], to logits.

    Args:
        function: what is called.
        what: it is called in messages.
        print_: a text that is another one when the function gives other answers.
    """

    def __init__(self, function: Callable[[np.ndarray], Any], what: str, print_: str) -> None:
        super().__init__(what, "a Python function shows neither gradients nor layers", print_)
        self.function = function

    def answer(self, images: torch.Tensor) -> Any:
        """Call the function."""
        return self.function(images.numpy())


def from_callable(
    function: Callable[[np.ndarray], Any],
    *,
    version: str = "",
    preprocessing: Preprocessing | None = None,
    logits: str | None = None,
) -> nn.Module:
    """Return a model that asks a Python function, such as a network of JAX or Keras or a remote service.

    Args:
        function: from images `(batch, channels, height, width)`, a float32 array in [0, 1], to logits
            `(batch, classes)`, in anything that NumPy can read.
        version: of what is behind the function; results of another version are not taken for those of this one.
        preprocessing: what it expects; mean and standard deviation are applied before it is called.
        logits: which of its outputs, if it gives several.

    >>> model = from_callable(lambda images: images.mean((2, 3)))
    >>> model(torch.ones(2, 3, 8, 8))
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """
    if not callable(function):
        raise HapteraError(
            f"a {type(function).__name__} cannot be called; a function from images to logits was expected"
        )
    what = getattr(function, "__name__", type(function).__name__)
    try:
        print_ = fingerprint(function, version)
    except HapteraError:  # an object that is called, of which nothing is known but its class
        print_ = fingerprint(type(function), version)
    return Classifier(CallableModel(function, what, print_), preprocessing, logits)


def _map_arrays(change: Callable[[torch.Tensor], torch.Tensor], outputs: Any, what: str) -> Any:
    """Return the same outputs with every array made a tensor and changed."""
    if isinstance(outputs, dict):
        return {key: _map_arrays(change, value, what) for key, value in outputs.items()}
    if isinstance(outputs, list | tuple) and outputs and not np.isscalar(outputs[0]) and np.ndim(outputs[0]) > 1:
        return [_map_arrays(change, value, what) for value in outputs]
    if isinstance(outputs, torch.Tensor):
        return change(outputs)
    if hasattr(outputs, "_fields") or hasattr(outputs, "__dataclass_fields__"):
        names = getattr(outputs, "_fields", None) or outputs.__dataclass_fields__
        return {name: _map_arrays(change, getattr(outputs, name), what) for name in names}
    try:
        array = np.asarray(outputs)
    except Exception as error:
        raise HapteraError(f"{what} returned a {type(outputs).__name__}; an array was expected") from error
    if array.dtype.kind not in "fiub" or not array.ndim:
        raise HapteraError(f"{what} returned a {type(outputs).__name__}; an array (batch, classes) was expected")
    return change(torch.from_numpy(np.array(array, np.float32 if array.dtype.kind != "f" else array.dtype)))


def _first(tensor: torch.Tensor, n: int, device: torch.device) -> torch.Tensor:
    return tensor[:n].to(device) if tensor.ndim else tensor.to(device)


def _join(answers: list[Any]) -> Any:
    """Return the outputs of the pieces as those of the batch."""
    first = answers[0]
    if isinstance(first, dict):
        return {key: _join([each[key] for each in answers]) for key in first}
    if isinstance(first, list):
        return [_join(list(each)) for each in zip(*answers, strict=True)]
    return torch.cat(answers) if first.ndim else first
