"""An interval in a world whose truth is known."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from haptera.testing.intervals import LEAST, MOST

Random = np.random.Generator
SEVERAL = 40


@dataclass(frozen=True)
class Case:
    """An interval in a world whose truth is known.

    Attributes:
        interval: makes both ends of what was drawn.
        draw: makes data.
        truth: what should be between the ends, or a function of the data.
        least: the least share of the time.
        most: the largest; 1 where it is said to cover at least so much.
        quick: how many times data is drawn for a quick look; 0 where one time takes too long for that.
    """

    interval: Callable[..., tuple[Any, Any]]
    draw: Callable[[Random], tuple[Any, ...]]
    truth: Any
    least: float = LEAST
    most: float = MOST
    quick: int = 300
