"""Comparison: which factors of an experiment matter, and which of its groups differ.

Source: appendix G of the thesis, "Statistical analysis", tables G.1 (analysis of variance over factors and their
interactions), G.2 and G.3 (Tukey's test between combinations of two factors). As there, the first is a least-squares
model of statsmodels. The source does not say which sums of squares it has; these are of type II, what a factor explains
beyond all terms that do not contain it; the types agree where groups are of equal size. The second is scipy's; a
difference here is always `one` minus `other`, while the printed tables turn some of them.
Both take rows as independent, as the source does. Rows that share something (methods applied to one trained encoder)
are not: then a factor for what they share, with `interactions=False`, takes its part out of the residual.
Cost: a regression with a column for each combination; Tukey's test an integral for each pair of groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from haptera.errors import HapteraError, unknown
from haptera.words import join_names

ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class GroupComparison:
    """Groups against each other.

    Attributes:
        pairs: a row for each two groups: `one`, `other`, the `difference` of their means, its simultaneous 95 %
            interval `low` to `high`, and `p`, corrected for the number of groups.
        F: of the one-way analysis of variance.
        p: of it.
        df: its degrees of freedom, between and within groups.
    """

    pairs: pd.DataFrame
    F: float
    p: float
    df: tuple[int, int]

    def of(self, group: str) -> pd.DataFrame:
        """The pairs of one group, itself always first."""
        if group not in {*self.pairs["one"], *self.pairs["other"]}:
            raise unknown("group", group, {*self.pairs["one"], *self.pairs["other"]})
        kept = self.pairs[(self.pairs["one"] == group) | (self.pairs["other"] == group)]
        turned = kept.assign(
            one=kept["other"], other=kept["one"], difference=-kept["difference"], low=-kept["high"], high=-kept["low"]
        )
        return kept.where(kept["one"] == group, turned).reset_index(drop=True)


def analyse_factors(frame: pd.DataFrame, value: str, factors: Sequence[str], interactions: bool = True) -> pd.DataFrame:
    """Analysis of variance, as in table G.1.

    Args:
        frame: a row for each number, such as the score of a run.
        value: the column with the numbers.
        factors: columns with what was varied; every value is a level, numbers too.
        interactions: of all orders. They need every combination of levels.

    Returns:
        A row for each factor, for each interaction (factors joined by colons), and for what is left (`residual`), with
        `factor`, `sum_of_squares`, `df`, `F` and `p`; the residual has neither `F` nor `p`.

    >>> scores = pd.DataFrame({"net": list("aabb") * 2, "term": list("no" * 4), "score": [1, 2, 5, 7, 2, 3, 5, 8.0]})
    >>> analyse_factors(scores, "score", ["net", "term"]).round(3)
         factor  sum_of_squares  df      F      p
    0       net          36.125   1  96.333  0.001
    1      term           6.125   1  16.333  0.016
    2  net:term           1.125   1   3.000  0.158
    3  residual           1.500   4    NaN    NaN
    """
    numbers = _check(frame, value, factors)
    try:
        from statsmodels.formula.api import ols
        from statsmodels.stats.anova import anova_lm
    except ImportError as error:
        raise HapteraError(
            "an analysis of several factors needs statsmodels: pip install 'haptera[statistics]'"
        ) from error
    codes = {f"f{place}": pd.factorize(frame[name])[0] for place, name in enumerate(factors)}
    levels = [int(code.max()) + 1 for code in codes.values()]
    if interactions:
        _check_combinations(frame, factors, levels)
    used = int(np.prod(levels)) if interactions else 1 + sum(levels) - len(levels)
    if len(frame) <= used:
        raise HapteraError(
            f"there are {len(frame):,} values for {used:,} means; more were expected, such as several for each "
            f"combination of {join_names(factors)}{', or interactions=False' if interactions else ''}"
        )
    # Names of ours, since those of the user may mean something in a formula; as text, since numbers are levels too.
    data = pd.DataFrame({name: code.astype(str) for name, code in codes.items()} | {"value": numbers})
    model = ols(f"value ~ {(' * ' if interactions else ' + ').join(codes)}", data)
    if np.linalg.matrix_rank(model.exog) < used:
        raise HapteraError(
            f"{join_names(factors)} cannot be told apart: levels of one always come with the same of another"
        )
    fitted = model.fit()
    _check_spread(float(fitted.ssr), numbers, value, factors)
    found = anova_lm(fitted, typ=2)
    terms = dict(zip(codes, factors, strict=True))
    return pd.DataFrame(
        {
            "factor": [":".join(terms.get(part, "residual") for part in str(name).split(":")) for name in found.index],
            "sum_of_squares": found["sum_sq"].to_numpy(),
            "df": found["df"].to_numpy().round().astype(int),
            "F": found["F"].to_numpy(),
            "p": found["PR(>F)"].to_numpy(),
        }
    )


def compare_groups(frame: pd.DataFrame, value: str, factors: Sequence[str]) -> GroupComparison:
    """One-way analysis of variance and Tukey's test between combinations of factors, as in tables G.2 and G.3.

    Groups may differ in size (Tukey-Kramer); their variances count as equal.

    Args:
        frame: a row for each number.
        value: the column with the numbers.
        factors: columns whose combinations are the groups; a group is named by its levels, joined by commas.

    >>> scores = pd.DataFrame({"net": list("aaabbbccc"), "score": [1, 2, 3, 2, 3, 4, 8, 9, 10.0]})
    >>> found = compare_groups(scores, "score", ["net"])
    >>> found.F, found.df
    (43.0, (2, 6))
    >>> found.of("c").round(3)
      one other  difference    low   high      p
    0   c     a         7.0  4.495  9.505  0.000
    1   c     b         6.0  3.495  8.505  0.001
    """
    from scipy.stats import f_oneway, tukey_hsd

    numbers = _check(frame, value, factors)
    rows = frame.groupby(list(factors), observed=True).indices
    joined = [", ".join(map(str, levels if isinstance(levels, tuple) else (levels,))) for levels in rows]
    names = np.array(joined, dtype=object)
    groups = [numbers[places] for places in rows.values()]
    for name, group in zip(names, groups, strict=True):
        if len(group) < 2:
            raise HapteraError(f"the group {name!r} has 1 value of {value!r}; at least 2 in every group were expected")
    _check_spread(sum(float(((group - group.mean()) ** 2).sum()) for group in groups), numbers, value, factors)
    overall, tests = f_oneway(*groups), tukey_hsd(*groups)
    interval = tests.confidence_interval(0.95)
    one, other = np.triu_indices(len(names), 1)
    pairs = pd.DataFrame(
        {
            "one": names[one],
            "other": names[other],
            "difference": tests.statistic[one, other],
            "low": np.asarray(interval.low)[one, other],
            "high": np.asarray(interval.high)[one, other],
            "p": tests.pvalue[one, other],
        }
    )
    df = (len(names) - 1, len(numbers) - len(names))
    return GroupComparison(pairs, float(overall.statistic), float(overall.pvalue), df)


def _check(frame: pd.DataFrame, value: str, factors: Sequence[str]) -> np.ndarray:
    """Return the numbers of a column after checking everything that can be wrong with it."""
    if isinstance(factors, str) or not factors:
        raise HapteraError(f"factors is {factors!r}; a list with at least one column was expected")
    wanted = [value, *factors]
    for name in wanted:
        if name not in frame:
            raise unknown("column", name, map(str, frame.columns))
        if wanted.count(name) > 1:
            raise HapteraError(f"the column {name!r} is named twice; value and factors must differ")
        if missing := int(frame[name].isna().sum()):
            row = frame.index[frame[name].isna()][0]
            raise HapteraError(f"{missing:,} of {len(frame):,} rows have no {name!r}, the first is row {row}")
    for name in factors:
        if len(levels := frame[name].unique().tolist()) < 2:
            found = f"only {levels[0]!r}" if levels else "no rows"
            raise HapteraError(f"the factor {name!r} has {found}; at least 2 levels were expected")
    if not pd.api.types.is_numeric_dtype(frame[value]):
        raise HapteraError(f"the column {value!r} is {frame[value].dtype}; numbers were expected")
    numbers = frame[value].to_numpy(float)
    if not np.isfinite(numbers).all():
        raise HapteraError(f"the column {value!r} has values that are not finite")
    return numbers


def _check_combinations(frame: pd.DataFrame, factors: Sequence[str], levels: Sequence[int]) -> None:
    """Refuse missing combinations: an interaction then has fewer degrees of freedom than it seems."""
    counts = frame.groupby(list(factors), observed=True).size()
    if len(counts) < np.prod(levels):
        every = pd.MultiIndex.from_product([frame[name].unique() for name in factors])
        missing = next(each for each in every if each not in counts.index)
        raise HapteraError(
            f"no row has {join_names([f'{name} {level}' for name, level in zip(factors, missing, strict=True)])}; with "
            "interactions every combination was expected, or interactions=False"
        )


def _check_spread(within: float, numbers: np.ndarray, value: str, factors: Sequence[str]) -> None:
    """Refuse a residual that is nothing but rounding: it does not measure noise."""
    if within <= len(numbers) * (ROUNDING * float(np.abs(numbers).max())) ** 2:
        raise HapteraError(
            f"{join_names(factors)} say {value!r} exactly; without spread among values that share them there is no test"
        )
