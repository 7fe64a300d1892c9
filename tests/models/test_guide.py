"""Every line of the table in "Bring your model" runs, as far as nothing has to be downloaded."""

import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from tests.commands import call
from tests.models.conftest import CLASSES, Forms
from tests.models.fakes import install, small
from tests.models.imagetext import CLASSES as NAMES
from tests.models.imagetext import save as save_image_text

pytestmark = pytest.mark.long  # CI runs these, too: `make test-long`

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "models.md"
LINES = re.findall(r"^\| [^|]+ \| `(--model [^`]+)` \|$", GUIDE.read_text("utf-8"), re.MULTILINE)
DOWNLOADS = ("hf:microsoft/", "hub:pytorch/", "zeroshot:openai/")

NET = """
from torch import nn
from haptera.testing.networks import Returns
from tests.models.fakes import small

def build():
    return small()

def sized(classes):
    return small(classes)

def pair():
    import torch
    return Returns(small(), lambda logits: (torch.cat([logits, logits], 1), logits))

def theirs():
    from haptera.models import MaiteModel
    return MaiteModel(small().eval(), "small")

def answer(images):
    return images.mean((2, 3)) @ __import__("numpy").ones((3, 5), "float32")
"""


@pytest.fixture(scope="module")
def folder(forms: Forms, tmp_path_factory):
    """A folder with everything that the lines name, and photos in `val/`."""
    folder = tmp_path_factory.mktemp("guide")
    (folder / "net.py").write_text(NET)
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "nets.py").write_text(NET)
    (folder / "repository").mkdir()
    (folder / "repository" / "hubconf.py").write_text("from tests.models.fakes import small\n")
    state = small().state_dict()
    save_file(state, folder / "net.safetensors")
    torch.save({"epoch": 3, "state_dict": {f"module.{key}": value for key, value in state.items()}}, folder / "net.pt")
    shutil.copytree(forms.folder / "hf", folder / "my-resnet")
    save_image_text(folder / "my-clip")
    (folder / "names.txt").write_text("\n".join(NAMES))
    for name in ("net.onnx", "net.pt2", "net.ts"):
        shutil.copy(forms.folder / name, folder)
    shutil.copy(forms.folder / "net.ts", folder / "scripted.pt")
    for label in range(CLASSES):
        (folder / "val" / f"class{label}").mkdir(parents=True)
        pixels = np.random.default_rng(label).integers(0, 256, (16, 16, 3), np.uint8)
        Image.fromarray(pixels).save(folder / "val" / f"class{label}" / "a.png")
    return folder


def test_the_table_has_a_line_for_every_loader():
    from haptera import catalog
    from haptera.models.loaders.finding import split_name

    named = {split_name(shlex.split(line)[1])[0] for line in LINES}
    assert named >= set(catalog.entries("loaders"))


@pytest.mark.parametrize("line", [line for line in LINES if not any(each in line for each in DOWNLOADS)])
def test_the_line_runs(line, folder, tmp_path, monkeypatch, capsys):
    install(monkeypatch)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    given = [*shlex.split(line), "--data", "val", "--stream", "clean", "--out", tmp_path, "--quiet", "--json"]
    assert call("run", *given) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["ran"], said["failed"]) == (line.count("--model "), 0)


def test_the_example_of_images_and_texts_runs(folder, tmp_path, monkeypatch, capsys):
    example = re.search(r"^\$ (haptera run --model zeroshot:.*\\\n.*)$", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert example is not None
    words = shlex.split(example[1].replace("\\\n", " "))[1:-1]  # without the folder of the results
    monkeypatch.chdir(folder)
    assert call(*words, tmp_path, "--no-check", "--quiet", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["ran"], said["failed"]) == (3, 0)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--model tim:resnet50", "did you mean 'timm'?"),
        ("--model none.onnx", "there is no ONNX file"),
        ("--model net.pt2", "--allow-pickle"),
        ("--model net.pt", "is a file of weights"),
        ("--model net.py:pair", "say which they are (--logits KEY)"),
        ("--model net.py:pair --logits 7", "logits is '7', and the model returned a tuple with 0 (2, 10), 1 (2, 5)"),
        ("--model net.py:build --normalise imagnet", "did you mean 'imagenet'?"),
        ("--model net.onnx --normalise half --normalise half", "--normalise is given 2 times for 1 models"),
        ("--model net.onnx --channels 1", "takes images of 3 x 16 x 16"),
        ("--model net.onnx --size 12", "takes images of 3 x 16 x 16"),
        ("--model net.onnx --crop 2", "crop is 2"),
        ("--model net.onnx --interpolation cubic", "did you mean 'bicubic'?"),
        ("--model hf:my-resnet --model timm:resnet50.a1_in1k", "and model resnet50.a1_in1k with size 224; give one"),
    ],
)
def test_bad_input_is_one_message_and_2(line, why, folder, tmp_path, monkeypatch, capsys):
    install(monkeypatch)
    monkeypatch.chdir(folder)
    given = [*shlex.split(line), "--data", "val", "--stream", "clean", "--out", tmp_path]
    assert call("run", *given) == 2
    said = capsys.readouterr().err
    assert why in " ".join(said.split())
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "command",
    [
        "diagnose --model hf:my-resnet",
        "stability --model net.onnx --model hf:my-resnet",
        "check-model --model net.ts",
        "calibrate --model net.onnx --shift contrast --shift fog --step 5 --samples 5",
        "tune --model hf:my-resnet --adapter batchnorm --grid prior=0,8 --shift gaussian_blur --severity 3",
    ],
)
def test_every_command_that_takes_a_model_takes_all_forms(command, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert call(*shlex.split(command), "--data", "val", "--out", tmp_path, "--json") in (0, 1)
    assert json.loads(capsys.readouterr().out)
