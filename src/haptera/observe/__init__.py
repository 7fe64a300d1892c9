"""Observe: what reads the activations of a model."""

from haptera.observe.moments import batchnorm_statistics, observe_moments
from haptera.observe.similarity import layer_similarity
from haptera.observe.stability import Probe, Response, respond

__all__ = ["Probe", "Response", "batchnorm_statistics", "layer_similarity", "observe_moments", "respond"]
