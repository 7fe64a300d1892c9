"""MAITE's models, both ways: theirs as a model of ours, ours as one of theirs.

A model of MAITE is called with a sequence of images `(channels, height, width)` and answers with a sequence of scores
`(classes,)`, probabilities or logits; its `metadata` has an id. Here probabilities become their logarithms, which are
logits of the same probabilities. No class of the package `maite` is needed: its protocols are about shape alone.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint
from haptera.models.classifier import Classifier
from haptera.models.opaque import CallableModel
from haptera.models.preprocessing import Preprocessing

SMALLEST = 1e-12
"""What a probability of 0 is taken for."""


class MaiteModel:
    """A network or adapter of ours as a model of MAITE.

    An adapter learns from every batch that it is called with, in that order.

    Args:
        model: from images in [0, 1] to logits; a network is asked in evaluation mode.
        name: its id.
        classes: names of the classes, if they are known.
        probabilities: whether the scores are probabilities, or logits.

    >>> from haptera.models import Linear
    >>> theirs = MaiteModel(Linear(3, 8, 10), "linear")
    >>> [scores.shape for scores in theirs([np.zeros((3, 8, 8), np.uint8)] * 2)]
    [(10,), (10,)]
    """

    def __init__(
        self, model: nn.Module, name: str, classes: Sequence[str] | None = None, *, probabilities: bool = True
    ) -> None:
        self.model, self.probabilities = model, probabilities
        names = {} if classes is None else {"index2label": dict(enumerate(map(str, classes)))}
        self.metadata: dict[str, Any] = {"id": name, **names}

    def __call__(self, batch: Sequence[Any], /) -> list[np.ndarray]:
        """Return `(classes,)` for each image `(channels, height, width)`, of bytes or floats in [0, 1]."""
        if not len(batch):
            return []
        images = torch.stack([_image(image) for image in batch])
        learning = [module for module in self.model.modules() if module.training]
        self.model.eval()
        try:
            with torch.no_grad():
                logits = self.model(images.to(next(self.model.parameters(), images).device))
        finally:
            for module in learning:
                module.training = True
        scores = logits.softmax(1) if self.probabilities else logits
        return list(scores.detach().float().cpu().numpy())


def from_maite(model: Any, *, version: str = "", preprocessing: Preprocessing | None = None) -> Classifier:
    """Return a model of ours that asks one of MAITE; only its outputs are seen.

    Args:
        model: called with images as float32 arrays in [0, 1].
        version: of what is behind it; results of another version are not taken for those of this one.
        preprocessing: what it expects; mean and standard deviation are applied before it is called.
    """
    about = getattr(model, "metadata", None)
    if isinstance(model, type) or not callable(model) or not isinstance(about, dict) or "id" not in about:
        raise HapteraError(
            f"a {type(model).__name__} is not a model of MAITE; an object that is called with a batch, whose "
            "metadata has an id, was expected"
        )
    name = str(about["id"])
    inside = [each.state_dict() for each in vars(model).values() if isinstance(each, nn.Module)]
    print_ = fingerprint(type(model).__qualname__, name, version, inside)
    return Classifier(CallableModel(_Question(model), f"model {name} of MAITE", print_), preprocessing)


class _Question:
    """Asks a model of MAITE for the logits of a batch of arrays."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, images: np.ndarray) -> np.ndarray:
        answers = self.model(list(images))
        if len(answers) != len(images):
            raise HapteraError(f"it gave {len(answers)} answers for {len(images)} images")
        scores = np.stack([_array(answer) for answer in answers]).astype(np.float32)
        if scores.ndim != 2:
            raise HapteraError(f"it gave scores of shape {scores.shape[1:]} for an image; (classes,) was expected")
        return np.log(scores.clip(SMALLEST)) if _are_probabilities(scores) else scores


def _are_probabilities(scores: np.ndarray) -> bool:
    """Return whether every row is within [0, 1] and sums to 1."""
    return bool((scores >= 0).all() and np.allclose(scores.sum(1), 1, atol=1e-3))


def _image(image: Any) -> torch.Tensor:
    pixels = torch.from_numpy(np.ascontiguousarray(_array(image)))
    return pixels.float() / 255 if pixels.dtype == torch.uint8 else pixels.float()


def _array(values: Any) -> np.ndarray:
    return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
