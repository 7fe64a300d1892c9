"""Observe: what reads the activations of a model."""

from holdfast.observe.moments import batchnorm_statistics, observe_moments

__all__ = ["batchnorm_statistics", "observe_moments"]
