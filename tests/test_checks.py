"""Checks of numbers: what they let through, and what they say."""

from math import inf, nan

import numpy as np
import pytest

from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError


@pytest.mark.parametrize(
    ("value", "bounds", "message"),
    [
        (-1, {"least": 0}, "a number of at least 0"),
        (0, {"above": 0}, "a number above 0"),
        (nan, {"least": 0}, "x is nan; a number of at least 0"),
        (inf, {"above": 0, "below": inf}, "x is inf; a number above 0 was"),
        (1, {"above": 0, "below": 1}, "a number between 0 and 1"),
        (2, {"least": 0, "most": 1}, "a number from 0 to 1"),
        (1, {"least": 0, "below": 1}, "a number of at least 0 and below 1"),
        (2, {"above": 0, "most": 1}, "a number above 0 and at most 1"),
        (True, {}, "x is True; a number was expected"),
        ("1", {"least": 0}, "x is '1'; a number"),
    ],
)
def test_numbers_out_of_bounds_are_refused(value, bounds, message):
    with pytest.raises(HapteraError, match=message):
        check_number("x", value, **bounds)


def test_numbers_within_bounds_pass():
    check_number("x", np.float32(0.5), least=0, most=1)
    check_number("x", inf, least=0)
    check_number("x", 1, above=0, most=1)
    check_whole_number("x", 3, 1, 3)
    check_whole_number("x", np.int64(3), 1, 3)


@pytest.mark.parametrize("value", [0, 4, 1.0, True, "2", None])
def test_whole_numbers_out_of_bounds_are_refused(value):
    with pytest.raises(HapteraError, match=f"x is {value!r}; a number of views from 1 to 3 was expected"):
        check_whole_number("x", value, 1, 3, what="a number of views")
