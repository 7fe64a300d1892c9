"""What is known about a measure, attached to the function: its bounds, and which direction is good."""

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def measure(*, bounds: tuple[float, float], higher_is_better: bool | None = None) -> Callable[[Function], Function]:
    """Declare a measure; the function itself stays as it is."""

    def declare(function: Function) -> Function:
        function.bounds = bounds  # type: ignore[attr-defined]
        function.higher_is_better = higher_is_better  # type: ignore[attr-defined]
        return function

    return declare
