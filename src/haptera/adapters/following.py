"""Following: a mode that sees every function of a pass through a model, in which outputs may wait (`deferred.py`)."""

import sys
from abc import abstractmethod
from collections.abc import Collection
from threading import Lock
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode

from haptera.adapters.deferred import Layer, Room


class _Eagerly:
    """A stretch in which compiled parts of a model run as they were written: the compiler does not follow such modes.

    The compiler has one stance for all threads, so the first one in sets it and the last one out puts it back.
    """

    def __init__(self) -> None:
        self._lock, self._within = Lock(), 0
        self._stance: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._within and "torch._dynamo" in sys.modules:  # else nothing was compiled yet
                self._stance = torch.compiler.set_stance("force_eager")
            self._within += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._within -= 1
            if not self._within and self._stance is not None:
                self._stance.__exit__(None, None, None)
                self._stance = None


EAGERLY = _Eagerly()


class Following(TorchFunctionMode):
    """Follows a pass; what a subclass does with functions goes through its room."""

    def __init__(self) -> None:
        super().__init__()
        self._room = Room()

    @abstractmethod
    def layers(self) -> Collection[Layer]:
        """Return the layers that are known, in a first pass perhaps none."""

    def __enter__(self) -> Self:
        """Begin to follow."""
        EAGERLY.__enter__()
        layers = self.layers()
        self._room.begin(not layers or any(layer.followed is None for layer in layers))
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        """Write what waits, and follow no more."""
        super().__exit__(*exception)
        try:
            self._room.end(self.layers(), exception[0] is None)
        finally:
            EAGERLY.__exit__()
