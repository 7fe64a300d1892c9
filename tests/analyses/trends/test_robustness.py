"""Effective and relative robustness, and the three cases of a new model, on models with a known place."""

import numpy as np
import pandas as pd
import pytest

from haptera.analyses.trends.dominance import dominance
from haptera.analyses.trends.robustness import place, robustness
from haptera.analyses.trends.triplets import count_triplets
from haptera.errors import HapteraError
from haptera.measures import effective_robustness
from haptera.statistics.line import fit
from haptera.statistics.resample import over_examples, over_models
from haptera.table import tidy
from haptera.theory.known_models import ProbitModels

SKILLS = np.linspace(-0.2, 1.6, 12)
NAMES = [f"m{place}" for place in range(12)]


def with_gain(gain, model=6):
    gains = np.zeros(12)
    gains[model] = gain
    return ProbitModels(SKILLS, gains=gains)


def test_effective_robustness_is_the_distance_to_the_line_of_all_others():
    x, y = with_gain(0.4).accuracies
    found = robustness(x, y, NAMES).set_index("model")
    for place_, name in enumerate(NAMES):
        line = fit(np.delete(x, place_), np.delete(y, place_), "probit").line
        assert found.loc[name, "predicted"] == pytest.approx(float(line(x[place_])))
        assert found.loc[name, "effective"] == pytest.approx(y[place_] - float(line(x[place_])))
    assert found.index[0] == "m6"
    assert found["effective_low"].isna().all()


def test_relative_robustness_compares_with_what_there_was_before():
    x, y = with_gain(0.0).accuracies
    found = robustness(x, y, NAMES).set_index("model")["relative"]
    line = fit(x, y, "probit").line
    assert found["m11"] == pytest.approx(y[11] - float(line(x[10])))  # the best, against the line at the second
    assert found["m3"] == pytest.approx(y[3] - float(line(x[11])))
    named = robustness(x, y, NAMES, baseline="m5").set_index("model")["relative"]
    assert named["m3"] == pytest.approx(y[3] - y[5])
    assert named["m5"] == 0


def test_intervals_are_those_of_the_draws():
    correct = with_gain(0.4).correct(2000, 2000)
    x, y = (side.mean(1) for side in correct)
    found = robustness(x, y, NAMES, draws=over_examples(*correct, draws=300)).set_index("model")
    assert (found["effective_low"] < found["effective"]).all()
    assert (found["effective"] < found["effective_high"]).all()
    assert found.loc["m6", "effective_low"] > 0.05
    assert (found["relative_low"] <= found["relative"]).all()
    over = robustness(x, y, NAMES, draws=over_models(x, y, draws=300))
    assert over["effective_low"].notna().all()
    assert over["relative_low"].isna().all()  # which models there are says nothing about two of them


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "chebyshev"}, "unknown line to compare with 'chebyshev'"),
        ({"baseline": "m55"}, "did you mean 'm5'"),
        ({"models": NAMES[:-1]}, "11 models with 12 and 12"),
    ],
)
def test_what_cannot_be_compared_is_refused(settings, message):
    x, y = with_gain(0.0).accuracies
    with pytest.raises(HapteraError, match=message):
        robustness(x, y, **({"models": NAMES} | settings))


def placed(reference, shifted, name="m6", **more):
    x, y = reference.mean(1), shifted.mean(1)
    table = robustness(
        x, y, NAMES, n=(len(reference[0]), len(shifted[0])), draws=over_examples(reference, shifted, draws=300)
    )
    counts = count_triplets(reference), count_triplets(shifted)
    return place([name], table, pairs=dominance(reference, NAMES), counts=counts, models=NAMES, **more).iloc[0]


def test_a_model_like_the_others_is_on_the_line():
    row = placed(*ProbitModels(SKILLS, noise=0.3).correct(4000, 4000, seed=3))
    assert row["case"] == "on the line"
    assert row["low"] < 0 < row["high"]
    assert row["events"] == 6 * 55
    assert row["clear"] <= 0.01 * row["events"]
    assert row["dominance_low"] < row["zeta"]


def test_the_best_model_on_a_steep_line_has_relative_robustness_alone():
    models = ProbitModels(SKILLS, noise=0.3, harder=1.0, wider=0.7)
    rows = [placed(*models.correct(2000, 2000, seed), name="m11") for seed in range(8)]
    on = [row for row in rows if row["case"] == "on the line, which is steeper than one"]
    assert len(on) >= 6  # the interval misses the line once in twenty times
    assert all(row["slope"] > 1 and row["most_accurate"] and row["relative"] > 0 for row in on)


def test_a_model_that_learned_what_is_new_breaks_closeness():
    reference, shifted = ProbitModels(SKILLS, noise=0.3).correct(4000, 4000, seed=2)
    shifted[6] |= np.random.default_rng(0).random(4000) < 0.4
    row = placed(reference, shifted)
    assert row["case"] == "above the line: closeness broken"
    assert row["clear"] > 0.01 * row["events"]
    assert row["dominance_low"] < row["zeta"]


def test_a_model_that_is_right_elsewhere_is_dissimilar():
    models = ProbitModels(SKILLS, noise=0.3)
    reference, shifted = models.correct(4000, 4000, seed=4)
    generator = np.random.default_rng(1)
    reference[6] = generator.random(4000) < reference[6].mean()
    shifted[6] = generator.random(4000) < shifted[6].mean() + 0.06
    row = placed(reference, shifted)
    assert row["case"].startswith("above the line")
    assert "dissimilar" in row["case"]
    assert row["dominance_low"] > row["zeta"]


def test_accuracies_alone_tell_where_but_not_why():
    x, y = with_gain(0.4).accuracies
    table = robustness(x, y, NAMES, draws=over_examples((x, 5000), (y, 5000), draws=200))
    row = place(["m6"], table).iloc[0]
    assert row["case"] == "above the line: accuracies alone do not tell why"
    with pytest.raises(HapteraError, match="unknown model 'm66'"):
        place(["m66"], table)


def rows(models, adapter="none", n=500):
    x, y = models.accuracies
    for name, clean, moved in zip(NAMES, x, y, strict=True):
        common = {"model": name, "adapter": adapter, "measure": "accuracy", "n": n, "seed": 0}
        yield common | {"stream": "clean", "shift": "clean", "severity": 0.0, "value": clean}
        yield common | {"stream": "corruptions", "shift": "fog", "severity": 3.0, "value": moved}


def test_in_a_study_the_line_is_that_of_the_models_on_clean_data_and_under_the_shift():
    table = tidy([*rows(with_gain(0.4)), *rows(with_gain(0.0), adapter="tent")])
    found = pd.DataFrame(effective_robustness(table))
    assert len(found) == 24
    assert set(found["shift"]) == {"fog"}
    none = found[found["adapter"] == "none"].set_index("model")
    x, y = with_gain(0.4).accuracies
    expected = robustness(x, y, NAMES).set_index("model")["effective"]
    assert none["value"].to_dict() == pytest.approx(expected.to_dict())
    assert none.loc["m6", "low"] > 0
    assert found[found["adapter"] == "tent"]["value"].abs().max() < 1e-6


def test_in_a_study_of_three_models_there_is_no_line_of_the_others():
    few = [row for row in rows(with_gain(0.0)) if row["model"] in NAMES[:3]]
    assert effective_robustness(tidy(few)) == []
