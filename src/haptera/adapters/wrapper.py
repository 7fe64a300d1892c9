"""Wrapper: an adapter around an adapter. What it holds, and what it predicts, is the inner one's."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from haptera.adapters.base import Adapter
from haptera.adapters.state import check_identity, check_values
from haptera.adapters.stateful import Records
from haptera.checks import check_whole_number


def _of_inner(name: str) -> Any:
    return property(lambda self: getattr(self.inner, name), lambda self, value: setattr(self.inner, name, value))


class Wrapper(Adapter):
    """Hands everything to the adapter inside, `inner`."""

    model, frozen, parent_label = map(_of_inner, ("model", "frozen", "parent_label"))
    seed, random = map(_of_inner, ("seed", "random"))
    predict, predictor, parent = map(_of_inner, ("predict", "predictor", "parent"))
    begin_epoch, release = map(_of_inner, ("begin_epoch", "release"))

    def __init__(self, inner: Adapter) -> None:
        nn.Module.__init__(self)  # not the base's: there is no model to share but the inner adapter's
        self.inner = inner
        self._lock, self._records = inner._lock, Records()
        self.memory: dict[str, Any] = {}
        self._fingerprint, self._borrowed, self._classes, self.window = inner._fingerprint, inner._borrowed, 0, 0

    @property
    def innermost(self) -> Adapter:
        """The adapter inside all wrappers."""
        return self.inner.innermost if isinstance(self.inner, Wrapper) else self.inner

    def _check(self, state: Mapping[str, Any]) -> None:
        check_identity(state, self._identity())
        self.inner._check({key[6:]: value for key, value in state.items() if key.startswith("inner.")})
        check_values(state, self._first)

    def _remember(self) -> None:
        super()._remember()
        self._first |= {f"inner.{name}": value for name, value in self.inner._first.items()}  # not a second copy

    def _keep_borrowed(self) -> None:
        self._borrowed = self.inner._borrowed

    def _through(self, inputs: torch.Tensor, learn: bool = False) -> torch.Tensor:
        self.inner.record = {}
        outputs = self.inner._through(inputs, learn)
        self.record = self.inner.record
        return outputs


class Offline(Wrapper):
    """Learns from a whole stream, several times, and predicts only then; `haptera.run.loop.evaluate` does both.

    Table B.3 of the thesis is the error after each pass. Predictions are the `predictor`'s: a method that learns
    predicts as its parent does, around the weights that it learnt, with BatchNorm statistics of the batch at hand;
    `BatchNorm` predicts with those of the whole stream.

    Args:
        model: as the method takes it.
        method: an adapter class, or a partial of one.
        epochs: passes over the stream.
        settings: of the method.
    """

    def __init__(self, model: nn.Module, method: Any, epochs: int = 1, **settings: Any) -> None:
        check_whole_number("epochs", epochs)
        super().__init__(method(model, **settings))
        self.epochs = epochs

    def adapt(self, stream: Any, epochs: int = 1) -> None:
        """Learn as the inner adapter does, which need not be batch by batch."""
        self.inner.adapt(stream, epochs)
