"""Study files and flags: what they mean, and what every typo says."""

import numpy as np
import pytest

from haptera.adapters import BatchNorm, NoAdaptation, Offline, Reset, Tent, TimeLimit
from haptera.errors import HapteraError
from haptera.report.study.summary import summarise
from haptera.run.parts import Spec, from_flags
from haptera.run.settings import make_study, read_study
from haptera.shifts import Contrast

STUDY = """
batch_size = 8
seeds = [0, 3]
keep = "top2"
data = "data.npz"

[[models]]
name = "mine"
build = "net.py:build"
arguments = {classes = 4}

[[streams]]
use = "clean"
[[streams]]
use = "corruptions"
name = "hard"
shifts = ["contrast"]
severities = [4, 5]

[[adapters]]
use = "none"
[[adapters]]
use = "batchnorm"
prior = 2
"""


def make(folder, text):
    (folder / "study.toml").write_text(text)
    return make_study(read_study(folder / "study.toml"), folder / "out", folder)


def test_a_study_file_becomes_a_study(folder):
    study = make(folder, STUDY)
    assert list(study.models) == ["mine"]
    assert study.models["mine"]().head.out_features == 4
    assert [stream.name for stream in study.streams] == ["clean", "hard"]
    assert study.streams[1].shifts == (Contrast,)
    assert study.streams[1].severities == [4, 5]
    assert study.streams[0].batch_size == 8
    assert study.adapters["none"] is NoAdaptation
    assert study.adapters["batchnorm:prior=2"].func is BatchNorm
    assert (study.seeds, study.keep) == ([0, 3], "top2")
    assert make(folder, STUDY.replace("seeds = [0, 3]", "")).seeds is None
    assert study.streams[0].data is study.streams[1].data


def test_models_are_called_after_their_weights_or_their_file(folder):
    def names(*models, weights=()):
        return list(make_study(from_flags(models, weights) | {"data": "digits"}, folder / "out").models)

    assert names(f"{folder}/net.py:build") == ["net"]
    assert names(f"{folder}/net.py:build", weights=[folder / "best.safetensors"]) == ["best"]
    assert names(f"{folder}/net.py:build", f"{folder}/net.py:pair", "lenet") == ["net-build", "net-pair", "lenet"]
    assert names("haptera.models:LeNet") == ["LeNet"]
    with pytest.raises(HapteraError, match="two models are called 'net-build'"):
        names(f"{folder}/net.py:build", f"{folder}/net.py:build")


@pytest.mark.long
def test_other_data_beside_the_studys_own_is_a_shift(folder):
    np.savez(folder / "new.npz", **np.load(folder / "data.npz"))
    flags = from_flags([f"{folder}/net.py:build"], [], ["clean", "clean:name=new,data=new.npz", "clean:name=again"], [])
    study = make_study(flags | {"data": "data.npz"}, folder / "out", folder)
    assert [stream[0].context["shift"] for stream in study.streams] == ["clean", "new", "clean"]
    sentences = [answer.sentence for answer in summarise(study.run(progress=False))]
    assert not any("no shift was measured" in text for text in sentences)
    assert " under new" in sentences[0]
    assert "clean" in sentences[0]


def test_flags_say_the_same(folder):
    flags = from_flags(
        [f"{folder}/net.py:build:classes=4"],
        [],
        ["clean", "corruptions:name=hard,shifts=contrast,severities=4,5"],
        ["none", "batchnorm:prior=2"],
    )
    study = make_study(flags | {"data": str(folder / "data.npz"), "seeds": [0, 3], "keep": "top2"}, folder / "out")
    assert study.models["net"]().head.out_features == 4
    assert study.streams[1].shifts == (Contrast,)
    assert study.streams[1].severities == [4, 5]
    assert list(study.adapters) == ["none", "batchnorm:prior=2"]


