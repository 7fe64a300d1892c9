"""Anchors: a few reference images on which the adapted model is compared with the unadapted one, every so often.

Each look draws some of them at random, with replacement, so that the differences of two looks are independent given
the state of the adapter, as `haptera.live.evidence` needs it. The adapted model answers them as a batch of the
stream, by the statistics of that batch where it uses any, and is then put back exactly as it was.
Without labels the unadapted model's answers count as right: then only a loss of what it knows can be seen, no gain.
Cost: a step of the adapter for each look, a hundredth of all with one look in a hundred steps.
"""

from typing import Any

import numpy as np
import torch

from haptera.adapters.base import Adapter
from haptera.batch import Batch
from haptera.correctness import correct
from haptera.errors import HapteraError


class Anchors:
    """Reference images and what is right about them.

    Args:
        given: a tensor of images, a pair of images and targets, or a batch.
        unadapted: the model as it is.
    """

    def __init__(self, given: Any, unadapted: Adapter) -> None:
        if isinstance(given, Batch):
            given = (given.inputs, given.targets)
        images, targets = given if isinstance(given, tuple | list) else (given, None)
        if not isinstance(images, torch.Tensor) or len(images) < 2:
            raise HapteraError(f"anchors is {_said(images)}; a tensor of at least two images was expected")
        self.images = images.detach()
        outputs = torch.cat([unadapted(part) for part in self.images.split(64)])
        if outputs.ndim != 2:
            raise HapteraError("anchors are for models that return logits (batch, classes)")
        answers = outputs.argmax(1).cpu().numpy()
        self.labelled = targets is not None
        self.targets = answers if targets is None else np.asarray(targets).astype(np.int64)
        if self.targets.shape != (len(self.images),):
            shape = self.targets.shape
            raise HapteraError(
                f"anchors has {len(self.images)} images and targets of shape {shape}; one each was expected"
            )
        self._right = (answers == self.targets).astype(float)

    def compare(self, adapter: Adapter, images: int, seed: tuple[int, ...]) -> np.ndarray:
        """Return, for some anchors, 1 where only the adapted model is right, -1 where only the unadapted one, else 0.

        Args:
            adapter: is afterwards as it was.
            images: how many to draw.
            seed: of the draw.
        """
        rows = np.random.default_rng(seed).integers(len(self.images), size=images)
        outputs = answer_aside(adapter, self.images[torch.from_numpy(rows)])
        return correct(outputs.cpu().numpy(), self.targets[rows]).astype(float) - self._right[rows]


def answer_aside(adapter: Adapter, inputs: torch.Tensor) -> torch.Tensor:
    """Have an adapter answer a batch as if it came along, and put it back exactly as it was."""
    before = adapter.state_dict()
    try:
        return adapter(inputs)
    finally:
        adapter.load_state_dict(before)


def _said(value: Any) -> str:
    return f"a tensor {tuple(value.shape)}" if isinstance(value, torch.Tensor) else f"a {type(value).__name__}"
