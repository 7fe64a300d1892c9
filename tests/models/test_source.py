"""Where a model comes from: names, files, weights, and what each mistake says."""

import pickle

import pytest
import torch
from safetensors.torch import save_file

from haptera.errors import HapteraError
from haptera.models import ModelSource


def test_a_file_a_module_and_a_name_of_the_catalog_build_models(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert ModelSource("net.py:build", arguments={"classes": 5})().head.out_features == 5
    assert not ModelSource("net:build")().training
    assert type(ModelSource("lenet")()).__name__ == "LeNet"


def test_weights_are_loaded_exactly(folder):
    source = ModelSource(f"{folder}/net.py:build")
    state = {key: torch.rand_like(value.float()) for key, value in source().state_dict().items()}
    state["body.1.num_batches_tracked"] = torch.tensor(4)
    save_file(state, folder / "w.safetensors")
    model = ModelSource(source.build, folder / "w.safetensors")()
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())


def test_a_model_without_weights_is_the_same_in_every_process(folder):
    source = ModelSource(f"{folder}/net.py:build")
    assert torch.equal(source().head.weight, source().head.weight)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        ("nte.py:build", r"no file .*nte\.py; did you mean 'net\.py'"),
        ("net.py:biuld", r"unknown name in .*net\.py 'biuld'; did you mean 'build'"),
        ("net.py:broken", "building it failed: RuntimeError: no such checkpoint"),
        ("net.py:number", "it gave a int, an nn.Module was expected"),
        ("bad.py:build", r"importing .*bad\.py failed: SyntaxError"),
    ],
)
def test_a_mistake_in_the_file_is_named(folder, build, message):
    (folder / "bad.py").write_text("def build(:\n")
    with pytest.raises(HapteraError, match=message):
        ModelSource(f"{folder}/{build}")()


def test_a_missing_module_or_dependency_is_named(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(HapteraError, match="no module 'nowhere_at_all'"):
        ModelSource("nowhere_at_all:build")()
    (folder / "needy.py").write_text("import not_installed_anywhere\n")
    with pytest.raises(HapteraError, match="needs 'not_installed_anywhere', which is not installed"):
        ModelSource("needy:build")()
    with pytest.raises(HapteraError, match="unknown model 'resent'; did you mean 'resnet'"):
        ModelSource("resent")()


def test_weights_that_do_not_fit_say_where(folder):
    source = f"{folder}/net.py:build"
    state = ModelSource(source)().state_dict()
    state["head.weight"] = torch.zeros(5, 4)
    state["extra"] = state.pop("head.bias")
    save_file(state, folder / "w.safetensors")
    message = r"not in the file \(first 'head.bias'\).*\(first 'extra'\).*'head.weight': \(5, 4\) in the file, \(3, 4\)"
    with pytest.raises(HapteraError, match=message):
        ModelSource(source, folder / "w.safetensors")()


def test_damaged_and_missing_weights_are_named(folder):
    source = f"{folder}/net.py:build"
    with pytest.raises(HapteraError, match="no file of weights"):
        ModelSource(source, folder / "none.safetensors")()
    (folder / "w.safetensors").write_bytes(b"junk")
    with pytest.raises(HapteraError, match=r"cannot read the weights .*w\.safetensors"):
        ModelSource(source, folder / "w.safetensors")()


def test_a_pickle_is_read_only_when_asked_and_runs_no_code(folder):
    source = f"{folder}/net.py:build"
    torch.save(ModelSource(source)().state_dict(), folder / "w.pt")
    with pytest.raises(HapteraError, match="only read with --allow-pickle"):
        ModelSource(source, folder / "w.pt")()
    ModelSource(source, folder / "w.pt", allow_pickle=True)()

    class Evil:
        def __reduce__(self):
            return (open, (str(folder / "owned"), "w"))

    (folder / "evil.pt").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(HapteraError, match="cannot read the weights"):
        ModelSource(source, folder / "evil.pt", allow_pickle=True)()
    assert not (folder / "owned").exists()


def test_an_edit_of_the_file_changes_the_code_print(folder):
    source = ModelSource(f"{folder}/net.py:build")
    before = source.code()
    with open(folder / "net.py", "a") as file:
        file.write("\n# changed\n")
    assert source.code() != before
