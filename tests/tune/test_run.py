"""Tuning: the choice is the least error on hold-out corruptions, computed here once more by loops, and nothing else."""

import shutil
from functools import partial
from math import exp, log
from statistics import mean, stdev

import pandas as pd
import pytest

from haptera.adapters import ETA, Adapter, BatchNorm, NoAdaptation, Offline, Tent
from haptera.data import ArrayData
from haptera.data.base import CorruptedImages, CorruptedPart
from haptera.errors import HapteraError
from haptera.models import LeNet
from haptera.run.cells import cells_of, open_study
from haptera.run.loop import evaluate
from haptera.run.settings import make_study, read_study
from haptera.run.study import RunSummary
from haptera.shifts import Contrast, GaussianBlur, Saturate, Spatter, SpeckleNoise
from haptera.streams import Shifted
from haptera.tune import Search
from haptera.tune import tune as tune_with
from haptera.tune.holdout import holdout_shifts

HOLDOUT = (SpeckleNoise, GaussianBlur, Spatter, Saturate)
T_OF_3 = 3.182446305284263  # Student's 97.5 % quantile with 3 degrees of freedom
RATES = [1e-3, 1.0, 10.0]


def tune(models, data, adapter=None, grid=None, *, out, study=None, **settings):
    """Tune with the settings of a search by their names."""
    return tune_with(models, data, adapter, Search(grid or {}, **settings), out=out, study=study)


def error(adapter, stream):
    return 1 - evaluate(adapter, stream).correct().mean()


def errors(make, net, data, severities=(5,), seeds=(0,), batch_size=16):
    """Shift -> mean error over severities and seeds, cell by cell."""
    return {
        shift.name: mean(
            error(make(net), Shifted(data, shift(severity), batch_size=batch_size, seed=seed))
            for severity in severities
            for seed in seeds
        )
        for shift in HOLDOUT
    }


@pytest.fixture(scope="module")
def searched(net, data, tmp_path_factory):
    """A finished search over three learning rates, its settings, and the same by loops."""
    settings = {"severities": (3, 5), "seeds": (0, 1), "batch_size": 16, "out": tmp_path_factory.mktemp("tune") / "t"}
    by_hand = {lr: errors(partial(Tent, lr=lr), net, data, (3, 5), (0, 1)) for lr in RATES}
    return tune({"net": net}, data, Tent, {"lr": RATES}, **settings), settings, by_hand


def test_the_hold_out_corruptions_are_these_four():
    assert set(holdout_shifts()) == set(HOLDOUT)


def test_the_chosen_setting_has_the_least_mean_error_of_cells_run_by_hand(searched):
    tuned, _, by_hand = searched
    means = {lr: mean(found.values()) for lr, found in by_hand.items()}
    assert len(set(means.values())) == 3
    assert tuned.best == {"lr": min(means, key=means.get)}
    ranked = tuned.table.dropna(subset="rank")
    assert ranked["lr"].tolist() == sorted(means, key=means.get)
    assert ranked["error"].tolist() == pytest.approx(sorted(means.values()))


def test_intervals_are_students_over_corruptions_and_differences_are_paired(searched, net, data):
    tuned, _, by_hand = searched
    first, second = tuned.table["lr"].iloc[:2]
    own = list(by_hand[first].values())
    middle = log(mean(own) / (1 - mean(own)))
    half = T_OF_3 * stdev(own) / 2 / (mean(own) * (1 - mean(own)))  # on the log odds, by the delta method
    row = tuned.table.iloc[0]
    ends = [1 / (1 + exp(-(middle + side * half))) for side in (-1, 1)]
    assert (row["low"], row["high"]) == pytest.approx(ends)
    behind = [by_hand[second][shift] - by_hand[first][shift] for shift in by_hand[first]]
    half = T_OF_3 * stdev(behind) / 2
    expected = (mean(behind), mean(behind) - half, mean(behind) + half)
    assert tuple(tuned.table[["behind", "behind_low", "behind_high"]].iloc[1]) == pytest.approx(expected)
    assert (tuned.margin.value, tuned.margin.low, tuned.margin.high) == pytest.approx(expected)
    unadapted = errors(NoAdaptation, net, data, (3, 5), (0, 1))
    assert tuned.table["setting"].iloc[-1] == "unadapted"
    assert tuned.table["error"].iloc[-1] == pytest.approx(mean(unadapted.values()))


def test_leaving_out_each_corruption_tells_what_the_choice_on_the_others_costs(searched):
    tuned, _, by_hand = searched
    assert set(tuned.control["left_out"]) == {shift.name for shift in HOLDOUT}
    for row in tuned.control.itertuples():
        others = {lr: mean(v for k, v in found.items() if k != row.left_out) for lr, found in by_hand.items()}
        chosen = min(others, key=others.get)
        there = {lr: found[row.left_out] for lr, found in by_hand.items()}
        assert row.chosen == f"lr={chosen}"
        assert row.error == pytest.approx(there[chosen])
        assert row.regret == pytest.approx(there[chosen] - min(there.values()))


