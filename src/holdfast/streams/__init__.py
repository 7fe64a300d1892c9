"""Streams: what reaches a model, in which order."""

from holdfast.streams.base import DataStream
from holdfast.streams.directory import Directory
from holdfast.streams.sequence import Clean, Continual, Corruptions, Shifted

__all__ = ["Clean", "Continual", "Corruptions", "DataStream", "Directory", "Shifted"]
