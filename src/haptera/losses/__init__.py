"""Losses: terms for any training loop."""

from haptera.losses.contrast import instance_contrast, view_contrast
from haptera.losses.dependencies import DependencyPenalty
from haptera.losses.self_learning import (
    conjugate_poly_loss,
    entropy,
    generalised_cross_entropy,
    hard_pseudo_labels,
    mutual_cross_entropy,
    soft_likelihood_ratio,
    soft_pseudo_labels,
    symmetric_cross_entropy,
)

__all__ = [
    "DependencyPenalty",
    "conjugate_poly_loss",
    "entropy",
    "generalised_cross_entropy",
    "hard_pseudo_labels",
    "instance_contrast",
    "mutual_cross_entropy",
    "soft_likelihood_ratio",
    "soft_pseudo_labels",
    "symmetric_cross_entropy",
    "view_contrast",
]
