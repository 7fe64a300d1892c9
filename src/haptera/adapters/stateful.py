"""Stateful: a module that owns some of its tensors and borrows the others from the caller's model.

What it owns is found once it is built: everything that is not the caller's memory. That is its state, which
`state_dict` carries, `reset` restores, and a copy holds for itself. Calls are answered one at a time, and each thread
reads the record of its own last call.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Self, final

import torch
from torch import nn
from torch.nn.modules.module import _IncompatibleKeys

from haptera.adapters.generator import generator_at, generator_of
from haptera.adapters.sharing import Borrowed, place
from haptera.adapters.state import EXTRA, IDENTITY, check_identity, check_values, read_state, snapshot, write_state
from haptera.errors import HapteraError
from haptera.modules import copy_modules, deep_copy

Record = dict[str, float]


class Lock:
    """A lock that the thread which holds it may take again; unlike threading's, it copies and pickles, unlocked."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type["Lock"], tuple[()]]:
        return Lock, ()


class Records:
    """The record of each thread's last call; a thread that made none reads the newest finished one."""

    def __init__(self, newest: Record | None = None) -> None:
        self._own = threading.local()
        self._newest = {} if newest is None else newest

    def read(self) -> Record:
        """The calling thread's, the same object until it is written again."""
        return getattr(self._own, "record", self._newest)

    def write(self, record: Record) -> None:
        """Begin the calling thread's record anew."""
        self._own.record = record

    def finish(self) -> None:
        """Show the calling thread's record to threads that have none."""
        self._newest = self.read()

    def __reduce__(self) -> tuple[Callable[..., "Records"], tuple[Record]]:
        return Records, (dict(self.read()),)


class Stateful(nn.Module):
    """The part of an adapter that holds its state.

    Attributes:
        memory: name -> number, text or tensor; what changes and is neither parameter nor buffer.
        seed: of all random numbers.
    """

    _lock: Lock
    _records: Records
    _fingerprint: str
    _borrowed: Borrowed
    memory: dict[str, Any]
    seed: int = 0
    _random: torch.Generator | None = None

    @property
    def random(self) -> torch.Generator:
        """The generator of all random numbers of this adapter, part of its state; it starts from `seed`."""
        if self._random is None:
            self._random = generator_of(self.seed)
        return self._random

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

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a safetensors file, whole; for `load_state` of such an adapter around the same model."""
        write_state(self.state_dict(), Path(path))

    def load_state(self, path: str | os.PathLike[str]) -> None:
        """Read what `save_state` wrote; a file of another adapter or model is refused, and nothing changes."""
        try:
            self.load_state_dict(read_state(Path(path)))
        except HapteraError as error:
            raise error if str(path) in str(error) else HapteraError(f"{path}: {error}") from error

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
            raise HapteraError("assign=True is not for adapters: a state is copied into tensors of their own")
        with self._lock:
            self._check(state_dict)
            self._take(state_dict)
        return _IncompatibleKeys([], [])

    def get_extra_state(self) -> dict[str, Any]:
        """What is neither parameter nor buffer, for `state_dict`."""
        place = None if self._random is None else self._random.get_state()
        return {"memory": snapshot(self.memory), "random": place}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take what is neither parameter nor buffer from a `state_dict`."""
        self.memory, self._random = snapshot(state["memory"]), generator_at(state["random"])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_borrowed": Borrowed({})}  # a copy shares nothing with the caller's model

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        learns = any(parameter.requires_grad for parameter in self.parameters())
        if learns and any(isinstance(module, torch.jit.ScriptModule) for module in self.modules()):
            raise HapteraError(
                "an adapter that learns around TorchScript cannot be copied: torch does not say which parameter of the "
                "copy is which; build another adapter and load the state of this one"
            )
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        with self._lock:
            made.__setstate__(self._copy_state(memo))
            for parameter, copied in zip(self.parameters(), made.parameters(), strict=True):
                copied.grad = None if parameter.grad is None else parameter.grad.clone()  # torch leaves it out
        return made

    def _copy_state(self, memo: dict[int, Any]) -> dict[str, Any]:
        """Return a deep copy of all attributes, of models first that cannot be copied as a whole."""
        try:
            return deep_copy(self.__getstate__(), memo)
        except (RuntimeError, TypeError, NotImplementedError):
            for child in self.children():
                copy_modules(child, memo)
            return deep_copy(self.__getstate__(), memo)

    def _identity(self) -> dict[str, str]:
        """What a state must belong to, to be this adapter's."""
        return {"adapter": type(self).__name__, "model": self._fingerprint}

    def _check(self, state: Mapping[str, Any]) -> None:
        """Refuse a state that is not one of this adapter's."""
        check_identity(state, self._identity())
        check_values(state, self._first)
        generator_at(state[EXTRA]["random"])

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

    @contextmanager
    def _keep_random(self) -> Iterator[None]:
        """Put the generator back at the end, so that what is drawn within makes no difference later."""
        place = None if self._random is None else self._random.get_state()
        try:
            yield
        finally:  # also after a trial pass that was ended
            self._random = generator_at(place)

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
            if (place(value) not in callers if isinstance(value, torch.Tensor) else name.endswith((EXTRA, IDENTITY)))
        }
        self._own, self._first = frozenset(own), snapshot(own)
        self._nested = None
        self.register_load_state_dict_post_hook(_loaded_whole)
        self._keep_borrowed()

    def _keep_borrowed(self) -> None:
        """Watch only the tensors that are still shared with the caller's model."""
        held = chain(self.parameters(), self._first.values())
        self._borrowed = self._borrowed.narrow({place(value) for value in held if isinstance(value, torch.Tensor)})


def _loaded_whole(adapter: Stateful, keys: Any) -> None:
    """Take back torch's complaints about what an adapter inside another module does not own."""
    if adapter._nested is not None:
        keys.missing_keys[:] = [key for key in keys.missing_keys if not key.startswith(adapter._nested)]
    adapter._nested = None
