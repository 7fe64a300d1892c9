"""Streams: what reaches a model, in which order."""

from holdfast.streams.base import DataStream
from holdfast.streams.calibration import Calibration, calibrate
from holdfast.streams.directory import Directory
from holdfast.streams.order import Correlated, Mixed
from holdfast.streams.schedule import ContinualOrders, Gradual, permutations
from holdfast.streams.sequence import Clean, Continual, Corruptions, Shifted
from holdfast.streams.stability import Stability
from holdfast.streams.walk import CCC
from holdfast.streams.wrap import Interleaved, OneByOne, Repeated, Truncated

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
    "calibrate",
    "permutations",
]
