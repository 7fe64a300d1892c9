"""Quick gates: they agree with whole ones, spare most of the work, and keep both promises."""

import numpy as np
import pytest

import haptera
from haptera.adapters import BatchNorm, NoAdaptation
from haptera.analyses.gate.bars import Bar, bars_of
from haptera.analyses.gate.pairs import About
from haptera.analyses.gate.race import Lane, Race
from haptera.data import ArrayData, digits
from haptera.models import ResNet
from haptera.shifts import Contrast
from haptera.streams import Clean, Corruptions
from recorded_studies import answers, change, plant, record


def about(shift, severity=1.0):
    return About("net", "corruptions", f"{shift} {severity:g}", "none", shift, severity)


def race_of(before, after, tolerance=0.005, drop=0.05, chunk=100, bars=()):
    """Run a race on answers that are known; (shift, severity) -> right or not."""
    lanes = {
        str(place): [Lane(about(*place), right.mean(), len(right), tuple(bar.limit for bar in bars_of(bars, *place)))]
        for place, right in before.items()
    }
    race, at = Race(lanes, {}, tolerance, drop), dict.fromkeys(lanes, 0)
    places = {str(place): place for place in before}
    while (key := race.next()) is not None:
        rows = slice(at[key], at[key] + chunk)
        images = np.arange(len(before[places[key]]))[rows]
        if not len(images):
            race.close(key)
            continue
        scores = (each[places[key]][rows].astype(float) for each in (before, after))
        race.add(key, {about(*places[key]).key: (images, *scores)})
        at[key] += chunk
    return race


def test_a_large_drop_ends_the_race_early():
    generator = np.random.default_rng(0)
    before = answers(generator, images=3000)
    after = plant(generator, change(generator, before), [("contrast", 3)], 0.2)
    race = race_of(before, after)
    rows = race.frame("accuracy").set_index(["shift", "severity"])
    assert race.fell
    assert rows[rows["verdict"] == "fell"].index.tolist() == [("contrast", 3.0)]
    assert rows["images"].sum() < 0.35 * sum(map(len, before.values()))


def test_cells_that_are_cleared_are_not_run_to_their_end():
    generator = np.random.default_rng(1)
    before = answers(generator, images=3000)
    race = race_of(before, change(generator, before, 0.03))
    rows = race.frame("accuracy")
    assert not race.fell
    assert set(rows["verdict"]) == {"cleared"}
    assert rows["images"].sum() < 0.5 * 3000 * len(before)
    assert (rows["low"] > -0.1).all()


def test_a_bar_that_is_far_above_ends_the_race_though_nothing_fell():
    generator = np.random.default_rng(4)
    before = {("contrast", 1.0): generator.random(3000) < 0.8, ("fog", 1.0): generator.random(3000) < 0.8}
    bars = [Bar.parse("accuracy=0.5"), Bar.parse("accuracy@contrast=0.95")]
    race = race_of(before, before, bars=bars)
    rows = race.bar_rows(bars).set_index(["shift", "bar"])
    assert race.fell
    assert rows.loc[("contrast", "accuracy@contrast=0.95"), "verdict"] == "missed"
    assert rows.loc[("contrast", "accuracy@contrast=0.95"), "high"] < 0.95
    assert set(rows[rows["verdict"] == "missed"].index) == {("contrast", "accuracy@contrast=0.95")}
    assert "fell" not in set(race.frame("accuracy")["verdict"])
    assert race.frame("accuracy")["images"].sum() < 1000


def test_bars_are_looked_at_until_they_are_certain_and_by_their_value_where_every_answer_was_seen():
    generator = np.random.default_rng(5)
    right = generator.random(2000) < 0.8
    before = {("contrast", 1.0): right}
    far, near = [Bar.parse("accuracy=0.6")], [Bar.parse(f"accuracy={right.mean() - 1e-4:.6f}")]
    alone, quick, whole = (race_of(before, before, bars=bars) for bars in ([], far, near))
    assert alone.frame("accuracy")["images"].sum() <= quick.frame("accuracy")["images"].sum() < 2000
    assert quick.bar_rows(far)["verdict"].tolist() == ["held"]
    row = whole.bar_rows(near).iloc[0]
    assert whole.frame("accuracy")["images"].sum() == 2000  # too near to be certain
    assert (row["verdict"], row["value"]) == ("held", right.mean())
    assert row["low"] < right.mean() < row["high"]
    missed = [Bar.parse(f"accuracy={right.mean() + 1e-4:.6f}")]
    assert race_of(before, before, bars=missed).bar_rows(missed)["verdict"].tolist() == ["missed"]


def test_a_cell_that_has_no_more_answers_is_within_noise():
    generator = np.random.default_rng(2)
    before = answers(generator, images=100)
    rows = race_of(before, change(generator, before, 0.2)).frame("accuracy")
    assert set(rows["verdict"]) == {"within noise"}


@pytest.mark.long
def test_both_promises_hold():
    """150 candidates that did not fall, and 150 that fell by the drop that must not slip through."""
    generator, failed, missed = np.random.default_rng(3), 0, 0
    for _ in range(150):
        before = {("fog", float(severity)): generator.random(1200) < 0.7 for severity in range(6)}
        flips = {place: generator.random(1200) for place in before}
        same = {place: right ^ (flips[place] < 0.08) for place, right in before.items()}
        # Flipped at random, an accuracy of 0.7 falls: as many wrong ones become right.
        same = {place: np.where(before[place], flips[place] >= 0.03, flips[place] < 0.07) for place in same}
        failed += race_of(before, same, tolerance=0.0).fell
        worse = dict(same)
        worse["fog", 3.0] = same["fog", 3.0] & (generator.random(1200) >= 0.05 / 0.7)
        race = race_of(before, worse, tolerance=0.0)
        rows = race.frame("accuracy").set_index("severity")
        missed += rows.loc[3.0, "verdict"] == "cleared"
    most = 0.025 + 3 * np.sqrt(0.025 * 0.975 / 150)
    assert failed / 150 <= most
    assert missed / 150 <= most


