"""Every measure keeps every law."""

from functools import partial

import pytest

from haptera.catalog import entries, find
from haptera.errors import HapteraError, NotApplicable
from haptera.measures import mce
from haptera.testing.measures import (
    MEASURE_LAWS,
    check_measure,
    example_outputs,
    example_poses,
    example_stability,
    example_table,
    example_visits,
    examples,
    with_another_seed,
)

SETTINGS = {"mce": {"reference": "alexnet"}, "mde": {"reference": "alexnet"}}
MEASURES = {name: partial(find("measures", name), **SETTINGS.get(name, {})) for name in entries("measures")}
MEASURED = {"accuracy", "error", "seconds_per_image", "peak_bytes", "walk_accuracy"}
MAPPED = {"outside_mapping", "filtered_error"}
RECORDED = {"records": {"loss", "kept"}, "mean_over_seeds": {f"{name}_over_seeds" for name in MEASURED}}


@pytest.mark.long
@pytest.mark.parametrize("function", MEASURES.values(), ids=MEASURES)
@pytest.mark.parametrize("law", MEASURE_LAWS, ids=lambda law: law.__name__)
def test_law_holds(law, function):
    for source in examples(function):
        try:
            law(function, source)
        except NotApplicable:
            assert function.keywords  # only a measure that was asked for may say that it cannot be had


@pytest.mark.long
@pytest.mark.parametrize("name", ["accuracy", "mean_error"])
def test_public_check_passes(name):
    assert not any(check_measure(MEASURES[name]).values())


@pytest.mark.parametrize("name", MEASURES)
def test_rows_carry_the_name_of_the_measure(name):
    function = MEASURES[name]
    source = example_table() if function.func.of != "outputs" else example_outputs(mapped=name in MAPPED)
    source = with_another_seed(source) if function.func.of == "rows" else source
    source = example_stability() if name.endswith("_stability") else source
    source = example_visits() if name == "visit_error" else source
    source = example_poses() if function.func.reads == "keypoints" else source
    assert {row["measure"] for row in function(source)} == RECORDED.get(name, {name})


def test_a_measure_is_checked_with_the_settings_it_needs():
    with pytest.raises(HapteraError, match=r"mce needs reference; check functools.partial\(mce, reference="):
        check_measure(mce)
