"""Every measure keeps every law."""

from functools import partial

import pytest

from holdfast.catalog import entries, find
from holdfast.errors import HoldfastError, NotApplicable
from holdfast.measures import mce
from holdfast.testing.measures import (
    MEASURE_LAWS,
    check_measure,
    example_outputs,
    example_poses,
    example_stability,
    example_table,
    examples,
)

SETTINGS = {"mce": {"reference": "alexnet"}, "mde": {"reference": "alexnet"}}
MEASURES = {name: partial(find("measures", name), **SETTINGS.get(name, {})) for name in entries("measures")}
RECORDED = {"records": {"loss", "kept"}}


@pytest.mark.parametrize("function", MEASURES.values(), ids=MEASURES)
@pytest.mark.parametrize("law", MEASURE_LAWS, ids=lambda law: law.__name__)
def test_law_holds(law, function):
    for source in examples(function):
        try:
            law(function, source)
        except NotApplicable:
            assert function.keywords  # only a measure that was asked for may say that it cannot be had


@pytest.mark.parametrize("function", MEASURES.values(), ids=MEASURES)
def test_public_check_passes(function):
    assert not any(check_measure(function).values())


@pytest.mark.parametrize("name", MEASURES)
def test_rows_carry_the_name_of_the_measure(name):
    function = MEASURES[name]
    source = example_table() if function.func.of == "table" else example_outputs(mapped=name == "outside_mapping")
    source = example_stability() if name.endswith("_stability") else source
    source = example_poses() if function.func.reads == "keypoints" else source
    assert {row["measure"] for row in function(source)} == RECORDED.get(name, {name})


def test_a_measure_is_checked_with_the_settings_it_needs():
    with pytest.raises(HoldfastError, match=r"mce needs reference; check functools.partial\(mce, reference="):
        check_measure(mce)
