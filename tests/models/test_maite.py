"""Models of MAITE come in, and ours satisfy its protocols; its own package is the judge."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch

from haptera.adapters import NoAdaptation, Tent
from haptera.data import ArrayData, digits
from haptera.errors import HapteraError
from haptera.models import Linear, MaiteModel, ModelSource, ResNet, from_maite
from haptera.run.loop import evaluate
from haptera.shifts import GaussianNoise, MaiteAugmentation
from haptera.streams import Clean

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from maite.protocols import image_classification as maite
    from maite.tasks import evaluate as their_evaluate
    from maite.tasks import predict

DATA = digits(size=8)


class Brightness:
    """A model as the protocol describes it: two probabilities, or two logits, from the mean of an image."""

    def __init__(self, probabilities=True, answers=1):
        self.metadata = {"id": "brightness"}
        self.probabilities, self.answers = probabilities, answers

    def __call__(self, batch):
        means = [float(np.asarray(image).mean()) for image in batch] * self.answers
        return [np.array([mean, 1 - mean]) if self.probabilities else np.array([3 * mean, -1.0]) for mean in means]


class Accuracy:
    metadata = {"id": "accuracy"}  # noqa: RUF012

    def __init__(self):
        self.reset()

    def reset(self):
        self.right = []

    def update(self, pred_batch, target_batch, metadata_batch):
        self.right += [np.argmax(p) == np.argmax(t) for p, t in zip(pred_batch, target_batch, strict=True)]

    def compute(self):
        return {"accuracy": float(np.mean(self.right))}


def network():
    torch.manual_seed(0)
    return Linear(1, 8, 10)


@pytest.mark.parametrize("probabilities", [True, False])
def test_a_model_of_maite_comes_in_with_its_probabilities(probabilities):
    theirs = Brightness(probabilities)
    assert isinstance(theirs, maite.Model)
    images = torch.rand(4, 3, 8, 8)
    logits = from_maite(theirs)(images)
    expected = torch.tensor(np.stack(theirs(images.numpy())), dtype=torch.float32)
    torch.testing.assert_close(logits.softmax(1), expected if probabilities else expected.softmax(1))


def test_it_takes_part_in_a_run_and_is_copied_and_pickled():
    model = from_maite(Brightness())
    with pytest.raises(HapteraError, match="neither gradients nor layers"):
        Tent(model)
    outputs = evaluate(NoAdaptation(model), Clean(ArrayData(np.zeros((3, 8, 8), np.uint8), [0, 1, 1])))
    assert outputs.predictions().tolist() == [1, 1, 1]
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        images = torch.rand(2, 3, 8, 8)
        assert torch.equal(other(images), model(images))


def test_our_networks_give_maite_the_accuracy_that_we_measure():
    net = network()
    ours = evaluate(NoAdaptation(net), Clean(DATA)).correct().mean()
    theirs = MaiteModel(net, "linear", DATA.names)
    assert isinstance(theirs, maite.Model)
    found, _, _ = their_evaluate(model=theirs, dataset=DATA, metric=Accuracy(), batch_size=100)
    assert found["accuracy"] == pytest.approx(ours)


def test_an_adapter_as_a_model_of_maite_learns_in_the_order_of_the_batches():
    torch.manual_seed(0)
    net = ResNet(channels=1, width=4)
    direct, wrapped = Tent(net, lr=0.1), MaiteModel(Tent(net, lr=0.1), "tent", probabilities=False)
    predictions, _ = predict(model=wrapped, dataset=ArrayData(DATA.images(np.arange(60)).numpy()), batch_size=20)
    expected = [direct(DATA.images(np.arange(start, start + 20))) for start in (0, 20, 40)]
    found = np.stack([row for batch in predictions for row in batch])
    np.testing.assert_allclose(found, torch.cat(expected).detach().numpy(), atol=1e-5)


def test_there_and_back_keeps_probabilities_and_the_modes_of_the_network():
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(0.5), torch.nn.Linear(64, 5)).train()
    net[2].eval()
    back = from_maite(MaiteModel(net, "there and back"))
    images = torch.rand(6, 1, 8, 8)
    answer = back(images)
    assert [module.training for module in net] == [True, True, False]
    torch.testing.assert_close(answer.softmax(1), net.eval()(images).softmax(1).detach())


def test_images_of_bytes_are_scaled():
    theirs = MaiteModel(network(), "linear")
    grey = np.random.default_rng(0).integers(0, 256, (1, 8, 8), np.uint8)
    np.testing.assert_allclose(theirs([grey])[0], theirs([torch.from_numpy(grey) / 255])[0], atol=1e-6)


def test_a_shift_is_an_augmentation_that_maite_applies_before_it_predicts():
    augmentation = MaiteAugmentation(GaussianNoise(3), seed=5)
    assert isinstance(augmentation, maite.Augmentation)
    assert augmentation.metadata == {"id": "gaussian_noise-3"}
    few = ArrayData(DATA.images(np.arange(10)).numpy())
    _, batches = predict(
        model=MaiteModel(network(), "linear"),
        dataset=few,
        batch_size=4,
        augmentation=augmentation,
        return_augmented_data=True,
    )
    found = np.stack([image for images, _, _ in batches for image in images])
    np.testing.assert_array_equal(found, GaussianNoise(3)(few.images(np.arange(10)), few.rows, 5).numpy())


def test_the_loader_takes_an_object_a_class_or_a_function(tmp_path):
    (tmp_path / "theirs.py").write_text(
        "from tests.models.test_maite import Brightness\nmodel = Brightness()\ndef make(**given):\n"
        "    return Brightness(**given)\ndef fails():\n    raise ValueError('no weights')\n"
    )
    images = torch.rand(2, 3, 8, 8)
    for name in ("model", "make", "Brightness"):
        found = ModelSource(f"maite:{tmp_path}/theirs.py:{name}")()(images)
        assert torch.equal(found, from_maite(Brightness())(images))
    other = ModelSource(f"maite:{tmp_path}/theirs.py:make", arguments={"probabilities": False})
    assert not torch.equal(other()(images), found)
    with pytest.raises(HapteraError, match="building it failed: ValueError: no weights"):
        ModelSource(f"maite:{tmp_path}/theirs.py:fails")()
    with pytest.raises(HapteraError, match="is an object already, and takes no answers"):
        ModelSource(f"maite:{tmp_path}/theirs.py:model", arguments={"answers": 2})()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (len, "not a model of MAITE"),
        (Brightness, "a type is not a model of MAITE"),
        (Brightness(answers=2), "gave 6 answers for 3 images"),
    ],
)
def test_what_is_not_a_model_of_maite_is_refused(model, message):
    with pytest.raises(HapteraError, match=message):
        from_maite(model)(torch.rand(3, 3, 8, 8))
