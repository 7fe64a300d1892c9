"""The one JSON object of a command is valid whatever the numbers are."""

import json

import numpy as np

from haptera.cli.say import say_json


def test_numbers_that_are_not_finite_are_null(capsys):
    say_json({"size": float("inf"), "rows": [{"p": np.float64("nan"), "n": np.int64(3)}], "layer": np.float32(0.5)})
    assert json.loads(capsys.readouterr().out) == {"size": None, "rows": [{"p": None, "n": 3}], "layer": 0.5}
