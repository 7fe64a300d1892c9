"""A file of data never runs code: one file that tries, for each reader, and a list of who may turn a name into code."""

import ast
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import haptera
from commands import call
from haptera import Outputs
from haptera.analyses.attribution import attribute
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.data import open_data
from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint
from haptera.models import ModelSource
from haptera.pose import PoseModel
from haptera.recordings.reading import read_recording
from haptera.run.calibrate import load_calibration
from haptera.run.cells import study_ledger
from haptera.run.ledger import Ledger, Piece
from haptera.streams import CCC

SOURCE = Path(haptera.__file__).parent
EVIL = "from pathlib import Path\nPath(__file__).with_name('owned').write_text('')\n\n\ndef S(*a, **k):\n    pass\n"


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A folder with `evil.py`, which leaves a mark when it is imported."""
    (tmp_path / "evil.py").write_text(EVIL)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not (tmp_path / "owned").exists()


class Mark:
    """Makes a folder when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("owned",)


NAMES = ["evil.py:S", "evil:S", "subprocess:run"]


@pytest.mark.parametrize("settings", [{}, {"args": ["mkdir", "owned"]}])
@pytest.mark.parametrize("name", NAMES)
def test_the_header_of_a_pose_model(name, settings, evil):
    PoseModel(["nose"], "small", settings={"width": 2}).save(evil / "net.safetensors")
    facts = {"parts": ["nose"], "skeleton": [], "backbone": name, "settings": settings}
    save_file(load_file(evil / "net.safetensors"), evil / "net.safetensors", {"pose": json.dumps(facts)})
    with pytest.raises(HapteraError, match=r"settings is" if settings else r"owner's, .*name it again: --backbone"):
        PoseModel.load(evil / "net.safetensors")
    assert call("pose", "predict", "net.safetensors", evil, "--out", "said.csv") == 2
    assert call("pose", "score", "drawn", "--model", "net.safetensors") == 2


@pytest.mark.parametrize("name", NAMES)
def test_the_shifts_of_a_calibration(name, evil, folder):
    names = [name, "contrast"]
    facts = {"shifts": names, "samples": 40, "step": 5.0, "clean": 30, "classes": 3, "flip": False, "crop": 0.0}
    with Ledger(evil / "calibration", "calibration") as ledger:
        pieces = [Piece(fingerprint(*pair), "pairs/{} {}.npy".format(*pair)) for pair in (names, names[::-1])]
        ledger.plan(pieces, facts | {"prints": {}})
        for piece in pieces:
            with ledger.writing(piece) as file:
                np.save(file, np.array([[30, 20], [20, 10]]))
    with pytest.raises(HapteraError, match="unknown shift in the calibration"):
        CCC(open_data(folder / "data.npz"), load_calibration("calibration"))
    stream = "ccc:calibration=calibration,length=64"
    assert call("run", "--model", "net.py:build", "--data", "data.npz", "--stream", stream, "--out", "study") == 2


@pytest.fixture
def embedded(evil):
    """A recording, and the folder that `haptera embed` would leave."""
    signal = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    np.savez(evil / "recording.npz", signal=signal)
    settings = {"max_iterations": 2, "batch_size": 16, "num_hidden_units": 4, "output_dimension": 2}
    (evil / "found").mkdir()
    ContrastiveEmbedding(**settings).fit(signal).save(evil / "found" / "model.safetensors")
    read = {"path": "recording.npz", "signal": "signal", "labels": [], "trials": None, "bin": None, "epoch": None}
    prepared = {"mode": "time", "held": 0.2, "smoothing": 0.0, "causal": False, "zscore": False}
    facts = {"read": read | {"units": {}}, "prepared": prepared}
    (evil / "found" / "result.json").write_text(json.dumps(facts))
    return evil / "found"


def test_the_header_of_an_embedding(embedded):
    with safe_open(embedded / "model.safetensors", "pt") as file:
        [(key, header)] = file.metadata().items()
    for setting in ("model_architecture", "distance"):
        facts = json.loads(header)
        facts["settings"][setting] = "evil.py:S"
        save_file(load_file(embedded / "model.safetensors"), embedded / "bad.safetensors", {key: json.dumps(facts)})
        with pytest.raises(HapteraError, match=f"unknown {setting} 'evil.py:S'"):
            ContrastiveEmbedding.load(embedded / "bad.safetensors")


@pytest.mark.parametrize(
    ("key", "value"), [("path", "evil.py"), ("signal", "evil.py:S"), ("units", {"evil.py:S": "subprocess:run"})]
)
def test_what_attribute_reads(key, value, embedded):
    facts = json.loads((embedded / "result.json").read_text())
    (embedded / "result.json").write_text(json.dumps(facts | {"read": facts["read"] | {key: value}}))
    with pytest.raises(HapteraError, match=r"evil\.py|nothing is known about the channels"):
        attribute(embedded)


