"""`haptera stability` as a user runs it: text, JSON, report, and mistakes."""

import json

import pytest
import torch
from safetensors.torch import save_file
from tests.commands import call

from haptera.models import LeNet


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, width in (("narrow", 2), ("wide", 4), ("wider", 6)):
        torch.manual_seed(width)
        save_file(LeNet(width=width).state_dict(), f"{name}.safetensors")
    return tmp_path


WIDE = ["stability", "--model", "lenet:width=4", "--weights", "wide.safetensors", "--data", "digits", "--samples", "40"]


def test_text_says_what_was_found(here, capsys):
    assert call(*WIDE) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["wide", "deformation", "images"]
    assert lines[1].endswith("δ 1, c 3, bilinear: T 0.00104, 0.0% of the fields fold")
    assert lines[2].endswith("40 of 32 x 32 pixels; medians, 95 % over images")


def test_json_is_one_object_and_nothing_else(here, capsys):
    assert call(*WIDE, "--layers", "--baseline", "init", "--json") == 0
    content = json.loads(capsys.readouterr().out)
    for index in "RDG":
        assert set(content[index]) == {"mean", "mean_interval", "median", "median_interval"}
        low, high = content[index]["median_interval"]
        assert low <= content[index]["median"] <= high
    assert content["R"]["mean"] == pytest.approx(content["D"]["mean"] / content["G"]["mean"])
    assert (content["folded"], content["delta"], content["cutoff"]) == (0.0, 1.0, 3.0)
    assert content["delta_used"] == pytest.approx(1)
    assert [layer["layer"] for layer in content["layers"]][:3] == ["pixels", "0", "1"]
    assert content["layers"][0]["R"]["median"] == pytest.approx(1, abs=0.05)
    assert set(content["init"]) == {"R", "D", "G", "layers"}
    assert "measurements" not in content


@pytest.mark.long
def test_several_networks_and_deformations_are_all_told(here, capsys):
    more = ["--model", "lenet:width=2", "--weights", "narrow.safetensors"]
    more += ["--model", "lenet:width=6", "--weights", "wider.safetensors", "--delta", "1", "--delta", "3"]
    assert call(*WIDE, *more, "--json", "--out", "found") == 0
    content = json.loads(capsys.readouterr().out)
    assert [(one["model"], one["delta"]) for one in content["measurements"]] == [
        (name, delta) for delta in (1.0, 3.0) for name in ("wide", "narrow", "wider")
    ]
    assert set(content["laws"]) == {"R", "D", "G"}
    page = (here / "found" / "report.html").read_text()
    assert all(title in page for title in ("Indices of each network", "Over deformations", "Error against stability"))
    assert "data:image/png;base64," in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cutoff", "1"], "cutoff 1 keeps no mode"),
        (["--cutoff", "31"], "cutoff of diffeo is 31, on 32 x 32 pixels; it must be at most"),
        (["--delta", "-1"], "severity of diffeo is -1.0"),
        (["--interpolation", "gausian"], "did you mean 'gaussian'"),
        (["--rule", "reference code"], "did you mean 'reference'"),
        (["--baseline", "start"], "unknown baseline 'start'; valid: init"),
        (["--delta", "20", "--resample"], "fields fold in each of 100 draws"),
        (["--data", "digit"], "did you mean 'digits'"),
        (["--model", "lenet"], "--weights is given 1 times for 2 models"),
        (["--channels", "3"], "wide: the model fails on images of shape (3, 32, 32): RuntimeError: "),
    ],
)
def test_a_mistake_is_one_message_and_2(here, arguments, message, capsys):
    assert call(*WIDE, *arguments) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert "Traceback" not in told.err
    assert told.out == ""


def test_a_baseline_needs_weights_to_leave_out(here, capsys):
    assert call("stability", "--model", "lenet", "--data", "digits", "--baseline", "init") == 2
    assert "--baseline init needs --weights" in capsys.readouterr().err
