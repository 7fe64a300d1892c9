"""Small networks that need nothing but torch, and how a user's own model is loaded."""

from haptera.models.networks import MLP, LeNet, Linear, ResNet, ViT
from haptera.models.source import ModelSource

__all__ = ["MLP", "LeNet", "Linear", "ModelSource", "ResNet", "ViT"]
