"""Adapter: an `nn.Module` around a model that changes with the data it sees, and never sees a target.

The base owns `forward`, `reset`, `release`, the state and the record of each step; a method writes `step`, and
`predict` where predicting without learning is more than a pass through the model. The caller's model stays as it was:
the adapter works on a copy of the modules that shares every parameter but those the method names in `changes`.
"""

import copy
import inspect
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Self, final

import torch
from torch import nn
from torch.nn.modules.module import _IncompatibleKeys

from holdfast.adapters.calls import Lock, Record, Records
from holdfast.adapters.layout import arranged, takes_channels_last
from holdfast.adapters.passes import check_inputs, explained, run
from holdfast.adapters.sharing import Borrowed, check_model, model_fingerprint, place, share, unwrapped
from holdfast.adapters.state import EXTRA, IDENTITY, check_identity, check_values, read_state, snapshot, write_state
from holdfast.batch import Batch
from holdfast.errors import HoldfastError

log = logging.getLogger("holdfast")


class _Ready(type):
    """Hands over the network inside a wrapped model, and calls `_remember` once an object is wholly built, so that no
    method has to think of either."""

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of `__init__`, `**settings` spelt out: what a class passes on to its base, or to the class named in
        `passes_to`, belongs to its signature."""
        parameters: dict[str, inspect.Parameter] = {}
        further = cls.__dict__.get("passes_to")
        for kind in (cls, *further.__mro__) if further else cls.__mro__:
            if "__init__" not in vars(kind):
                continue
            own = inspect.signature(vars(kind)["__init__"]).parameters
            parameters |= {name: p for name, p in own.items() if name not in parameters and p.kind != p.VAR_KEYWORD}
            if not any(p.kind == p.VAR_KEYWORD for p in own.values()):
                break
        del parameters["self"]
        order = sorted(parameters.values(), key=lambda p: (p.kind, p.default is not p.empty))
        return inspect.Signature(order)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        args = tuple(unwrapped(value) for value in args)
        kwargs = {name: unwrapped(value) for name, value in kwargs.items()}
        with torch.inference_mode(False):  # else its tensors could never have a gradient
            adapter = super().__call__(*args, **kwargs)
            adapter._remember()
        return adapter


class Adapter(nn.Module, metaclass=_Ready):
    """A model that adapts online.

    State that `state_dict` carries and `reset` restores lives in parameters, in buffers, and in `memory`. Calls from
    several threads are answered one after the other.

    Args:
        model: any `nn.Module` from images to logits, its input normalisation included.
        window: predict and learn together with the last inputs, up to this many in all; for batches of one or a few.
        frozen: predict without learning.

    Attributes:
        model: the adapter's own copy of the modules, in evaluation mode.
        memory: name -> number, text or tensor; what changes and is neither parameter nor buffer.
    """

    def __init__(self, model: nn.Module, *, window: int = 0, frozen: bool = False) -> None:
        super().__init__()
        check_model(model)
        if isinstance(window, bool) or not isinstance(window, int) or window < 0:
            raise HoldfastError(f"window is {window!r}; a number of images of at least 0 was expected")
        self._lock, self._records = Lock(), Records()
        self.window, self.frozen = window, frozen
        self.memory: dict[str, Any] = {}
        self._fingerprint, self._borrowed = model_fingerprint(model), Borrowed.all_of(model)
        self._channels_last: bool | None = None
        self._classes = 0
        self.model = share(model, self.changes(model)).eval()

    def changes(self, model: nn.Module) -> Iterable[torch.Tensor]:
        """The parameters of the model that this method changes in place; it gets copies of them, and of all buffers."""
        return ()

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Learn from a batch and predict it."""
        return self.predict(inputs)

    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict a batch without learning from it."""
        with torch.no_grad():
            return run(self.model, inputs)

    def begin_epoch(self) -> None:
        """Called by `adapt` before each pass over its stream."""

    def forward(self, inputs: torch.Tensor, *others: Any, **keywords: Any) -> torch.Tensor:
        """`(batch, ...)` to `(batch, classes)`: learn, unless frozen or the batch is empty or not finite, and predict.

        Methods do not override this. Nothing but the inputs is taken; the rest is there to be refused with a sentence.
        """
        check_inputs(inputs, others, keywords)
        with self._call(), torch.inference_mode(False):
            try:
                outputs = self._through(inputs.clone() if inputs.is_inference() else inputs.detach())
            except (RuntimeError, TypeError, IndexError) as error:
                if (reason := explained(error, self.model, inputs)) is None:
                    raise
                raise reason from error
            if isinstance(outputs, torch.Tensor) and outputs.ndim == 2:
                if self._classes and outputs.shape[1] != self._classes:
                    raise HoldfastError(f"the model returned {outputs.shape[1]} classes after {self._classes}")
                self._classes = outputs.shape[1]
        return outputs

    def adapt(self, stream: Iterable[Batch], epochs: int = 1) -> None:
        """Learn from a stream without keeping predictions; other calls wait until it is through."""
        for _ in range(epochs):
            with self._call():
                self.begin_epoch()
                for batch in stream:
                    self.record = {}
                    self._through(batch.inputs, learn=True)

    def predictor(self) -> "Adapter":
        """What predicts, without learning, after a whole stream was learnt from; here this adapter, frozen."""
        self.frozen = True
        return self

    @property
    def record(self) -> Record:
        """What the last step reports, name -> number: of the calling thread's own last call, if it made one.

        `skipped` is 1 where a batch was not learnt from because it, or what the model made of it, is not finite.
        """
        return self._records.read()

    @record.setter
    def record(self, record: Record) -> None:
        self._records.write(record)

    @final
    def reset(self) -> None:
        """Return to the state before the first batch, bit for bit."""
        with self._call():
            self._take(self._first)

    def release(self) -> nn.Module:
        """A plain model, of the caller's classes, with the adapted weights; it shares nothing with the adapter."""
        with self._lock:
            released = copy.deepcopy(self.model)
        for parameter in released.parameters():
            parameter.requires_grad_(True)
            parameter.grad = None
        return released

    def parent(self, model: nn.Module) -> "Adapter":
        """The adapter that this one is when its learning rate is 0."""
        return NoAdaptation(model)

    @property
    def parent_label(self) -> str:
        """What a study calls the parent, if it is there."""
        return "none"

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next((tensor.device for tensor in chain(self.parameters(), self.buffers())), torch.device("cpu"))

    def train(self, mode: bool = True) -> Self:
        """Store the flag and nothing more: what an adapter does depends on `frozen`, not on `.eval()`."""
        self.training = mode
        return self

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a safetensors file, whole; for `load_state` of such an adapter around the same model."""
        write_state(self.state_dict(), Path(path))

    def load_state(self, path: str | os.PathLike[str]) -> None:
        """Read what `save_state` wrote; a file of another adapter or model is refused, and nothing changes."""
        try:
            self.load_state_dict(read_state(Path(path)))
        except HoldfastError as error:
            raise error if str(path) in str(error) else HoldfastError(f"{path}: {error}") from error

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:  # type: ignore[override]
        """What this adapter owns, which is not all of the model, and the model that it belongs to; a snapshot."""
        with self._lock:
            everything = super().state_dict(prefix=prefix, keep_vars=keep_vars)
            own = {key: value for key, value in everything.items() if key.removeprefix(prefix) in self._own}
            if not keep_vars:
                own = snapshot(own)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = everything._metadata  # type: ignore[attr-defined]
        destination.update(own, **{prefix + IDENTITY: self._identity()})
        return destination

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Take a state, which must be whole and of such an adapter around the same model; nothing else is written to.

        Args:
            state_dict: from `state_dict`.
            strict: makes no difference.
            assign: is refused, since the adapter's tensors are its own.
        """
        if assign:
            raise HoldfastError("assign=True is not for adapters: a state is copied into tensors of their own")
        with self._lock:
            self._check(state_dict)
            self._take(state_dict)
        return _IncompatibleKeys([], [])

    def get_extra_state(self) -> dict[str, Any]:
        """What is neither parameter nor buffer, for `state_dict`."""
        return {"memory": snapshot(self.memory)}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """From a `state_dict`."""
        self.memory = snapshot(state["memory"])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_borrowed": Borrowed({})}  # a copy shares nothing with the caller's model

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        with self._lock:
            made.__setstate__(copy.deepcopy(self.__getstate__(), memo))
            for parameter, copied in zip(self.parameters(), made.parameters(), strict=True):
                copied.grad = None if parameter.grad is None else parameter.grad.clone()  # torch leaves it out
        return made

    def _identity(self) -> dict[str, str]:
        """What a state must belong to, to be this adapter's."""
        return {"adapter": type(self).__name__, "model": self._fingerprint}

    def _check(self, state: Mapping[str, Any]) -> None:
        """Refuse a state that is not one of this adapter's."""
        check_identity(state, self._identity())
        check_values(state, self._first)

    @torch.no_grad()
    def _take(self, state: Mapping[str, Any]) -> None:
        """Copy a state that was checked into what this adapter owns."""
        for name, value in super().state_dict(keep_vars=True).items():
            if isinstance(value, torch.Tensor) and name in self._own:
                value.copy_(state[name])
        for name in self._own:
            if name.rpartition(".")[2] == EXTRA:
                holder = self.get_submodule(name.removesuffix(EXTRA).rstrip("."))
                holder.set_extra_state(snapshot(state[name]))
        self.record = {}

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, metadata: Any, strict: bool, missing: list[str], *others: Any
    ) -> None:
        """What torch calls for an adapter inside another module that loads a state: all below it is loaded here."""
        own = {key.removeprefix(prefix): state_dict.pop(key) for key in list(state_dict) if key.startswith(prefix)}
        self._nested: str | None = prefix if own else None
        if own:
            self.load_state_dict(own)

    @contextmanager
    def _call(self) -> Iterator[None]:
        """One call: no other at the same time, and none on a model that was changed from outside."""
        with self._lock:
            self._borrowed.check(type(self).__name__)
            self.record = {}
            yield
            self._records.finish()

    def _through(self, inputs: torch.Tensor, learn: bool = False) -> torch.Tensor:
        """One batch, with the recent inputs where a window is kept."""
        inputs = self._arranged(inputs)
        if not all_finite(inputs):
            self.record["skipped"] = 1.0
            log.warning("a batch of %d has values that are not finite; it was predicted, not learnt from", len(inputs))
            return self.predict(inputs)
        if not len(inputs) or (self.frozen and not learn):
            return self.predict(inputs)
        if not self.window:
            return self.step(inputs)
        recent = self.memory.get("recent")
        seen = inputs if recent is None else torch.cat([recent.to(inputs), inputs])
        self.memory["recent"] = inputs[-self.window :] if len(inputs) >= self.window else seen[-self.window :]
        together = seen[-max(self.window, len(inputs)) :]
        return self.step(self._arranged(together))[-len(inputs) :]

    def _arranged(self, inputs: torch.Tensor) -> torch.Tensor:
        """On the model's device, in the memory layout that suits it."""
        inputs = inputs.to(self.device)
        if self._channels_last is None and len(inputs):
            before = [(buffer, buffer.clone()) for buffer in self.buffers()]
            self._channels_last = takes_channels_last(self.model, self.predict, inputs)
            for buffer, value in before:  # a trial that a later step does not see
                buffer.copy_(value)
        return arranged(inputs, bool(self._channels_last))

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """What torch calls for `.to(device)`, `.half()` and the like."""
        with self._lock:
            super()._apply(fn, recurse)
            self._keep_borrowed()
        return self

    def _remember(self) -> None:
        """Find out what is the adapter's own, keep its first values, and watch the rest."""
        callers = self._borrowed.places()
        own = {
            name: value
            for name, value in super().state_dict(keep_vars=True).items()
            if not isinstance(value, torch.Tensor) or place(value) not in callers
        }
        self._own, self._first = frozenset(own), snapshot(own)
        self._nested = None
        self.register_load_state_dict_post_hook(_loaded_whole)
        self._keep_borrowed()

    def _keep_borrowed(self) -> None:
        """Watch only the tensors that are still shared with the caller's model."""
        held = chain(self.parameters(), self._first.values())
        self._borrowed = self._borrowed.narrowed({place(value) for value in held if isinstance(value, torch.Tensor)})


def _loaded_whole(adapter: Adapter, keys: Any) -> None:
    """Take back torch's complaints about what an adapter inside another module does not own."""
    if adapter._nested is not None:
        keys.missing_keys[:] = [key for key in keys.missing_keys if not key.startswith(adapter._nested)]
    adapter._nested = None


def all_finite(values: torch.Tensor) -> bool:
    """Whether nothing is infinite or no number: by the sum, which is quick, and one by one if that is not finite."""
    return bool(torch.isfinite(values.sum())) or bool(torch.isfinite(values).all())


class NoAdaptation(Adapter):
    """The model as it is, in evaluation mode and without gradients."""


@contextmanager
def adapt(model: nn.Module, method: Callable[..., Adapter], **settings: Any) -> Iterator[Adapter]:
    """`with adapt(model, Tent, lr=1e-3) as adapted:`; the model is as it was, within and afterwards."""
    yield method(model, **settings)