@pytest.mark.long
def test_a_quick_gate_reads_a_study_that_was_run(tmp_path):
    generator = np.random.default_rng(4)
    before = answers(generator, images=2000)
    record(tmp_path / "released", before)
    record(tmp_path / "worse", plant(generator, change(generator, before), [("fog", 4)], 0.2))
    record(tmp_path / "same", change(generator, before, 0.02))
    gate = haptera.gate(tmp_path / "worse", tmp_path / "released", quick=True)
    assert not gate.passed
    assert set(gate.json()["falls"]) == {"fog 4"}
    assert gate.json()["answers"] < gate.json()["all_answers"] == 20_000
    gate = haptera.gate(tmp_path / "same", tmp_path / "released", quick=True)
    assert gate.passed
    assert gate.json()["answers"] < 12_000


def test_a_budget_that_is_used_up_leaves_the_rest_unseen(tmp_path, monkeypatch):
    generator = np.random.default_rng(5)
    before = answers(generator, images=500)
    record(tmp_path / "released", before)
    record(tmp_path / "same", change(generator, before, 0.1))
    clock = iter(np.arange(0.0, 1e6, 2.0))
    monkeypatch.setattr("haptera.analyses.gate.quick.time.monotonic", lambda: next(clock))
    gate = haptera.gate(tmp_path / "same", tmp_path / "released", minutes=0.5)
    assert gate.passed
    assert "not looked at" in gate.findings()[0].sentence
    assert "stopped by the budget of 0.5 min" in gate.summary()


def test_shifts_that_cost_more_accuracy_come_first():
    lanes = {
        name: [Lane(about(name), before, 1000)] for name, before in {"mild": 0.95, "hard": 0.6, "lost": 0.01}.items()
    }
    assert Race(lanes, {}, 0.005, 0.03).next() == "hard"


def test_cells_that_cost_less_time_come_first():
    lanes = {name: [Lane(about(name), 0.7, 1000)] for name in ("slow", "quick")}
    assert Race(lanes, {"slow": 1.0, "quick": 0.1}, 0.005, 0.03).next() == "quick"


@pytest.fixture(scope="module")
def few():
    import torch

    torch.manual_seed(0)
    test = digits("test", size=16)
    data = ArrayData(test.images(np.arange(300)), test.targets[:300], "few")
    return data, ResNet(width=4, stem=2).eval()


def study_of(data, net, out, **more):
    streams = [Clean(data, batch_size=20, shuffle=False), Corruptions(data, [Contrast], (1, 5), batch_size=20)]
    return haptera.Study({"net": net}, streams, out=out, **more)


@pytest.mark.long
def test_a_study_that_was_not_run_is_run_as_far_as_needed(tmp_path, few):
    study_of(*few, tmp_path / "released").run()
    gate = haptera.gate(study_of(*few, tmp_path / "candidate"), tmp_path / "released", quick=True, drop=0.1)
    assert gate.passed  # the same network: every difference is 0
    assert (gate.comparisons["difference"] == 0).all()
    assert 0 < gate.json()["answers"] < 900
    assert not (tmp_path / "candidate").exists()


@pytest.mark.long
def test_what_a_quick_gate_ran_is_kept_and_not_run_again(tmp_path, few, monkeypatch):
    study_of(*few, tmp_path / "released").run()
    made = [
        haptera.gate(study_of(*few, tmp_path / "x"), tmp_path / "released", quick=True, out=tmp_path / "out")
        for _ in range(2)
    ]
    assert made[0].json() == made[1].json()
    monkeypatch.setattr("haptera.analyses.gate.running.evaluate", lambda *_: pytest.fail("it was run again"))
    again = haptera.gate(study_of(*few, tmp_path / "x"), tmp_path / "released", quick=True, out=tmp_path / "out")
    assert again.json() == made[0].json()


@pytest.mark.long
def test_an_adapter_that_learns_runs_its_whole_cell(tmp_path, few):
    adapters = [NoAdaptation, BatchNorm]
    study_of(*few, tmp_path / "released", adapters=adapters).run()
    gate = haptera.gate(study_of(*few, tmp_path / "x", adapters=adapters), tmp_path / "released", quick=True, drop=0.1)
    learning = gate.comparisons[gate.comparisons["adapter"] == "batchnorm"]
    assert (learning["images"] == 300).all()
    assert (gate.comparisons["difference"] == 0).all()


@pytest.mark.long
def test_a_candidate_that_breaks_on_a_shift_fails(tmp_path, few):
    import torch
    from torch import nn

    class Fragile(nn.Module):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def forward(self, images):
            if len(images) > 2 and float(images.amax() - images.amin()) < 0.2:
                raise RuntimeError("no edges")
            return self.net(images)

    torch.manual_seed(0)
    study_of(*few, tmp_path / "released").run()
    study = study_of(few[0], Fragile(few[1]), tmp_path / "x")
    gate = haptera.gate(study, tmp_path / "released", quick=True, drop=0.1)
    assert not gate.passed
    assert gate.failures == ["net · contrast 5 · none failed: RuntimeError: no edges"]
