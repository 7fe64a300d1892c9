"""Sums of squares and Tukey's test against their definitions, written out; and what cannot be tested is refused."""

import sys
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import f as f_distribution
from scipy.stats import studentized_range

from haptera.errors import HapteraError
from haptera.statistics.comparison import analyse_factors, compare_groups

FACTORS = ["method", "training", "term"]


def design(seed=0, repeats=4, methods="abc"):
    """Three factors, of which two act together."""
    generator = np.random.default_rng(seed)
    rows = [
        {"method": method, "training": training, "term": term, "seed": seed,
         "score": 90 + (method == "a") * (term == "on") * 5 + (training == "x") + generator.normal()}
        for method, training, term, seed in product(methods, "xy", ("off", "on"), range(repeats))
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_sums_of_squares_of_a_balanced_design_are_those_of_means():
    frame = design()
    values = frame["score"].to_numpy().reshape(3, 2, 2, 4)  # method, training, term, seed
    grand = values.mean()
    means = {axes: values.mean(tuple({0, 1, 2, 3} - set(axes)), keepdims=True) - grand for axes in
             ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))}  # fmt: skip
    effects = {(axis,): means[axis,] for axis in range(3)}
    for one, two in ((0, 1), (0, 2), (1, 2)):
        effects[one, two] = means[one, two] - means[one,] - means[two,]
    effects[0, 1, 2] = means[0, 1, 2] - sum(effects.values())
    left = ((values - values.mean(3, keepdims=True)) ** 2).sum()
    free = values.size - 12
    found = analyse_factors(frame, "score", FACTORS)
    assert found["factor"].tolist() == [*(":".join(FACTORS[axis] for axis in axes) for axes in effects), "residual"]
    for (_, row), (axes, effect) in zip(found.iterrows(), effects.items(), strict=False):
        squares = np.broadcast_to(effect**2, values.shape).sum()
        df = np.prod([values.shape[axis] - 1 for axis in axes])
        assert row["df"] == df
        assert np.isclose(row["sum_of_squares"], squares)
        assert np.isclose(row["F"], squares / df / (left / free))
        assert np.isclose(row["p"], f_distribution.sf(squares / df / (left / free), df, free))
    last = found.iloc[-1]
    assert last["df"] == free
    assert np.isclose(last["sum_of_squares"], left)
    assert np.isnan([last["F"], last["p"]]).all()


def left_over(frame, *terms):
    """Residual sum of squares of a regression on levels and combinations of levels."""
    names = [frame[list(term)].astype(str).agg("|".join, axis=1) for term in terms]
    columns = [np.ones((len(frame), 1)), *(pd.get_dummies(name).to_numpy(float) for name in names)]
    columns = np.hstack(columns)
    fitted = columns @ np.linalg.lstsq(columns, frame["score"].to_numpy(), rcond=None)[0]
    return ((frame["score"] - fitted) ** 2).sum()


@pytest.mark.parametrize("interactions", [True, False])
def test_without_balance_a_factor_explains_what_the_other_leaves(interactions):
    frame = design().drop(index=[0, 1, 5, 20, 40])  # type II: no term that contains the factor is in either model
    found = analyse_factors(frame, "score", ["method", "term"], interactions).set_index("factor")["sum_of_squares"]
    both = left_over(frame, ["method"], ["term"])
    assert np.isclose(found["method"], left_over(frame, ["term"]) - both)
    assert np.isclose(found["term"], left_over(frame, ["method"]) - both)
    if interactions:
        cells = left_over(frame, ["method", "term"])
        assert np.isclose(found["method:term"], both - cells)
        assert np.isclose(found["residual"], cells)
    else:
        assert found.index.tolist() == ["method", "term", "residual"]
        assert np.isclose(found["residual"], both)


def test_numbers_are_levels_and_names_of_columns_are_never_read_as_formulas():
    frame = design()
    plain = analyse_factors(frame, "score", ["method", "term"])
    frame["latents 'z1'"] = frame["method"].map({"a": 4, "b": 6, "c": 100})
    odd = analyse_factors(frame.rename(columns={"score": "y ~ x"}), "y ~ x", ["latents 'z1'", "term"])
    assert odd["factor"].tolist() == ["latents 'z1'", "term", "latents 'z1':term", "residual"]
    assert np.allclose(odd.iloc[:, 1:], plain.iloc[:, 1:], equal_nan=True)


@pytest.mark.long
@pytest.mark.parametrize("dropped", [[], [0, 1, 5, 20, 40]], ids=["equal groups", "unequal groups"])
def test_differences_of_groups_are_those_of_tukey_and_kramer(dropped):
    frame = design().drop(index=dropped)
    found = compare_groups(frame, "score", ["method", "term"])
    groups = {f"{method}, {term}": frame[(frame["method"] == method) & (frame["term"] == term)]["score"].to_numpy()
              for method, term in product("abc", ("off", "on"))}  # fmt: skip
    free = len(frame) - 6
    spread = sum(((group - group.mean()) ** 2).sum() for group in groups.values()) / free
    critical = studentized_range.ppf(0.95, 6, free)
    assert len(found.pairs) == 15
    for row in found.pairs.itertuples():
        one, other = groups[row.one], groups[row.other]
        error = np.sqrt(spread / 2 * (1 / len(one) + 1 / len(other)))
        difference = one.mean() - other.mean()
        reach = critical * error
        assert np.isclose(row.difference, difference)
        assert np.isclose(row.p, studentized_range.sf(abs(difference) / error, 6, free), atol=1e-8)
        assert np.allclose((row.low, row.high), (difference - reach, difference + reach))
    between = sum(len(group) * (group.mean() - frame["score"].mean()) ** 2 for group in groups.values()) / 5
    assert found.df == (5, free)
    assert np.isclose(found.F, between / spread)
    assert np.isclose(found.p, f_distribution.sf(between / spread, 5, free))


