"""Loaders of libraries that do not import here, by stand-ins with recorded configurations; transformers for real."""

import json

import pytest
import torch
from safetensors.torch import save_file
from tests.models.conftest import processor, quiet
from tests.models.fakes import Weights, install, small

from haptera.adapters import NoAdaptation, Tent
from haptera.errors import HapteraError
from haptera.models import ModelSource, Preprocessing

IMAGES = torch.rand(4, 3, 12, 12, generator=torch.Generator().manual_seed(0))
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@pytest.fixture
def asked(monkeypatch):
    return install(monkeypatch)


@pytest.mark.parametrize(
    ("name", "arguments", "expected", "request_"),
    [
        # timm rounds 224 / 0.95 = 235.8 down to 235
        ("timm:resnet50.a1_in1k", {}, (224, 224 / 235, "bicubic", *IMAGENET), {"pretrained": True}),
        (
            "timm:vit_base_patch16_siglip_384",
            {"pretrained": False},
            (384, "squash", "bicubic", (0.5,) * 3, (0.5,) * 3),
            {"pretrained": False},
        ),
        ("torchvision:resnet50", {}, (224, 224 / 232, "bilinear", *IMAGENET), {"weights": Weights.DEFAULT}),
        (
            "torchvision:resnet50",
            {"weights": "IMAGENET1K_V1"},
            (224, 0.875, "bilinear", *IMAGENET),
            {"weights": Weights.IMAGENET1K_V1},
        ),
        (
            "robustbench:Hendrycks2020AugMix_ResNeXt",
            {},
            (32, None, None, None, None),
            {"dataset": "cifar10", "threat_model": "corruptions"},
        ),
        (
            "robustbench:Standard_R50",
            {"dataset": "imagenet", "threat_model": "Linf"},
            (224, 0.875, "bilinear", None, None),
            {"dataset": "imagenet", "threat_model": "Linf"},
        ),
    ],
)
def test_a_configuration_is_followed(name, arguments, expected, request_, asked):
    model = ModelSource(name, arguments=arguments)()
    assert model.preprocessing == Preprocessing(*expected)
    assert asked[-1] == (name.partition(":")[2], request_)
    mean, std = (torch.tensor(values or (default,)) for values, default in ((expected[3], 0.0), (expected[4], 1.0)))
    inputs = (IMAGES - mean.view(1, -1, 1, 1)) / std.view(1, -1, 1, 1)
    assert torch.allclose(model(IMAGES), small().eval()(inputs), atol=1e-5)


@pytest.mark.parametrize(("prefix", "absent"), [("timm", {"pretrained": False}), ("torchvision", {"weights": None})])
def test_weights_of_ones_own_are_not_downloaded_over(prefix, absent, asked, tmp_path):
    other = {key: value + 1 for key, value in small().state_dict().items()}
    save_file(other, tmp_path / "w.safetensors")
    model = ModelSource(f"{prefix}:resnet50", tmp_path / "w.safetensors")()
    assert asked[-1] == ("resnet50", absent)
    assert torch.equal(model.network[0].weight, other["0.weight"])


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("timm:resnet5", {}, r"model timm:resnet5: timm could not make it: RuntimeError: Unknown model \(resnet5\)"),
        ("torchvision:resnet5", {}, "unknown model of torchvision 'resnet5'; did you mean 'resnet50'"),
        ("torchvision:resnet50", {"weights": "IMAGENET1K"}, "unknown weights of torchvision:resnet50 'IMAGENET1K'"),
    ],
)
def test_what_a_library_does_not_have_is_one_sentence(name, arguments, why, asked):
    with pytest.raises(HapteraError, match=why):
        ModelSource(name, arguments=arguments)()


def vit():
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    return ViTForImageClassification(ViTConfig(image_size=12, patch_size=4, num_labels=5, **sizes))


def convnext():
    from transformers import ConvNextConfig, ConvNextForImageClassification

    config = ConvNextConfig(num_stages=2, hidden_sizes=[4, 8], depths=[1, 1], patch_size=2, num_labels=5)
    return ConvNextForImageClassification(config)


@pytest.mark.parametrize("build", [vit, convnext])
def test_networks_of_transformers_are_loaded_from_their_folder_and_adapt(build, tmp_path):
    torch.manual_seed(0)
    network = build().eval()
    with quiet():
        network.save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor(image_mean=[0.5] * 3, image_std=[0.5] * 3)))
    model = ModelSource(f"hf:{tmp_path}")()
    with torch.no_grad():
        expected = network((IMAGES - 0.5) / 0.5).logits
    assert torch.allclose(NoAdaptation(model)(IMAGES), expected, atol=1e-5)
    adapter = Tent(model, lr=0.1)
    adapter(IMAGES)
    assert not torch.allclose(adapter.predict(IMAGES), expected, atol=1e-5)
    assert any(name.startswith("network.") for name in adapter.adapted)


def test_patterns_of_parameters_are_those_of_the_network(asked):
    model = ModelSource("timm:resnet50")()
    assert list(Tent(model, parameters="1.*").adapted) == ["network.1.weight", "network.1.bias"]
