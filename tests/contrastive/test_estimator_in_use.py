"""The estimator among files, trials, pipelines and networks of one's own."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.contrastive.test_estimator import ANGLE, X, circle, model, r2
from torch import nn

from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.loss import DotProduct, Euclidean, InfoNCE
from haptera.contrastive.sampling import TimeSampler
from haptera.contrastive.signals import Timeline
from haptera.contrastive.training import Objective, Sides, total_loss
from haptera.errors import HapteraError
from haptera.recordings.windows import Offset


@pytest.mark.long
def test_saved_and_loaded_is_the_same(tmp_path):
    path = tmp_path / "model.safetensors"
    one = model(model_architecture="offset10-model", hybrid=[0, 2], time_offsets=(1, 2), temperature_mode="auto")
    one.set_params(max_iterations=10, period=np.float64(2 * np.pi)).fit(X, ANGLE).save(path)
    again = ContrastiveEmbedding.load(path)
    assert np.array_equal(again.transform(X), one.transform(X))
    assert again.get_params()["hybrid"] == [0, 2]
    assert again.temperature_ == one.temperature_
    np.testing.assert_array_equal(again.loss_history_, one.loss_history_)
    assert again.goodness_of_fit(X, ANGLE) == one.goodness_of_fit(X, ANGLE)
    assert again.partial_fit(X, ANGLE).n_iter_ == 20
    with pytest.raises(HapteraError, match="there is no file"):
        ContrastiveEmbedding.load(tmp_path / "other.safetensors")
    path.write_bytes(b"not a model")
    with pytest.raises(HapteraError, match="cannot read the model"):
        ContrastiveEmbedding.load(path)


def test_data_on_disk_is_not_copied_and_gives_the_same(tmp_path):
    path = tmp_path / "signal.npy"
    np.save(path, X.astype(np.float64))
    on_disk = np.load(path, mmap_mode="r")
    settings = {"model_architecture": "offset10-model", "max_iterations": 10, "batch_size": 8}
    a, b = (model(**settings).fit(signal, ANGLE) for signal in (on_disk, X))
    assert np.array_equal(a.transform(on_disk), b.transform(X))


def test_trials_are_embedded_apart():
    trials = np.repeat(np.arange(6), 100)
    one = model(model_architecture="offset10-model", max_iterations=10).fit(X, trials=trials)
    whole = one.transform(X, trials=trials)
    np.testing.assert_allclose(whole[200:300], one.transform(X[200:300]), atol=1e-6)
    assert not np.allclose(whole[295:300], one.transform(X)[295:300])


def test_without_padding_the_ends_are_missing():
    one = model(model_architecture="offset10-model", max_iterations=5).fit(X)
    padded = one.transform(X)
    assert padded.shape == (600, 3)
    np.testing.assert_allclose(one.set_params(pad_before_transform=False).transform(X), padded[5:596], atol=1e-6)


class Average(nn.Module):
    """An encoder of the user's own."""

    offset = (3, 2)

    def __init__(self, channels, hidden, dimensions):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(channels, hidden), nn.Tanh(), nn.Linear(hidden, dimensions))

    def forward(self, windows):
        assert windows.shape[2] == 5
        return self.layers(windows.mean(2))


@pytest.mark.long
@pytest.mark.parametrize("own", [Average, Average(12, 8, 3)], ids=["function", "module"])
def test_any_module_with_an_offset_is_an_encoder(own, tmp_path):
    one = model(model_architecture=own, period=2 * np.pi, max_iterations=100).fit(X, ANGLE)
    assert one.offset_.left == 3
    assert r2(one.transform(X), circle(ANGLE)) > 0.8
    assert clone(one).fit(X, ANGLE).n_iter_ == 100
    one.save(tmp_path / "own.safetensors")
    with pytest.raises(HapteraError, match="give it again, load"):
        ContrastiveEmbedding.load(tmp_path / "own.safetensors")
    again = ContrastiveEmbedding.load(tmp_path / "own.safetensors", model_architecture=own)
    assert np.array_equal(again.transform(X), one.transform(X))


@pytest.mark.long
def test_works_in_a_pipeline_and_a_grid_search():
    pipeline = make_pipeline(StandardScaler(), model(max_iterations=20), KNeighborsRegressor())
    assert pipeline.fit(X, ANGLE).predict(X).shape == (600,)
    search = GridSearchCV(model(max_iterations=60, period=2 * np.pi), {"learning_rate": [1e-6, 3e-3]}, cv=2)
    assert search.fit(X, ANGLE).best_params_ == {"learning_rate": 3e-3}


def test_objectives_act_on_their_dimensions_only_and_are_added():
    points = torch.randn(20, 3, dtype=torch.float64, requires_grad=True)

    def embedder(places):
        return points[torch.from_numpy(places)]

    timeline = Timeline([20], Offset(0, 1))
    random = np.random.default_rng(0)
    sampler = TimeSampler(timeline, [1])
    objectives = [Objective(sampler, InfoNCE(Euclidean()), [0]), Objective(sampler, InfoNCE(DotProduct()), [1], 0.5)]
    pairs = [sampler.draw(8, random) for _ in objectives]
    sides = Sides(embedder, embedder)
    total = total_loss(sides, objectives, pairs)
    (gradient,) = torch.autograd.grad(total, points)
    assert (gradient[:, :2].abs().sum(0) > 0).all()
    assert not gradient[:, 2].any()
    each = []
    for objective, drawn in zip(objectives, pairs, strict=True):
        three = [points[torch.from_numpy(getattr(drawn, name)[0])] for name in ("reference", "positive", "negative")]
        each.append(objective.loss(*(part[:, objective.dimensions] for part in three)))
    torch.testing.assert_close(total, each[0] + 0.5 * each[1])
