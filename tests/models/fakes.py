"""Stand-ins for libraries that do not import here, with configurations recorded from their documentation."""

from enum import Enum
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn

TIMM = {
    "resnet50.a1_in1k": {
        "input_size": (3, 224, 224),
        "interpolation": "bicubic",
        "mean": (0.485, 0.456, 0.406),
        "std": (0.229, 0.224, 0.225),
        "crop_pct": 0.95,
        "crop_mode": "center",
    },
    "vit_base_patch16_siglip_384": {
        "input_size": (3, 384, 384),
        "interpolation": "bicubic",
        "mean": (0.5, 0.5, 0.5),
        "std": (0.5, 0.5, 0.5),
        "crop_pct": 1.0,
        "crop_mode": "squash",
    },
}
"""Name -> what `timm.data.resolve_model_data_config` returns for it."""


def small(classes: int = 5) -> nn.Module:
    """A network that takes colour images of any size."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        first = (nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(2))
        return nn.Sequential(*first, nn.Flatten(), nn.Linear(16, classes))


def install(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, object]]]:
    """Put stand-ins in the place of timm, torchvision and robustbench; return a list of what they are asked for."""
    asked: list[tuple[str, dict[str, object]]] = []

    def create_model(name: str, pretrained: bool = False, num_classes: int = 5, **others: object) -> nn.Module:
        if name not in TIMM and name != "resnet50":
            raise RuntimeError(f"Unknown model ({name})")
        asked.append((name, {"pretrained": pretrained, **others}))
        network = small(num_classes)
        network.config = TIMM.get(name, TIMM["resnet50.a1_in1k"])
        return network

    def load_model(model_name: str, dataset: str, threat_model: str) -> nn.Module:
        asked.append((model_name, {"dataset": dataset, "threat_model": threat_model}))
        return small()

    data = module("timm.data", resolve_model_data_config=lambda network: dict(network.config))
    zoo = module("robustbench.utils", load_model=load_model)
    for fake in (
        module("timm", create_model=create_model, data=data),
        data,
        module("torchvision", models=torchvision_models(asked)),
        torchvision_models(asked),
        module("robustbench", utils=zoo),
        zoo,
    ):
        monkeypatch.setitem(__import__("sys").modules, fake.__name__, fake)
    return asked


def module(name: str, **content: object) -> ModuleType:
    """A module with this content."""
    made = ModuleType(name)
    vars(made).update(content)
    return made


class Interpolation(Enum):
    """As `torchvision.transforms.InterpolationMode`."""

    BILINEAR = "bilinear"


def transforms(resize: int) -> SimpleNamespace:
    """What the transforms of weights for classification have."""
    values = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "interpolation": Interpolation.BILINEAR}
    return SimpleNamespace(crop_size=[224], resize_size=[resize], **values)


class Weights(Enum):
    """As `torchvision.models.ResNet50_Weights`."""

    IMAGENET1K_V1 = 256
    DEFAULT = 232

    def transforms(self) -> SimpleNamespace:
        return transforms(self.value)


def torchvision_models(asked: list[tuple[str, dict[str, object]]]) -> ModuleType:
    """As `torchvision.models`."""

    def get_model(name: str, weights: Weights | None = None, num_classes: int = 5) -> nn.Module:
        asked.append((name, {"weights": weights}))
        return small(num_classes)

    def get_model_weights(name: str) -> type[Weights]:
        if name != "resnet50":
            raise ValueError(f"Unknown model {name}")
        return Weights

    return module(
        "torchvision.models",
        get_model=get_model,
        get_model_weights=get_model_weights,
        list_models=lambda: ["resnet18", "resnet50"],
    )
