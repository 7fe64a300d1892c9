"""Every measure keeps every law."""

import pytest

from holdfast.catalog import entries, find
from holdfast.testing.measures import MEASURE_LAWS, check_measure, example_outputs

MEASURES = {name: find("measures", name) for name in entries("measures")}


@pytest.mark.parametrize("function", MEASURES.values(), ids=MEASURES)
@pytest.mark.parametrize("law", MEASURE_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("labelled", [True, False])
def test_law_holds(law, function, labelled):
    law(function, example_outputs(labelled))


@pytest.mark.parametrize("function", MEASURES.values(), ids=MEASURES)
def test_public_check_passes(function):
    assert not any(check_measure(function).values())


@pytest.mark.parametrize("name", MEASURES)
def test_rows_carry_the_name_of_the_measure(name):
    assert {row["measure"] for row in MEASURES[name](example_outputs())} == {name}
