"""What is wrong with the data or the settings is said before training, in words; a loss that runs away ends it."""

import numpy as np
import pytest

from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.errors import HapteraError

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(200, 5)).astype(np.float32)
LABEL = GENERATOR.uniform(size=200)
CLASSES = GENERATOR.integers(0, 3, 200)


def with_nan():
    bad = X.copy()
    bad[3, 2] = np.nan
    return bad


def silent():
    bad = X.copy()
    bad[:] = 2.0
    return bad


CASES = {
    "NaN": (lambda: (with_nan(),), {}, "contains NaN"),
    "silent neurons": (lambda: (silent(),), {}, "X never changes, in none of its 5 columns"),
    "label length": (lambda: (X, LABEL[:150]), {}, r"label 0 has shape \(150,\); 200 samples"),
    "second label length": (lambda: (X, LABEL, CLASSES[:9]), {}, r"label 1 has shape \(9,\)"),
    "NaN label": (lambda: (X, np.where(LABEL > 0.9, np.nan, LABEL)), {}, "values that are NaN"),
    "constant label": (lambda: (X, np.ones(200)), {}, "label 0 is the same for every sample"),
    "constant class": (lambda: (X, np.ones(200, int)), {}, "label 0 is the same for every sample"),
    "short session": (lambda: (X[:8],), {"model_architecture": "offset10-model"}, "8 samples; a window needs 10"),
    "short second session": (
        lambda: ([X, X[:8]],),
        {"model_architecture": "offset10-model"},
        "session 1 has 8 samples; a window needs 10",
    ),
    "label of one session": (lambda: ([X, X], LABEL), {}, "is not a list of 2 arrays"),
    "labels that differ": (lambda: ([X, X], [LABEL, CLASSES]), {}, "differs between sessions"),
    "time with a label": (lambda: (X, LABEL), {"conditional": "time"}, "a label was given that it would not use"),
    "conditional without a label": (lambda: (X,), {"conditional": "time_delta"}, "no label was given"),
    "conditional for classes": (lambda: (X, CLASSES), {"conditional": "delta", "delta": 1.0}, "give it as float"),
    "discrete for numbers": (lambda: (X, LABEL), {"conditional": "discrete"}, "give it as int"),
    "unknown conditional": (lambda: (X, LABEL), {"conditional": "timedelta"}, "did you mean 'time_delta'"),
    "delta missing": (lambda: (X, LABEL), {"conditional": "delta"}, "delta is not given"),
    "delta unused": (lambda: (X, LABEL), {"delta": 0.1}, "do not use it"),
    "offsets unused": (lambda: (X, CLASSES), {"time_offsets": 10}, "time_offsets is 10, and pairs drawn by 'discrete'"),
    "period unused": (lambda: (X, CLASSES), {"period": 1.0}, "period is 1.0"),
    "prior unused": (lambda: (X, LABEL), {"prior": "uniform"}, "prior is 'uniform'"),
    "hybrid without a label": (lambda: (X,), {"hybrid": True}, "hybrid needs a label"),
    "hybrid dimensions": (lambda: (X, LABEL), {"hybrid": [0, 8]}, "hybrid has"),
    "offset zero": (lambda: (X,), {"time_offsets": 0}, "time_offsets is 0"),
    "offset too long": (lambda: (X,), {"time_offsets": 200}, "no two windows so far apart"),
    "architecture": (lambda: (X,), {"model_architecture": "offset10"}, "did you mean 'offset10-model'"),
    "no module": (lambda: (X,), {"model_architecture": lambda *shape: None}, "gives NoneType; an nn.Module"),
    "distance": (lambda: (X,), {"distance": "euclid"}, "did you mean 'euclidean'"),
    "temperature mode": (lambda: (X,), {"temperature_mode": "learnable"}, "constant"),
    "min temperature unused": (lambda: (X,), {"min_temperature": 0.1}, "a constant temperature does not use"),
    "batch size": (lambda: (X,), {"batch_size": 0}, "batch_size is 0"),
    "learning rate": (lambda: (X,), {"learning_rate": -1.0}, "learning_rate is -1.0"),
    "patience": (lambda: (X,), {"patience": 3}, "set validation_fraction"),
    "device": (lambda: (X,), {"device": "gpu"}, "device is 'gpu'"),
    "adapt before fit": (lambda: (X,), {"adapt": True}, "not fitted yet"),
    "adapt word": (lambda: (X,), {"adapt": "last"}, "adapt is 'last'"),
    "trials": (lambda: (X,), {"trials": np.zeros(3)}, "trials of session 0 have shape"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_said_in_words(case):
    data, settings, message = CASES[case]
    settings = {"max_iterations": 2, "batch_size": 16} | settings
    to_fit = {name: settings.pop(name) for name in ("adapt", "trials") if name in settings}
    with pytest.raises(ValueError, match=message):
        ContrastiveEmbedding(**settings).fit(*data(), **to_fit)


@pytest.mark.long
def test_a_loss_that_runs_away_ends_with_what_to_change():
    # pairs are nearly equal, and samples far from all others: growing the embedding pays without end
    places = GENERATOR.normal(size=(40, 6)).repeat(50, 0) + 1e-4 * GENERATOR.normal(size=(2000, 6))
    settings = {"distance": "euclidean", "learning_rate": 1e-2, "batch_size": 32, "random_state": 0}
    settings |= {
        "model_architecture": "offset1-model-mse",
        "conditional": "delta",
        "delta": 1e-4,
        "max_iterations": 3000,
    }
    with pytest.raises(HapteraError, match=r"runs away.*positive_in_denominator=True"):
        ContrastiveEmbedding(**settings).fit(places, places)
    settings |= {"positive_in_denominator": True, "max_iterations": 300}
    fitted = ContrastiveEmbedding(**settings).fit(places, places)
    assert -np.log(33) <= fitted.goodness_of_fit_history_[-1] < -1


def test_a_loss_that_is_no_number_ends_with_what_to_change():
    settings = {"distance": "euclidean", "model_architecture": "offset1-model-mse", "learning_rate": 1e20}
    with pytest.raises(HapteraError, match="lower learning_rate"):
        ContrastiveEmbedding(batch_size=16, max_iterations=50, **settings).fit(X)


def test_transform_before_fit_and_with_other_channels():
    one = ContrastiveEmbedding(max_iterations=2, batch_size=16)
    with pytest.raises(ValueError, match="not fitted yet"):
        one.transform(X)
    one.fit(X)
    with pytest.raises(ValueError, match="4 features"):
        one.transform(X[:, :4])
    with pytest.raises(HapteraError, match="session_id is 3"):
        one.transform(X, session_id=3)
    with pytest.raises(HapteraError, match="side is 'paired'"):
        one.transform(X, side="paired")


def test_adapting_needs_a_label_like_the_one_before():
    one = ContrastiveEmbedding(max_iterations=2, max_adapt_iterations=2, batch_size=16).fit(X, LABEL)
    with pytest.raises(HapteraError, match="had 1 columns, and has 2 now"):
        one.fit(X[:, :3], np.stack([LABEL, LABEL**2], 1), adapt=True)
    with pytest.raises(HapteraError, match="one new session at a time"):
        one.fit([X, X], [LABEL, LABEL], adapt=True)
    assert one.n_iter_ == 2  # what was learnt is still there
    assert not one.encoders_[0].training
    one.goodness_of_fit(X, LABEL)
    assert not one.encoders_[0].training
