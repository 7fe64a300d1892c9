"""Dominance and similarity against loops over examples; thresholds decided by counts."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from haptera.analyses.trends.dominance import dominance, share_below, zeta
from haptera.errors import HapteraError


def test_each_pair_is_as_counted_one_by_one():
    correct = np.random.default_rng(0).random((5, 60)) < np.array([[0.3], [0.9], [0.5], [0.5], [0.7]])
    rows = dominance(correct, list("abcde")).set_index(["worse", "better"])
    assert len(rows) == 10
    for i, j in combinations(range(5), 2):
        worse, better = (i, j) if correct[i].sum() <= correct[j].sum() else (j, i)
        row = rows.loc["abcde"[worse], "abcde"[better]]
        assert row["count"] == sum(a and not b for a, b in zip(correct[worse], correct[better], strict=True))
        assert row["similarity"] == pytest.approx(np.mean(correct[i] == correct[j]))
        assert row["difference"] == pytest.approx(correct[better].mean() - correct[worse].mean())
        assert row["similarity"] == pytest.approx(1 - row["difference"] - 2 * row["dominance"])
        assert row["low"] <= row["dominance"] <= row["high"]


def test_independent_models_have_no_excess():
    correct = np.random.default_rng(1).random((6, 200_000)) < np.linspace(0.2, 0.9, 6)[:, None]
    assert dominance(correct)["excess"].abs().max() < 0.005


def test_a_share_on_the_threshold_is_not_below_it():
    pairs = pd.DataFrame({"count": [2499, 2500, 2500, 2501], "n": 50_000})
    assert share_below(pairs, 0.05) == 0.25
    assert share_below(pairs, 0.05002) == 0.75


def test_zeta_is_the_least_that_holds_for_a_share():
    pairs = pd.DataFrame({"dominance": [0.4, 0.1, 0.3, 0.2]})
    assert [zeta(pairs, share) for share in (1, 0.75, 0.74, 0.5, 0.01)] == [0.4, 0.3, 0.3, 0.2, 0.1]
    for share in (0, 1.1, float("nan")):
        with pytest.raises(HapteraError, match="share is"):
            zeta(pairs, share)


def test_names_must_fit():
    with pytest.raises(HapteraError, match="2 names for 3 models"):
        dominance(np.zeros((3, 4), bool), ["a", "b"])
