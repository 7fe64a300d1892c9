"""Small networks that need nothing but torch, and how a user's own model is loaded, whatever form it has."""

from haptera.models.classifier import Classifier
from haptera.models.maite import MaiteModel, from_maite
from haptera.models.networks import MLP, LeNet, Linear, ResNet, ViT
from haptera.models.opaque import OpaqueModel, from_callable
from haptera.models.preprocessing import Preprocessing
from haptera.models.source import ModelSource
from haptera.models.zeroshot import ZeroShot

__all__ = [
    "MLP",
    "Classifier",
    "LeNet",
    "Linear",
    "MaiteModel",
    "ModelSource",
    "OpaqueModel",
    "Preprocessing",
    "ResNet",
    "ViT",
    "ZeroShot",
    "from_callable",
    "from_maite",
]
