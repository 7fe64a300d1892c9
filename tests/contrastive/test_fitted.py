"""Callbacks, what an interrupt leaves, what partial_fit goes on with, and channels that never change."""

import logging

import numpy as np
import pytest
import torch

from haptera.contrastive import model as module
from haptera.contrastive import training
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.errors import HapteraError

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(300, 6)).astype(np.float32)
LABEL = np.cumsum(RANDOM.normal(size=300))


def model(**settings):
    return ContrastiveEmbedding(
        **{"max_iterations": 12, "batch_size": 32, "output_dimension": 3, "random_state": 0} | settings
    )


def test_a_callback_sees_a_fitted_estimator_every_n_steps_and_changes_nothing():
    seen = []

    def look(step, estimator):
        torch.rand(3)
        assert not estimator.encoders_[0].training
        seen.append((step, estimator.n_iter_, len(estimator.loss_history_), estimator.transform(X)[0]))

    fitted = model().fit(X, LABEL, callback=look, callback_frequency=5)
    assert [one[:3] for one in seen] == [(5, 5, 5), (10, 10, 10)]
    assert not np.allclose(seen[0][3], seen[1][3])
    np.testing.assert_array_equal(fitted.transform(X), model().fit(X, LABEL).transform(X))
    fitted.partial_fit(X, LABEL, callback=look, callback_frequency=10)
    assert seen[-1][:2] == (20, 20)


@pytest.mark.parametrize("error", [RuntimeError("enough"), HapteraError("enough"), KeyboardInterrupt()])
def test_an_error_of_a_callback_ends_the_fit_and_what_was_learnt_is_kept(error):
    def stop(step, estimator):
        if step == 6:
            raise error

    stopped = model()
    with pytest.raises(type(error)):
        stopped.fit(X, LABEL, callback=stop, callback_frequency=2)
    assert stopped.n_iter_ == 6
    assert not stopped.encoders_[0].training
    stopped.set_params(max_iterations=6).partial_fit(X, LABEL)
    np.testing.assert_array_equal(stopped.transform(X), model().fit(X, LABEL).transform(X))


def test_an_interrupt_without_a_callback_keeps_what_was_learnt(monkeypatch):
    stopped = model()

    def interrupt(history, *rest):
        if len(history.loss) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(training, "_stop_if_it_runs_away", interrupt)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, LABEL)
    assert stopped.n_iter_ == 4
    assert stopped.transform(X).shape == (300, 3)


def test_partial_fit_trains_on_the_second_data_and_no_longer_on_the_first(monkeypatch):
    seen, signal = [], module.Signal
    monkeypatch.setattr(module, "Signal", lambda values, *rest: seen.append(values) or signal(values, *rest))
    fitted = model().fit(X, LABEL)
    second = X[:200, ::-1].copy()
    seen.clear()
    weights = [tensor.clone() for tensor in fitted.encoders_[0].parameters()]
    fitted.partial_fit(second, LABEL[:200])
    assert all(np.array_equal(values, second) for values in seen)
    assert seen
    assert fitted.n_iter_ == 24
    assert not any(torch.equal(*two) for two in zip(weights, fitted.encoders_[0].parameters(), strict=True))
    with pytest.raises(ValueError, match="4 features"):
        fitted.partial_fit(X[:, :4], LABEL)
    assert fitted.n_iter_ == 24


def test_a_frequency_of_callbacks_is_a_whole_number():
    with pytest.raises(HapteraError, match="callback_frequency is 0"):
        model().fit(X, callback=lambda *_: None, callback_frequency=0)


def test_temperature_has_a_history_that_is_saved(tmp_path):
    fixed = model(temperature=0.5).fit(X)
    np.testing.assert_allclose(fixed.temperature_history_, np.full(12, 0.5))
    learnt = model(temperature_mode="auto").fit(X)
    assert learnt.temperature_history_[-1] == learnt.temperature_
    assert len(set(learnt.temperature_history_)) == 12
    learnt.save(tmp_path / "model.safetensors")
    again = ContrastiveEmbedding.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.temperature_history_, learnt.temperature_history_)


def test_channels_that_never_change_count_for_nothing_until_they_do(tmp_path, caplog):
    silent = X.copy()
    silent[:, [1, 4]] = 0, 2
    with caplog.at_level(logging.WARNING, logger="haptera"):
        fitted = model().fit(silent, LABEL)
    assert "X: 2 of 6 channels never change and count for nothing: channels 1, 4" in caplog.text
    fitted.save(tmp_path / "model.safetensors")
    for one in (fitted, ContrastiveEmbedding.load(tmp_path / "model.safetensors")):
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="haptera"):
            found = one.transform(X)
        np.testing.assert_array_equal(found, fitted.transform(silent))
        assert "channels 1, 4 never changed in training" in caplog.text
        assert one.goodness_of_fit(X, LABEL, negatives=64) == fitted.goodness_of_fit(silent, LABEL, negatives=64)
    fitted.partial_fit(X, LABEL)  # from here on they teach
    assert not np.allclose(fitted.transform(X), fitted.transform(silent))