@pytest.mark.long
def test_a_study_manifest_and_the_provenance_of_outputs_are_words_only(evil):
    provenance = {"model": "evil.py:S", "stream": "evil:S", "adapter": "evil.py:S", "seed": 0, "parts": ["evil:S"]}
    logits = np.eye(3)[[0, 1, 2]]
    Outputs({"logits": logits}, np.arange(3), np.arange(3), provenance=provenance).save(evil / "study/cells/k.npz")
    names = {key: provenance[key] for key in ("model", "stream", "adapter", "seed")}
    prints = {"model_print": "evil.py:S", "stream_print": "evil.py:S"}
    piece = Piece("k", "cells/k.npz", "evil.py:S", names | prints | {"part": "evil.py:S"})
    study = {"models": [{"build": "evil.py:S"}], "adapters": [{"use": "evil.py:S"}], "streams": [{"use": "evil:S"}]}
    with study_ledger(evil / "study") as ledger:
        ledger.plan([piece], {"name": "evil.py:S", "settings": {"study": study}, "left_out": ["evil.py:S"]})
        ledger.done(piece)
    assert call("measure", "study") == 0
    assert call("report", "study") == 0


def test_a_corrupted_data_set_on_disk(evil, folder):
    assert call("materialise", "--data", "data.npz", "--layout", "imagenet-c", "--shift", "contrast", "--out", "c") == 0
    plan = (evil / "c" / "plan.json").read_text()
    (evil / "c" / "plan.json").write_text(plan.replace("contrast", "evil.py:S"))
    (evil / "c" / "contrast").rename(evil / "c" / "evil.py:S")
    run = ("run", "--model", "net.py:build", "--data", "c", "--out", "study", "--quiet")
    assert call(*run) in (0, 2)


def test_rows_of_identify(evil):
    (evil / "rows.toml").write_text('[[rows]]\nprocess = "evil.py:S"\nmodel = "subprocess:run"\n')
    assert call("identify", "rows.toml", "--out", "tables") == 2


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".pt", ".safetensors"])
def test_pickles(suffix, evil):
    path = evil / f"data{suffix}"
    held = np.array([Mark()], dtype=object)
    if suffix == ".npz":
        np.savez(path, images=held, labels=held, ids=held, provenance=held, logits=held)
    elif suffix == ".npy":
        np.save(path, held)
    else:
        path.write_bytes(pickle.dumps(Mark()))
    readers = [read_recording, open_data, Outputs.load, PoseModel.load, ContrastiveEmbedding.load]
    readers.append(lambda weights: ModelSource("linear", weights, allow_pickle=True)())
    for read in readers:
        with pytest.raises(HapteraError):
            read(path)


def test_what_names_a_builder_in_a_study_file_is_called_only_if_it_can_return_a_module(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "other.py").write_text("class Thing:\n    pass\n\n\ndef text(where) -> str:\n    open(where, 'w')\n")
    for name, arguments in (
        ("subprocess:run", {"args": ["mkdir", "owned"]}),
        ("os:mkdir", {"path": "owned"}),
        ("subprocess:Popen", {"args": ["mkdir", "owned"]}),
        ("other.py:text", {"where": "owned"}),
        ("other.py:Thing", {}),
    ):
        with pytest.raises(HapteraError, match=r"a function that returns an nn\.Module was expected"):
            ModelSource(name, arguments=arguments)()
    assert not (folder / "owned").exists()


MAY_RUN_CODE = {
    "find_or_import": {"run.parts", "run.results", "models.source"}
    | {f"cli.{name}" for name in ("corruptions", "tune")},
    "find_object": {"catalog", "testing", "pose.backbone", "data.opening"}
    | {f"models.loaders.{name}" for name in ("callables", "maite")},
    "find_module": {"models.source", "models.loaders.callables", "own_code"},
    "import_backbone": {"pose.opening"},
    "import_module": {"__init__", "catalog", "cli", "extras", "live", "own_code"}
    | {"analyses.embedding.baselines"},  # of a name in the code
    "exec_module": {"own_code"},
    "loads": {"run.execute"},
}
"""Who turns a name into code, or bytes into objects: only where a person wrote the name, or this process the bytes."""


@pytest.mark.long
def test_only_these_modules_turn_names_into_code():
    found = {}
    for path in SOURCE.rglob("*.py"):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                _check_call(name, node, module)
                short = name.rpartition(".")[2]
                if short in MAY_RUN_CODE and name not in ("json.loads", "tomllib.loads"):
                    found.setdefault(short, set()).add(module)
    assert found == MAY_RUN_CODE


def _check_call(name, node, module):
    words = {word.arg: ast.unparse(word.value) for word in node.keywords}
    assert name not in ("eval", "exec", "__import__", "pickle.load", "pickle.loads", "joblib.load", "yaml.load"), module
    assert not name.endswith(("read_pickle", "unsafe_load")), module
    if name == "torch.load":
        assert words.get("weights_only") == "True", module
    assert words.get("allow_pickle", "False") in ("False", "allow_pickle"), module