@pytest.mark.long
def test_any_adapter_can_be_reset_and_can_learn_offline(folder):
    text = STUDY.replace("prior = 2", "prior = 2\nreset = 3") + '[[adapters]]\nuse = "tent"\nlr = 0.1\nepochs = 2\n'
    study = make(folder, text)
    model = study.models["mine"]()
    reset = study.adapters["batchnorm:prior=2,reset=3"](model)
    assert isinstance(reset, Reset)
    assert isinstance(reset.inner, BatchNorm)
    assert reset.rule.steps == 3
    offline = study.adapters["tent:lr=0.1,epochs=2"](model)
    assert isinstance(offline, Offline)
    assert isinstance(offline.inner, Tent)
    table = study.run()
    assert set(table.loc[table["adapter"] == "tent:lr=0.1,epochs=2", "epoch"].dropna()) == {1, 2}


def test_a_cost_goes_around_any_adapter_and_its_resets(folder):
    study = make(folder, STUDY.replace("prior = 2", "prior = 2\nreset = 3\ncost = 2.5"))
    limited = study.adapters["batchnorm:prior=2,reset=3,cost=2.5"](study.models["mine"]())
    assert isinstance(limited, TimeLimit)
    assert isinstance(limited.inner, Reset)
    assert limited.cost == 2.5


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("cost = 0", "cost is 0; a number of intervals"),
        ('cost = "fast"', "cost is 'fast'; a number of intervals"),
        ("cost = 2\nepochs = 3", "an adapter has cost and epochs"),
    ],
)
def test_a_cost_that_cannot_be_is_refused(folder, wrong, why):
    with pytest.raises(HapteraError, match=why):
        make(folder, STUDY.replace("prior = 2", wrong))


def test_a_list_of_batch_sizes_is_a_stream_of_each(folder):
    study = make(folder, STUDY.replace("severities = [4, 5]", "severities = [4]\nbatch_size = [4, 16]"))
    assert [(stream.name, stream.batch_size) for stream in study.streams] == [
        ("clean", 8),
        ("hard, batches of 4", 4),
        ("hard, batches of 16", 16),
    ]


@pytest.mark.parametrize("sizes", ["[]", "[4, 0]", '["many"]'])
def test_batch_sizes_that_cannot_be_are_refused(folder, sizes):
    with pytest.raises(HapteraError, match="batch_size"):
        make(folder, STUDY.replace("severities = [4, 5]", f"batch_size = {sizes}"))


def test_without_streams_and_adapters_there_are_defaults(folder):
    study = make(folder, 'data = "data.npz"\nmodels = ["lenet"]')
    assert [stream.name for stream in study.streams] == ["clean", "corruptions"]
    assert list(study.adapters) == ["none"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("batch_size = 8", "batchsize = 8", "unknown key in the study file 'batchsize'; did you mean 'batch_size'"),
        ("batch_size = 8", "batch_size = 'x'", "batch_size is 'x'; a whole number from 1"),
        ("batch_size = 8", "batch_size = -1", "batch_size is -1"),
        ("seeds = [0, 3]", "seeds = 3", "seeds is 3; a list"),
        ('keep = "top2"', 'keep = "all"', "keep is 'all'"),
        ('data = "data.npz"', 'data = "dta.npz"', r"dta\.npz.*did you mean 'data\.npz'"),
        ('data = "data.npz"', 'data = {pth = "data.npz"}', "unknown key of data 'pth'; did you mean 'path'"),
        ('data = "data.npz"', "", "no data"),
        ("build =", "bild =", "unknown key of models 'bild'; did you mean 'build'"),
        ('"net.py:build"', "3", "a model has build 3"),
        ('"net.py:build"', '"ent.py:build"', r"no file .*ent\.py; did you mean 'net\.py'"),
        ("{classes = 4}", "{clases = 4}", "TypeError.*clases"),
        ('use = "corruptions"', 'use = "corruption"', "unknown stream 'corruption'; did you mean 'corruptions'"),
        ('use = "corruptions"', "", "does not say which to use"),
        ('["contrast"]', '["contrasts"]', "unknown shift 'contrasts'; did you mean 'contrast'"),
        ("severities", "severity", "unknown setting of stream corruptions 'severity'; did you mean 'severities'"),
        ("[4, 5]", "[4, 6]", "severity of contrast is 6"),
        ('use = "batchnorm"', 'use = "batchnrom"', "unknown adapter 'batchnrom'; did you mean 'batchnorm'"),
        ("prior = 2", "prio = 2", "unknown setting of adapter batchnorm 'prio'; did you mean 'prior'"),
        ("prior = 2", "prior = -2", "prior is -2"),
        ('name = "hard"', 'name = "clean"', "two streams have the name 'clean'"),
        ('use = "batchnorm"\nprior = 2', 'use = "none"', "two adapters are called 'none'"),
        ("[[adapters]]", "[adapters]", r"study\.toml"),
    ],
)
def test_every_mistake_is_named_with_the_nearest_valid_name(folder, old, new, message):
    assert old in STUDY
    with pytest.raises(HapteraError, match=message):
        make(folder, STUDY.replace(old, new)).run()