@pytest.mark.long
def test_the_same_search_runs_no_cell_twice_and_a_larger_one_only_what_is_new(searched, net, data, tmp_path):
    tuned, settings, _ = searched
    settings = settings | {"out": shutil.copytree(tuned.out, tmp_path / "copy")}
    assert tuned.cells == RunSummary(ran=4 * 2 * 2 * 4, kept=0, failed=0)
    again = tune({"net": net}, data, Tent, {"lr": RATES}, **settings)
    assert again.cells == RunSummary(ran=0, kept=64, failed=0)
    pd.testing.assert_frame_equal(again.table, tuned.table)
    more = tune({"net": net}, data, Tent, {"lr": [*RATES, 0.1]}, **settings)
    assert more.cells == RunSummary(ran=16, kept=64, failed=0)
    fewer = tune({"net": net}, data, Tent, {"lr": RATES}, **settings | {"severities": (5,), "seeds": (1,)})
    assert fewer.cells == RunSummary(ran=0, kept=16, failed=0)  # the folder holds more, and only this is scored
    one = errors(partial(Tent, lr=RATES[0]), net, data, (5,), (1,))
    assert fewer.table.set_index("lr").loc[RATES[0], "error"] == pytest.approx(mean(one.values()))


def test_everything_tried_is_a_cell_on_hold_out_corruptions_and_the_files_say_the_same(searched):
    tuned, _, _ = searched
    cells = cells_of(open_study(tuned.out))
    assert {cell.part.partition(" ")[0] for cell in cells} == {shift.name for shift in HOLDOUT}
    tried = pd.read_csv(tuned.out / "tried.csv")
    assert len(tried) == 4
    assert "chosen" in tuned.summary()
    assert "left out" in tuned.summary(control=True)


def test_the_study_file_runs_the_chosen_setting_on_test_corruptions(searched, net, data, tmp_path):
    tuned, _, _ = searched
    content = read_study(tuned.study_file)
    assert content["batch_size"] == 16
    assert content["adapters"][1] == {"use": "tent", **tuned.best}
    study = make_study(content | {"models": ["resnet"], "data": "digits"}, tmp_path)
    tested = {part.by.name for part in study.streams[1].parts()}
    assert len(tested) == 15
    assert not tested & {shift.name for shift in HOLDOUT}
    assert set(study.adapters) == {"none", f"tent:lr={tuned.best['lr']}"}


@pytest.mark.long
def test_of_equally_good_settings_the_first_given_is_chosen_and_that_is_said(net, data, tmp_path):
    tuned = tune(
        {"net": net},
        data,
        partial(Tent, lr=0.0),
        {"momentum": [0.9, 0.5, 0.0]},
        severities=[5],
        shifts=HOLDOUT[:2],
        out=tmp_path,
    )
    assert tuned.best == {"momentum": 0.9}
    assert "equally good: momentum=0.5 and momentum=0.0; the one given first is chosen" in tuned.remarks
    assert "momentum=0.9 is the largest value tried: try larger ones" in tuned.remarks
    assert "# momentum=0.9 is one of 3 settings with the least error of 3: tried.csv." in tuned.study_file.read_text()


@pytest.mark.long
def test_a_setting_that_never_learns_is_not_praised(net, data, tmp_path):
    some = {"severities": [5], "shifts": HOLDOUT[:1], "batch_size": 16}
    tuned = tune({"net": net}, data, partial(ETA, margin=1e-9), {"lr": [1e-3, 1e-2]}, **some, out=tmp_path)
    assert "it kept nothing to learn from at 100 % of its steps, so it hardly learns" in tuned.remarks


@pytest.mark.long
def test_a_choice_that_does_not_beat_the_unadapted_model_is_told(net, data, tmp_path):
    tuned = tune(
        {"net": net}, data, Tent, {"lr": [1e3, 1e4]}, severities=[1], shifts=(Saturate,), batch_size=8, out=tmp_path
    )
    assert any("no setting beats the unadapted model" in remark for remark in tuned.remarks)
    assert "one corruption and one seed: there is no interval" in tuned.remarks
    assert tuned.table["low"].isna().all()


@pytest.mark.long
def test_offline_the_last_pass_counts(net, data, tmp_path):
    tuned = tune(
        {"net": net},
        data,
        partial(Tent, lr=0.5),
        {"epochs": [1, 3]},
        severities=[5],
        shifts=HOLDOUT[:1],
        batch_size=16,
        out=tmp_path,
    )
    for epochs in (1, 3):
        stream = Shifted(data, SpeckleNoise(5), batch_size=16)
        outputs = evaluate(Offline(net, partial(Tent, lr=0.5), epochs), stream)
        expected = 1 - outputs.correct()[outputs.context["epoch"] == epochs].mean()
        assert tuned.table.set_index("epochs").loc[epochs, "error"] == pytest.approx(expected)


@pytest.mark.long
def test_random_search_is_repeatable_and_goes_on(net, data, tmp_path):
    settings = {"severities": [5], "shifts": HOLDOUT[:2], "batch_size": 32, "out": tmp_path}
    first = tune({"net": net}, data, Tent, random=2, ranges={"lr": (1e-3, 10.0)}, **settings)
    more = tune({"net": net}, data, Tent, random=3, ranges={"lr": (1e-3, 10.0)}, **settings)
    assert (first.cells.ran, more.cells.ran, more.cells.kept) == (6, 2, 6)
    assert set(first.table["lr"].dropna()) < set(more.table["lr"].dropna())


