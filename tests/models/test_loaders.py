"""Models in the forms that people have: each gives the logits of the network itself."""

import copy
import json
import pickle
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from tests.models.conftest import CLASSES, MEAN, SIZE, STD, Forms, processor, quiet, write_onnx
from torch import nn

from haptera.data import open_data
from haptera.errors import HapteraError
from haptera.models import Classifier, ModelSource, from_callable
from haptera.models.loaders.hf import read_processor
from haptera.testing.networks import plain

FORMS = {
    "nn.Module": ("{}/net.py:build", {}),
    "transformers folder": ("hf:{}/hf", {}),
    "folder without a prefix": ("{}/hf", {}),
    "ONNX": ("{}/net.onnx", {}),
    "ONNX with a prefix": ("onnx:{}/net.onnx", {}),
    "exported program": ("{}/net.pt2", {"allow_pickle": True}),
    "TorchScript": ("jit:{}/net.ts", {}),
    "callable": ("callable:{}/net.py:answer", {}),
}


def load(name: str, **settings: object) -> nn.Module:
    return ModelSource(name, **settings)()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [1, 3, 8])
def test_every_form_gives_the_same_logits(form, batch, forms: Forms):
    name, settings = FORMS[form]
    images = forms.images[:batch]
    with torch.no_grad():
        expected, found = forms.network(images), load(name.format(forms.folder), **settings)(images)
    assert torch.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("form", ["ONNX", "exported program", "callable"])
def test_what_shows_outputs_only_is_copied_and_pickled(form, forms: Forms):
    name, settings = FORMS[form]
    model = load(name.format(forms.folder), **settings)
    if form == "callable":  # cloudpickle takes functions of files along
        import cloudpickle as pickler
    else:
        pickler = pickle
    for other in (copy.deepcopy(model), pickler.loads(pickler.dumps(model))):
        assert torch.allclose(other(forms.images), model(forms.images), atol=1e-6)


def test_large_and_small_batches_reach_a_program_within_its_bounds(forms: Forms):
    model = load(f"{forms.folder}/net.pt2", allow_pickle=True)  # exported for 2 to 64
    assert (model.network.shape.least, model.network.shape.most) == (2, 64)
    many = forms.images.repeat(9, 1, 1, 1)
    assert torch.allclose(model(many), forms.network(many), atol=1e-5)


def test_an_onnx_file_with_a_fixed_batch_axis_is_served_in_pieces(forms: Forms, tmp_path):
    write_onnx(forms.network, forms.images[:3], tmp_path / "three.onnx")
    model = load(str(tmp_path / "three.onnx"))
    assert model.preprocessing.size == SIZE
    assert torch.allclose(model(forms.images), forms.network(forms.images), atol=1e-5)


def test_an_axis_that_does_not_fit_is_named(forms: Forms, tmp_path):
    model = load(f"{forms.folder}/net.onnx")
    with pytest.raises(HapteraError, match=r"takes images of 3 x 16 x 16 .* and these are 1 x 32 x 32; give size"):
        model(torch.rand(2, 1, 32, 32))
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIZE * SIZE, CLASSES))
    axes = {"images": {0: "n", 2: "height", 3: "width"}}
    write_onnx(network, forms.images, tmp_path / "any.onnx", dynamic_axes=axes)
    wide = load(str(tmp_path / "any.onnx"))
    assert wide(forms.images).shape == (8, CLASSES)
    with pytest.raises(HapteraError, match=r"any.onnx fails on images of 2 x 3 x 20 x 20"):
        wide(torch.rand(2, 3, 20, 20))


