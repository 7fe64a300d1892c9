"""Linear CKA against its definition and its invariances; the minibatch form against the unbiased estimate."""

import numpy as np
import pytest
import torch
from torch import nn

from haptera.batch import Batch
from haptera.errors import HapteraError
from haptera.observe import layer_similarity
from haptera.statistics.representation import MinibatchCKA, linear_cka, unbiased_hsic


@pytest.fixture
def features():
    random = np.random.default_rng(0)
    first = random.normal(size=(30, 6))
    return first, first @ random.normal(size=(6, 9)) + random.normal(size=(30, 9))


def test_cka_is_its_definition(features):
    x, y = (part - part.mean(0) for part in features)
    cross = sum(float(x[:, i] @ y[:, j]) ** 2 for i in range(6) for j in range(9))
    expected = cross / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y))
    assert linear_cka(*features) == pytest.approx(expected, rel=1e-12)
    assert 0 < expected < 1


def test_rotation_and_scale_do_not_change_it_and_other_maps_do(features):
    x, y = features
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0]
    assert linear_cka(7 * x @ turn + 3, y) == pytest.approx(linear_cka(x, y), rel=1e-9)
    assert linear_cka(x, x) == pytest.approx(1)
    assert linear_cka(x * [10, 1, 1, 1, 1, 1], y) != pytest.approx(linear_cka(x, y), rel=1e-2)


def test_unbiased_estimate_is_the_sum_over_different_images():
    """HSIC as an average over all quadruples of different images (Song et al.), for a set small enough to list."""
    random = np.random.default_rng(2)
    x, y = random.normal(size=(6, 2)), random.normal(size=(6, 3))
    k, l = x @ x.T, y @ y.T  # noqa: E741
    from itertools import permutations

    terms = [k[i, j] * (l[i, j] + l[q, r] - 2 * l[i, q]) for i, j, q, r in permutations(range(6), 4)]
    assert unbiased_hsic(k, l) == pytest.approx(np.mean(terms), rel=1e-9)


def test_minibatches_agree_with_the_whole_set_and_are_not_biased_for_unrelated_features():
    random = np.random.default_rng(3)
    x, z = random.normal(size=(2000, 4)), random.normal(size=(2000, 40))
    y = x @ random.normal(size=(4, 5))
    found = MinibatchCKA()
    for start in range(0, 2000, 20):
        rows = slice(start, start + 20)
        found.add({"x": x[rows]}, {"y": y[rows], "z": z[rows]})
    values = found.table().set_index("second")["value"]
    assert values["y"] == pytest.approx(linear_cka(x, y), abs=0.02)
    assert abs(values["z"]) < 0.02
    assert linear_cka(x[:20], z[:20]) > 0.2  # what the definition says of 20 unrelated images
    assert found.table()["n"].tolist() == [2000, 2000]


def test_too_few_images_are_an_error():
    with pytest.raises(HapteraError, match=r"features of \[3\] images; at least 4"):
        MinibatchCKA().add({"a": np.zeros((3, 2))}, {"b": np.zeros((3, 2))})
    with pytest.raises(HapteraError, match=r"features of \[5, 6\] images"):
        linear_cka(np.zeros((5, 2)), np.zeros((6, 2)))
    assert np.isnan(linear_cka(np.zeros((5, 2)), np.ones((5, 2))))


def _net(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)).eval()


def test_layers_of_two_networks():
    images = torch.rand(32, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    stream = [Batch(part, None, torch.arange(len(part)), {}) for part in images.split(10)]  # the last has two images
    first, second = _net(0), _net(1)
    same = layer_similarity(first, first, stream, ["0", "4"])
    assert same[same["first"] == same["second"]]["value"].to_numpy() == pytest.approx([1, 1])
    assert same["n"].unique().tolist() == [30]
    other = layer_similarity(first, second, stream, ["0"], ["0", "4"])
    assert list(zip(other["first"], other["second"], strict=True)) == [("0", "0"), ("0", "4")]
    with torch.no_grad():
        by_hand = MinibatchCKA()
        for batch in stream[:3]:
            by_hand.add({"0": first[0](batch.inputs).numpy()}, {"0": second[0](batch.inputs).numpy()})
    assert other["value"].iloc[0] == pytest.approx(by_hand.table()["value"].iloc[0], rel=1e-6)
    assert not first[0]._forward_hooks
    with pytest.raises(HapteraError, match="no batch of at least 4"):
        layer_similarity(first, second, stream[-1:], ["0"])
