"""Plots of a notebook written for cebra: what they return is an axis, and holds the numbers."""

import numpy as np
import pytest

import haptera.compat.cebra as cebra
from haptera.errors import HapteraError

plt = pytest.importorskip("matplotlib.pyplot")
plt.switch_backend("Agg")
T = np.arange(120)
SIGNAL = np.stack([np.sin(T / 7), np.cos(T / 5), np.sin(T / 11)], 1)
NUMBER = np.sin(T / 7)
QUICK = {"max_iterations": 3, "batch_size": 16, "num_hidden_units": 4, "random_state": 0}


def model_of(**arguments):
    return cebra.CEBRA("offset5-model", **QUICK | arguments)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return model_of(temperature_mode="auto", output_dimension=3).fit(SIGNAL, NUMBER)


def test_plots_show_the_points_and_steps_and_name_what_they_leave_out(model, caplog):
    points = model.transform(SIGNAL)
    shown = cebra.plot_embedding(points, embedding_labels=NUMBER, idx_order=(1, 0), cmap="cool", title="mine")
    assert "cmap" in caplog.text
    assert "title" not in caplog.text
    assert shown.get_title() == "mine"
    np.testing.assert_allclose(shown.frame["dimension 2"], points[:, 1], rtol=1e-6)
    losses, temperatures = cebra.plot_loss(model, label="mine").frame, cebra.plot_temperature(model).frame
    assert len(losses) == len(temperatures) == len(model.state_dict_["log"]["temperature"]) == 3


def test_a_plot_without_an_axis_is_pyplots_so_that_it_can_be_saved(model):
    shown = cebra.plot_loss(model, figsize=(3, 2))
    assert shown.figure is plt.gcf()
    assert plt.gcf().get_size_inches().tolist() == [3, 2]


def test_a_plot_into_an_axis_can_do_what_the_axis_can(model):
    axis = plt.figure().add_subplot(projection="3d")
    shown = cebra.plot_embedding(ax=axis, embedding=model.transform(SIGNAL), embedding_labels="time")
    shown.axis("off")
    assert not axis.axison
    with pytest.raises(AttributeError):
        shown.axes_of_evil  # noqa: B018


def test_models_are_compared_by_their_names_and_other_batch_sizes_are_said(model, caplog):
    other = model_of(batch_size=8).fit(SIGNAL, NUMBER)
    frame = cebra.compare_models([model, other], labels=["a", "b"]).frame
    assert sorted(set(frame["model"])) == ["a", "b"]
    assert "batch sizes" in caplog.text
    with pytest.raises(HapteraError, match="1 labels were given for 2 models"):
        cebra.compare_models([model, other], labels=["a"])


def test_consistency_is_drawn_from_what_its_score_returns(model):
    points = model.transform(SIGNAL)
    noisy = points + np.random.default_rng(0).normal(0, 0.3, points.shape)
    scores, pairs, ids = cebra.sklearn.metrics.consistency_score([points, noisy], between="runs")
    frame = cebra.plot_consistency(scores, pairs=pairs, datasets=ids, title="runs").frame
    found = frame.set_index(["source", "target"])["value"]
    assert [found[str(one), str(other)] for one, other in pairs] == pytest.approx(scores.tolist())
    square = np.array([[1.0, scores[0]], [scores[1], 1.0]])
    assert cebra.plot_consistency(square).frame["value"].tolist() == frame["value"].tolist()
    with pytest.raises(HapteraError, match="pair for each score"):
        cebra.plot_consistency(scores)


def test_an_overview_has_three_axes_and_a_turnable_plot_its_title(model):
    figure, axes = cebra.plot_overview(model, SIGNAL, embedding_kwargs={"embedding_labels": NUMBER})
    assert len(axes) == 3
    assert hasattr(axes[2], "get_zlim")
    assert all(axis.figure is figure for axis in axes)
    drawn = cebra.plot_embedding_interactive(model.transform(SIGNAL), embedding_labels=NUMBER, title="turn me")
    assert drawn.layout.title.text == "turn me"
    assert cebra.integrations.matplotlib.plot(model, "temperature").frame is not None
