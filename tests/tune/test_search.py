"""What a search tries: grids, draws, and what is refused; no model runs here."""

import tomllib

import pytest

from haptera.adapters import (
    ETA,
    SAR,
    AdaptiveReset,
    BatchNorm,
    Ensemble,
    Offline,
    PeriodicReset,
    PriorCorrection,
    RDumb,
    Tent,
    UnMixing,
)
from haptera.errors import HapteraError
from haptera.files.toml import toml
from haptera.run.parts import check_adapter
from haptera.tune.recipes import for_batch, unwrap, with_recipe
from haptera.tune.search import Range, at_edges, draws, points, read_grid, read_ranges


def test_a_grid_is_every_combination_in_the_order_given():
    grid = read_grid(["lr=1e-2,1e-3", "optimiser=sgd,adam,momentum=0"])
    assert grid == {"lr": [1e-2, 1e-3], "optimiser": ["sgd", "adam"], "momentum": [0]}
    expected = [{"lr": lr, "optimiser": name, "momentum": 0} for lr in (1e-2, 1e-3) for name in ("sgd", "adam")]
    assert points(grid, {}, None, 0) == expected


def test_draws_are_repeatable_different_and_begin_the_same_whatever_their_number():
    ranges, grid = {"lr": Range(1e-5, 1e-1)}, {"momentum": [0, 0.9]}
    few, many = draws(5, grid, ranges, 3), draws(50, grid, ranges, 3)
    assert many[:5] == few
    assert draws(5, grid, ranges, 4) != few
    assert len({tuple(point.items()) for point in many}) == 50
    assert {point["momentum"] for point in many} == {0, 0.9}


def test_draws_from_a_finite_set_end_when_it_is_exhausted():
    found = draws(20, {"a": [1, 2], "b": ["x", "y"]}, {}, 0)
    assert sorted((point["a"], point["b"]) for point in found) == [(1, "x"), (1, "y"), (2, "x"), (2, "y")]


def test_positive_ranges_are_even_on_a_logarithmic_scale_and_others_as_they_are():
    rates = [point["v"] for point in draws(2000, {}, {"v": Range(1e-4, 1.0)}, 0)]
    assert all(1e-4 <= rate <= 1 for rate in rates)
    for low, high in ((1e-4, 1e-3), (1e-3, 1e-2), (1e-2, 1e-1), (1e-1, 1.0)):
        assert sum(low <= rate < high for rate in rates) / len(rates) == pytest.approx(0.25, abs=0.04)
    even = [point["v"] for point in draws(150, {}, {"v": Range(0, 0.9)}, 0)]
    assert sum(value < 0.3 for value in even) / len(even) == pytest.approx(1 / 3, abs=0.1)


def test_whole_ends_give_whole_numbers_ends_included():
    steps = [point["v"] for point in draws(6, {}, {"v": Range.parse("1..6")}, 0)]
    assert sorted(steps) == [1, 2, 3, 4, 5, 6]
    assert all(isinstance(step, int) for step in steps)
    assert isinstance(draws(1, {}, {"v": Range.parse("1..6.0")}, 0)[0]["v"], float)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lr", "a setting and its values, such as lr=1e-4,1e-3"),
        ("=1,2", "a setting and its values"),
        ("lr=1,,2", "a value of lr is empty"),
        ("lr=", "a value of lr is empty"),
        ("lr=1e-4..1", "1e-4..1 is a range; use --range"),
    ],
)
def test_grids_that_cannot_be_read(text, message):
    with pytest.raises(HapteraError, match=message):
        read_grid([text])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lr", "such as lr=1e-5..1e-1"),
        ("lr=1e-4", "'1e-4' is not a range"),
        ("lr=low..high", "is not a range"),
        ("lr=1..1e-4", "from 1 to 0.0001; two numbers, the smaller first"),
        ("lr=0..inf", "two numbers"),
    ],
)
def test_ranges_that_cannot_be_read(text, message):
    with pytest.raises(HapteraError, match=message):
        read_ranges([text])


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (({}, {}, None), "nothing to choose from"),
        (({"lr": [1]}, {}, None), "the grid has one point, lr=1"),
        (({"lr": [1, 1.0]}, {}, None), "different values"),
        (({"lr": []}, {}, None), "at least one"),
        (({"lr": 0.1}, {}, None), "a list of values"),
        (({}, {"lr": Range(1, 2)}, None), "with --random"),
        (({"lr": [1, 2]}, {"lr": Range(1, 2)}, 5), "lr has values and a range"),
        (({"lr": [1, 2]}, {}, 1), "random is 1"),
    ],
)
def test_searches_with_nothing_to_choose(search, message):
    with pytest.raises(HapteraError, match=message):
        points(*search, 0)


