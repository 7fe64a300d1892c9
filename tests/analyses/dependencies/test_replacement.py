"""Table 1 for every class, and which classes can go together, against loops over samples and classes."""

import numpy as np
import pandas as pd
import pytest

from haptera.analyses.dependencies.covariance_lasso import CovarianceLasso
from haptera.analyses.dependencies.replacement import removable, replacement, without
from haptera.errors import HapteraError


def network(seed: int = 0, samples: int = 400, classes: int = 8, coarse: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Logits of which classes 0 and 1 are nearly combinations of others."""
    generator = np.random.default_rng(seed)
    targets = generator.integers(0, classes, samples)
    logits = generator.standard_normal((samples, classes))
    logits[np.arange(samples), targets] += 2
    logits[:, 0] = logits[:, 2] - 0.5 * logits[:, 3] + 0.05 * generator.standard_normal(samples)
    logits[:, 1] = 0.7 * logits[:, 4] + 0.3 * logits[:, 5] + 0.05 * generator.standard_normal(samples)
    return (np.round(logits) if coarse else logits), targets


def slowly(logits: np.ndarray, own: np.ndarray, targets: np.ndarray, lasso: CovarianceLasso) -> pd.DataFrame:
    rows = []
    for place in range(own.shape[1]):
        derived = logits @ lasso.coef_[place]
        replaced = own.copy()
        replaced[:, place] = derived
        right, before = replaced.argmax(1) == targets, own.argmax(1) == targets
        mine = targets == place
        rows.append(
            {
                "class": place,
                "mean_error": np.abs(own[:, place] - derived).mean(),
                "relative_mean_error": np.abs(own[:, place] - derived).mean() / np.abs(own[:, place]).mean(),
                "accuracy": right.mean(),
                "own_accuracy": before.mean(),
                "positives": mine.sum(),
                "positive_accuracy": right[mine].mean() if mine.any() else np.nan,
                "own_positive_accuracy": before[mine].mean() if mine.any() else np.nan,
            }
        )
    return pd.DataFrame(rows)


@pytest.mark.parametrize("coarse", [False, True])  # whole numbers have ties
@pytest.mark.parametrize("alpha", [0.01, 0.3, 100])
def test_every_class_as_if_it_were_replaced_alone(alpha, coarse):
    logits, targets = network(coarse=coarse)
    lasso = CovarianceLasso(alpha=alpha).fit(logits)
    expected = slowly(logits, logits, targets, lasso)
    pd.testing.assert_frame_equal(replacement(logits, lasso.dependencies_, targets), expected, rtol=1e-12)


def test_replacement_in_another_network():
    (one, targets), (two, _) = network(1), network(2)
    lasso = CovarianceLasso(alpha=0.05).fit(one, onto=two)
    found = replacement(one, lasso.dependencies_, targets, onto=two)
    pd.testing.assert_frame_equal(found, slowly(one, two, targets, lasso), rtol=1e-12)


def test_without_targets_there_are_errors_and_no_accuracy():
    logits, _ = network()
    found = replacement(logits, CovarianceLasso().fit(logits).dependencies_)
    assert found.columns.tolist() == ["class", "mean_error", "relative_mean_error"]


def test_a_class_without_samples_has_no_accuracy_of_its_own():
    logits, targets = network()
    targets[targets == 3] = 4
    found = replacement(logits, CovarianceLasso().fit(logits).dependencies_, targets)
    assert found["positives"][3] == 0
    assert np.isnan(found["positive_accuracy"][3])
    assert found["accuracy"].notna().all()


def test_classes_that_are_combinations_can_go_and_accuracy_stays():
    logits, targets = network(samples=2000)
    before = (logits.argmax(1) == targets).mean()
    lasso = CovarianceLasso(alpha=0.005).fit(logits)
    gone = removable(logits, targets, lasso, drop=0.01)
    assert {0, 1} <= set(gone["class"])
    assert all(not set(on) & set(gone["class"]) for on in gone["on"])  # each is derived from classes that are left
    derived = logits.copy()
    for row in gone.itertuples():
        derived[:, row[1]] = logits[:, row.on] @ row.coefficients
    assert without(logits, gone) == pytest.approx(derived)
    assert gone["accuracy"].iloc[-1] == pytest.approx((derived.argmax(1) == targets).mean())
    assert gone["accuracy"].min() >= before - 0.01
    assert logits.tolist() == network(samples=2000)[0].tolist()  # untouched


def test_what_takes_the_place_of_a_removed_class_is_followed_to_the_end():
    logits, targets = network(5, samples=300)
    lasso = CovarianceLasso(alpha=0.05).fit(logits)
    matrix = lasso.moment_.matrix()
    gone = removable(logits, targets, lasso, drop=1.0)
    assert len(gone) == 7  # one class is left
    derivations: dict[int, np.ndarray] = {}
    for place, accuracy in zip(gone["class"], gone["accuracy"], strict=True):
        left = [other for other in range(8) if other not in derivations and other != place]
        theta = np.zeros(8)
        rest = [*left, place]  # the class comes last among those left
        theta[left] = CovarianceLasso(alpha=0.05).fit_moment(matrix[np.ix_(rest, rest)]).coef_[-1, :-1]
        for old in derivations.values():
            old += old[place] * theta
            old[place] = 0
        derivations[place] = theta
        state = logits.copy()
        for old, coefficients in derivations.items():
            state[:, old] = logits @ coefficients
        assert accuracy == pytest.approx((state.argmax(1) == targets).mean())
    assert without(logits, gone) == pytest.approx(state)


def test_with_no_drop_allowed_accuracy_never_falls():
    logits, targets = network(3, samples=500)
    before = (logits.argmax(1) == targets).mean()
    gone = removable(logits, targets, CovarianceLasso(alpha=0.01).fit(logits))
    assert (gone["accuracy"] >= before - 1e-12).all()
    everything = removable(logits, targets, CovarianceLasso(alpha=0.01).fit(logits), drop=1.0)
    assert len(everything) > len(gone)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (np.zeros(3, int), r"targets are int64 \(3,\); whole numbers \(400,\)"),
        (np.full(400, 8), "targets hold 8; the logits have classes 0 to 7"),
        (np.zeros(400), "targets are float64"),
    ],
)
def test_targets_that_do_not_fit_are_named(targets, message):
    logits, _ = network()
    with pytest.raises(HapteraError, match=message):
        replacement(logits, CovarianceLasso().fit(logits).dependencies_, targets)


def test_removal_says_what_it_cannot_do():
    logits, targets = network()
    with pytest.raises(HapteraError, match="drop is 2"):
        removable(logits, targets, CovarianceLasso().fit(logits), drop=2)
    with pytest.raises(HapteraError, match="between two networks"):
        removable(logits, targets, CovarianceLasso().fit(logits, onto=logits))