def test_pairs_of_one_group_are_all_seen_from_it():
    found = compare_groups(design(), "score", ["method"])
    means = design().groupby("method")["score"].mean()
    of = found.of("b")
    assert of["one"].tolist() == ["b", "b"]
    assert of["other"].tolist() == ["a", "c"]
    assert np.allclose(of["difference"], [means["b"] - means["a"], means["b"] - means["c"]])
    assert ((of["low"] < of["difference"]) & (of["difference"] < of["high"])).all()
    with pytest.raises(HapteraError, match="unknown group 'd'"):
        found.of("d")


def test_the_order_of_rows_does_not_matter():
    frame, turned = design(), design().sample(frac=1, random_state=0)
    one, two = (analyse_factors(rows, "score", FACTORS) for rows in (frame, turned))
    assert one["factor"].tolist() == two["factor"].tolist()
    assert np.allclose(one.iloc[:, 1:], two.iloc[:, 1:], equal_nan=True)
    one, two = (compare_groups(rows, "score", ["method"]).pairs for rows in (frame, turned))
    assert one["one"].tolist() == two["one"].tolist()
    assert np.allclose(one.iloc[:, 2:], two.iloc[:, 2:])


def with_hole(column):
    frame = design()
    frame[column] = frame[column].astype(object).where(frame.index != 7)
    return frame.astype({"score": float})


BOTH = {
    "unknown value": (design(), "scores", ["method"], "unknown column 'scores'; did you mean 'score'"),
    "unknown factor": (design(), "score", ["methods"], "unknown column 'methods'; did you mean 'method'"),
    "no value in a row": (with_hole("score"), "score", ["method"], "1 of 48 rows have no 'score', the first is row 7"),
    "no level in a row": (with_hole("term"), "score", ["term"], "1 of 48 rows have no 'term', the first is row 7"),
    "one level": (design(methods="a"), "score", ["term", "method"], "the factor 'method' has only 'a'; at least 2"),
    "no rows": (design()[:0], "score", ["method"], "the factor 'method' has no rows"),
    "infinite": (design().assign(score=np.inf), "score", ["method"], "'score' has values that are not finite"),
    "text": (design().assign(score="good"), "score", ["method"], "'score' is .*; numbers were expected"),
    "no factors": (design(), "score", [], "at least one column was expected"),
    "one string": (design(), "score", "method", "a list with at least one column"),
    "twice": (design(), "score", ["method", "method"], "'method' is named twice"),
    "no spread": (design().assign(score=lambda rows: rows["method"].map(ord) / 3), "score", ["method", "term"],
                  "method and term say 'score' exactly"),
}  # fmt: skip


@pytest.mark.parametrize("function", [analyse_factors, compare_groups])
@pytest.mark.parametrize("case", BOTH)
def test_what_cannot_be_compared_is_refused_with_the_reason(case, function):
    frame, value, factors, message = BOTH[case]
    with pytest.raises(HapteraError, match=message):
        function(frame, value, factors)


def test_too_few_values_are_refused():
    with pytest.raises(HapteraError, match="there are 12 values for 12 means; more were expected, such as several"):
        analyse_factors(design(repeats=1), "score", FACTORS)
    assert len(analyse_factors(design(repeats=1), "score", FACTORS, interactions=False)) == 4
    with pytest.raises(HapteraError, match="the group 'a, off, x' has 1 value of 'score'; at least 2"):
        compare_groups(design(repeats=1), "score", ["method", "term", "training"])


def test_a_missing_combination_is_named_unless_there_are_no_interactions():
    frame = design()
    frame = frame[(frame["method"] != "b") | (frame["term"] != "on")]
    with pytest.raises(HapteraError, match=r"no row has method b and term on; .* interactions=False"):
        analyse_factors(frame, "score", ["method", "term"])
    assert analyse_factors(frame, "score", ["method", "term"], interactions=False)["df"].tolist() == [2, 1, 36]


def test_factors_that_always_change_together_are_told():
    frame = design().assign(again=lambda rows: rows["term"].map({"on": 1, "off": 0}))
    with pytest.raises(HapteraError, match="term and again cannot be told apart"):
        analyse_factors(frame, "score", ["term", "again"], interactions=False)


def test_without_statsmodels_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels.formula.api", None)
    with pytest.raises(HapteraError, match=r"pip install 'haptera\[statistics\]'"):
        analyse_factors(design(), "score", FACTORS)
    assert len(compare_groups(design(), "score", ["method"]).pairs) == 3
