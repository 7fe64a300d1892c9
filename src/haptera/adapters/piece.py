"""Piece: a wrapper that takes part in every update of the learner inside it, such as one that averages weights.

A piece writes `before_update`, which finds the gradients of this update, or `after_update`, which finds the new
weights; with `accumulate`, or with several updates per batch, they are called once for each of them. `after_step` finds
what the learner said about a batch.
"""

import torch

from haptera.adapters.base import Adapter
from haptera.adapters.learner import Learner
from haptera.adapters.wrapper import Wrapper
from haptera.errors import HapteraError


class Piece(Wrapper):
    """A part of the updates of a learner, which may be inside other wrappers."""

    def __init__(self, inner: Adapter) -> None:
        super().__init__(inner)
        self.learner.pieces.append(self)

    @property
    def learner(self) -> Learner:
        """The innermost adapter."""
        adapter = self.innermost
        if not isinstance(adapter, Learner):
            raise HapteraError(
                f"{type(self).__name__} takes part in the updates of an adapter that learns, such as Tent; "
                f"{type(adapter).__name__} does not learn"
            )
        return adapter

    def before_update(self) -> None:
        """Read or change the gradients of `learner.masters.values`."""

    def after_update(self) -> None:
        """Read or change the new `learner.masters.values`."""

    def after_step(self, outputs: torch.Tensor) -> None:
        """Read what the learner itself said about a batch, before other wrappers change it."""
