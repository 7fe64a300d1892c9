"""Streams: what reaches a model, in which order."""

from haptera.streams.benchmark import CCCBenchmark
from haptera.streams.calibration import Calibration
from haptera.streams.order import Correlated, Mixed
from haptera.streams.passes import Clean, DataStream, Shifted
from haptera.streams.recurring import Recurring
from haptera.streams.schedule import ContinualOrders, Gradual, permutations
from haptera.streams.sequence import Continual, Corruptions, Directory
from haptera.streams.stability import Stability
from haptera.streams.walk import CCC
from haptera.streams.wrap import Interleaved, OneByOne, Repeated, Truncated

__all__ = [
    "CCC",
    "CCCBenchmark",
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
    "Recurring",
    "Repeated",
    "Shifted",
    "Stability",
    "Truncated",
    "permutations",
]
