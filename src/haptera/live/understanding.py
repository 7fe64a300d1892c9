"""Understanding: whether a batch is like those the model is made for, or something that nobody should learn from.

Looked at are the shape of an image, its type, values that are not finite, values far outside the range, and images
that are one colour all over, which a dead camera or a warm-up call sends. What is expected is set by the first batch
that is understood, unless the range is given; values may go beyond it by half of its width, as noise does.
Cost: the least and greatest value of every image, about 0.2 ms for 64 images of 32 pixels.
"""

from collections.abc import Mapping
from typing import Any

import torch

FIRST = 256
"""Images that the range is taken from."""
ROOM = 0.5
"""How far beyond, in widths of the range."""


class Understanding:
    """What batches are expected to be.

    Args:
        limits: lowest and highest value; None to take them from the first images.
    """

    def __init__(self, limits: tuple[float, float] | None = None) -> None:
        self._fixed, self._low, self._high = limits is not None, *(limits or (float("inf"), float("-inf")))
        self._shape: list[int] | None = None
        self._type, self._images = "", 0

    def puzzle(self, inputs: torch.Tensor) -> str:
        """Say what is odd about a batch; nothing, if it is understood."""
        shape, kind = list(inputs.shape[1:]), str(inputs.dtype).removeprefix("torch.")
        if self._shape is not None and shape != self._shape:
            return f"an image has the shape {tuple(shape)}, others have {tuple(self._shape)}"
        if self._shape is not None and kind != self._type:
            return f"values are {kind}, others are {self._type}"
        if inputs.dtype == torch.bool or inputs.is_complex() or inputs[0].numel() < 2:
            return ""  # has no range to speak of
        flat = inputs.detach().flatten(1)
        low, high = flat.amin(1), flat.amax(1)
        least, most = float(low.min()), float(high.max())
        if not (abs(least) < float("inf") and abs(most) < float("inf")):
            return "it has values that are not finite"
        if constant := int((low == high).sum()):
            return f"{constant} of {len(inputs)} images are one colour all over"
        room = 0.0 if self._fixed else ROOM * (self._high - self._low)
        if (self._fixed or self._images) and (least < self._low - room or most > self._high + room):
            expected = f"{self._low - room:.3g} to {self._high + room:.3g}"
            return f"values go from {least:.3g} to {most:.3g}, {expected} was expected"
        self._learn(shape, kind, least, most, len(inputs))
        return ""

    def state(self) -> dict[str, Any]:
        """Return everything that changes."""
        limits = [self._low, self._high]
        return {"limits": limits, "shape": self._shape, "type": self._type, "images": self._images}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._shape, self._type, self._images = state["shape"], state["type"], state["images"]
        if not self._fixed:
            self._low, self._high = state["limits"]

    def _learn(self, shape: list[int], kind: str, least: float, most: float, images: int) -> None:
        self._shape, self._type = shape, kind
        if not self._fixed and self._images < FIRST:
            self._low, self._high = min(self._low, least), max(self._high, most)
        self._images = min(self._images + images, FIRST)
