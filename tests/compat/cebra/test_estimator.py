"""CEBRA by its arguments: what each becomes, fits of every kind of label, files, and attributes that notebooks read."""

import inspect
import logging
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import haptera.compat.cebra as cebra
from haptera.compat.cebra.arguments import ARGUMENTS, CHANGED, REFUSED, Labels, translate
from haptera.contrastive import ContrastiveEmbedding
from haptera.errors import HapteraError

HERE = Path(__file__).parent
GUIDE = HERE.parents[2] / "docs" / "guides" / "from-cebra.md"
T = np.arange(120)
SIGNAL = np.stack([np.sin(T / 7), np.cos(T / 5), np.sin(T / 11)], 1)
NUMBER, CLASSES = np.sin(T / 7), T // 40
QUICK = {"max_iterations": 3, "batch_size": 16, "num_hidden_units": 4, "output_dimension": 4, "random_state": 0}


def model_of(**arguments):
    return cebra.CEBRA("offset5-model", **QUICK | arguments)


def test_every_argument_has_a_sentence_and_the_guide_shows_it():
    given = list(inspect.signature(cebra.CEBRA).parameters)
    assert [one.name for one in ARGUMENTS] == given
    rows = [f"| `{one.name}` | {one.verdict} | {one.sentence} |" for one in ARGUMENTS]
    shown = [line for line in GUIDE.read_text().splitlines() if line.startswith("| `") and line.count("|") == 4]
    assert [row for row in rows if row not in shown] == []


REFUSALS = {
    "criterion": "triplet",
    "optimizer": "sgd",
    "optimizer_kwargs": (("weight_decay", 0.1),),
    "masking_kwargs": (("RandomNeuronMask", 0.3),),
}


def test_the_list_of_refused_arguments_is_whole():
    assert {one.name for one in ARGUMENTS if one.verdict == REFUSED} == set(REFUSALS)


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refused_argument_is_named(name):
    with pytest.raises(HapteraError, match=f"{name} is .* does not take"):
        model_of(**{name: REFUSALS[name]}).fit(SIGNAL)


@pytest.mark.parametrize("arguments", [{"distance": "dot"}, {"model_architecture": "offset11-model"}, {"hybrid": True}])
def test_other_bad_values_are_one_sentence(arguments):
    with pytest.raises(HapteraError, match=next(iter(arguments))):
        cebra.CEBRA(**QUICK | {"output_dimension": 2} | arguments).fit(SIGNAL, NUMBER)


def test_hybrid_of_three_dimensions_has_labels_and_time_on_all_as_there():
    settings = QUICK | {"output_dimension": 3}
    mine = cebra.CEBRA("offset5-model", hybrid=True, time_offsets=2, **settings).fit(SIGNAL, NUMBER)
    both = ContrastiveEmbedding("offset5-model", hybrid=True, time_offsets=2, **settings).fit(SIGNAL, NUMBER)
    np.testing.assert_allclose(mine.transform(SIGNAL), both.transform(SIGNAL), atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "labels", "mode"),
    [
        ({}, (), "time"),
        ({"conditional": "time_delta", "time_offsets": 2}, (NUMBER,), "time_delta"),
        ({"conditional": "delta", "delta": 0.1, "time_offsets": 2}, (NUMBER,), "delta"),
        ({"time_offsets": 5}, (CLASSES,), "discrete"),
        ({"time_offsets": 2}, (NUMBER, CLASSES), "mixed"),
        ({"time_offsets": 2}, (NUMBER, np.cos(T / 5)[:, None]), "time_delta"),
        ({"conditional": "time_delta", "hybrid": True}, (NUMBER,), "time_delta"),
        ({"time_offsets": 2}, (NUMBER.astype(object),), "time_delta"),
        ({"batch_size": None}, (), "time"),
        ({"temperature_mode": "auto", "min_temperature": 0.2}, (torch.tensor(NUMBER),), "time_delta"),
    ],
)
def test_labels_and_conditional_choose_the_mode_of_that_package(arguments, labels, mode, caplog):
    model = model_of(**arguments).fit(torch.tensor(SIGNAL), *labels)
    assert model.embedding_.mode_.conditional == mode
    assert model.embedding_.mode_.hybrid == bool(arguments.get("hybrid"))
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert model.transform(SIGNAL, batch_size=50).shape == (120, 4)