def test_settings_that_the_adapter_does_not_have_or_that_are_no_numbers():
    check_adapter(Tent, "tent", {"lr": 1, "optimiser": "adam", "reset": 10, "epochs": 2})
    for settings, message in (
        ({"lrr": 1}, "unknown setting of adapter tent 'lrr'; did you mean 'lr'"),
        ({"lr": "fast"}, "lr of adapter tent is 'fast'; a number"),
        ({"lr": True}, "lr of adapter tent is True; a number"),
        ({"reset": 0}, "reset is 0; a whole number"),
        ({"epochs": 1.5}, "epochs is 1.5; a whole number"),
        ({"ensemble": 1.5}, "ensemble is 1.5; a share"),
        ({"asr": 1000}, "asr is 1000; true"),
        ({"prior_correction": "logit"}, "unknown prior_correction 'logit'; did you mean 'logits'"),
        ({"model": 1}, "unknown setting"),
    ):
        with pytest.raises(HapteraError, match=message):
            check_adapter(Tent, "tent", settings)


def test_a_choice_at_the_edge_is_told_unless_nothing_lies_beyond():
    def told(values, best, key="lr"):
        return at_edges([{key: value} for value in values], {key: best})

    assert told([1, 2, 3], 2) == []
    assert told([1, 3, 2], 3) == ["lr=3 is the largest value tried: try larger ones"]
    assert told([1, 3, 2], 1) == ["lr=1 is the smallest value tried: try smaller ones"]
    assert told([0, 0.9], 0) == []
    assert told([8.0, float("inf")], float("inf")) == []
    assert told([1, 10], 1, "every") == []
    assert told(["sgd", "adam"], "sgd") == []


def test_recipes_bring_the_values_of_the_sources_and_what_is_given_takes_their_place():
    assert with_recipe("prior", BatchNorm, None, {}) == {"prior": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]}
    assert with_recipe("reset", RDumb, None, {}) == {"every": [125, 250, 500, 1000, 1500, 2000]}
    assert with_recipe("reset", Tent, None, {}) == {"reset": [125, 250, 500, 1000, 1500, 2000]}
    assert with_recipe("reset", RDumb, {"every": [5, 6]}, {}) == {"every": [5, 6]}
    assert with_recipe("lr", Tent, {"momentum": [0]}, {"lr": Range(1, 2)}) == {"momentum": [0]}
    assert with_recipe("leave-one-out", Tent, {"lr": [1, 2]}, {}) == {"lr": [1, 2]}


def test_learning_rates_follow_the_batch_as_in_table_b14():
    rates = [for_batch({"lr": 5e-4}, batch)["lr"] for batch in (16, 32, 64, 80, 96, 128)]
    assert rates == [0.125e-3, 0.25e-3, 0.5e-3, 0.625e-3, 0.75e-3, 1e-3]


def test_what_goes_around_an_adapter_becomes_a_setting():
    from functools import partial

    assert unwrap(PeriodicReset(partial(ETA, lr=1.0), every=7), None) == (ETA, {"lr": 1.0, "reset": 7})
    assert unwrap(partial(Offline, method=SAR, epochs=3), None) == (SAR, {"epochs": 3})
    around = PriorCorrection(Ensemble(partial(Tent, momentum=0.5), momentum=0.9), scale="logits")
    assert unwrap(around, None) == (Tent, {"momentum": 0.5, "ensemble": 0.9, "prior_correction": "logits"})
    assert unwrap(AdaptiveReset(partial(Tent, lr=1)), None) == (Tent, {"lr": 1, "asr": True})
    assert unwrap(UnMixing(partial(Tent, lr=1), components=4), None) == (Tent, {"lr": 1, "unmixing": 4})
    assert unwrap(partial(partial(Tent, lr=1), lr=2), None) == (Tent, {"lr": 2})
    assert unwrap(None, "prior") == (BatchNorm, {})
    with pytest.raises(HapteraError, match="no adapter to tune"):
        unwrap(None, "lr")


def test_study_files_are_read_back_as_they_were_written():
    content = {
        "batch_size": 8,
        "data": {"path": 'a "b"\\c\té.npz', "restrict": True, "odd key": 1},
        "seeds": [0, 1],
        "models": [{"build": "net.py:build", "arguments": {}}, {"build": "x", "arguments": {"sizes": [1, 2.5]}}],
        "adapters": [{"use": "batchnorm", "prior": float("inf"), "small": 1e-07, "frozen": False}],
    }
    assert tomllib.loads(toml(content)) == content
    with pytest.raises(HapteraError, match=r"method is .*Tent.*, which a study file cannot hold"):
        toml({"adapters": [{"use": "tent", "method": Tent}]})
