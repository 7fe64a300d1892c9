"""Recipes: each tries what it says, and chooses by the least error on hold-out corruptions."""

import tomllib
from functools import partial
from itertools import permutations
from statistics import mean

import pytest
from tests.tune.test_run import HOLDOUT, error, errors, tune

from haptera.adapters import ETA, BatchNorm, RDumb, Tent
from haptera.data import ArrayData
from haptera.run.cells import cells_of, open_study
from haptera.run.study import RunSummary
from haptera.streams import Continual, Repeated


@pytest.mark.long
def test_the_recipe_prior_tries_powers_of_two_for_the_batch_size(net, data, tmp_path):
    tuned = tune({"net": net}, data, recipe="prior", batch_size=8, severities=[5], out=tmp_path)
    assert sorted(tuned.table["prior"].dropna()) == [2**k for k in range(11)]
    for prior in (1, 1024):
        expected = mean(errors(partial(BatchNorm, prior=prior), net, data, batch_size=8).values())
        assert tuned.table.set_index("prior").loc[prior, "error"] == pytest.approx(expected)
    assert tomllib.loads(tuned.study_file.read_text())["adapters"][1] == {"use": "batchnorm", **tuned.best}


@pytest.mark.slow
def test_the_recipe_reset_goes_through_every_order_repeated(net, data, tmp_path):
    small = ArrayData(data.images(range(16)), data.targets[:16], "sixteen")
    settings = {"lr": 1.0, "redundancy": 0.4}
    tuned = tune(
        {"net": net},
        small,
        partial(RDumb, **settings),
        {"every": [2, 5]},
        recipe="reset",
        shifts=HOLDOUT[:3],
        batch_size=8,
        out=tmp_path,
    )
    assert tuned.cells == RunSummary(ran=3 * 6, kept=0, failed=0)
    times = -(-6 * 5 // 6)  # two batches under each of three corruptions, at least six times the longest interval
    for every in (2, 5):
        orders = [Repeated(Continual(small, order, 5.0, batch_size=8), times) for order in permutations(HOLDOUT[:3])]
        expected = mean(error(RDumb(net, every=every, **settings), order) for order in orders)
        assert tuned.table.set_index("every").loc[every, "error"] == pytest.approx(expected)
    assert tuned.control.empty
    assert tomllib.loads(tuned.study_file.read_text())["streams"] == [{"use": "continual"}]
    short = tune(
        {"net": net},
        small,
        ETA,
        {"reset": [3, 9]},
        recipe="reset",
        shifts=HOLDOUT[:2],
        batch_size=8,
        steps=6,
        out=tmp_path,
    )
    assert any("less than twice the longest interval" in remark for remark in short.remarks)


@pytest.mark.long
def test_the_recipe_lr_scales_the_rate_with_each_batch_size(net, data, tmp_path):
    tuned = tune(
        {"net": net}, data, Tent, {"lr": [0.1, 2.0]}, recipe="lr", batch_size=[16, 32], severities=[5], out=tmp_path
    )
    ran = {(cell.stream, cell.adapter) for cell in cells_of(open_study(tmp_path)) if cell.adapter != "none"}
    assert ran == {
        ("holdout, batches of 16", "tent:lr=0.025"),
        ("holdout, batches of 16", "tent:lr=0.5"),
        ("holdout, batches of 32", "tent:lr=0.05"),
        ("holdout, batches of 32", "tent:lr=1.0"),
    }
    by_hand = {
        base: mean(
            value
            for n in (16, 32)
            for value in errors(partial(Tent, lr=base * n / 64), net, data, batch_size=n).values()
        )
        for base in (0.1, 2.0)
    }
    assert tuned.best == {"lr": min(by_hand, key=by_hand.get)}
    assert tuned.table["error"].iloc[0] == pytest.approx(min(by_hand.values()))
    chosen = tomllib.loads(tuned.study_file.read_text())
    assert (chosen["batch_size"], chosen["adapters"][1]["lr"]) == (16, tuned.best["lr"] / 4)
