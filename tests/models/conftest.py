"""One small network, in every form that people have."""

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn

SIZE, CLASSES = 16, 5
MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)


class Logits(nn.Module):
    """A network of transformers with its normalisation, from images in [0, 1] to logits, as somebody would write it."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, STD))
        return self.network((images - mean) / std).logits


@dataclass(frozen=True)
class Forms:
    """A folder with `hf/`, `net.onnx`, `net.pt2`, `net.ts`, `net.py` (`build` and `answer`) and the network itself."""

    folder: Path
    network: nn.Module
    images: torch.Tensor


def small_resnet() -> nn.Module:
    """A ResNet of transformers with statistics that are not the defaults."""
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(
        num_channels=3, embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=CLASSES
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = ResNetForImageClassification(config)
        for _ in range(3):
            network(torch.randn(32, 3, SIZE, SIZE))
    return network.eval()


def processor(**given: object) -> dict[str, object]:
    """The settings of an image processor as transformers writes them."""
    usual = {"do_resize": True, "size": {"shortest_edge": SIZE}, "crop_pct": 0.875, "resample": 3, "do_rescale": True}
    normal = {"rescale_factor": 1 / 255, "do_normalize": True, "image_mean": list(MEAN), "image_std": list(STD)}
    return usual | normal | {"image_processor_type": "ConvNextImageProcessor"} | given


NET = """
from functools import cache
from pathlib import Path
from safetensors.torch import load_file
import torch

def build():
    from transformers import AutoConfig, AutoModelForImageClassification
    from tests.models.conftest import Logits
    folder = Path(__file__).parent / "hf"
    network = AutoModelForImageClassification.from_config(AutoConfig.from_pretrained(folder))
    network.load_state_dict(load_file(folder / "model.safetensors"))
    return Logits(network)

@cache
def network():
    return build().eval()

def answer(images):
    with torch.no_grad():
        return network()(torch.from_numpy(images)).numpy()
"""


@pytest.fixture(scope="session")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Forms:
    """Write the network in every form, once."""
    folder = tmp_path_factory.mktemp("forms")
    network = small_resnet()
    whole = Logits(network).eval()
    images = torch.rand(8, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1))
    with quiet():
        network.save_pretrained(folder / "hf")
        batch = torch.export.Dim("batch", min=2, max=64)
        program = torch.export.export(whole, (images,), dynamic_shapes=[{0: batch}])
        torch.export.save(program, folder / "net.pt2")
        torch.onnx.export(program, f=folder / "net.onnx", dynamo=True, external_data=False, verbose=False)
        torch.jit.save(torch.jit.trace(whole, images), folder / "net.ts")
    (folder / "hf" / "preprocessor_config.json").write_text(json.dumps(processor()))
    (folder / "net.py").write_text(NET)
    return Forms(folder, whole, images)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence exporters, which warn of much."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def write_onnx(network: nn.Module, images: torch.Tensor, path: Path, **settings: object) -> None:
    """Export to ONNX by torch's older exporter, which is quick; without settings every axis is fixed."""
    with quiet():
        torch.onnx.export(network, (images,), path, dynamo=False, input_names=["images"], **settings)