class Several(nn.Module):
    """Channels last, as exported from elsewhere, and two outputs."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images):
        logits = self.network(images.permute(0, 3, 1, 2))
        return torch.cat([logits, logits], 1), logits


def test_an_onnx_file_with_channels_last_and_two_outputs(forms: Forms, tmp_path):
    last = forms.images.permute(0, 2, 3, 1).contiguous()
    write_onnx(Several(forms.network).eval(), last, tmp_path / "two.onnx", output_names=["features", "scores"])
    found = load(str(tmp_path / "two.onnx"), logits="scores")(forms.images)
    assert torch.allclose(found, forms.network(forms.images), atol=1e-5)
    with pytest.raises(HapteraError, match=r"logits is 'score', .*features \(8, 10\), scores \(8, 5\); did you mean"):
        load(str(tmp_path / "two.onnx"), logits="score")(forms.images)


def test_outputs_only_of_any_kind_that_arrays_come_in():
    images = torch.rand(4, 3, 8, 8)
    logits = images.mean((2, 3))
    for function in (
        lambda array: array.mean((2, 3)),
        lambda array: torch.from_numpy(array).mean((2, 3)),
        lambda array: array.mean((2, 3)).tolist(),
        lambda array: {"logits": array.mean((2, 3)), "features": array.mean((1, 2))},
        lambda array: (array.mean((2, 3)), array),
    ):
        assert torch.allclose(from_callable(function)(images).float(), logits, atol=1e-6)
    for function, why in (
        (lambda array: "a cat", "returned a str; an array"),
        (lambda array: None, "returned a NoneType; an array"),
        (lambda array: array.no_such_thing, "fails on images of 4 x 3 x 8 x 8: AttributeError"),
    ):
        with pytest.raises(HapteraError, match=why):
            from_callable(function)(images)
    with pytest.raises(HapteraError, match="a int cannot be called"):
        from_callable(3)


@pytest.mark.parametrize(
    ("name", "settings", "why"),
    [
        ("{}/none.onnx", {}, "there is no ONNX file"),
        ("{}/cut.onnx", {}, "cannot read the ONNX file"),
        ("{}/none.pt2", {}, "there is no exported program"),
        ("{}/net.pt2", {}, "with pickle, .* --allow-pickle"),
        ("{}/cut.pt2", {"allow_pickle": True}, "cannot read the exported program"),
        ("{}/none.ts", {}, "there is no TorchScript file"),
        ("{}/cut.ts", {}, "cannot read the TorchScript file"),
        ("{}/net.onnx", {"weights": "net.safetensors"}, "shows neither gradients nor layers, so leave them out"),
        ("{}/net.onnx", {"arguments": {"size": 3}}, "unknown setting of model .*'size'"),
        ("{}/net.pt", {}, "is a file of weights; .* --weights"),
        ("hf:{}/none", {}, "there is no folder"),
        ("hf:{}/bare", {}, "has no mean and std; .* --normalise"),
        ("hf:{}/headless", {}, "2 tensors of ResNetForImageClassification are not in its files"),
        ("hf:{}/damaged", {}, "preprocessor_config.json"),
        ("hf:no-such-org/no-such-name:x", {"arguments": {"local_files_only": True}}, "transformers could not load it"),
        ("onnx:", {}, "says nothing after its prefix"),
        ("tim:resnet50", {}, "did you mean 'timm'"),
        ("callable:{}/net.py:NET", {}, "unknown name in"),
        ("callable:{}/net.py:CONSTANT", {}, "is a int; a function from images"),
        ("hub:{}/repo:no", {}, "torch.hub could not load it: .*Cannot find callable no"),
        ("hub:{}/none:net", {}, "there is no folder"),
        ("hub:{}:net", {}, "there is no hubconf.py"),
        ("hub:net", {}, "hub:FOLDER:ENTRY"),
        ("timm:resnet50", {}, r"model timm:resnet50 needs timm, which .*(pip install 'haptera\[timm\]'|import here)"),
        ("torchvision:resnet50", {}, "model torchvision:resnet50 needs torchvision"),
        ("robustbench:Standard", {}, "needs robustbench, which is not installed: pip install robustbench"),
        (
            "robustbench:Standard",
            {"arguments": {"dataset": "mnist"}},
            "unknown dataset of robustbench:Stand",
        ),
    ],
)
def test_bad_input_is_one_sentence(name, settings, why, broken):
    if "weights" in settings:
        settings = settings | {"weights": broken / settings["weights"]}
    with pytest.raises(HapteraError, match=why) as error:
        load(name.format(broken), **settings)
    assert "\n" not in str(error.value)


@pytest.fixture(scope="module")
def broken(forms: Forms, tmp_path_factory):
    """Forms of the network that are damaged or lack something."""
    folder = tmp_path_factory.mktemp("broken")
    for name in ("net.onnx", "net.pt2", "net.ts"):
        shutil.copy(forms.folder / name, folder)
        content = (forms.folder / name).read_bytes()
        (folder / f"cut{name[3:]}").write_bytes(content[: len(content) // 2])
    (folder / "net.pt").write_bytes(b"")
    (folder / "net.safetensors").write_bytes(b"")
    (folder / "net.py").write_text("CONSTANT = 3\n")
    for name in ("bare", "damaged", "headless"):
        shutil.copytree(forms.folder / "hf", folder / name)
    (folder / "bare" / "preprocessor_config.json").unlink()
    (folder / "damaged" / "preprocessor_config.json").write_text("{")
    with quiet():
        forms.network.network.resnet.save_pretrained(folder / "headless")
    (folder / "repo").mkdir()
    (folder / "repo" / "hubconf.py").write_text("def net():\n    from torch import nn\n    return nn.Identity()\n")
    return folder


def test_a_normalisation_replaces_that_of_a_folder_and_stands_in_for_one_that_lacks_it(forms: Forms, broken):
    inner = forms.network.network
    for name, given, mean, std in (
        (forms.folder / "hf", "half", 0.5, 0.5),
        (broken / "bare", "none", 0.0, 1.0),
        (broken / "bare", "0.1/0.2", 0.1, 0.2),
    ):
        with torch.no_grad():
            found = load(f"hf:{name}", normalise=given)(forms.images)
            assert torch.allclose(found, inner((forms.images - mean) / std).logits, atol=1e-5)


def test_a_local_repository_of_torch_hub(tmp_path):
    (tmp_path / "hubconf.py").write_text(
        "def net(scale=1.0):\n"
        "    from haptera.testing.networks import Returns, plain\n"
        "    return Returns(plain(), lambda logits: logits * scale)\n"
    )
    images = torch.rand(4, 1, 16, 16)
    assert torch.allclose(load(f"hub:{tmp_path}:net", arguments={"scale": 2.0})(images), plain()(images) * 2)


@pytest.mark.parametrize(
    ("config", "size", "crop"),
    [
        ({"size": {"shortest_edge": 28}, "crop_pct": 0.875}, 28, 28 / 32),
        ({"size": 28, "crop_pct": 0.9}, 28, 28 / 31),
        ({"size": {"shortest_edge": 384}, "crop_pct": 1.0}, 384, "squash"),
        ({"size": {"height": 24, "width": 24}, "crop_pct": None}, 24, "squash"),
        ({"size": 24, "crop_pct": None}, 24, "squash"),
        ({"size": {"shortest_edge": 24}, "crop_pct": None}, 24, 1.0),
        ({"size": {"shortest_edge": 32}, "do_center_crop": True, "crop_size": {"height": 28, "width": 28}}, 28, 0.875),
        ({"size": 32, "do_center_crop": True, "crop_size": 28}, 28, 0.875),
        ({"size": 32, "do_resize": False}, None, None),
        ({"size": {"height": 24, "width": 32}}, None, None),
    ],
)
def test_sizes_of_image_processors(config, size, crop):
    found = read_processor(processor(**config), "net")
    assert (found.size, found.crop, found.interpolation) == (size, pytest.approx(crop) if size else None, "bicubic")


@pytest.mark.parametrize(
    ("config", "mean", "std"),
    [
        ({}, MEAN, STD),
        ({"do_normalize": False}, (0.0,), (1.0,)),
        ({"do_rescale": False}, tuple(value / 255 for value in MEAN), tuple(value / 255 for value in STD)),
        ({"rescale_factor": 1 / 127.5}, tuple(value / 2 for value in MEAN), tuple(value / 2 for value in STD)),
        ({"image_mean": None}, None, None),
    ],
)
def test_normalisations_of_image_processors(config, mean, std):
    found = read_processor(processor(**config), "net")
    assert found.mean == (None if mean is None else pytest.approx(mean))
    assert found.std == (None if std is None else pytest.approx(std))


@pytest.mark.parametrize("config", [{"resample": 99}, {"size": {"shortest_edge": "a"}}, {"image_mean": [0.5, "b"]}])
def test_an_image_processor_that_makes_no_sense_is_refused(config):
    with pytest.raises(HapteraError, match="the image processor of model net"):
        read_processor(processor(**config), "net")


def real_processors():
    from transformers import ConvNextImageProcessorPil, ViTImageProcessorPil

    normal = {"image_mean": MEAN, "image_std": STD}
    return {
        "ConvNeXT": ConvNextImageProcessorPil(size={"shortest_edge": 28}, crop_pct=0.875, **normal),
        "ViT": ViTImageProcessorPil(size={"height": 28, "width": 28}, **normal),
    }


@pytest.mark.parametrize("kind", ["ConvNeXT", "ViT"])
def test_image_files_become_what_the_processor_of_transformers_makes_of_them(kind, tmp_path):
    made = real_processors()[kind]
    noise = np.random.default_rng(0).integers(0, 256, (6, 9, 3), np.uint8)
    image = Image.fromarray(noise).resize((60, 40), Image.Resampling.BICUBIC)
    image.save(tmp_path / "a.png")
    expected = torch.from_numpy(np.array(made(image)["pixel_values"]))
    read = read_processor(json.loads(made.to_json_string()), kind)
    images = open_data(tmp_path, default=read.resize()).images(np.array([0]))
    found = Classifier(nn.Identity(), read)(images)
    assert torch.allclose(found, expected, atol=1e-5)
