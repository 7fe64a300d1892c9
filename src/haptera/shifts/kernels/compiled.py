"""How kernels are compiled."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from haptera.extras import compile_loop

Function = TypeVar("Function", bound=Callable[..., object])
Scalar = Any
"""A number of the width that a kernel needs: `np.float32` is not a `float` to a checker of types."""
CONTRACT = {"contract", "nsz", "reassoc"}
"""Products may be added in one step, and sums in any order: less than a hundredth of a grey level."""


def compiled(function: Function) -> Function:
    """Compile a kernel, keep it on disk, and let other threads run beside it."""
    return cast(Function, compile_loop(function, fastmath=CONTRACT))


@compiled
def copy(source: np.ndarray, target: np.ndarray) -> None:
    """Copy one line; numba's own assignment to a slice takes twenty times as long."""
    for index in range(len(target)):
        target[index] = source[index]


@compiled
def fill_line(target: np.ndarray, value: Scalar) -> None:
    """Give every value of a line the same."""
    for index in range(len(target)):
        target[index] = value
