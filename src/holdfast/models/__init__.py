"""Small networks that need nothing but torch, and how a user's own model is loaded."""

from holdfast.models.convolutional import LeNet, ResNet
from holdfast.models.dense import MLP, Linear
from holdfast.models.source import ModelSource
from holdfast.models.transformer import ViT

__all__ = ["MLP", "LeNet", "Linear", "ModelSource", "ResNet", "ViT"]
