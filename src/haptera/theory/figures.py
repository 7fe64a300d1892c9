"""The small theories as figures on a page: each takes the frame that a function of `haptera.theory` returns."""

from pathlib import Path

import pandas as pd

from haptera import __version__
from haptera.report.figure import Figure
from haptera.report.page import render, write_page
from haptera.report.section import Section

QUANTITIES = {"accuracy": "accuracy", "entropy": "entropy of predictions, nats", "size": "size of the scale"}


def phase_figure(frame: pd.DataFrame) -> Figure:
    """`two_points.phase_diagram`: for which temperatures self-learning keeps what it knows (figure 3.2)."""
    temperatures = {f"{side}_temperature": f"temperature of the {side}" for side in ("student", "teacher")}
    shown = frame[[*temperatures, "kept", "collapsed", "safe"]].assign(
        **{column: frame[column].map("{:.3g}".format) for column in temperatures},
        kept=frame["kept"].clip(upper=2),
        collapsed=frame["collapsed"].astype(float),
        safe=frame["safe"].astype(float),
    )
    return Figure(
        "Two points: which temperatures are safe",
        "“kept” is the size of the outputs over that at the start, at most 2; “collapsed” is 1 where it fell below a "
        "tenth or a label changed, “promised” 1 where proposition 1 promises that this does not happen.",
        shown,
        kind="heatmap",
        x="student_temperature",
        y="teacher_temperature",
        value=("kept", "collapsed", "safe"),
        limits=(0.0, 2.0),
        labels=temperatures | {"safe": "promised"},
    )


def collapse_figure(frame: pd.DataFrame) -> Figure:
    """`collapse.trajectory`, of one condition or several: accuracy, entropy and size of the weights against steps."""
    long = frame.melt(["condition", "step"], list(QUANTITIES), "shown", "value")
    long["shown"] = long["shown"].map(QUANTITIES)
    return Figure(
        "Collapse: entropy minimisation helps, then destroys",
        "With little noise (condition 1) accuracy stays; with much (condition 2) it rises and then falls below its "
        "start, while entropy falls in both and the scale grows.",
        long.assign(condition=long["condition"].map("condition {}".format))[["shown", "condition", "step", "value"]],
        kind="line",
        x="step",
        y="value",
        color=("condition",),
        select=("shown",),
        labels={"shown": "show"},
    )


def prior_figure(frame: pd.DataFrame) -> Figure:
    """`prior.prior_curve`, for one n or several: the expected distance between its bounds, against N (figure 2.5)."""
    return Figure(
        "Prior: how much training statistics should count",
        "The area lies between the bounds of proposition 1; N = 0 is drawn at one half.",
        frame.assign(n=frame["n"].map("n = {:g}".format), prior=frame["prior"].clip(lower=0.5)),
        kind="line",
        x="prior",
        y="simulated",
        low="lower",
        high="upper",
        color=("n",),
        log_x=True,
        labels={"prior": "N", "simulated": "expected distance"},
    )


def write_figures(figures: list[Figure], path: Path, title: str = "Small theories") -> None:
    """A page with these figures, whole."""
    section = Section(title, "Every figure shows the frame that the function returned.", tuple(figures))
    page = render([section], [], title=title, settings={"haptera": __version__}, notes=(), definitions={})
    write_page(page, path)
