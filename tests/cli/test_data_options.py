"""Every command opens data of every layout by the same options."""

import pytest
from tests.commands import call
from tests.data import layouts

from haptera.data import open_data
from haptera.run.cells import cells_of, open_study

MODEL = ["--model", "resnet:channels=3,width=4,classes=3"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAPTERA_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.slow  # starts processes
def test_processes_read_every_layout(place):
    streams = []
    for number, (name, write) in enumerate(layouts.LAYOUTS.items()):
        source = write(place / f"data{number}").relative_to(place)
        streams.append(f'{{use = "clean", name = "{name}", data = "{source}"}}')
    (place / "study.toml").write_text(
        f'models = [{{build = "linear", arguments = {{channels = 3, size = 32, classes = 3}}}}]\nadapters = ["none"]\n'
        f"streams = [{', '.join(streams)}]\n"
    )
    assert call("run", "study.toml", "--out", "out", "--jobs", "2", "--quiet") == 0
    assert {cell.stream for cell in cells_of(open_study(place / "out"))} == set(layouts.LAYOUTS)


def test_materialise_reads_parquet_and_leaves_out_what_is_broken(place):
    layouts.class_folders(place / "val")
    (place / "val" / "ant" / "000.png").write_bytes(b"no image")
    copy = ["--shift", "contrast", "--severity", "1", "--quality", "png", "--quiet", "--out"]
    more = ["--size", "16", "--crop", "1", "--interpolation", "bicubic", "--upright", "--broken", "drop"]
    assert call("materialise", "--data", "val", *more, *copy, "fewer") == 0
    assert len(open_data(place / "fewer").parts[0].data) == 11
    layouts.parquet(place / "a.parquet")
    assert call("materialise", "--data", "a.parquet", *copy, "whole") == 0
    assert len(open_data(place / "whole").parts[0].data) == 12


@pytest.mark.parametrize(
    "command",
    [
        [
            "calibrate",
            "--shift",
            "contrast",
            "--shift",
            "fog",
            "--samples",
            "12",
            "--step",
            "5",
            "--broken",
            "drop",
            "--out",
            "out",
        ],
        ["diagnose", "--upright", "--size", "32", "--interpolation", "bicubic"],
        ["stability", "--size", "32", "--upright", "--broken", "drop"],
        pytest.param(
            [
                "tune",
                "--adapter",
                "tent",
                "--grid",
                "lr=1e-3,1e-2",
                "--severities",
                "5",
                "--size",
                "32",
                "--out",
                "out",
            ],
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda command: command[0],
)
def test_a_command_opens_a_tar(command, place, capsys):
    layouts.tar(place / "shard-000.tar")
    code = call(*command, *MODEL, "--data", "shard-*.tar", "--quiet")
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert code == 0, said
