"""The estimator as a user meets it: modes, repeatability, sessions, adapting, saving, stopping."""

import logging
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.loss import Lp
from haptera.contrastive.signals import Embedder
from haptera.errors import HapteraError


def recording(seed=0, samples=600, neurons=12, network=None):
    """Noisy neurons tuned to an angle that drifts."""
    generator = np.random.default_rng(seed)
    angle = np.cumsum(generator.normal(0, 0.25, samples)) % (2 * np.pi)
    preferred = np.random.default_rng(seed if network is None else network).uniform(0, 2 * np.pi, neurons)
    rates = np.exp(2 * np.cos(angle[:, None] - preferred))
    return generator.poisson(rates).astype(np.float32), angle


def model(**settings):
    defaults = {
        "output_dimension": 3,
        "batch_size": 128,
        "max_iterations": 150,
        "learning_rate": 3e-3,
        "random_state": 0,
    }
    return ContrastiveEmbedding(**(defaults | settings))


def r2(first, second):
    return LinearRegression().fit(first, second).score(first, second)


def circle(angle):
    return np.stack([np.cos(angle), np.sin(angle)], 1)


X, ANGLE = recording()


@pytest.fixture(scope="module")
def fitted():
    """By the angle; nothing may change it."""
    return model(period=2 * np.pi).fit(X, ANGLE)


def test_embedding_by_an_angle_recovers_the_circle(fitted):
    embedding = fitted.transform(X)
    assert embedding.shape == (600, 3)
    np.testing.assert_allclose(np.linalg.norm(embedding, axis=1), 1, atol=1e-5)
    assert r2(embedding, circle(ANGLE)) > 0.9


def test_same_random_state_same_bits_and_no_global_generator():
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    first = model(max_iterations=30).fit(X, ANGLE).transform(X)
    torch.rand(3)
    np.random.rand(3)  # noqa: NPY002
    assert np.array_equal(first, model(max_iterations=30).fit(X, ANGLE).transform(X))
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    model(max_iterations=2).fit(X)
    assert torch.equal(torch.rand(3), expected)
    assert not np.allclose(first, model(max_iterations=30, random_state=1).fit(X, ANGLE).transform(X))


def test_two_random_states_are_consistent(fitted):
    a, b = (one.transform(X) for one in (fitted, model(period=2 * np.pi, random_state=1).fit(X, ANGLE)))
    assert r2(a, b) > 0.95
    assert r2(b, a) > 0.95


@pytest.mark.long
def test_shuffled_labels_are_worth_nothing_on_held_out_samples():
    X, angle = recording(3, samples=3000)
    train, test = slice(0, 2000), slice(2000, 3000)
    true = model(period=2 * np.pi).fit(X[train], angle[train])
    assert true.goodness_of_fit(X[test], angle[test]) < -0.5
    shuffled = np.random.default_rng(0).permutation(angle)
    false = model(period=2 * np.pi, conditional="delta", delta=0.3, learning_rate=3e-4).fit(X[train], shuffled[train])
    assert abs(false.goodness_of_fit(X[test], shuffled[test])) < 0.05