@pytest.mark.parametrize(
    ("arguments", "labels", "sentence"),
    [
        ({"conditional": "time_delta"}, (), "no label was given: pairs are drawn by time"),
        ({"conditional": "time"}, (NUMBER,), "the label that was given is not used"),
        ({"conditional": "time_delta"}, (CLASSES,), "the label is discrete"),
        ({"delta": 0.1}, (NUMBER,), "delta is 0.1, and conditional is not 'delta'"),
    ],
)
def test_what_that_package_ignores_without_a_word_is_a_warning(arguments, labels, sentence, caplog):
    model_of(**arguments).fit(SIGNAL, *labels)
    assert sentence in caplog.text


def test_it_is_the_same_fit_as_by_the_estimator_of_haptera():
    mine = cebra.CEBRA("offset5-model", hybrid=True, time_offsets=2, **QUICK).fit(SIGNAL, NUMBER)
    plain = ContrastiveEmbedding("offset5-model", hybrid=3, time_offsets=2, **QUICK).fit(SIGNAL, NUMBER)
    np.testing.assert_array_equal(mine.transform(SIGNAL), plain.transform(SIGNAL))


def test_a_loss_of_mixed_labels_draws_classes_evenly_as_that_package_does():
    settings = translate(cebra.CEBRA().get_params(), Labels(continuous=True, discrete=True)).settings
    assert settings["prior"] == "uniform"
    assert translate(cebra.CEBRA().get_params(), Labels(discrete=True)).settings["prior"] == "empirical"


def test_several_sessions_have_encoders_and_numbers_of_their_own(tmp_path):
    model = model_of(time_offsets=2).fit([SIGNAL, SIGNAL[:, :2]], [NUMBER, NUMBER])
    assert (model.num_sessions, model.n_features_, len(model.model_)) == (2, [3, 2], 2)
    assert model.transform(SIGNAL[:, :2], session_id=1).shape == (120, 4)
    with pytest.raises(HapteraError, match="session_id"):
        model.transform(SIGNAL)
    with pytest.raises(HapteraError, match=r"shape \(120, 3\); \(samples, 2\)"):
        model.transform(SIGNAL, session_id=1)
    model.save(tmp_path / "model.pt")
    again = cebra.CEBRA.load(tmp_path / "model.pt")
    np.testing.assert_array_equal(again.transform(SIGNAL, session_id=0), model.transform(SIGNAL, session_id=0))


def test_silent_channels_are_left_out_and_stay_left_out_of_a_saved_model(tmp_path, caplog):
    silent = np.insert(SIGNAL, 1, 7.0, axis=1)
    model = model_of().fit(silent)
    assert "1 of 4 channels never change" in caplog.text
    expected = model_of().fit(SIGNAL).transform(SIGNAL)
    np.testing.assert_array_equal(model.transform(silent), expected)
    model.save(tmp_path / "model.pt")
    again = cebra.CEBRA.load(tmp_path / "model.pt")
    np.testing.assert_array_equal(again.transform(silent), expected)
    assert again.get_params() == model.get_params()


@pytest.mark.long
def test_callbacks_do_not_change_the_fit_and_partial_fit_goes_on():
    seen = []
    model = model_of(max_iterations=10).fit(
        SIGNAL, callback=lambda steps, solver: seen.append((steps, len(solver.history))), callback_frequency=4
    )
    assert seen == [(4, 4), (8, 8), (10, 10)]
    np.testing.assert_array_equal(model.transform(SIGNAL), model_of(max_iterations=10).fit(SIGNAL).transform(SIGNAL))
    model.partial_fit(SIGNAL)
    assert len(model.state_dict_["loss"]) == len(model.state_dict_["log"]["temperature"]) == 20
    assert model.fit(SIGNAL[:, :2], adapt=True).transform(SIGNAL[:, :2]).shape == (120, 4)
    with pytest.raises(HapteraError, match="callback"):
        model.fit(SIGNAL, callback_frequency=4)


def test_it_is_cloned_moved_and_listed():
    model = clone(model_of(temperature=0.5))
    assert model.temperature == 0.5
    assert model.fit(SIGNAL).to("cpu").device_ == "cpu"
    assert "offset36-model-dropout" in cebra.CEBRA.supported_model_architectures("*dropout*")


def test_a_file_that_cebra_wrote_gives_the_points_that_cebra_gave():
    model = cebra.CEBRA.load(HERE / "by_cebra.pt")
    points = model.transform(SIGNAL.astype(np.float32))
    np.testing.assert_allclose(points[::10], np.load(HERE / "by_cebra.npy"), atol=1e-5)
    assert (model.temperature_mode, model.embedding_.mode_.conditional) == ("auto", "mixed")
    assert len(model.state_dict_["loss"]) == 3
    assert model.embedding_.temperature_ != 1.0
    assert model.partial_fit(SIGNAL, NUMBER, CLASSES).embedding_.n_iter_ == 6


