"""Losses: terms for any training loop."""

from haptera.losses.dependencies import DependencyPenalty
from haptera.losses.self_learning import (
    conjugate_poly_loss,
    entropy,
    generalised_cross_entropy,
    hard_pseudo_labels,
    soft_likelihood_ratio,
    soft_pseudo_labels,
)

__all__ = [
    "DependencyPenalty",
    "conjugate_poly_loss",
    "entropy",
    "generalised_cross_entropy",
    "hard_pseudo_labels",
    "soft_likelihood_ratio",
    "soft_pseudo_labels",
]
