"""Figures of the small theories show the frames that the functions return."""

import numpy as np
import pandas as pd

from haptera.adapters.prior import Statistics, prior_curve
from haptera.theory.collapse import trajectory
from haptera.theory.figures import collapse_figure, phase_figure, prior_figure, write_figures
from haptera.theory.two_points import phase_diagram


def test_the_phase_diagram_has_a_cell_for_every_pair():
    figure = phase_figure(phase_diagram(np.array([0.1, 1.0, 4.0]), steps=50))
    assert len(figure.frame) == 9
    assert figure.frame["kept"].between(0, 2).all()


def test_a_trajectory_is_shown_by_quantity_and_condition():
    figure = collapse_figure(trajectory(2, steps=200))
    assert set(figure.frame["shown"]) == {"accuracy", "entropy of predictions, nats", "size of the scale"}
    assert set(figure.frame["condition"]) == {"condition 2"}


def test_curves_keep_their_bounds_and_n_0_finds_a_place_on_a_logarithmic_axis(folder):
    source, target = Statistics(np.zeros(1), np.ones(1)), Statistics(np.ones(1), np.full(1, 2.0))
    figure = prior_figure(pd.concat([prior_curve(source, target, n, draws=50) for n in (4, 16)]))
    assert (figure.frame["lower"] <= figure.frame["upper"]).all()
    assert (figure.frame["prior"] > 0).all()
    write_figures([figure], folder / "page.html")
    assert "Small theories" in (folder / "page.html").read_text()