class Touch:
    def __reduce__(self):
        return Path.touch, (Path("owned"),)


def rewritten(path, change):
    with torch.serialization.safe_globals([*ALLOWED]):
        content = torch.load(HERE / "by_cebra.pt", weights_only=True)
    change(content)
    torch.save(content, path)
    return path


class Pair:
    def __setstate__(self, state):
        self.state = state


ALLOWED = [(Pair, "cebra.data.datatypes.Offset"), torch.torch_version.TorchVersion, np.dtype]
ALLOWED += [np.dtypes.Float64DType, np.dtypes.Int64DType]


def without_offset(content):
    del content["state"]["offset_"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["args"].update(num_hidden_units=10**9), "its weights are smaller"),
        (lambda c: c["args"].update(num_hidden_units=3), "do not fit"),
        (lambda c: c["args"].update(extra=Touch()), "running its pickle"),
        (lambda c: c["args"].update(speed=3), "speed"),
        (lambda c: c["args"].update(model_architecture="resample-model"), "takes every other sample"),
        (lambda c: c["state"].update(n_features_in_="3"), "n_features_in_"),
        (lambda c: c.pop("args"), "no table 'args'"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence_and_runs_nothing(change, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = rewritten(tmp_path / "m.pt", lambda content: (without_offset(content), change(content)))
    with pytest.raises(HapteraError, match=message):
        cebra.CEBRA.load(path)
    assert not (tmp_path / "owned").exists()


def test_a_plain_pickle_and_other_files_are_refused(tmp_path):
    (tmp_path / "m.pkl").write_bytes(pickle.dumps({"args": 1}))
    (tmp_path / "m.txt").write_text("no model")
    for name in ("m.pkl", "m.txt", "missing.pt"):
        with pytest.raises(HapteraError, match=name):
            cebra.CEBRA.load(tmp_path / name)
    with pytest.raises(HapteraError, match="never runs the pickle"):
        cebra.CEBRA.load(HERE / "by_cebra.pt", weights_only=False)


def test_decoders_are_those_of_scikit_learn():
    points, numbers = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60.0)
    near = cebra.KNNDecoder(n_neighbors=2, metric="euclidean").fit(points, numbers)
    order = np.argsort(((points[:, None] - points) ** 2).sum(-1), axis=1)[:, :2]
    np.testing.assert_allclose(near.predict(points), numbers[order].mean(1))
    assert cebra.KNNDecoder(1).fit(points, CLASSES[:60]).score(points, CLASSES[:60]) == 1
    line = points @ np.array([1.0, 2.0, 0.0])
    assert cebra.L1LinearRegressor(1e-4).fit(points, line).score(points, line) > 0.999
    with pytest.raises(HapteraError, match="as many"):
        near.fit(points, numbers[1:])


def test_a_name_that_is_not_here_says_what_to_use():
    with pytest.raises(AttributeError, match="did you mean KNNDecoder"):
        cebra.KNNDecode  # noqa: B018
    with pytest.raises(AttributeError, match="load_data"):
        cebra.datasets  # noqa: B018
    assert {one.verdict for one in ARGUMENTS} == {"taken", CHANGED, REFUSED}


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("import haptera.compat.cebra.data", "CEBRA takes arrays"),
        ("import haptera.compat.cebra.solver", "ContrastiveEmbedding"),
        ("from haptera.compat.cebra import datasets", "load_data"),
        ("from haptera.compat.cebra.grid_search import GridSearch", "GridSearchCV"),
        ("from haptera.compat.cebra import plot_los", "did you mean plot_loss"),
    ],
)
def test_an_import_of_what_is_not_here_says_what_to_use(line, hint):
    with pytest.raises(ImportError, match=hint):
        exec(line, {})


def test_integrations_are_the_same_parts_by_their_longer_names():
    names: dict = {}
    exec("import haptera.compat.cebra.integrations.sklearn.metrics as metrics", names)
    exec("from haptera.compat.cebra.integrations.plotly import plot_embedding_interactive as drawn", names)
    assert names["metrics"] is cebra.sklearn.metrics
    assert names["drawn"] is cebra.plot_embedding_interactive


def test_no_label_is_none_in_a_pipeline_as_well(caplog):
    alone = model_of().fit(SIGNAL).transform(SIGNAL)
    assert np.array_equal(model_of().fit(SIGNAL, None).transform(SIGNAL), alone)
    assert np.array_equal(make_pipeline(model_of()).fit_transform(SIGNAL), alone)
    assert not caplog.records
