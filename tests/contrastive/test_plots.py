"""Plots have a figure and its numbers, for embeddings of any size and labels of any kind, by either engine."""

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas

from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.plots import compare_models, plot_embedding, plot_loss
from haptera.errors import HapteraError

RANDOM = np.random.default_rng(0)
ANGLE = RANDOM.uniform(0, 2 * np.pi, 60)
POINTS = RANDOM.normal(size=(60, 5))
ENGINES = pytest.mark.parametrize("engine", ["matplotlib", "plotly"])


@pytest.fixture(scope="module")
def fitted():
    settings = {"max_iterations": 6, "batch_size": 16, "output_dimension": 3, "random_state": 0}
    return ContrastiveEmbedding(period=2 * np.pi, temperature_mode="auto", **settings).fit(POINTS, ANGLE)


def drawn(shown):
    """How many points, and in how many panels, a figure has."""
    if shown.engine == "matplotlib":
        panels = [ax for ax in shown.figure.axes if ax.get_xlabel()]
        return sum(len(each.get_offsets()) for ax in panels for each in ax.collections), len(panels)
    traces = [trace for trace in shown.figure.data if trace.mode == "markers"]
    return sum(len(trace.x) for trace in traces), len(shown.charts)


@ENGINES
@pytest.mark.parametrize(("dimensions", "panels"), [(1, 1), (2, 1), (3, 1), (5, 3)])
def test_any_number_of_dimensions_is_drawn(engine, dimensions, panels):
    shown = plot_embedding(POINTS, ANGLE, kind="angle", name="heading", dimensions=range(dimensions), engine=engine)
    assert drawn(shown) == (60 * panels, panels)
    np.testing.assert_array_equal(shown.frame["dimension 1"][:60], POINTS[:, 0])
    np.testing.assert_allclose(shown.frame["heading"][:60], np.rad2deg(ANGLE))
    assert shown.charts[0].cyclic


@ENGINES
@pytest.mark.parametrize(
    ("label", "colours"),
    [(ANGLE, None), (np.array(["left", "right"])[(ANGLE > 3).astype(int)], ["left", "right"]), (None, None)],
)
def test_labels_of_every_kind_and_none(engine, label, colours):
    shown = plot_embedding(POINTS[:, :2], label, engine=engine)
    assert drawn(shown) == (60, 1)
    if colours:
        artists = shown.figure.axes[0].get_legend().get_texts() if engine == "matplotlib" else shown.figure.data
        assert sorted(each.get_text() if engine == "matplotlib" else each.name for each in artists) == colours


@ENGINES
def test_several_sessions_are_told_apart_and_fewer_samples_are_said(engine):
    shown = plot_embedding({"rat": POINTS, "mouse": POINTS + 1}, samples=40, engine=engine)
    assert drawn(shown) == (40, 1)
    assert shown.frame["session"].value_counts().to_dict() == {"rat": 20, "mouse": 20}
    assert "40 of 120 samples" in shown.caption
    both = plot_embedding([POINTS, POINTS[:30]], [ANGLE > 3, ANGLE[:30] > 3], engine=engine)
    assert drawn(both)[0] == 90


@ENGINES
def test_a_fitted_estimator_draws_itself(engine, fitted):
    shown = fitted.plot(POINTS, ANGLE, engine=engine)
    np.testing.assert_array_equal(shown.frame["dimension 2"], fitted.transform(POINTS)[:, 1])
    assert shown.charts[0].cyclic  # by the period
    np.testing.assert_array_equal(fitted.plot_loss(engine=engine).frame["nats"], fitted.goodness_of_fit_history_)
    np.testing.assert_array_equal(plot_loss(fitted, unit="loss").frame["loss"], fitted.loss_history_)
    np.testing.assert_array_equal(fitted.plot_temperature(engine=engine).frame["τ"], fitted.temperature_history_)
    overview = fitted.plot_overview(POINTS, ANGLE, engine=engine)
    assert overview.frame["panel"].unique().tolist() == ["Embedding by label", "Goodness of fit", "Temperature"]


def test_models_are_compared_on_the_same_data(fitted):
    other = ContrastiveEmbedding(max_iterations=3, batch_size=8, output_dimension=2, random_state=1).fit(POINTS, ANGLE)
    shown = compare_models({"long": fitted, "short": other}, POINTS, ANGLE, negatives=64)
    rows = shown.frame[shown.frame["panel"] == "On the data"]
    expected = [one.goodness_of_fit(POINTS, ANGLE, negatives=64, unit="bits") for one in (fitted, other)]
    assert rows["model"].tolist() == ["long", "short"]
    np.testing.assert_allclose(rows["bits"], expected)
    assert shown.frame.groupby("model")["step"].max().to_dict() == {"long": 6, "short": 3}


def test_an_axis_can_be_given():
    axes = Canvas().subplots(1, 2)
    assert plot_embedding(POINTS[:, :2], ax=axes[1]).figure is axes[1].figure
    assert axes[1].get_xlabel() == "dimension 1"
    with pytest.raises(HapteraError, match="ax is flat"):
        plot_embedding(POINTS, ax=axes[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot_embedding(POINTS, engine="plotty"), "did you mean 'plotly'"),
        (lambda: plot_embedding(POINTS, ANGLE[:9]), "label has 9 values, the embedding 60 samples"),
        (lambda: plot_embedding(POINTS[:, 0]), r"points have shape \(60,\)"),
        (lambda: plot_embedding(POINTS, dimensions=[0, 5]), r"dimensions are \[0, 5\]; some of 0 to 4"),
        (lambda: plot_embedding([POINTS, POINTS], [ANGLE, ANGLE[:9]]), "label has"),
        (lambda: plot_loss(ContrastiveEmbedding()), "not a fitted ContrastiveEmbedding"),
        (lambda: plot_loss({"a": 3}), "a is not a fitted"),
        (lambda: compare_models([]), "no model"),
    ],
)
def test_a_mistake_is_said_in_words(call, message):
    with pytest.raises(HapteraError, match=message):
        call()
