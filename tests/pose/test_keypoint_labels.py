"""Pseudo-labels on confident keypoints: the laws of adapters, which labels count, and what they teach."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from haptera.adapters import BatchNorm, Tent
from haptera.errors import HapteraError, NotApplicable
from haptera.pose import KeypointLabels, PoseModel, as_network, open_adapter
from haptera.pose.evaluate import evaluate
from haptera.pose.keypoint_labels import label_loss, steady
from haptera.pose.network import Maps
from haptera.pose.video import triples
from haptera.testing.adapters import ADAPTER_LAWS
from haptera.testing.law import run_laws

MAKE = partial(KeypointLabels, lr=0.01, threshold=0.0, chunk=4, steps=2)


def score_maps(norm):
    """Somebody's network: score maps and offsets, with a normalisation, that begin elsewhere than ours."""
    layers = nn.Sequential(nn.Conv2d(3, 6, 4, 4), norm(), nn.ReLU(), nn.Conv2d(6, 6, 1))
    return as_network(layers.eval(), ["nose", "tail"], stride=4, unit=7.28, first=2).eval()


@pytest.fixture(scope="module")
def networks():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        ours = PoseModel(["nose", "tail"], settings={"width": 4})
        ours.train()
        ours(torch.rand(8, 3, 16, 16))
        return ours.eval(), score_maps(partial(nn.GroupNorm, 2, 6)), score_maps(partial(nn.BatchNorm2d, 6))


LAWFUL = [pytest.param(0, marks=pytest.mark.long, id="ours"), pytest.param(1, id="group norm")]


@pytest.mark.long
@pytest.mark.parametrize("which", [*LAWFUL, pytest.param(2, id="batch norm")])
def test_the_laws_of_adapters_hold(networks, which):
    generator = torch.Generator().manual_seed(1)
    batches = [torch.rand(6, 3, 32, 32, generator=generator) for _ in range(4)]
    broken = {law: text for law, text in run_laws(ADAPTER_LAWS, [(MAKE, networks[which], batches)]).items() if text}
    assert not broken


def test_it_learns_and_says_how_much_it_kept(networks):
    adapter = MAKE(networks[0])
    adapter(torch.rand(6, 3, 32, 32, generator=torch.Generator().manual_seed(2)))
    assert adapter.record["kept"] == 1
    assert adapter.record["change"] > 0


def test_nothing_is_learnt_where_nothing_is_sure(networks):
    images = torch.rand(6, 3, 32, 32, generator=torch.Generator().manual_seed(2))
    unsure = KeypointLabels(networks[0], threshold=1.0)
    expected = BatchNorm(networks[0], prior=16.0)(images)
    torch.testing.assert_close(unsure(images), expected)
    assert unsure.record["kept"] == 0


def test_the_loss_is_that_of_each_labelled_part_cell_by_cell():
    random = np.random.default_rng(0)
    outputs = random.normal(size=(2, 6, 3, 4))
    labels = np.full((2, 2, 2), np.nan)
    labels[0, 0], labels[1, 1] = (6.0, 3.0), (9.5, 10.5)
    stride, unit, first, radius = 4.0, 7.28, 2.0, 5.0
    cross, apart = [], []
    for image, part in ((0, 0), (1, 1)):
        for row in range(3):
            for column in range(4):
                x, y = first + stride * column, first + stride * row
                across, down = labels[image, part] - (x, y)
                inside = across**2 + down**2 <= radius**2
                score = 1 / (1 + np.exp(-outputs[image, part, row, column]))
                cross.append(-np.log(score if inside else 1 - score))
                for offset, towards in enumerate((across, down)):
                    off = abs(outputs[image, 2 + 2 * part + offset, row, column] - towards / unit)
                    apart += [off**2 / 2 if off <= 1 else off - 0.5] if inside else []
    found = label_loss(torch.tensor(outputs), torch.tensor(labels), Maps(stride, unit, first), radius)
    assert float(found) == pytest.approx(np.mean(cross) + 0.05 * np.mean(apart))


def test_the_loss_is_least_where_the_network_already_says_so(networks):
    model = networks[0]
    maps = torch.full((1, 6, 4, 4), -9.0)
    maps[:, 2:] = 0
    maps[0, :2, 1, 2] = 9.0
    keypoints, _ = model.decode(maps)
    here = label_loss(maps, keypoints, model.maps, 6.0)
    assert float(here) < float(label_loss(maps, keypoints + 8, model.maps, 6.0))
    assert label_loss(maps, torch.full_like(keypoints, torch.nan), model.maps) is None


def test_a_part_that_jumps_in_three_frames_is_no_label_there_alone():
    points = torch.zeros(7, 2, 2)
    points[:, 0, 0] = torch.arange(7) * 3.0  # moves evenly
    points[4, 1, 1] = 20.0  # jumps there and back in the second three
    kept = steady(points, torch.ones(7, 2, dtype=torch.bool), 4.0)
    assert kept[:, 0].tolist() == [True] * 6 + [False]  # the last one has no three
    assert kept[:, 1].tolist() == [True] * 3 + [False] * 4
    unsure = torch.ones(7, 2, dtype=torch.bool)
    unsure[0, 0] = False
    assert steady(points, unsure, 4.0)[:3, 0].tolist() == [False] * 3


@pytest.mark.parametrize("frames", [1, 2, 3, 5, 40])
def test_threes_are_in_the_video_and_none_is_there_twice(frames):
    found = triples(frames, list(range(0, frames, 4)))
    assert found == sorted(set(found))
    assert max(found) < frames
    whole = found[: len(found) // 3 * 3]
    assert all(second == first + 1 for first, second in zip(whole[::3], whole[1::3], strict=True))


def test_it_is_an_adapter_of_the_command_line_and_others_refuse(networks):
    label, make = open_adapter("keypoint_labels:threshold=0.9,jump=5")
    adapter = make(networks[0])
    assert (label, adapter.threshold, adapter.jump) == ("keypoint_labels:threshold=0.9,jump=5", 0.9, 5)
    with pytest.raises(HapteraError, match="did you mean 'keypoint_labels'"):
        open_adapter("keypoint_lables")
    with pytest.raises(HapteraError, match="setting of adapter keypoint_labels"):
        open_adapter("keypoint_labels:treshold=0.9")


def test_other_adapters_and_other_networks_are_refused_with_a_sentence(networks, animals):
    keypoints = as_network(lambda images: (images[:, :2, :2, 0], images[:, :2, 0, 0]), ["nose", "tail"])
    for model in (keypoints, nn.Linear(2, 2)):
        with pytest.raises(NotApplicable, match="score maps"):
            KeypointLabels(model)
    model = PoseModel(animals.parts, settings={"width": 4}).eval()
    with pytest.raises(HapteraError, match="keypoint_labels"):
        evaluate(model, animals.select(np.arange(2)), adapter=Tent)
