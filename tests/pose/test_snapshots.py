"""Snapshots of DeepLabCut 3: their networks are built from their configuration, and nothing in them is run."""

import copy
import pickle

import numpy as np
import pytest
import torch
import yaml

from haptera.adapters import BatchNorm
from haptera.errors import HapteraError, NotApplicable
from haptera.pose import load_snapshot, open_model, predict
from haptera.pose.hrnet import HRNetFeatures
from haptera.pose.resnet import ResNetFeatures
from haptera.pose.snapshots import build_network

PARTS = ["snout", "leftear", "tailbase"]


def configuration(name="resnet18", stride=16, channels=512, **predictor):
    """What DeepLabCut writes for a network of one animal, as far as it matters here."""

    def steps(maps):
        return {"channels": [channels, maps], "kernel_size": [3], "strides": [2]}

    head = {
        "type": "HeatmapHead",
        "predictor": {"type": "HeatmapPredictor", "apply_sigmoid": False, "locref_std": 7.2801} | predictor,
        "heatmap_config": steps(3),
        "locref_config": steps(6),
    }
    backbone = {"type": "ResNet", "model_name": name, "output_stride": stride, "freeze_bn_stats": False}
    return {
        "method": "bu",
        "metadata": {"bodyparts": PARTS, "individuals": ["animal"], "with_identity": False},
        "data": {"colormode": "RGB", "inference": {"normalize_images": True}},
        "model": {"backbone": backbone, "backbone_output_channels": channels, "heads": {"bodypart": head}},
    }


@pytest.fixture
def snapshot(tmp_path):
    """A snapshot with random weights, and NumPy numbers among its scores, as training leaves them."""
    torch.manual_seed(0)
    config = configuration()
    network = build_network(copy.deepcopy(config), "config").network
    metrics = {"metrics/test.mAP": np.float64(93.1), "losses/total": np.float32(0.1)}
    torch.save({"model": network.state_dict(), "metadata": {"epoch": 5, "metrics": metrics}}, tmp_path / "snapshot.pt")
    (tmp_path / "pytorch_config.yaml").write_text(yaml.safe_dump(config))
    return tmp_path / "snapshot.pt", network.eval()


