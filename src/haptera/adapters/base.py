"""Adapter: an `nn.Module` around a model that changes with the data it sees, and never sees a target.

The base owns `forward`, `reset`, `release`, the state and the record of each step; a method writes `step`, and
`predict` where predicting without learning is more than a pass through the model. The caller's model stays as it was:
the adapter works on a copy of the modules that shares every parameter but those the method names in `changes`.
"""

import functools
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import isfinite
from typing import Any, ClassVar, Self, TypeVar, cast, get_args

import torch
from torch import nn

from haptera.adapters.norm import remove_blends
from haptera.adapters.passes import (
    arrange,
    check_inputs,
    device_of,
    explain_failure,
    last_of,
    run,
    takes_channels_last,
)
from haptera.adapters.sharing import Borrowed, check_model, model_fingerprint, share
from haptera.adapters.stateful import Lock, Records, Stateful
from haptera.batch import Batch
from haptera.checks import check_whole_number
from haptera.errors import HapteraError, NotApplicable
from haptera.modules import copy_modules, unwrap, why_opaque

Build = TypeVar("Build", bound=Callable[..., None])
log = logging.getLogger("haptera")


def _signature(cls: type) -> inspect.Signature:
    """Return the signature of `__init__` with `**settings` spelt out.

    They are those of the base, or of the class that their annotation names, as in `**settings: Annotated[Any, ETA]`.
    """
    parameters: dict[str, inspect.Parameter] = {}
    kinds = list(cls.__mro__)
    while kinds:
        kind = kinds.pop(0)
        if "__init__" not in vars(kind):
            continue
        own = dict(inspect.signature(vars(kind)["__init__"]).parameters)
        passed = next((own.pop(name) for name, p in own.items() if p.kind == p.VAR_KEYWORD), None)
        if parameters:  # what is passed on is passed by name
            own = {name: p.replace(kind=p.KEYWORD_ONLY) for name, p in own.items() if name not in parameters}
        parameters |= own
        if passed is None:
            break
        for named in get_args(passed.annotation)[1:]:
            kinds = list(named.__mro__)
    del parameters["self"]
    return inspect.Signature(sorted(parameters.values(), key=lambda p: (p.kind, p.default is not p.empty)))


def _whole(build: Build) -> Build:
    """Return an `__init__` that takes the network out of a wrapped model and, when the object is whole, remembers it.

    Of the `__init__` of a class and those of its bases, which it calls, only the first to begin does so.
    """

    @functools.wraps(build)
    def build_whole(adapter: "Adapter", *args: Any, **kwargs: Any) -> None:
        if "_whole" in vars(adapter):
            return build(adapter, *args, **kwargs)
        vars(adapter)["_whole"] = False
        kwargs = {name: unwrap(value) for name, value in kwargs.items()}
        with torch.inference_mode(False):  # else its tensors could never have a gradient
            build(adapter, *map(unwrap, args), **kwargs)
            adapter._remember()
        del vars(adapter)["_whole"]

    return cast(Build, build_whole)


