"""Adapter: an `nn.Module` around a model that changes with the data it sees, and never sees a target.

The base owns `forward`, `reset` and the record of each step; a method writes `step`, and `predict` where predicting
without learning is more than a pass through the model. The caller's model stays as it was: the adapter works on a copy
of the modules that shares every tensor but those the method names in `changes`.
"""

import copy
import inspect
from collections.abc import Iterable
from typing import Any, ClassVar, Self, final

import torch
from torch import nn

from holdfast.batch import Batch
from holdfast.errors import HoldfastError


class _Ready(type):
    """Calls `_remember` once an object is wholly built, so that no method has to think of it."""

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of `__init__`, which `__call__` below would hide from help and from the command line."""
        whole = inspect.signature(cls.__init__)  # type: ignore[misc]
        return whole.replace(parameters=[p for name, p in whole.parameters.items() if name != "self"])

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        adapter = super().__call__(*args, **kwargs)
        adapter._remember()
        return adapter


class Adapter(nn.Module, metaclass=_Ready):
    """A model that adapts online.

    State that `state_dict` carries and `reset` restores lives in parameters and buffers; what is neither
    (an optimiser, a counter) goes through torch's `get_extra_state` and `set_extra_state`.

    Args:
        model: any `nn.Module` from images to logits, its input normalisation included.
        frozen: predict without learning.

    Attributes:
        model: the adapter's own copy of the modules, in evaluation mode.
        record: what the last step reports, name -> number.
        parent: the adapter that this one is when its learning rate is 0.
    """

    parent: ClassVar[type["Adapter"]]

    def __init__(self, model: nn.Module, *, frozen: bool = False) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise HoldfastError(f"an adapter takes an nn.Module, found {type(model).__name__}")
        self.frozen = frozen
        self.record: dict[str, float] = {}
        self._shared = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
        self.model = share(model, self.changes(model)).eval()

    def changes(self, model: nn.Module) -> Iterable[torch.Tensor]:
        """The parameters and buffers of the model that this method changes in place; it gets copies of them."""
        return ()

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Learn from a batch and predict it."""
        return self.predict(inputs)

    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict a batch without learning from it."""
        with torch.no_grad():
            return self.model(inputs)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """`(batch, ...)` to `(batch, classes)`: learn, unless frozen, and predict; methods do not override this."""
        self.record = {}
        return self.predict(inputs) if self.frozen else self.step(inputs)

    def adapt(self, stream: Iterable[Batch], epochs: int = 1) -> None:
        """Learn from a stream without keeping predictions."""
        for _ in range(epochs):
            for batch in stream:
                self.step(batch.inputs.to(self.device))

    @final
    def reset(self) -> None:
        """Return to the state before the first batch, bit for bit."""
        self.load_state_dict(copy.deepcopy(self._first), strict=False)
        self.record = {}

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next((tensor.device for tensor in (*self.parameters(), *self.buffers())), torch.device("cpu"))

    def train(self, mode: bool = True) -> Self:
        """Store the flag and nothing more: what an adapter does depends on `frozen`, not on `.eval()`."""
        self.training = mode
        return self

    def _remember(self) -> None:
        state = self.state_dict(keep_vars=True)
        own = {key: value for key, value in state.items() if id(value) not in self._shared}
        self._first = copy.deepcopy({k: v.detach() if isinstance(v, torch.Tensor) else v for k, v in own.items()})


class NoAdaptation(Adapter):
    """The model as it is, in evaluation mode and without gradients."""


Adapter.parent = NoAdaptation


def share(model: nn.Module, changed: Iterable[torch.Tensor] = ()) -> nn.Module:
    """A copy of the modules that shares every parameter and buffer but the changed ones, which are copied."""
    own = {id(tensor) for tensor in changed}
    tensors = [*model.parameters(), *model.buffers()]
    try:
        return copy.deepcopy(model, {id(tensor): tensor for tensor in tensors if id(tensor) not in own})
    except (RuntimeError, TypeError) as error:
        raise HoldfastError(f"the modules of {type(model).__name__} cannot be copied: {error}") from error