def test_keypoints_are_those_of_deeplabcuts_formula(snapshot):
    path, network = snapshot
    loaded = load_snapshot(path)
    assert loaded.parts == tuple(PARTS)
    images = torch.rand(2, 3, 64, 80, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found, confidence = loaded.decode(loaded(images))
        mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
        features = network.backbone.model((images - mean[:, None, None]) / std[:, None, None])
        head = network.heads["bodypart"]
        scores, offsets = head.heatmap_head(features), head.locref_head(features)
    for image in range(2):
        for part in range(3):
            own = scores[image, part]
            row, column = divmod(int(own.argmax()), own.shape[1])
            x, y = offsets[image, 2 * part : 2 * part + 2, row, column].tolist()
            assert found[image, part].tolist() == pytest.approx(
                [8 * column + 4 + 7.2801 * x, 8 * row + 4 + 7.2801 * y], abs=1e-3
            )
            assert float(confidence[image, part]) == pytest.approx(min(max(float(own.max()), 0), 1), abs=1e-5)


def test_a_sigmoid_and_bgr_are_read_from_the_configuration():
    torch.manual_seed(0)
    plain = build_network(configuration(apply_sigmoid=False), "config").eval()
    config = configuration(apply_sigmoid=True)
    config["data"]["colormode"] = "BGR"
    other = build_network(config, "config").eval()
    other.load_state_dict(plain.state_dict())
    images = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        assert torch.allclose(other(images.flip(1)), plain(images), atol=1e-5)
        assert torch.allclose(other.decode(plain(images))[1], plain(images)[:, :3].flatten(2).max(2)[0].sigmoid())


def test_images_are_continued_to_the_divisor_and_keypoints_stay_where_they_are():
    config = configuration()
    config["data"]["inference"]["auto_padding"] = {"pad_width_divisor": 32, "pad_height_divisor": 32}
    torch.manual_seed(0)
    network = build_network(config, "config").eval()
    images = torch.rand(1, 3, 50, 70)
    mirrored = torch.cat([images, images[..., -27:-1].flip(-1)], 3)  # 70 to 96 columns
    mirrored = torch.cat([mirrored, mirrored[..., -15:-1, :].flip(-2)], 2)  # 50 to 64 rows
    with torch.no_grad():
        assert torch.equal(network(images), network(mirrored))


def test_a_dilated_network_is_the_strided_one_at_every_other_cell():
    torch.manual_seed(0)
    coarse, fine = ResNetFeatures("resnet50", 32).eval(), ResNetFeatures("resnet50", 16).eval()
    fine.load_state_dict(coarse.state_dict())
    with torch.no_grad():
        images = torch.rand(1, 3, 64, 96)
        assert torch.allclose(fine(images)[..., ::2, ::2], coarse(images), atol=1e-4)


def test_parameters_have_the_names_and_shapes_of_public_checkpoints():
    names = {name: tuple(value.shape) for name, value in ResNetFeatures("resnet50_gn").state_dict().items()}
    assert names["layer4.2.conv3.weight"] == (2048, 512, 1, 1)
    assert names["layer3.0.downsample.1.bias"] == (1024,)
    assert not any("running" in name for name in names)
    names = {name: tuple(value.shape) for name, value in HRNetFeatures("hrnet_w32").state_dict().items()}
    assert names["transition1.1.0.0.weight"] == (64, 256, 3, 3)
    assert names["stage3.3.branches.2.3.bn2.running_var"] == (128,)
    assert names["stage4.2.fuse_layers.3.0.2.0.weight"] == (256, 32, 3, 3)
    assert names["stage4.0.fuse_layers.0.3.0.weight"] == (32, 256, 1, 1)


@pytest.mark.parametrize(("every", "channels"), [(False, 18), (True, 18 + 36 + 72 + 144)])
def test_hrnet_has_a_map_of_a_quarter(every, channels):
    network = HRNetFeatures("hrnet_w18", every).eval()
    assert network.channels == channels
    with torch.no_grad():
        assert network(torch.rand(1, 3, 64, 96)).shape == (1, channels, 16, 24)


def test_networks_with_groupnorm_say_that_there_are_no_statistics(snapshot):
    path, _ = snapshot
    assert len(BatchNorm(load_snapshot(path)).layers) == 20
    grouped = build_network(configuration("resnet18_gn"), "config").eval()
    with pytest.raises(NotApplicable, match="no BatchNorm layer"):
        BatchNorm(grouped)


def test_a_snapshot_predicts_as_any_network(snapshot):
    path, _ = snapshot
    images = np.random.default_rng(0).integers(0, 256, (3, 48, 64, 3), dtype=np.uint8)
    found = predict(open_model(path), images)
    assert found.keypoints.shape == (3, 3, 2)
    assert np.allclose(found.keypoints, predict(load_snapshot(path), images, batch_size=1).keypoints, atol=1e-3)


class Touch:
    """What a malicious file would run."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_file_that_would_run_code_is_refused_and_does_not(snapshot, tmp_path):
    path, _ = snapshot
    torch.save({"model": {}, "metadata": Touch(tmp_path / "ran")}, path)
    with pytest.raises(HapteraError, match=r"cannot read the snapshot .*: UnpicklingError"):
        load_snapshot(path)
    path.write_bytes(pickle.dumps(Touch(tmp_path / "ran")))
    with pytest.raises(HapteraError, match="cannot read the snapshot"):
        load_snapshot(path)
    assert not (tmp_path / "ran").exists()


def changed(config, place, value):
    *keys, last = place.split(".")
    inner = config
    for key in keys:
        inner = inner[key]
    inner[last] = value
    return config


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("method", "td", "the method is 'td', a network behind a detector; predict with DeepLabCut and give its table"),
        ("model.backbone.type", "CSPNeXt", "the backbone is a CSPNeXt; one of ResNet, HRNet is read"),
        ("model.backbone.model_name", "resnet5", "unknown ResNet 'resnet5'; did you mean 'resnet50'"),
        ("model.heads.bodypart.type", "DLCRNetHead", "the head is a DLCRNetHead, one with a score map per part was"),
        ("model.heads.bodypart.heatmap_config.channels", [512, 4], r"has channels \[512, 4\] .* to 3 maps, with a"),
        ("model.heads.bodypart.heatmap_config.strides", ["2"], r"strides is \['2'\]; a list, of which every entry"),
        ("metadata.bodyparts", None, "metadata: bodyparts is None; a list"),
        ("data.inference.resize", {"width": 4}, "data.inference.resize changes the size of images"),
    ],
)
def test_what_is_not_read_is_refused_with_a_sentence(place, value, message):
    with pytest.raises(HapteraError, match=message):
        build_network(changed(configuration(), place, value), "pytorch_config.yaml")


def test_weights_of_another_network_are_refused(snapshot, tmp_path):
    path, _ = snapshot
    (tmp_path / "pytorch_config.yaml").write_text(yaml.safe_dump(configuration("resnet34")))
    with pytest.raises(HapteraError, match=r"snapshot.pt does not fit .*pytorch_config.yaml: Missing key"):
        load_snapshot(path)
    (tmp_path / "pytorch_config.yaml").write_text("model: [")
    with pytest.raises(HapteraError, match="as YAML"):
        load_snapshot(path)
    (tmp_path / "pytorch_config.yaml").unlink()
    with pytest.raises(HapteraError, match=r"there is no pytorch_config.yaml beside"):
        load_snapshot(path)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_torchscript_is_told_from_a_snapshot_and_taken_by_a_function(tmp_path):
    torch.jit.save(torch.jit.trace(torch.nn.AvgPool2d(4), torch.zeros(1, 3, 32, 32)), tmp_path / "net.pt")
    with pytest.raises(HapteraError, match=r"net.pt is TorchScript.*as_network\(torch.jit.load"):
        open_model(tmp_path / "net.pt")
    build = "from haptera.pose import as_network\nimport torch\n\n\ndef build():\n    "
    build += (
        f"return as_network(torch.jit.load({str(tmp_path / 'net.pt')!r}), ['a', 'b', 'c'], scores='probabilities')\n"
    )
    (tmp_path / "net.py").write_text(build)
    image = np.zeros((1, 32, 32, 3), np.uint8)
    image[0, 8:12, 20:24, 1] = 255
    assert predict(open_model(f"{tmp_path / 'net.py'}:build"), image).keypoints[0, 1].tolist() == [21.5, 9.5]
