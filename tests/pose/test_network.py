"""Any pose network: every form of output that the protocol names gives the same keypoints, and others are refused."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.pose.test_trial import PLACES, spots
from torch import nn

from haptera.adapters import BatchNorm, NoAdaptation
from haptera.errors import HapteraError, NotApplicable
from haptera.files.video import write_video
from haptera.pose import PoseModel, as_network, drawn_animals, evaluate, open_model, predict, score
from haptera.pose.opening import open_adapters
from haptera.pose.unlabelled import VideoConfidence

PARTS = ("nose", "eye", "tail")


class Fixed(nn.Module):
    """A network that gives whatever it was told, whatever it sees."""

    def __init__(self, make):
        super().__init__()
        self.make, self.weight = make, nn.Parameter(torch.zeros(1))

    def forward(self, images):
        return self.make(len(images))


def keypoints(batch):
    return torch.arange(6.0).reshape(1, 3, 2).repeat(batch, 1, 1), torch.tensor([0.9, 0.5, 0.1]).repeat(batch, 1)


@pytest.mark.parametrize(
    "make",
    [
        keypoints,
        lambda batch: dict(zip(("keypoints", "confidence"), keypoints(batch), strict=True)),
        lambda batch: SimpleNamespace(keypoints=keypoints(batch)[0], confidence=keypoints(batch)[1]),
        lambda batch: torch.cat([keypoints(batch)[0], keypoints(batch)[1][..., None]], 2),
    ],
    ids=["pair", "dictionary", "object", "tensor"],
)
def test_keypoints_with_confidence_are_taken_in_every_form(make):
    network = as_network(Fixed(make), PARTS)
    found, confidence = network.decode(network(torch.zeros(2, 3, 40, 50)))
    assert torch.equal(found, keypoints(2)[0])
    assert torch.equal(confidence, keypoints(2)[1])


def maps(batch, rows=6, columns=9):
    generator = torch.Generator().manual_seed(batch)
    scores = torch.randn(batch, 3, rows, columns, generator=generator)
    return scores, torch.randn(batch, 3, 2, rows, columns, generator=generator)


FORMS = {
    "pair": maps,
    "offsets in turn": lambda batch: (maps(batch)[0], maps(batch)[1].flatten(1, 2)),
    "dictionary": lambda batch: dict(zip(("scores", "offsets"), maps(batch), strict=True)),
    "heatmap and locref": lambda batch: {"heatmap": maps(batch)[0], "locref": maps(batch)[1].flatten(1, 2)},
    "tensor": lambda batch: torch.cat([maps(batch)[0], maps(batch)[1].flatten(1, 2)], 1),
    "scores alone": lambda batch: maps(batch)[0],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scores", ["logits", "probabilities"])
def test_maps_are_decoded_as_a_slow_search_does(form, scores):
    network = as_network(Fixed(FORMS[form]), PARTS, stride=4, unit=7.0, first=1.5, scores=scores)
    found, confidence = network.decode(network(torch.zeros(2, 3, 24, 36)))
    values, offsets = maps(2)
    for image in range(2):
        for part in range(3):
            cells = [(float(values[image, part, r, c]), r, c) for r in range(6) for c in range(9)]
            best, row, column = max(cells)
            moved = torch.zeros(2) if form == "scores alone" else 7 * offsets[image, part, :, row, column]
            expected = [4 * column + 1.5 + float(moved[0]), 4 * row + 1.5 + float(moved[1])]
            assert found[image, part].tolist() == pytest.approx(expected, abs=1e-5)
            sure = 1 / (1 + np.exp(-best)) if scores == "logits" else min(max(best, 0), 1)
            assert float(confidence[image, part]) == pytest.approx(sure, abs=1e-6)


def test_a_keypoint_whose_scores_are_not_numbers_is_missing():
    class Broken(nn.Module):
        def forward(self, images):
            maps = nn.functional.avg_pool2d(images, 4)
            return maps * torch.tensor([1.0, torch.nan, 1.0])[:, None, None]

    found = predict(as_network(Broken(), PARTS, scores="probabilities"), spots(100, 150, PLACES))
    assert np.isnan(found.keypoints[0]).all(1).tolist() == [False, True, False]
    assert found.confidence[0, 1] == 0
    model = PoseModel(PARTS, settings={"width": 4}).eval()
    nn.init.constant_(model.head.bias, torch.nan)
    found = predict(model, spots(64, 64, PLACES))
    assert np.isnan(found.keypoints).all()
    assert (found.confidence == 0).all()


def test_a_module_with_the_maps_of_a_pose_model_scores_like_it():
    class Bare(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, images):
            return self.model(images)

    data = drawn_animals(2, 3, height=48, width=64)
    torch.manual_seed(0)
    model = PoseModel(data.parts, settings={"width": 4}).eval()
    wrapped = as_network(Bare(model), data.parts)
    for adapter in (NoAdaptation, partial(BatchNorm, prior=4)):
        one, two = (evaluate(each, data, adapter=adapter) for each in (model, wrapped))
        assert np.allclose(one.arrays["keypoints"], two.arrays["keypoints"], atol=1e-4)
        assert np.allclose(one.arrays["confidence"], two.arrays["confidence"], atol=1e-6)
    table = score({"net": wrapped}, {"data": data}).table()
    further = {"pixel_error", "rmse", "oks", "average_precision", "confidence_error", "calibrated_confidence_error"}
    assert set(table["measure"]) == {"normalised_error", "pck", *further}


def corner(images):
    """The brightest pixel of each channel, by NumPy, as a service in another framework might."""
    flat = images.reshape(*images.shape[:2], -1)
    where = flat.argmax(2)
    points = np.stack([where % images.shape[3], where // images.shape[3]], 2)
    return points.astype(np.float32), flat.max(2)


def test_a_function_predicts_and_refuses_what_needs_layers():
    network = as_network(corner, PARTS)
    images = np.zeros((4, 20, 30, 3), np.uint8)
    images[:, 7, 11] = 255
    found = predict(network, images, batch_size=3)
    assert (found.keypoints == [11, 7]).all()
    assert (found.confidence == 1).all()
    assert (predict(NoAdaptation(network), images).keypoints == [11, 7]).all()
    with pytest.raises(NotApplicable, match="a Python function shows neither gradients nor layers"):
        BatchNorm(network)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda batch: torch.zeros(batch, 5), r"gave \(1, 5\) for 3 parts; keypoints and confidence, or score maps"),
        (lambda batch: (torch.zeros(batch, 3, 2), torch.zeros(batch, 2)), r"gave \(1, 3, 2\) and \(1, 2\) for 3"),
        (lambda batch: {"logits": torch.zeros(batch, 3)}, r"gave a dict with logits; keypoints"),
        (lambda batch: {"keypoints": torch.zeros(batch, 3, 2)}, r"gave a dict with keypoints; keypoints and conf"),
        (lambda batch: torch.zeros(3, 4) @ torch.zeros(3, 4), "failed on an image of 128 x 128: RuntimeError"),
    ],
)
def test_other_outputs_are_refused_with_what_was_found(made, message):
    with pytest.raises(HapteraError, match=message):
        as_network(Fixed(made), PARTS)


def test_what_is_no_network_is_refused():
    with pytest.raises(HapteraError, match="cannot be called"):
        as_network(3, PARTS)
    with pytest.raises(HapteraError, match="names of its parts"):
        as_network(corner, [])
    with pytest.raises(HapteraError, match="unknown kind of scores 'logit'; did you mean 'logits'"):
        as_network(nn.Conv2d(3, 3, 8, 8), PARTS, scores="logit")


def test_a_network_of_ones_own_is_opened_by_the_name_of_its_function(tmp_path):
    code = "import torch\nfrom haptera.pose import as_network\n"
    code += "def build():\n    return as_network(torch.nn.Conv2d(3, 2, 8, 8), ['nose', 'tail'])\n"
    code += "def bare():\n    return torch.nn.Conv2d(3, 2, 8, 8)\n"
    code += "def named():\n    net = torch.nn.Conv2d(3, 2, 8, 8)\n    net.parts = ['a', 'b']\n    return net\n"
    (tmp_path / "net.py").write_text(code)
    assert open_model(f"{tmp_path}/net.py:build").parts == ("nose", "tail")
    assert open_model(f"{tmp_path}/net.py:named").parts == ("a", "b")
    with pytest.raises(
        HapteraError, match=r"gave a Conv2d that does not say its parts; return haptera.pose.as_network"
    ):
        open_model(f"{tmp_path}/net.py:bare")


def only_for_the_first(images):
    points, confidence = corner(images)
    return points[:1], confidence[:1]


def test_answers_to_fewer_images_than_were_given_are_refused():
    network = as_network(only_for_the_first, PARTS)
    with pytest.raises(HapteraError, match="answers to 1 of 3 images"):
        predict(network, np.zeros((3, 20, 30, 3), np.uint8))


def test_confidence_in_percent_is_refused():
    network = as_network(lambda images: (corner(images)[0], corner(images)[1] * 90), PARTS)
    with pytest.raises(HapteraError, match="confidence from 90 to 90; 0 to 1 was expected"):
        predict(network, np.eye(30, dtype=np.uint8)[None, :20, :, None].repeat(3, 3) * 255)


def test_a_keypoint_without_a_confidence_is_missing_and_has_none():
    network = as_network(lambda images: (corner(images)[0], np.full((len(images), 3), np.nan)), PARTS)
    found = predict(network, np.zeros((2, 20, 30, 3), np.uint8))
    assert np.isnan(found.keypoints).all()
    assert (found.confidence == 0).all()


def test_of_the_usual_adapters_a_network_without_batchnorm_gets_the_others(caplog):
    network = as_network(corner, PARTS)
    assert list(open_adapters([], network)) == ["none"]
    assert "batchnorm:prior=0 is left out: BatchNorm needs the gradients or the layers" in caplog.text
    assert len(open_adapters(["none", "batchnorm:prior=0"], network)) == 2  # what was asked for is refused when it runs


@pytest.mark.parametrize("use", ["predict", "evaluate", "a video"])
def test_a_network_in_training_predicts_as_in_evaluation_and_goes_on_training(tmp_path, use):
    """Neither do its layers see a batch of the test, nor does dropout end for the rest of the training."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.BatchNorm2d(8), nn.Dropout(0.5), nn.Conv2d(8, 22, 1))
    data = drawn_animals(2, 3, height=48, width=64)
    network = as_network(layers, data.parts).eval()
    if use == "a video":
        pytest.importorskip("av")
        write_video(
            tmp_path / "clip.mp4", (data.images(np.arange(6)).permute(0, 2, 3, 1).numpy() * 255).astype("u1"), 10
        )
    uses = {
        "predict": lambda: predict(network, data).confidence,
        "evaluate": lambda: evaluate(network, data).arrays["confidence"],
        "a video": lambda: VideoConfidence(network, tmp_path / "clip.mp4", None, 6, 2).run()["confidence"],
    }
    expected = uses[use]()
    network.train()
    layers[1].eval()  # frozen by whoever trains it
    before = {name: value.clone() for name, value in network.state_dict().items()}
    assert np.array_equal(uses[use](), expected)
    assert [network.training, layers[1].training, layers[2].training] == [True, False, True]
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_kept_scores_of_another_stride_are_not_taken_for_those_of_this_one(tmp_path):
    """The weights are the same; what their cells mean is not."""
    data, layer = drawn_animals(2, 3, height=48, width=64), nn.Conv2d(3, 22, 8, 8)

    def error(out, **maps):
        networks = {"net": as_network(layer, data.parts, **maps)}
        rows = score(networks, {"data": data}, adapters={"none": NoAdaptation}, out=out, progress=False).rows
        return float(rows.query("measure == 'pixel_error' and part == '' and individual == ''")["value"].iloc[0])

    for maps in ({}, {"stride": 4}, {"first": 40.0}, {"scores": "probabilities"}):
        assert error(tmp_path, **maps) == error(None, **maps)
