"""A combination of estimates: as a slow reference computes it, chosen on hold-out corruptions and tried on others."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from haptera.measures.combination import FORMS, SIZE, _shares, _weigh, combine
from haptera.measures.label_free import ESTIMATES

CLEAN = dict.fromkeys(ESTIMATES, 0.9) | {"accuracy": 0.9, SIZE: 0.0}


@pytest.fixture(scope="module")
def known():
    random, rows = np.random.default_rng(0), []
    for place in range(10):
        for severity in (1, 2):
            accuracy = 0.9 - 0.2 * severity * random.uniform(0.5, 1)
            told = {name: accuracy + 0.05 * random.normal() for name in ESTIMATES}
            rows.append({"shift": str(place), "holdout": place < 4, "accuracy": accuracy, SIZE: severity} | told)
    return pd.DataFrame(rows)


def test_the_weights_are_those_of_a_loop_over_corruptions_left_out(known):
    found, held = combine(known, CLEAN, 100, "holdout"), known[known["holdout"]]
    off = {}
    for label, (column, fitted, by_size) in FORMS.items():
        errors, used = [], [column, SIZE] if by_size else [column]
        for name in "0123":
            rest, own = held[held["shift"] != name], held[held["shift"] == name]
            rows = np.vstack([rest[used], [CLEAN[each] for each in used]])
            design, told = np.column_stack([np.ones(len(rows)), rows]), own[column]
            if fitted:
                line = np.linalg.lstsq(design, np.array([*rest["accuracy"], 0.9]), rcond=None)[0]
                told = np.clip(line[0] + own[used].to_numpy() @ line[1:], 0, 1)
            errors.append(np.mean(np.abs(told - own["accuracy"])))
        off[label] = np.mean(errors)
    total = sum(value**-2 for value in off.values())
    assert {each.name for each in found.candidates} == set(off)
    for each in found.candidates:
        assert each.off == pytest.approx(off[each.name])
        assert each.weight == pytest.approx(off[each.name] ** -2 / total)


def test_the_interval_is_students_over_corruptions_that_chose_nothing(known):
    found, others = combine(known, CLEAN, 10**9, "holdout"), known[~known["holdout"]]
    loss = np.maximum(0.9 - known[known["holdout"]]["accuracy"], 0)
    squares = []
    for _, own in others.groupby("shift"):
        told = np.array([found.accuracy(row) for row in own.to_dict("records")])
        squares.append(np.mean(((told - own["accuracy"]) / (np.median(loss) + np.maximum(0.9 - told, 0))) ** 2))
    half = t.ppf(0.975, 6) * np.sqrt(np.mean(squares)) * (np.median(loss) + 0.3)
    assert found.interval(0.6, 10**9) == pytest.approx((0.6 - half, 0.6 + half), rel=1e-4)


def test_a_row_counts_in_a_prediction_as_much_as_the_prediction_moves_with_it(known):
    rows = {str(name): known[name].to_numpy() for name in known}
    taken, scale = rows["shift"] != "3", np.linspace(0.2, 0.4, len(known))
    candidates = _weigh({name: values[taken] for name, values in rows.items()}, CLEAN)

    def predict(accuracies: np.ndarray) -> np.ndarray:
        told = np.zeros((~taken).sum())
        for each in candidates:
            used = [each.estimate, SIZE] if FORMS[each.name][2] else [each.estimate]
            if FORMS[each.name][1]:
                design = np.column_stack([np.ones(len(known) + 1), np.vstack([known[used], [CLEAN[x] for x in used]])])
                use = np.append(taken, True)
                line = np.linalg.lstsq(design[use], np.append(accuracies, 0.9)[use], rcond=None)[0]
                told += each.weight * design[:-1][~taken] @ line
        return told

    found, base = _shares(rows, CLEAN, candidates, ~taken, taken, scale), predict(rows["accuracy"])
    for place, row in enumerate(np.flatnonzero(taken)):
        moved = predict(rows["accuracy"] + scale[row] * (np.arange(len(known)) == row)) - base
        assert found[:, place] == pytest.approx(moved / scale[~taken], abs=1e-9)


def test_corruptions_that_also_choose_have_fewer_degrees_of_freedom(known):
    assert combine(known, CLEAN, 100, "holdout").spread.freedom == pytest.approx(6)
    few = combine(known[known["shift"].isin(list("0123"))], CLEAN, 100).spread
    assert 1 <= few.freedom < 3
    assert few.corruptions == 4
    assert 5 < combine(known, CLEAN, 100).spread.freedom < 10
    assert combine(known[known["shift"].isin(list("012"))], CLEAN, 100).interval(0.5, 100) == (0.0, 1.0)


def test_corruptions_that_only_try_do_not_choose(known):
    other = known.assign(accuracy=np.where(known["holdout"], known["accuracy"], 0.1))
    one, two = (combine(rows, CLEAN, 100, "holdout") for rows in (other, known))
    assert one.candidates == two.candidates
    assert one.off > two.off


@pytest.mark.long
def test_where_all_choose_each_is_told_by_what_the_others_choose(known):
    found = combine(known, CLEAN, 100)
    assert found.chosen_on == tuple("0123456789")
    for name, own in known.groupby("shift"):
        others = combine(known[known["shift"] != name], CLEAN, 100)
        told = [others.accuracy(row) for row in own.to_dict("records")]
        assert found.tried[found.tried["shift"] == name]["predicted"].tolist() == pytest.approx(told)


def test_an_estimate_that_never_moves_has_a_flat_line(known):
    still = combine(known.assign(**{SIZE: 0.0}), CLEAN, 100)
    flat = next(each for each in still.candidates if each.estimate == SIZE)
    assert flat.slope == 0
    assert np.isfinite(flat.intercept)
    assert all(each.size_slope == 0 for each in still.candidates)


def test_with_fewer_than_two_corruptions_that_choose_nothing_is_told(known):
    assert combine(known.assign(holdout=known["shift"] == "0"), CLEAN, 100, "holdout") is None
    assert combine(known[known["shift"] == "0"], CLEAN, 100) is None
