"""`holdfast identify` as a user runs it: text, JSON and mistakes."""

import json

import pytest

from holdfast.cli import main

QUICK = ("--dimensions", 2, "--steps", 30, "--batch-size", 128, "--quiet")


def call(*arguments):
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        return end.code or 0
    return 0


def test_text_has_scores_with_intervals_and_the_null(capsys):
    assert call("identify", "--supervised", *QUICK) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "process", "model", "contrastive", "identity", "supervised", "rotations",
    ]  # fmt: skip
    assert "R² 0." in lines[2]
    assert ".." in lines[2]


def test_json_is_one_object(capsys):
    assert call("identify", "--process", "box/uniform/laplace=0.1", "--model", "box/laplace", "--json", *QUICK) == 0
    content = json.loads(capsys.readouterr().out)
    low, high = content["contrastive"]["mcc_interval"]
    assert low <= content["contrastive"]["mcc"] <= high
    assert "supervised" not in content
    assert content["size"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--process", "sphere/uniform"), "space/marginal/conditional"),
        (("--model", "sphere/vfm"), "did you mean 'vmf'"),
        (("--model", "box/gennorm"), "gennorm=3"),
        (("--steps", "0"), "more than 0"),
        (("--device", "gpu"), "device is 'gpu'"),
    ],
)
def test_a_mistake_is_named(arguments, message, capsys):
    assert call("identify", *QUICK, *arguments) == 2
    assert message in capsys.readouterr().err
