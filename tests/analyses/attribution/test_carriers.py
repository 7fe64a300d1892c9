"""Maps of a part of an embedding come from the inverse of the whole Jacobian."""

import sys
from types import SimpleNamespace

import numpy as np
import torch
from sklearn.base import clone
from torch import nn

from haptera.analyses.attribution import DecoyTest
from haptera.analyses.attribution.carriers import _align, carriers
from haptera.analyses.attribution.maps import attribution_map, map_scores
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.recordings.windows import Offset


class Linear(nn.Module):
    """x to z by a matrix."""

    offset = Offset(0, 1)

    def __init__(self, matrix):
        super().__init__()
        self.matrix = nn.Parameter(torch.from_numpy(matrix.astype(np.float32)))

    def forward(self, windows):
        return windows[..., 0] @ self.matrix.T


def fitted_to(mixing, idle=0):
    """An encoder that inverts a mixing, with some dimensions that never move."""
    encoder = Linear(np.vstack([np.linalg.pinv(mixing), np.zeros((idle, len(mixing)))]))
    signal_to_points = encoder.matrix.detach().numpy().T
    return SimpleNamespace(
        offset_=encoder.offset, encoders_=[encoder], transform=lambda signal: signal @ signal_to_points
    )


def process(seed=0):
    """Latents 0 and 1 reach the last five of nine inputs alone, latents 2 and 3 all of them."""
    random = np.random.default_rng(seed)
    mixing = random.normal(size=(9, 4))
    mixing[:4, :2] = 0
    return mixing, random.normal(size=(500, 4)) @ mixing.T


def test_the_inverse_of_the_whole_has_zeros_where_the_label_reaches_nothing():
    mixing, signal = process()
    (encoder,) = _align([fitted_to(mixing, idle=1)], signal, [0, 1], inverted=True)
    found = attribution_map(encoder, signal)[: encoder.tested]
    true = np.tile(np.arange(9) >= 4, (2, 1))
    assert found.shape == (2, 9)
    assert found[~true].max() < 1e-3 * found[true].min()
    alone = np.abs(np.linalg.pinv(np.linalg.pinv(mixing)[:2]).T)  # of two rows by themselves: no zero anywhere
    assert map_scores(found, true).auroc == 1 > map_scores(alone, true).auroc


def test_a_second_fit_is_turned_to_the_first_whatever_its_axes():
    mixing, signal = process()
    turn = np.eye(4)
    turn[:2, :2] = [[0.6, -0.8], [0.8, 0.6]]
    both = _align([fitted_to(mixing), fitted_to(mixing @ turn)], signal, [0, 1], inverted=True)
    first, second = (attribution_map(one, signal)[:2] for one in both)
    np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-3 * first.max())


def test_other_methods_see_the_dimensions_of_the_label_alone():
    mixing, signal = process()
    (encoder,) = _align([fitted_to(mixing)], signal, [0, 1], inverted=False)
    found = attribution_map(encoder, signal, "gradient") / len(signal)
    np.testing.assert_allclose(found, np.abs(np.linalg.pinv(mixing)[:2]), rtol=1e-4, atol=1e-5)


def test_where_time_is_learnt_from_the_map_is_of_fits_that_see_no_decoys(monkeypatch):
    _, signal = process()
    seen = []

    def watched(encoder, data, *arguments, **options):
        seen.append(data.shape[1])
        return attribution_map(encoder, data, *arguments, **options)

    monkeypatch.setattr(sys.modules[carriers.__module__], "attribution_map", watched)
    settings = {"output_dimension": 3, "max_iterations": 3, "batch_size": 32, "distance": "euclidean"}
    settings |= {"model_architecture": "offset1-model-mse", "positive_in_denominator": True, "random_state": 0}
    model = ContrastiveEmbedding(**settings, hybrid={"behaviour": [0], "time": [0, 1, 2]})
    label, test = signal[:, 0] + signal[:, 5], DecoyTest(fits=1, copies=2)
    alone = carriers(model, signal, label, dimensions=[0], test=test)
    assert (alone.map_of, seen) == ("channels alone", [27, 9])
    given = carriers(model, signal, label, dimensions=[0], test=test, fitted=clone(model).fit(signal, label))
    assert given.map_of == "given model"
    np.testing.assert_allclose(given.map, alone.map, rtol=1e-4)
    assert carriers(model.set_params(hybrid=False), signal, label, test=test).map_of == "test"
    assert seen[2:] == [27, 9, 27]
