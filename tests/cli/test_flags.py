"""A flag is shown as a flag: its name, and no value."""

import re

import pytest
from typer.testing import CliRunner

from haptera.cli import PANELS, app_for


@pytest.mark.parametrize(
    "words", [[], ["demo"], ["trends"], ["live"], ["pose", "train"], ["dependencies", "cut"]], ids=" ".join
)
def test_help_names_no_value_for_a_flag(words):
    done = CliRunner().invoke(app_for(words[0] if words else None), [*words, "--help"], env={"COLUMNS": "100"})
    assert done.exit_code == 0
    assert re.search(r"--help +Show this message", done.output)
    assert "<bool>" not in done.output
    assert "BOOLEAN" not in done.output


def test_an_option_that_takes_a_value_still_says_which():
    done = CliRunner().invoke(app_for("demo"), ["demo", "--help"], env={"COLUMNS": "100"})
    assert re.search(r"--jobs +\S*int", done.output, re.IGNORECASE)


def test_help_shows_first_what_one_cannot_do_without():
    done = CliRunner().invoke(app_for("run"), ["run", "--help"], env={"COLUMNS": "100"})
    options = re.findall(r"│ (--[a-z-]+) ", done.output)
    assert options[:6] == ["--model", "--weights", "--data", "--stream", "--adapter", "--out"]
    assert options[-1] == "--help"


def test_every_command_has_its_heading_in_the_help():
    done = CliRunner().invoke(app_for(None), ["--help"], env={"COLUMNS": "100"})
    for heading, names in PANELS.items():
        _, _, below = done.output.partition(f"─ {heading} ─")
        listed, _, _ = below.partition("╰")
        assert sorted(re.findall(r"│ ([a-z-]+) ", listed)) == sorted(names)
