"""`haptera export table`: a study, or a table, as a paper prints it."""

import csv
import io
from functools import partial

import numpy as np
import pytest
import torch
from tests.commands import call

from haptera.adapters import BatchNorm, NoAdaptation
from haptera.data import ArrayData
from haptera.run.study import Study
from haptera.shifts import Contrast, GaussianNoise
from haptera.streams import Continual


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    out = tmp_path_factory.mktemp("export") / "out"
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(4 * 6 * 6, 3)
    net = torch.nn.Sequential(*layers)
    generator = np.random.default_rng(0)
    images, targets = generator.integers(0, 255, (40, 8, 8, 1), np.uint8), generator.integers(0, 3, 40)
    stream = Continual(ArrayData(images, targets), (GaussianNoise, Contrast), batch_size=20)
    adapters = {"none": NoAdaptation, "batchnorm:prior=4": partial(BatchNorm, prior=4)}
    Study({"net": net.eval()}, [stream], adapters, out=out, seeds=[0, 1]).run(progress=False)
    return out


def test_a_study_is_printed_as_a_table_of_adapters_by_shifts(study, capsys):
    assert call("export", "table", study, "--format", "csv") == 0
    said = capsys.readouterr()
    lines = list(csv.DictReader(io.StringIO(said.out)))
    assert [line["adapter"] for line in lines] == ["none", "batchnorm:prior=4"]  # in the order of the study
    assert list(lines[0])[5:] == ["gaussian_noise", "contrast", "mean", "mean sd"]
    assert "Published results are not shown" in said.err
    assert call("export", "table", study, "--format", "csv", "--measure", "accuracy", "--quiet") == 0
    said = capsys.readouterr()
    assert said.err == ""
    for error, accuracy in zip(lines, csv.DictReader(io.StringIO(said.out)), strict=True):
        assert float(error["mean"]) + float(accuracy["mean"]) == pytest.approx(100, abs=0.11)


def test_a_table_of_results_is_enough_and_a_file_is_written(study, tmp_path, capsys):
    made = tmp_path / "table.tex"
    assert call("export", "table", study / "table.parquet", "--format", "latex", "--out", made) == 0
    assert capsys.readouterr().out == f"{made}\n"
    assert made.read_text().count("\\bottomrule") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "pdf"], "unknown format 'pdf'"),
        (["--spread", "some"], "unknown spread 'some'"),
        (["--stream", "continal"], "unknown stream 'continal'; did you mean 'continual'?"),
        (["--adapter", "tent"], "unknown adapter 'tent'"),
        (["--measure", "records"], "no direction of records is better"),
    ],
)
def test_wrong_words_are_refused(study, capsys, options, message):
    assert call("export", "table", study, *options) == 2
    assert message in capsys.readouterr().err


def test_a_folder_without_results_is_refused(tmp_path, capsys):
    assert call("export", "table", tmp_path / "nothing") == 2
    assert "nothing" in capsys.readouterr().err