def test_a_list_where_a_table_is_given_is_refused(folder):
    with pytest.raises(HapteraError, match=r"a list of tables, \[\[models\]\], was expected"):
        make(folder, 'data = "data.npz"\nmodels = 3')
    with pytest.raises(HapteraError, match="no models"):
        make(folder, 'data = "data.npz"')


def test_two_models_of_one_name_are_refused(folder):
    with pytest.raises(HapteraError, match="two models are called 'lenet'"):
        make(folder, 'data = "data.npz"\nmodels = ["lenet", "lenet"]')


def test_weights_must_be_as_many_as_models():
    with pytest.raises(HapteraError, match="--weights is given 1 times for 2 models"):
        from_flags(["lenet", "mlp"], ["w.safetensors"])


def test_a_missing_study_file_is_named(tmp_path):
    with pytest.raises(HapteraError, match=r"no study file .*none\.toml"):
        read_study(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("tent", "tent", {}),
        ("tent:lr=1e-3", "tent", {"lr": 1e-3}),
        ("a:b=1,c=x y,d=[1, 2]", "a", {"b": 1, "c": "x y", "d": [1, 2]}),
        ("a:b=1,2,c=true", "a", {"b": [1, 2], "c": True}),
        ("net.py:build:width=8", "net.py:build", {"width": 8}),
        ("pkg.mod:build", "pkg.mod:build", {}),
    ],
)
def test_specs_are_read(text, name, arguments):
    spec = Spec.parse(text)
    assert spec.name == name
    assert spec.arguments.keys() == arguments.keys()
    if "d" not in arguments:
        assert spec.arguments == arguments


def test_a_bare_word_stands_for_the_setting_that_the_catalog_names():
    streams = ["ccc:easy", "ccc:0.3,speed=2000", "clean", "my.py:Stream", "corruptions:severities=1,3"]
    first, second, *others = from_flags(["lenet"], streams=streams)["streams"]
    assert first == {"use": "ccc", "difficulty": "easy"}
    assert second == {"use": "ccc", "difficulty": 0.3, "speed": 2000}
    assert others == [{"use": "clean"}, {"use": "my.py:Stream"}, {"use": "corruptions", "severities": [1, 3]}]
    with pytest.raises(HapteraError, match="gives 'difficulty' twice"):
        from_flags(["lenet"], streams=["ccc:easy,difficulty=hard"])
    with pytest.raises(HapteraError, match="says 'easy'; key=value was expected"):
        from_flags(["lenet"], streams=["continual:easy,severity=3"])


def test_a_setting_given_twice_is_refused():
    with pytest.raises(HapteraError, match="gives 'lr' twice"):
        Spec.parse("tent:lr=1,lr=2")


@pytest.mark.parametrize("text", ["", "net=net.py:build", ":width=1", "=3"])
def test_a_part_without_a_name_says_what_was_given(text):
    with pytest.raises(HapteraError, match=f"{text!r} does not begin with a name"):
        Spec.parse(text)
