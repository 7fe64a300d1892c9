"""A flag is shown as a flag: its name, and no value."""

import re

import pytest
from typer.testing import CliRunner

from haptera.cli import app_for


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
