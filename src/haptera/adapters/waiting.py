"""Waiting: the output of a normalisation that is not written yet, and the gradients of what it goes into."""

from collections.abc import Callable
from typing import Any, Protocol

import torch

from haptera.adapters.fused import Normalisation


class Backward(Protocol):
    """What the backward pass of a layer goes by; `rectify` says whether the gradient is that of a ReLU's output."""

    rectify: bool


class Waiting:
    """The output of a normalisation, not written yet.

    Attributes:
        out: where it will be.
        normalisation: what writes it.
        again: the same layer with the ReLU inside, for autograd; None where no gradient is wanted.
        other: what is added to it.
        backward: what the backward pass of the layer goes by, where a gradient is wanted.
    """

    def __init__(
        self,
        out: torch.Tensor,
        normalisation: Normalisation,
        again: Callable[[], torch.Tensor] | None = None,
        backward: Backward | None = None,
    ) -> None:
        self.out, self.normalisation, self.again, self.backward = out, normalisation, again, backward
        self.other: torch.Tensor | None = None

    def write(self, out: torch.Tensor, rectify: bool = False) -> torch.Tensor:
        """Write it, or what a ReLU makes of it."""
        return self.normalisation.write(out, self.other, rectify)


def like(values: torch.Tensor) -> torch.Tensor:
    """Memory for a tensor of this shape."""
    return torch.empty_like(values)


class Sum(torch.autograd.Function):
    """The sum of an output that waits and another tensor, which waits too."""

    @staticmethod
    def forward(ctx: Any, out: torch.Tensor, other: torch.Tensor, in_place: bool) -> torch.Tensor:
        """Write, or make memory for what waits."""
        if not in_place:
            return like(out)
        ctx.mark_dirty(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradient of each tensor that was given."""
        return grad, grad, None


class Rectified(torch.autograd.Function):
    """A ReLU of a sum that waits."""

    @staticmethod
    def forward(ctx: Any, both: torch.Tensor, waiting: Waiting, in_place: bool) -> torch.Tensor:
        """Write, or make memory for what waits."""
        out = waiting.write(both if in_place else like(both), rectify=True)
        if in_place:
            ctx.mark_dirty(both)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradient of each tensor that was given."""
        return torch.ops.aten.threshold_backward(grad, ctx.saved_tensors[0], 0), None, None


class Marked(torch.autograd.Function):
    """A ReLU in place of an output that waits; the layer itself keeps the gradient from where it was negative."""

    @staticmethod
    def forward(ctx: Any, out: torch.Tensor, waiting: Waiting) -> torch.Tensor:
        """Write, or make memory for what waits."""
        assert waiting.backward is not None
        waiting.backward.rectify = True
        ctx.mark_dirty(waiting.write(out, rectify=True))
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the gradient of each tensor that was given."""
        return grad, None
