"""Observe: what reads the activations of a model."""

from holdfast.observe.moments import batchnorm_statistics, observe_moments
from holdfast.observe.similarity import layer_similarity
from holdfast.observe.stability import Probe, Response, respond

__all__ = ["Probe", "Response", "batchnorm_statistics", "layer_similarity", "observe_moments", "respond"]