BINS = np.digitize(ANGLE, np.linspace(0, 2 * np.pi, 7)) - 1
MODES = {
    "time": ((), {"time_offsets": [1, 2]}, "time: positives are 1 or 2 samples later"),
    "time_delta": ((ANGLE,), {"time_offsets": 3}, "continuous: positives by a continuous label of 1 column"),
    "delta": ((circle(ANGLE),), {"conditional": "delta", "delta": 0.2}, "2 columns, 0.2 apart (Gaussian)"),
    "discrete": ((BINS,), {"prior": "uniform"}, "discrete: positives have the same of 6 classes, uniform prior"),
    "discrete-several": ((BINS // 3, BINS % 3), {}, "the same of 6 classes, empirical prior"),
    "mixed": ((ANGLE, BINS.astype(np.uint8)), {"differences_per_label": True}, "within each of 6 classes"),
    "mixed-delta": ((ANGLE, BINS > 2), {"conditional": "delta", "delta": 0.2}, "within each of 2 classes"),
    "hybrid": ((ANGLE,), {"hybrid": 2}, "hybrid: continuous"),
    "hybrid-discrete": ((BINS,), {"hybrid": {"behaviour": [0, 1], "time": [1, 2]}}, "hybrid: discrete"),
}


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("sessions", [1, 2])
def test_every_mode_learns_with_one_session_and_with_two_and_says_what_it_does(name, sessions, caplog):
    labels, settings, words = MODES[name]
    signals = [X, recording(1, samples=400, neurons=9)[0]]
    more = [[label, label[:400]] for label in labels]
    caplog.set_level(logging.INFO, "haptera")
    one = model(max_iterations=40, **settings)
    one.fit(X, *labels) if sessions == 1 else one.fit(signals, *more)
    assert words in caplog.text
    history = one.goodness_of_fit_history_
    assert one.n_iter_ == len(history) == 40
    assert history[-10:].mean() < history[:5].mean() - 0.02
    embedding = one.transform(X) if sessions == 1 else one.transform(signals)[1]
    assert embedding.shape == (600 if sessions == 1 else 400, 3)


@pytest.mark.parametrize(
    "settings",
    [
        {"model_architecture": "offset10-model"},
        {"model_architecture": "offset10-model", "batch_size": 16},  # windows instead of the whole sequence
        {"model_architecture": "offset40-model-4x-subsample"},
        {"model_architecture": "offset5-model-mse", "distance": "euclidean", "positive_in_denominator": True},
        {"model_architecture": "offset1-model-mse", "distance": Lp(1), "positive_in_denominator": True},
        {"distance": "learnable", "positive_in_denominator": True},
        {"distance": "dot"},
        {"temperature_mode": "auto", "min_temperature": 0.1},
        {"separate_encoders": True},
        {"batch_size": None},
        {"validation_fraction": 0.2},
    ],
    ids=str,
)
def test_every_setting_learns(settings):
    one = model(max_iterations=40, period=2 * np.pi, **settings).fit(X, ANGLE)
    history = one.goodness_of_fit_history_
    assert history[-10:].mean() < history[:5].mean() - 0.02
    assert one.transform(X).shape == (600, 3)
    assert (one.temperature_ != 1.0) == ("temperature_mode" in settings)


def test_whole_sequence_and_windows_train_to_the_same_weights(monkeypatch):
    found = []
    for whole in (True, False):
        one = model(model_architecture="offset10-model", max_iterations=5)

        def forced(self, *args, whole=whole, begin=Embedder.__init__):
            begin(self, *args)
            self._whole = [whole] * len(self._whole)

        with monkeypatch.context() as patch:
            patch.setattr(Embedder, "__init__", forced)
            found.append(one.fit(X, ANGLE).transform(X))
    np.testing.assert_allclose(*found, atol=2e-4)


@pytest.mark.long
def test_partial_fit_goes_on_to_the_bit_and_learns_from_new_data():
    at_once = model(max_iterations=40).fit(X, ANGLE).transform(X)
    one = model(max_iterations=20).fit(X, ANGLE).partial_fit(X, ANGLE)
    assert one.n_iter_ == 40
    assert np.array_equal(one.transform(X), at_once)
    # neurons now mean something else: only a model that has seen the new data fits it
    other, angle = recording(9, network=77)
    one = model(period=2 * np.pi).fit(X, ANGLE)
    before = one.goodness_of_fit(other, angle)
    assert one.partial_fit(other, angle).goodness_of_fit(other, angle) < before - 0.3


@pytest.mark.long
def test_several_sessions_share_one_space_and_single_fits_do_not():
    sessions = [recording(seed, samples=500, neurons=10 + seed) for seed in range(3)]
    signals, angles = [one for one, _ in sessions], [angle for _, angle in sessions]
    together = model(period=2 * np.pi, batch_size=64).fit(signals, angles)

    def by_angle(embedding, angle):
        bins = np.digitize(angle, np.linspace(0, 2 * np.pi, 13)) - 1
        return np.stack([embedding[bins == k].mean(0) for k in range(12)])

    def agreement(embeddings):
        means = [by_angle(one, angle) for one, angle in zip(embeddings, angles, strict=True)]
        return min(1 - ((a - b) ** 2).sum() / ((b - b.mean(0)) ** 2).sum() for a, b in pairwise(means))

    assert agreement(together.transform(signals)) > 0.9  # the same points, without any alignment
    alone = [
        model(period=2 * np.pi, random_state=k, max_iterations=50).fit(one, angle)
        for k, (one, angle) in enumerate(sessions)
    ]
    assert agreement([one.transform(signal) for one, signal in zip(alone, signals, strict=True)]) < 0.5
    with pytest.raises(HapteraError, match="3 sessions; say which one X is by session_id"):
        together.transform(signals[1])
    assert np.array_equal(together.transform(signals[1], session_id=1), together.transform(signals)[1])
    with pytest.raises(HapteraError, match="has 11 channels"):
        together.transform(signals[1], session_id=0)
    assert together.score(signals, angles) > 0.3
    assert together.score(signals[2], angles[2], session_id=2) > 0.3


def decoding_error(fitted, signal, angle):
    """Degrees, on the last third."""
    cut = len(angle) * 2 // 3
    embedding = fitted.transform(signal)
    decoder = KNeighborsRegressor(25, metric="cosine").fit(embedding[:cut], circle(angle[:cut]))
    decoded = decoder.predict(embedding[cut:])
    away = np.arctan2(decoded[:, 1], decoded[:, 0]) - angle[cut:]
    return np.degrees(np.median(np.abs((away + np.pi) % (2 * np.pi) - np.pi)))


@pytest.mark.long
@pytest.mark.parametrize("label", ["continuous", "discrete", "mixed"])
def test_adapting_to_a_new_session_takes_a_fifth_of_the_steps(label, tmp_path):
    first, new = recording(1, samples=1200, neurons=15), recording(2, samples=1200, neurons=20)
    settings = {"learning_rate": 1e-3, "max_iterations": 100, "max_adapt_iterations": 20}
    settings |= {} if label == "discrete" else {"period": 2 * np.pi}

    def labels(angle):
        sector = np.array(list("abcdefgh"))[(angle / (2 * np.pi) * 8).astype(int)]
        return {"continuous": (angle,), "discrete": (sector,), "mixed": (angle, sector < "e")}[label]

    path = tmp_path / "first.safetensors"
    model(**settings).fit(first[0], *labels(first[1])).save(path)
    one = ContrastiveEmbedding.load(path)

    def kept(fitted):
        return {k: v.clone() for k, v in fitted.encoders_[0].named_parameters() if not k.startswith("stem")}

    before = kept(one)
    signal, angle = new
    one.fit(signal[:800], *labels(angle[:800]), adapt=True)
    assert one.n_iter_ == 20
    assert all(torch.equal(weight, before[name]) for name, weight in kept(one).items())
    scratch = model(**settings).fit(signal[:800], *labels(angle[:800]))
    assert decoding_error(one, signal, angle) < decoding_error(scratch, signal, angle) * 1.05 + 0.2
    if label == "continuous":
        everything = ContrastiveEmbedding.load(path).fit(signal, angle, adapt="all")
        assert not any(torch.equal(weight, before[name]) for name, weight in kept(everything).items())


@pytest.mark.long
def test_pairs_of_two_signals_meet_in_one_embedding():
    behaviour = circle(ANGLE) + np.random.default_rng(0).normal(0, 0.05, (600, 2))
    one = model(separate_encoders=True, period=2 * np.pi).fit(behaviour, ANGLE, paired=X)
    from_behaviour, from_neurons = one.transform(behaviour), one.transform(X, side="paired")
    decoder = LinearRegression().fit(from_behaviour, circle(ANGLE))
    assert decoder.score(from_neurons, circle(ANGLE)) > 0.8
    assert one.goodness_of_fit(behaviour, ANGLE, paired=X) < -0.5
    with pytest.raises(HapteraError, match="paired was given"):
        model().fit(behaviour, ANGLE, paired=X)


@pytest.mark.long
def test_held_out_samples_stop_training_and_the_best_state_is_kept():
    generator = np.random.default_rng(0)
    noise, labels = generator.normal(size=(300, 40)).astype(np.float32), generator.uniform(size=300)
    one = model(conditional="delta", delta=0.05, max_iterations=2000, num_hidden_units=64)
    one.set_params(validation_fraction=0.3, patience=3).fit(noise, labels)
    assert one.n_iter_ < 2000
    history = one.validation_history_
    assert list(history)[-1] == one.n_iter_
    best = min(history, key=history.get)
    assert one.n_iter_ == best + 3 * 50
    again = model(conditional="delta", delta=0.05, max_iterations=best, num_hidden_units=64, validation_fraction=0.3)
    assert np.array_equal(again.fit(noise, labels).transform(noise), one.transform(noise))
