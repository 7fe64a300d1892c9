"""Deferred: a normalisation that waits for the next call, since a ReLU, or an addition and a ReLU, may go with it.

A pass over memory takes as long as the arithmetic of several, and a layer's output is read again at once by the ReLU
behind it. Within a pass through a model that a `TorchFunctionMode` follows, the output of a normalisation that goes
through compiled loops (`fused.py`) is a tensor whose values are written when the next function is called, whatever it
is: with the ReLU in them if it is one, as they are if it is not, and before the function sees them. Nothing can happen
between, and results are the same to the last bit.
An output waits only where a ReLU came next in the first pass, in which every operation is seen (`sight.py`), also
those that no such mode sees: where a function of TorchScript, or of a compiled extension, comes before the ReLU, it
meets values and not memory that waits for them. While one waits, operations are seen again: where a later pass takes
another branch, into such a function, its first operation has the output written, and that layer waits no more. Nor does
one of a layer that is run twice in a pass, or whose ReLU is in an autograd function with a gradient of its own. With
compiled modules of TorchScript in a model none waits. An output that somebody keeps, such as a hook, is written all the
same, one call later; it does not wait where an operation that no such mode sees came before that call.
Cost: some Python calls per layer, and 2 µs for each stretch in which operations are seen. Saves a pass over memory for
each ReLU, forward and backward, and each addition.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import _get_current_dispatch_mode
from torch.utils.weak import TensorWeakRef

from haptera.adapters.fused import Normalisation, suits
from haptera.adapters.sight import Sight
from haptera.adapters.waiting import Marked, Rectified, Sum, Waiting, like

RELUS = (F.relu, torch.relu, torch.Tensor.relu, torch.relu_, torch.Tensor.relu_)
ADDITIONS = (torch.add, torch.Tensor.add, torch.Tensor.add_)
IN_PLACE = (torch.relu_, torch.Tensor.relu_, torch.Tensor.add_)
RELU, ADDITION, OTHER = "relu", "addition", "other"


class Layer(Protocol):
    """What normalises; `followed` says what came next: a ReLU, an addition and a ReLU, anything else, or unknown."""

    followed: str | None


class Room:
    """Where the outputs of one pass wait, one at a time."""

    def __init__(self) -> None:
        self._layer: Layer | None = None
        self._waiting: Waiting | None = None
        self._kept: tuple[TensorWeakRef, Normalisation, torch.Tensor | None] | None = None
        self._noted: tuple[Layer, torch.Tensor, str] | None = None
        self._left: tuple[Layer, TensorWeakRef] | None = None
        self._sight: Sight | None = None
        self._guard, self._guarded = Sight(self._interrupt), False
        self._owner: Layer | None = None
        self._called: set[int] = set()

    def begin(self, first: bool) -> None:
        """Begin a pass; in a first one, or one with new layers, every operation is looked at."""
        self._called.clear()
        if first:
            self._sight = Sight(self._see)
            self._sight.__enter__()

    def end(self, layers: Iterable[Layer], finished: bool) -> None:
        """Write what waits; layers of a whole first pass that nothing is known of will not wait."""
        sight, self._sight = self._sight, None
        if sight is not None:
            sight.__exit__(None, None, None)
        self.settle()
        for layer in layers if sight is not None and finished else ():
            layer.followed = layer.followed or OTHER

    def _see(self, func: Any, args: tuple[Any, ...]) -> None:
        """Note that an operation came before the next call, or after a ReLU whose input somebody still has."""
        left, self._left = self._left, None
        if left is not None and left[1]() is not None:
            left[0].followed = OTHER
        if self._noted is not None:
            (layer, *_), self._noted = self._noted, None
            layer.followed = OTHER

    def _interrupt(self, func: Any, args: tuple[Any, ...]) -> None:
        """Write what waits before an operation that came without a call, and let that layer wait no more."""
        kept = self._kept is not None and self._kept[0]() is not None
        if self._owner is not None and (kept or self._waiting is not None):
            self._owner.followed = OTHER
        with torch.no_grad():
            self._write()

    def _watch(self) -> None:
        """Look at every operation while something waits."""
        if not self._guarded and (self._waiting is not None or self._kept is not None):
            self._guard.__enter__()
            self._guarded = True

    def _unwatch(self) -> None:
        if self._guarded and _get_current_dispatch_mode() is self._guard:  # else it looks on, and finds nothing
            self._guard.__exit__(None, None, None)
            self._guarded = False

    def normalise(self, layer: Layer, run: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Run a layer, whose output may wait here, and note what comes after it if that is not known."""
        self.settle()
        if id(layer) in self._called:  # what came after one call says nothing about another
            layer.followed = OTHER
        self._called.add(id(layer))
        if layer.followed is None:
            out = run()
            self._noted = None if self._sight is None else (layer, out, RELU)
            return out
        self._layer, before = layer, _OPEN.__dict__.get("room")
        _OPEN.room = self
        try:
            out = run()
        finally:
            self._layer, _OPEN.room = None, before
        self._owner = layer
        self._watch()
        return out

    def takes(self) -> bool:
        """Say whether an output of this layer may wait."""
        return self._layer is not None and self._layer.followed in (RELU, ADDITION)

    def put(self, waiting: Waiting) -> torch.Tensor:
        """Let an output wait for the next call."""
        self._waiting = waiting
        return waiting.out

    def call(self, func: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """Call any other function, which may be one that was waited for."""
        self._unwatch()
        result = self._call(func, args, kwargs)
        self._watch()
        return result

    def _call(self, func: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        self._left = None
        if self._noted is not None:
            return self._note(func, args, kwargs)
        waiting, self._waiting = self._waiting, None
        self._write_kept()
        if waiting is None:
            return func(*args, **kwargs)
        if waiting.again is None or torch.is_grad_enabled():  # else in a function that has a gradient of its own
            if (in_place := _relu(func, args, kwargs, waiting.out)) is not None:
                return self._rectify(waiting, in_place)
            other = None if waiting.other is not None else _added(func, args, kwargs, waiting.out)
            if other is not None and suits(other):
                return self._add(waiting, other, func in IN_PLACE)
        with torch.no_grad():
            waiting.write(waiting.out)
        return func(*args, **kwargs)

    def settle(self) -> None:
        """Write what waits, and look at operations no more."""
        self._unwatch()
        self._noted, self._left = None, None
        self._write()

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, None
        self._write_kept()
        if waiting is not None:
            waiting.write(waiting.out)

    def _rectify(self, waiting: Waiting, in_place: bool) -> torch.Tensor:
        grad = waiting.again is not None
        if waiting.other is not None and grad:
            out: torch.Tensor = Rectified.apply(waiting.out, waiting, in_place)
        elif in_place:
            return Marked.apply(waiting.out, waiting) if grad else waiting.write(waiting.out, rectify=True)
        else:
            out = waiting.again() if waiting.again is not None else waiting.write(like(waiting.out), rectify=True)
        if not in_place:
            self._keep(waiting)
        return out

    def _add(self, waiting: Waiting, other: torch.Tensor, in_place: bool) -> torch.Tensor:
        if not in_place:
            self._keep(waiting)
        if torch.is_grad_enabled():
            waiting.again = waiting.again or waiting.out.clone  # a gradient is wanted by the other tensor alone
            out = Sum.apply(waiting.out, other, in_place)
        else:
            out = waiting.out if in_place else like(waiting.out)
        both = Waiting(out, waiting.normalisation, waiting.again)
        both.other = other.detach()
        return self.put(both)

    def _keep(self, waiting: Waiting) -> None:
        self._kept = TensorWeakRef(waiting.out), waiting.normalisation, waiting.other

    def _write_kept(self) -> None:
        """Write an output that was not needed, if anybody still has it."""
        if self._kept is not None:
            (reference, normalisation, other), self._kept = self._kept, None
            out = reference()
            if out is not None:
                normalisation.write(out, other)

    def _note(self, func: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        assert self._noted is not None
        (layer, out, found), self._noted = self._noted, None
        if (in_place := _relu(func, args, kwargs, out)) is not None:
            layer.followed, result = found, func(*args, **kwargs)
            self._left = None if in_place else (layer, TensorWeakRef(out))
            return result
        if found == RELU and _added(func, args, kwargs, out) is not None:
            result = func(*args, **kwargs)
            self._noted = layer, result, ADDITION
            return result
        layer.followed = OTHER
        return func(*args, **kwargs)


def first_guess(model: nn.Module) -> str | None:
    """What follows the layers of a model before any pass: unknown, or anything, where calls inside cannot be seen."""
    return OTHER if any(isinstance(layer, torch.jit.ScriptModule) for layer in model.modules()) else None


_OPEN = threading.local()


def room() -> Room | None:
    """Where the output of the normalisation that this thread is in may wait."""
    own: Room | None = _OPEN.__dict__.get("room")
    return own if own is not None and own.takes() else None


def _relu(func: Any, args: Any, kwargs: Mapping[str, Any], out: torch.Tensor) -> bool | None:
    """Whether a ReLU of this tensor works in place; None if the call is anything else."""
    if func not in RELUS or not args or args[0] is not out:
        return None
    if func is not F.relu:
        return func in IN_PLACE if len(args) == 1 and not kwargs else None
    return bool(args[1] if len(args) > 1 else kwargs.get("inplace", False))


def _added(func: Any, args: Any, kwargs: Mapping[str, Any], out: torch.Tensor) -> torch.Tensor | None:
    """What is added to this tensor; None if the call is anything else."""
    if func not in ADDITIONS or len(args) != 2 or kwargs:
        return None
    one, two = args
    other = two if one is out else one if two is out and func not in IN_PLACE else None
    if other is out or type(other) is not torch.Tensor or other.shape != out.shape or other.dtype != out.dtype:
        return None
    return other
