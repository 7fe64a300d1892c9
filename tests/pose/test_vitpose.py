"""ViTPose on whole frames: peaks are found between cells, and come back to where they are in the frame."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from haptera.errors import HapteraError
from haptera.pose import KeypointModel, load_keypoint_model, open_model
from haptera.pose.vitpose import refined_maximum

transformers = pytest.importorskip("transformers")


def small_config():
    backbone = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": [32, 48]}
    backbone |= {"patch_size": [16, 16], "mlp_ratio": 2, "model_type": "vitpose_backbone", "out_indices": [2]}
    return transformers.VitPoseConfig(
        backbone_config=backbone, id2label={0: "nose", 1: "tail"}, label2id={"nose": 0, "tail": 1}
    )


@pytest.mark.parametrize("peak", [(5.3, 4.8), (10.0, 2.0), (3.49, 7.51)])
def test_a_peak_between_cells_is_found(peak):
    y, x = torch.meshgrid(torch.arange(12.0), torch.arange(16.0), indexing="ij")
    maps = torch.exp(-((x - peak[0]) ** 2 + (y - peak[1]) ** 2) / 8)[None, None].double()
    found, height = refined_maximum(maps)
    assert found[0, 0].tolist() == pytest.approx(peak, abs=0.02)
    assert float(height) == float(maps.max())


def test_a_flat_map_and_one_below_zero_stay_in_their_cell():
    found, _ = refined_maximum(torch.zeros(1, 1, 6, 6))
    assert found.tolist() == [[[0.0, 0.0]]]
    maps = torch.full((1, 1, 6, 6), -1.0)
    maps[0, 0, 2, 3] = -0.5
    assert refined_maximum(maps)[0].tolist() == [[[3.0, 2.0]]]


class Bright(nn.Module):
    """A network whose map is the brightness of its input, a quarter as large, so that a dot is a peak."""

    config = SimpleNamespace(id2label={0: "dot"}, backbone_config=SimpleNamespace(image_size=(129, 97)), edges=None)

    def forward(self, pixels):
        grey = pixels.mean(1, keepdim=True) * 0.226 + 0.449
        return SimpleNamespace(heatmaps=nn.functional.interpolate(grey, (33, 25), mode="bilinear", align_corners=True))


@pytest.mark.parametrize("margin", [1.0, 1.25])
@pytest.mark.parametrize(("height", "width"), [(129, 97), (200, 160), (90, 240)])
def test_keypoints_come_back_to_where_they_are_in_the_frame(height, width, margin):
    y, x = torch.meshgrid(torch.arange(float(height)), torch.arange(float(width)), indexing="ij")
    dots = [(width * 0.3, height * 0.6), (width * 0.7, height * 0.4)]
    spread = 0.04 * max(height, width)
    frames = [torch.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * spread**2)).expand(3, -1, -1) for a, b in dots]
    model = KeypointModel(Bright(), margin=margin)
    found, confidence = model.decode(model(torch.stack(frames)))
    cell = margin * max((width - 1) / 24, (height - 1) / 32)
    for point, dot in zip(found[:, 0], dots, strict=True):
        assert point.tolist() == pytest.approx(dot, abs=0.12 * cell)
    assert (confidence > 0.8).all()


@pytest.mark.long
def test_a_model_is_opened_from_its_folder_and_from_a_configuration(tmp_path, caplog):
    torch.manual_seed(0)
    model = transformers.VitPoseForPoseEstimation(small_config())
    model.save_pretrained(tmp_path / "net")
    loaded = load_keypoint_model(tmp_path / "net")
    assert loaded.parts == ("nose", "tail")
    images = torch.rand(2, 3, 40, 50)
    with torch.no_grad():
        assert torch.allclose(loaded(images), KeypointModel(model.eval())(images), atol=1e-5)
        assert open_model(tmp_path / "net")(images).shape == (2, 2, 3)
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "config.json").write_bytes((tmp_path / "net" / "config.json").read_bytes())
    assert open_model(tmp_path / "alone" / "config.json").parts == ("nose", "tail")
    assert "a configuration has no weights" in caplog.text
    with pytest.raises(HapteraError, match="3 parts for a model with 2 maps"):
        load_keypoint_model(tmp_path / "net", ["a", "b", "c"])


def test_a_folder_of_another_model_is_refused(tmp_path):
    transformers.ViTConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1).save_pretrained(tmp_path)
    with pytest.raises(HapteraError, match="is a 'vit'; a keypoint model, 'vitpose', was expected"):
        open_model(tmp_path)
    with pytest.raises(HapteraError, match=r"there is no folder or config.json"):
        load_keypoint_model(tmp_path / "nothing")
