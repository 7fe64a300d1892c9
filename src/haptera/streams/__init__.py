"""Streams: what reaches a model, in which order."""

from haptera.streams.base import DataStream
from haptera.streams.calibration import Calibration
from haptera.streams.order import Correlated, Mixed
from haptera.streams.schedule import ContinualOrders, Gradual, permutations
from haptera.streams.sequence import Clean, Continual, Corruptions, Directory, Shifted
from haptera.streams.stability import Stability
from haptera.streams.walk import CCC
from haptera.streams.wrap import Interleaved, OneByOne, Repeated, Truncated

__all__ = [
    "CCC",
    "Calibration",
    "Clean",
    "Continual",
    "ContinualOrders",
    "Correlated",
    "Corruptions",
    "DataStream",
    "Directory",
    "Gradual",
    "Interleaved",
    "Mixed",
    "OneByOne",
    "Repeated",
    "Shifted",
    "Stability",
    "Truncated",
    "permutations",
]