class Adapter(Stateful):
    """A model that adapts online.

    State that `state_dict` carries and `reset` restores lives in parameters, in buffers, and in `memory`. Calls from
    several threads are answered one after the other.

    Args:
        model: any `nn.Module` from images to logits, its input normalisation included.
        window: predict and learn together with the last inputs, up to this many in all; for batches of one or a few.
        frozen: predict without learning.
        seed: of the random numbers of methods that draw some.

    Attributes:
        model: the adapter's own copy of the modules, in evaluation mode.
        memory: name -> number, text or tensor; what changes and is neither parameter nor buffer.
        random: the generator that a method draws all its random numbers from; it starts from the seed.
    """

    __signature__: ClassVar[inspect.Signature]
    outputs_only: ClassVar[bool] = False
    """Whether the method needs nothing but the outputs of a model, so that one without layers will do."""

    def __init_subclass__(cls, **settings: Any) -> None:
        """Spell out the signature, and have every object remember itself once it is built."""
        super().__init_subclass__(**settings)
        cls.__signature__ = _signature(cls)
        if "__init__" in vars(cls):
            cls.__init__ = _whole(cls.__init__)  # type: ignore[method-assign]

    @_whole
    def __init__(self, model: nn.Module, *, window: int = 0, frozen: bool = False, seed: int = 0) -> None:
        super().__init__()
        check_model(model)
        if not self.outputs_only and (why := why_opaque(model)):
            raise NotApplicable(f"{type(self).__name__} needs the gradients or the layers of a model, and {why}")
        check_whole_number("window", window, 0, what="a number of images")
        check_whole_number("seed", seed, 0)
        self._lock, self._records = Lock(), Records()
        self.window, self.frozen, self.seed = window, frozen, seed
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
        with self._call(), torch.inference_mode(False), explain_failure(self.model, inputs):
            outputs = self._through(inputs.clone() if inputs.is_inference() else inputs.detach())
            if isinstance(outputs, torch.Tensor) and outputs.ndim == 2:
                if self._classes and outputs.shape[1] != self._classes:
                    raise HapteraError(f"the model returned {outputs.shape[1]} classes after {self._classes}")
                self._classes = outputs.shape[1]
        return outputs

    def adapt(self, stream: Iterable[Batch], epochs: int = 1) -> None:
        """Learn from a stream without keeping predictions; other calls wait until it is through."""
        for _ in range(epochs):
            with self._call():
                self.begin_epoch()
                for batch in stream:
                    self.record = {}
                    with explain_failure(self.model, batch.inputs):
                        self._through(batch.inputs, learn=True)

    def predictor(self) -> "Adapter":
        """What predicts, without learning, after a whole stream was learnt from; here this adapter, frozen."""
        self.frozen = True
        return self

    def release(self, source_statistics: bool = False) -> nn.Module:
        """Return a plain model, of the caller's classes, with the adapted weights; it shares nothing with the adapter.

        Args:
            source_statistics: with the BatchNorm statistics of the source, not those found last.
        """
        with self._lock, torch.no_grad():
            released = copy_modules(self.predicting)
        for parameter in released.parameters():
            parameter.requires_grad_(True)
            parameter.grad = None
        remove_blends(released, source_statistics)
        return released

    @property
    def predicting(self) -> nn.Module:
        """The module that predicts."""
        return self.model

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
        return device_of(self)

    def train(self, mode: bool = True) -> Self:
        """Store the flag and nothing more: what an adapter does depends on `frozen`, not on `.eval()`."""
        self.training = mode
        return self

    def _through(self, inputs: torch.Tensor, learn: bool = False) -> torch.Tensor:
        """One batch, with the recent inputs where a window is kept."""
        inputs = self._arrange(inputs)
        if not all_finite(inputs):
            self.record["skipped"] = 1.0
            log.warning("a batch of %d has values that are not finite; it was predicted, not learnt from", len(inputs))
            return self._predict_only(inputs)
        if not len(inputs) or (self.frozen and not learn):
            return self._predict_only(inputs)
        if not self.window:
            return self.step(inputs)
        recent = self.memory.get("recent")
        seen = inputs if recent is None else torch.cat([recent.to(inputs), inputs])
        self.memory["recent"] = inputs[-self.window :] if len(inputs) >= self.window else seen[-self.window :]
        together = seen[-max(self.window, len(inputs)) :]
        return last_of(self.step(self._arrange(together)), len(inputs))

    def _predict_only(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict a batch; random numbers drawn for it are not missing later."""
        with self._keep_random():
            return self.predict(inputs)

    def _arrange(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return inputs on the model's device, in the memory layout that suits it."""
        inputs = inputs.to(self.device)
        if self._channels_last is None and len(inputs):
            before = [(buffer, buffer.clone()) for buffer in self.buffers()]
            self._channels_last = takes_channels_last(self.model, self._predict_only, inputs)
            for buffer, value in before:  # a trial that a later step does not see
                buffer.copy_(value)
        return arrange(inputs, bool(self._channels_last))


def all_finite(values: torch.Tensor) -> bool:
    """Say whether all values are finite: by the sum, which is quick, and one by one if that is not finite."""
    return isfinite(float(values.sum())) or bool(torch.isfinite(values).all())


class NoAdaptation(Adapter):
    """The model as it is, in evaluation mode and without gradients."""

    outputs_only = True


@contextmanager
def adapt(model: nn.Module, method: Callable[..., Adapter], **settings: Any) -> Iterator[Adapter]:
    """`with adapt(model, Tent, lr=1e-3) as adapted:`; the model is as it was, within and afterwards."""
    yield method(model, **settings)
