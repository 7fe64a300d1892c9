"""The analysis of the example as a plugin: an entry point makes it a command that goes on where it was killed."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def plugin(haptera, folder):
    """The command line with the example installed, as pip would leave it, and a file for it to read."""
    about = folder / "site" / "labels_of_mine-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: labels-of-mine\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[haptera.analyses]\nlabels = my_own_analysis:labels\n")
    (folder / "site" / "my_own_analysis.py").write_bytes((EXAMPLES / "my_own_analysis.py").read_bytes())
    paths = [str(folder / "site"), os.environ.get("PYTHONPATH", "")]
    haptera.environment = haptera.environment | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    np.savez(folder / "right.npz", right=np.random.default_rng(0).random(1000) < 0.8)
    return haptera


@pytest.mark.long
def test_an_entry_point_makes_a_command_with_help_summary_json_and_page(plugin, folder):
    assert "from labels-of-mine" in plugin.apart("list", "analyses").stdout
    told = plugin.apart("labels", "--help").stdout
    assert "true where the model is right" in told
    assert all(option in told for option in ("--draws", "--seed", "--out", "--json", "--quiet"))
    assert plugin.apart("labels", "right.npz", "--draws", 100).stdout.startswith("sure        within 0.")
    content = json.loads(plugin.apart("labels", "right.npz", "--draws", 100, "--json", "--out", "found").stdout)
    assert list(content["spreads"]) == ["50", "100", "200", "400", "800"]
    assert "How sure is it?" in (folder / content["files"]["report"]).read_text()
    wrong = plugin.apart("labels", "right.npz", "--draw", 100)
    assert wrong.returncode == 2
    assert "Traceback" not in wrong.stderr


@pytest.mark.long
def test_killed_in_the_middle_it_goes_on_and_ends_the_same(plugin, folder):
    command = ("labels", "right.npz", "--draws", 300, "--out")
    assert plugin.apart(*command, "whole").returncode == 0
    process = plugin.start_until("*spread/*.json", *command, "killed", after=2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    finished = {path: path.stat().st_mtime_ns for path in (folder / "killed" / "spread").glob("*.json")}
    assert len(finished) == 2
    assert not (folder / "killed" / "result.json").exists()
    again = plugin.apart(*command, "killed")
    assert again.returncode == 0, again.stderr
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    for name in ("result.json", "table.parquet"):
        assert (folder / "killed" / name).read_bytes() == (folder / "whole" / name).read_bytes()
