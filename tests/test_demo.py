"""The demo, as a newcomer runs it: a report, and the same table again without running a cell."""

import json
import shutil
import signal
import sys
from dataclasses import replace

import pandas as pd
import pytest

from haptera import demo as module
from haptera.demo import YARDSTICK
from haptera.run.cells import open_study

whole = pytest.mark.long  # a dozen networks; CI runs these, too


@pytest.mark.long
def test_in_small_it_writes_a_report_and_finds_everything_again(haptera, monkeypatch):
    networks = [replace(network, epochs=5) for network in module.NETWORKS if network.name == "mlp-64"]
    monkeypatch.setattr(module, "NETWORKS", networks)
    monkeypatch.setattr(module, "YARDSTICK", "mlp-64")
    first, again = (json.loads(haptera("demo", "--jobs", 1, "--json").stdout) for _ in range(2))
    assert (haptera.folder / first["report"]).is_file()
    assert first["failed"] == 0
    assert (again["ran"], again["kept"]) == (0, first["ran"])


@pytest.mark.long
def test_a_quick_one_has_two_networks_at_three_severities(haptera):
    said = json.loads(haptera("demo", "--quick", "--jobs", 1, "--json").stdout)
    table = pd.read_parquet(haptera.folder / "haptera-demo" / "table.parquet")
    assert said["failed"] == 0
    assert set(table["model"]) - {""} == set(module.QUICK)
    assert set(table.loc[table["stream"] == "corruptions", "severity"].dropna()) == {1, 3, 5}
    lines = haptera("demo", "--quick", "--jobs", 1, "--quiet").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["holds", "breaks", "adapts", "haptera-demo/report.html"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory, fork_server):
    """The demo run once: its folder, and what it printed."""
    from tests.conftest import CommandLine

    run = CommandLine(tmp_path_factory.mktemp("demo"), fork_server)
    done = run("demo", "--json")
    assert done.returncode == 0, done.stderr
    return run, json.loads(done.stdout)


def values(path):
    table = pd.read_parquet(path)
    costs = ["seconds_per_image", "relative_seconds", "peak_bytes", "relative_bytes"]
    return table[~table["measure"].isin(costs)].reset_index(drop=True)


def accuracies(run):
    table = pd.read_parquet(run.folder / "haptera-demo" / "table.parquet")
    return table[table["measure"] == "accuracy"]


@whole
def test_it_writes_a_report_and_a_table_of_about_a_dozen_networks(demo):
    run, printed = demo
    assert (run.folder / printed["report"]).is_file()
    assert printed["failed"] == 0
    assert 12 <= accuracies(run)["model"].nunique() <= 15


@whole
def test_networks_have_learnt_and_shifts_cost_them(demo):
    rows = accuracies(demo[0])
    plain = rows[rows["adapter"] == "none"]
    clean = plain[plain["stream"] == "clean"].set_index("model")["value"]
    hard = plain[(plain["stream"] == "corruptions") & (plain["severity"] == 5)].groupby("model")["value"].mean()
    assert clean.median() > 0.95
    assert clean.drop("resnet-bn-8-brief").min() > 0.85
    assert (hard < clean - 0.1).all()


@whole
def test_batchnorm_statistics_help_where_contrast_is_low(demo):
    rows = accuracies(demo[0])
    rows = rows[(rows["shift"] == "contrast") & (rows["stream"] == "corruptions")]
    both = rows.pivot_table("value", "model", "adapter", aggfunc="mean").dropna()
    assert len(both) >= 3
    assert (both["batchnorm"] > both["none"] + 0.1).all()


@whole
def test_a_calibrated_stream_keeps_the_accuracy_of_its_yardstick(demo):
    run, printed = demo
    table = pd.read_parquet(run.folder / "haptera-demo" / "table.parquet")
    rows = table[(table["stream"] == "ccc") & (table["model"] == YARDSTICK) & (table["adapter"] == "none")]
    walk = rows[rows["measure"] == "expected_accuracy"]
    reached = rows[rows["measure"] == "accuracy_over_steps"]
    assert len(walk) == 40
    assert (walk["value"] - walk["difficulty"]).abs().mean() < 0.1
    assert abs((reached["value"] * reached["n"]).sum() / reached["n"].sum() - walk["value"].mean()) < 0.1
    assert "Severities along the walk" in (run.folder / printed["report"]).read_text()


@whole
def test_the_report_sets_errors_against_stability(demo):
    run, printed = demo
    table = pd.read_parquet(run.folder / "haptera-demo" / "table.parquet")
    plain = table[(table["measure"] == "relative_stability") & (table["adapter"] == "none")]
    assert set(plain["model"]) == set(table["model"]) - {""}  # a comparison of shifts is of no model
    assert (plain["low"] < plain["value"]).all()
    residual = plain["model"].str.startswith("resnet-bn")
    assert plain.loc[residual, "value"].max() < plain.loc[plain["model"].str.startswith("mlp"), "value"].min()
    assert "Error against stability" in (run.folder / printed["report"]).read_text()


@whole
def test_again_no_cell_is_run_and_the_table_is_the_same(demo):
    run, first = demo
    before = pd.read_parquet(run.folder / "haptera-demo" / "table.parquet")
    again = json.loads(run("demo", "--json").stdout)
    assert (again["ran"], again["kept"]) == (0, first["ran"])
    pd.testing.assert_frame_equal(pd.read_parquet(run.folder / "haptera-demo" / "table.parquet"), before)


SMALL = """
from dataclasses import replace

from haptera import demo
from haptera.cli import main

if __name__ == "__main__":
    names = ("linear", "mlp-64")
    demo.NETWORKS = tuple(replace(network, epochs=3) for network in demo.NETWORKS if network.name in names)
    demo.YARDSTICK = "mlp-64"
    main()
"""


@whole
def test_stopped_while_it_trains_and_while_it_runs_it_ends_the_same(haptera):
    (haptera.folder / "small.py").write_text(SMALL)
    haptera.command = [sys.executable, "small.py"]
    assert haptera.apart("demo", "--jobs", 1, "--quiet", "--out", "undisturbed").returncode == 0
    run = ("demo", "--jobs", 1, "--quiet", "--out", "disturbed")
    for pattern, number in (("*/networks/*.safetensors", signal.SIGKILL), ("*/cells/*.npz", signal.SIGTERM)):
        process = haptera.start_until(pattern, *run)
        process.send_signal(number)
        assert "Traceback" not in process.communicate()[1]
    damaged = next((haptera.folder / "disturbed" / "networks").glob("linear-*.safetensors"))
    damaged.write_bytes(damaged.read_bytes()[:1000])
    done = haptera.apart(*run[:-3], *run[-2:], "--json")
    assert f"{damaged.name} has 1,000 bytes" in done.stderr
    assert json.loads(done.stdout)["failed"] == 0
    one, two = (values(haptera.folder / name / "table.parquet") for name in ("disturbed", "undisturbed"))
    pd.testing.assert_frame_equal(one, two)
    assert haptera.apart("verify", "disturbed").returncode == 0


@whole
def test_a_lost_network_is_trained_again_to_the_same_weights(demo):
    run, _ = demo
    folder = run.folder / "haptera-demo" / "networks"
    lost = next(folder.glob("linear-*.safetensors"))
    shutil.move(lost, run.folder / "kept.safetensors")
    again = json.loads(run("demo", "--json", "--jobs", 1).stdout)
    assert again["ran"] == 0
    assert lost.read_bytes() == (run.folder / "kept.safetensors").read_bytes()
    assert len(open_study(run.folder / "haptera-demo").pieces) == again["kept"]
