"""Contrastive: encoders, losses, samplers and training, and the scikit-learn estimator around them."""

from haptera.contrastive.estimator import ContrastiveEmbedding

__all__ = ["ContrastiveEmbedding"]
