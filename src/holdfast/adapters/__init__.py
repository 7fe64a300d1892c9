"""Adapters: models that change with the data they see, without labels."""

from holdfast.adapters.base import Adapter, NoAdaptation, share
from holdfast.adapters.batchnorm import BatchNorm

__all__ = ["Adapter", "BatchNorm", "NoAdaptation", "share"]
