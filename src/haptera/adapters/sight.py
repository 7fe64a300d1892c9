"""Sight of every operation in a pass, also of those in TorchScript and extensions, which a mode of functions misses.

It costs some microseconds for each operation, and is meant for a first pass.
"""

from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

See = Callable[[Any, tuple[Any, ...]], None]


class Sight(TorchDispatchMode):
    """Hands each operation with its arguments to `see`, and then lets it do what it does."""

    supports_higher_order_operators = True

    def __init__(self, see: See) -> None:
        super().__init__()
        self._see = see

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Look, and call."""
        self._see(func, args)
        return func(*args, **(kwargs or {}))