@pytest.mark.long
def test_corrupted_data_on_disk_is_read_for_its_hold_out_parts_only(net, data, tmp_path):
    def part(shift, severity):
        images = shift(severity)(data.images(range(96)))
        return CorruptedPart(shift.name, float(severity), ArrayData(images, data.targets, "disk"))

    disk = CorruptedImages("disk", [part(Contrast, 5), part(SpeckleNoise, 5), part(Spatter, 5), part(Spatter, 2)])
    tuned = tune({"net": net}, disk, Tent, {"lr": [0.01, 1.0]}, severities=[5], out=tmp_path / "out")
    cells = cells_of(open_study(tmp_path / "out"))
    assert {cell.part for cell in cells} == {"speckle_noise 5", "spatter 5"}
    assert "tent on speckle_noise, spatter at severity 5" in tuned.title
    with pytest.raises(HapteraError, match=r"no hold-out data: disk has none of .*; it has contrast 5"):
        tune({"net": net}, CorruptedImages("disk", disk.parts[:1]), Tent, {"lr": [1, 2]}, out=tmp_path / "none")


class FailsOnNoise(Adapter):
    """Fails where images are rough, if it is told to be strict."""

    def __init__(self, model, strict: float = 0.0):
        super().__init__(model)
        self.strict = strict

    def step(self, inputs):
        if self.strict and float(inputs.diff(dim=-1).abs().mean()) > 0.2:
            raise RuntimeError("too rough")
        return self.predict(inputs)


@pytest.mark.long
def test_a_setting_that_fails_somewhere_has_no_rank(net, data, tmp_path):
    settings = {"severities": [5], "shifts": (SpeckleNoise, Saturate), "out": tmp_path}
    tuned = tune({"net": net}, data, FailsOnNoise, {"strict": [1.0, 0.0]}, **settings)
    assert tuned.best == {"strict": 0.0}
    assert tuned.cells.failed == 1
    assert tuned.table.set_index("setting")["rank"].isna()["strict=1.0"]
    assert "1 cell failed; a setting that did not run everywhere has no rank" in tuned.remarks
    assert tuned.margin is None
    assert "not all cells ran" in tuned.summary()
    assert read_study(tuned.study_file)["adapters"][1]["use"].endswith(":FailsOnNoise")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shifts": [Contrast]}, "contrast is a test corruption; settings are chosen on hold-out ones only"),
        ({"shifts": [SpeckleNoise, Contrast(3).at]}, "contrast is a test corruption"),
        ({"shifts": []}, "no hold-out corruption"),
        ({"grid": {"lrr": [1, 2]}}, "unknown setting of adapter tent 'lrr'; did you mean 'lr'"),
        ({"grid": {"lr": [1]}}, "the grid has one point"),
        ({"grid": {"lr": [1, -1]}, "models": None}, "a study needs models"),
        ({"recipe": "priors"}, "unknown recipe 'priors'; did you mean 'prior'"),
        ({"adapter": NoAdaptation}, "has no settings to tune"),
        ({"models": "lenet"}, "tent cannot adapt lenet: there is no normalisation layer"),
        ({"batch_size": [8, 16]}, "only the recipe lr takes several"),
        ({"recipe": "reset", "severities": [1, 5]}, "the recipe reset takes one severity"),
        ({"steps": 100}, "steps is the length of the streams of the recipe reset"),
        ({"severities": [6]}, "severity of speckle_noise is 6"),
        ({"data": "unlabelled"}, "has no labels; the mean error decides"),
        ({"data": 3}, "tuning takes a data set, found int"),
        ({"adapter": partial(Tent, parameters=print)}, "parameters is .*, which a study file cannot hold"),
    ],
)
def test_what_is_refused_leaves_no_folder(changes, message, net, data, tmp_path):
    arguments = {"models": {"net": net}, "data": data, "adapter": Tent, "grid": {"lr": [1, 2]}, "severities": [5]}
    arguments |= changes
    if arguments["models"] == "lenet":
        arguments["models"] = {"lenet": LeNet(size=12)}
    if arguments["data"] == "unlabelled":
        arguments["data"] = ArrayData(data.images(range(8)), None, "a few")
    arguments["models"] = arguments["models"] or {}
    with pytest.raises(HapteraError, match=message):
        tune(**arguments, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_one_setting_is_chosen_for_several_models(net, data, tmp_path):
    from copy import deepcopy

    import torch

    other = deepcopy(net)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.05)
    nets = {"net": net, "other": other, "lenet": LeNet(size=12)}
    tuned = tune(nets, data, BatchNorm, {"prior": [0, 64]}, severities=[5], batch_size=16, out=tmp_path)
    for prior in (0, 64):
        both = [mean(errors(partial(BatchNorm, prior=prior), one, data).values()) for one in (net, other)]
        assert tuned.table.set_index("prior").loc[prior, "error"] == pytest.approx(mean(both))
