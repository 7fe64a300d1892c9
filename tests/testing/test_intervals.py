"""The law of intervals for every interval that the package prints, and that the law notices what breaks it."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from tests.printed_intervals import MAKERS, cases

import haptera
from haptera.statistics.intervals import wilson
from haptera.testing import check_interval
from haptera.testing.intervals import Coverage, coverage
from haptera.testing.law import Broken

CASES = cases()
MANY = 2000
NO_INTERVALS = ("haptera.testing", "haptera.shifts", "haptera.theory", "haptera.adapters.prior")
INGREDIENTS = re.compile(r"stdtrit|\.ppf\(|\bZ95\b|0\.975|1\.96\b(?! standard errors)|confidence_interval\(")


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].quick])
def test_what_is_called_95_percent_covers_as_much(name):
    case = CASES[name]
    check_interval(case.interval, case.draw, case.truth, repetitions=case.quick, least=case.least, most=case.most)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_is_called_95_percent_covers_as_much_in_many_cases(name):
    case = CASES[name]
    repetitions = {300: MANY, 40: MANY // 2}.get(case.quick, MANY // 8)
    limits = {"least": case.least, "most": case.most}
    found = check_interval(case.interval, case.draw, case.truth, repetitions=repetitions, **limits)
    assert found.within(**limits, errors=2.0)


def test_every_formula_of_an_interval_is_in_the_list():
    root = Path(haptera.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        module = "haptera." + ".".join(path.relative_to(root).with_suffix("").parts)
        if not module.startswith(NO_INTERVALS) and INGREDIENTS.search(path.read_text(encoding="utf-8")):
            found.add(module)
    # Whether an event is outside a wedge, or a line is off, by more than chance is a test, with no interval.
    tests_of_chance = {"haptera.analyses.trends.closeness", "haptera.analyses.trends.verdict"}
    assert found - tests_of_chance <= set(MAKERS), "a new formula needs a case in tests/printed_intervals.py"
    for beginning in itertools.chain(*MAKERS.values()):
        assert any(name.startswith(beginning) for name in CASES), beginning


def test_intervals_that_cover_too_little_break_the_law():
    def bootstrap(values):
        drawn = np.random.default_rng(0).choice(values, (200, len(values))).mean(1)
        return np.quantile(drawn, [0.025, 0.975])

    for units in (2, 3, 4):
        with pytest.raises(Broken, match="what is called 95 % covers"):
            check_interval(bootstrap, lambda random, units=units: (random.normal(size=units),), 0.0, repetitions=300)


def test_intervals_that_are_too_wide_break_the_law_unless_they_say_so():
    def wide(count, n):
        return wilson(count, n, z=4.0)

    def draw(random):
        return random.binomial(100, 0.5), 100

    with pytest.raises(Broken, match=r"covers 100\.0%"):
        check_interval(wide, draw, 0.5, repetitions=1000)
    check_interval(wide, draw, 0.5, repetitions=1000, most=1.0)


def test_where_there_are_no_ends_there_is_no_interval():
    found = coverage(lambda: (np.nan, np.nan), lambda random: (), 0.0, repetitions=10)
    assert (found.repetitions, found.missing) == (0, 10)
    assert not found.within()
    some = coverage(lambda: ([np.nan, 0.0], [np.nan, 1.0]), lambda random: (), [5.0, 0.5], repetitions=10)
    assert some == Coverage(1.0, 10, 0)


def test_the_same_seed_gives_the_same_share():
    def draw(random):
        return random.binomial(20, 0.3), 20

    first, again = (coverage(wilson, draw, 0.3, repetitions=50, seed=4) for _ in range(2))
    assert first == again
