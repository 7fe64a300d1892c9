"""Every kind of bad input: one clear message, the right exit code, no traceback, earlier results intact."""

import contextlib
import os
import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file
from tests.commands import call
from tests.conftest import write_small_model_and_data

RUN = ["run", "--model", "net.py:build", "--out", "out", "--stream", "clean", "--quiet"]
DATA = ["--data", "data.npz"]


def npz(folder, images=None, labels=None, **more):
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (12, 8, 8), dtype=np.uint8) if images is None else images
    np.savez(folder / "bad.npz", images=images, labels=np.arange(len(images)) % 3 if labels is None else labels, **more)


def images_folder(folder, count=5, size=8):
    for name in ("cat", "dog", "eel"):
        (folder / "images" / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            Image.new("RGB", (size, size), (40 * i, 10, 90)).save(folder / "images" / name / f"{i}.png")


def nan_images(folder):
    images = np.random.default_rng(0).random((12, 8, 8))
    images[5, 2, 2] = np.nan
    npz(folder, images)


def unreadable_in_the_middle(folder):
    images_folder(folder, count=80)
    broken = folder / "images" / "dog" / "40.png"
    broken.write_bytes(broken.read_bytes()[:-30])


def two_sizes(folder):
    images_folder(folder)
    Image.new("RGB", (9, 8)).save(folder / "images" / "eel" / "0.png")


def weights(folder):
    save_file({"head.weight": np.zeros((3, 4), np.float32)}, folder / "w.safetensors")


COLOUR = [
    "run",
    "--model",
    "net.py:build:channels=3",
    "--out",
    "out",
    "--stream",
    "clean",
    "--quiet",
    "--data",
    "images",
]
BAD_NPZ = [*RUN, "--data", "bad.npz"]
IMPORT = ["import", "bad.npz", "--model", "m", "--stream", "s", "--out", "o"]


def model(name):
    return ["run", "--model", name, *DATA, "--out", "out"]


def array(*shape, value=0, kind=np.uint8):
    return lambda folder: npz(folder, np.full(shape, value, kind))


def labels(*values):
    return lambda folder: npz(folder, labels=np.array(values))


def text(name, content):
    return lambda folder: (folder / name).write_text(content)


# what is wrong -> (preparation, arguments, exit code, part of the message)
BAD = {
    "missing data file": (None, [*RUN, "--data", "dat.npz"], 2, "did you mean 'data.npz'"),
    "missing folder": (None, [*RUN, "--data", "images/"], 2, "images"),
    "no data": (None, RUN, 2, "no data: give data in the study file, or --data"),
    "wrong number of dimensions": (array(12, 8), BAD_NPZ, 2, "(12, 8)"),
    "ambiguous channels": (array(12, 3, 8, 3), BAD_NPZ, 2, "(12, 3, 8, 3)"),
    "wrong type of images": (array(12, 8, 8, kind=np.int64), BAD_NPZ, 2, "int64"),
    "floats beyond one": (array(12, 8, 8, value=255.0, kind=float), BAD_NPZ, 2, "255"),
    "no image": (array(0, 8, 8), BAD_NPZ, 2, "bad"),
    "NaN images": (nan_images, BAD_NPZ, 2, "NaN"),
    "labels out of range": (labels(*[3] * 12), BAD_NPZ, 2, "label 3 is out of range"),
    "labels of another length": (labels(0, 1, 2, 0, 1), BAD_NPZ, 2, "5"),
    "npz that is none": (text("bad.npz", "no"), BAD_NPZ, 2, "bad.npz"),
    "empty folder": (lambda folder: (folder / "images").mkdir(), COLOUR, 2, "images"),
    "images of two sizes": (two_sizes, COLOUR, 2, "size"),
    "unreadable image in the middle": (unreadable_in_the_middle, [*COLOUR, "--batch-size", 2], 1, "40.png"),
    "channels that do not fit": (images_folder, [*RUN, "--data", "images"], 2, "fails on images of shape (3, 8, 8)"),
    "model that returns a tuple": (None, model("net.py:pair"), 2, "returned a tuple"),
    "model that cannot be built": (None, model("net.py:broken"), 2, "no such checkpoint"),
    "unknown function": (None, model("net.py:buid"), 2, "did you mean 'build'"),
    "missing model file": (None, model("met.py:build"), 2, "did you mean 'net.py'"),
    "missing weights": (None, [*RUN, *DATA, "--weights", "w.safetensors"], 2, "no file of weights w.safetensors"),
    "weights that do not fit": (weights, [*RUN, *DATA, "--weights", "w.safetensors"], 2, "do not fit the model"),
    "pickled weights": (text("w.pt", ""), [*RUN, *DATA, "--weights", "w.pt"], 2, "--allow-pickle"),
    "unknown adapter": (None, [*RUN, *DATA, "--adapter", "batchnor"], 2, "did you mean 'batchnorm'"),
    "unknown setting": (None, [*RUN, *DATA, "--adapter", "batchnorm:priors=1"], 2, "did you mean 'prior'"),
    "wrong setting": (None, [*RUN, *DATA, "--adapter", "batchnorm:prior=x"], 2, "prior is 'x'"),
    "unknown stream": (None, [*RUN[:5], *DATA, "--stream", "cleen"], 2, "did you mean 'clean'"),
    "data that is not corrupted": (None, [*RUN[:5], *DATA, "--stream", "directory"], 2, "corruption/severity/class"),
    "typo in the study file": (text("s.toml", "sedes = [1]"), ["run", "s.toml"], 2, "did you mean 'seeds'"),
    "study file that is no TOML": (text("s.toml", "a = = 1"), ["run", "s.toml"], 2, "s.toml"),
    "missing study file": (None, ["run", "s.toml"], 2, "no study file s.toml"),
    "file and flags": (text("s.toml", 'data = "data.npz"'), ["run", "s.toml", *DATA], 2, "both give data"),
    "output folder is a file": (None, ["run", "--model", "net.py:build", *DATA, "--out", "net.py"], 2, "it is a file"),
    "mapping with a typo": (text("m.csv", "clas,accepted\n0,1\n"), [*RUN, *DATA, "--mapping", "m.csv"], 2, "class"),
    "mapping beyond the model": (
        text("m.csv", "class,accepted\n0,1\n1,7\n2,2\n"),
        [*RUN, *DATA, "--mapping", "m.csv"],
        2,
        "the model's class 7; the model has 3",
    ),
    "no such measure": (None, ["measure", "before", "--measure", "acuracy"], 2, "did you mean 'accuracy'"),
    "measure without its setting": (None, ["measure", "before", "--measure", "mce"], 2, "mce needs reference"),
    "a measure with a typo": (
        None,
        ["measure", "before", "--measure", "mce:refrence=a"],
        2,
        "did you mean 'reference'",
    ),
    "no such reference": (
        None,
        ["measure", "before", "--measure", "mce:reference=alxnet"],
        2,
        "did you mean 'alexnet'",
    ),
    "report of no study": (None, ["report", "nowhere"], 2, "no folder nowhere"),
    "wrong predictions": (array(12, 8, 8), IMPORT, 2, "images"),
    "device that is not there": (None, [*RUN, *DATA, "--device", "cuda:7"], 2, "cuda:7"),
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A finished study."""
    folder = tmp_path_factory.mktemp("study")
    with contextlib.chdir(write_small_model_and_data(folder)):
        assert call("run", "--model", "net.py:build", *DATA, "--stream", "clean", "--out", "before", "--quiet") == 0
    return folder / "before"


@pytest.fixture
def before(folder, study, monkeypatch):
    """A finished study in `before/`, and this folder as the present one."""
    monkeypatch.chdir(folder)
    shutil.copytree(study, "before")
    return {path: path.read_bytes() for path in (folder / "before").rglob("*") if path.is_file()}


@pytest.mark.long
@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_one_clear_message(kind, folder, before, capsys):
    prepare, arguments, code, message = BAD[kind]
    if prepare:
        prepare(folder)
    capsys.readouterr()
    assert call(*arguments) == code
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert len([line for line in error.splitlines() if line.startswith("error:")]) == 1
    assert all(path.read_bytes() == content for path, content in before.items())


@pytest.mark.parametrize("kind", ["unknown adapter", "missing data file", "labels out of range"])
def test_a_mistake_in_a_later_run_leaves_its_folder_as_it_was(kind, folder, before, capsys):
    prepare, arguments, code, _ = BAD[kind]
    if prepare:
        prepare(folder)
    arguments = ["before" if argument == "out" else argument for argument in arguments]
    assert call(*arguments) == code
    assert all(path.read_bytes() == content for path, content in before.items())


@pytest.mark.long
def test_no_write_permission(folder, haptera):
    (folder / "locked").mkdir(mode=0o555)
    command = [*haptera.command, "run", "--model", "net.py:build", *DATA, "--out", "locked/out"]
    if os.geteuid() == 0:  # root may write anywhere, unless it gives that up
        drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
        assert shutil.which("setpriv"), "setpriv (util-linux) is needed to test this as root"
        command = [*drop, *command]
    done = subprocess.run(command, cwd=folder, env=haptera.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "cannot write into locked/out: Permission denied" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_a_disk_that_is_full_in_the_middle(folder, haptera):
    npz(folder, np.zeros((3000, 8, 8), np.uint8))
    first = haptera(*RUN, *DATA)
    finished = sorted((folder / "out" / "cells").iterdir())
    full = haptera.apart(*RUN, "--data", "bad.npz", largest_file=20_000)
    assert (first.returncode, full.returncode) == (0, 1)
    assert "File too large" in full.stderr
    assert "finished cells are intact" in full.stderr
    assert "Traceback" not in full.stderr
    assert sorted((folder / "out" / "cells").iterdir()) == finished  # and no half-written file beside them


@pytest.mark.long
def test_two_runs_in_one_folder(folder, haptera):
    from haptera.run.cells import study_ledger

    (folder / "out").mkdir()
    with study_ledger(folder / "out"):
        done = haptera.apart(*RUN, *DATA)
    assert done.returncode == 2
    assert "another run is writing into out" in done.stderr


def test_a_report_that_nobody_reads_to_the_end(folder, haptera):
    done = subprocess.run(
        " ".join([*haptera.command, "list", "|", "head", "-1"]),
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
