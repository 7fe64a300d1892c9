"""The page of an analysis of trends: lines, robustness, similarity, closeness, guarantees, each with its table."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.trends.page_events import AXES, closeness_section, guarantee_section, similarity_section
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section

if TYPE_CHECKING:
    from haptera.analyses.trends.analysis import Trends

POINTS = 101
OTHERS = ("linear", "probit", "logit", "two_piece", "chebyshev")
WITHOUT_N = "There is no interval, for n, the number of examples, is not known on both sides."


def sections(trends: "Trends") -> list[Section]:
    """Return every section for which something is known."""
    makers = (line_section, robustness_section, similarity_section, closeness_section, guarantee_section)
    return [section for make in makers if (section := make(trends)) is not None]


def line_section(trends: "Trends") -> Section:
    """Models on both sides with the fitted lines, on plain and on probit axes, and the fits as a table."""
    frame = models_and_lines(trends)
    caption = (
        f"A point is a model; point at it for its name. The area around the {trends.line} line is its 95 % interval "
        f"over {_over(trends)}; in that of new models, 95 % of these should be. On the dashed line nothing is lost."
    )
    others = [f"{kind} line" for kind in OTHERS if kind not in ("linear", trends.line)]
    shown = [layer for layer in frame["layer"].unique() if layer not in others]
    settings: dict[str, Any] = {
        "frame": frame, "kind": "layers", "x": "reference", "y": "shifted", "low": "low", "high": "high",
        "color": ("layer",), "dash": "dash", "mark": "mark", "choose": "layer", "start": {"layer": shown},
        "labels": AXES,
    }  # fmt: skip
    figures = [Figure("Accuracy on both sides", caption, **settings)]
    if "probit" in trends.lines:
        figures.append(Figure("The same on probit axes", "A probit line is straight here.", scale="probit", **settings))
    fits = Listing(
        "Fits",
        "The one that predicts left-out models best comes first. Slope and intercept are on the scale of the fit, of "
        "two pieces those of the first; intervals are at 95 %, over examples and over models.",
        trends.fits,
        {"r2": "R²", "max_residual": "largest residual", "worst": "of", "left_out": "off", "left_out_max": "at most"}
        | {f"slope_{end}_{over}": f"slope, {end} ({over})" for end in ("low", "high") for over in trends.over},
    )
    return Section(
        "Line", "How accuracy on shifted data follows from accuracy on the reference.", tuple(figures), (fits,)
    )


def models_and_lines(trends: "Trends") -> pd.DataFrame:
    """Points, lines and bands over accuracy on the reference."""
    x, y = trends.accuracies
    effective = trends.robustness.set_index("model")["effective"].loc[list(trends.models)]
    points = pd.DataFrame({"mark": "point", "layer": "models", "model": trends.models, "reference": x, "shifted": y})
    points["effective"] = effective.to_numpy()
    at = np.linspace(x.min(), x.max(), POINTS)
    line = trends.prediction(at, _over(trends))
    chosen = {"reference": at, "layer": f"{trends.line} line"}
    parts = [
        pd.DataFrame(chosen | {"mark": "band", "low": line["new_low"], "high": line["new_high"]}).assign(
            layer="new models"
        ),
        pd.DataFrame(chosen | {"mark": "band", "low": line["low"], "high": line["high"]}),
        pd.DataFrame(chosen | {"mark": "line", "shifted": line["line"]}),
    ]
    others = [kind for kind in OTHERS if kind != trends.line and kind in trends.lines]
    parts += [
        pd.DataFrame({"mark": "line", "layer": f"{kind} line", "reference": at, "shifted": trends.lines[kind].line(at)})
        for kind in others
    ]
    equal = at[[0, -1]]
    parts.append(pd.DataFrame({"mark": "line", "layer": "nothing lost", "reference": equal, "shifted": equal}))
    frame = pd.concat([points, *parts], ignore_index=True)
    frame["dash"] = np.where(frame["layer"] == "nothing lost", "reference", "fitted")
    order = ["mark", "layer", "model", "reference", "shifted", "low", "high", "effective", "dash"]
    return frame[order]


def _over(trends: "Trends") -> str:
    """Over what the interval of the line is drawn."""
    return "models" if trends.sampled is None else "examples"


def robustness_section(trends: "Trends") -> Section:
    """Effective robustness of every model, and the models that were placed."""
    rows = trends.robustness
    points = rows[["model", "reference", "effective", "effective_low", "effective_high"]].assign(
        mark="point", layer="models"
    )
    ends = [rows["reference"].min(), rows["reference"].max()]
    zero = pd.DataFrame({"mark": "line", "layer": "the line of the others", "reference": ends, "effective": 0.0})
    known = trends.sampled is not None
    bars = "Bars, drawn for at most 80 models, are 95 % intervals over examples." if known else WITHOUT_N
    figure = Figure(
        "Effective robustness",
        f"Accuracy on shifted data above the {trends.line} line of all others. {bars}",
        pd.concat([points, zero], ignore_index=True),
        kind="layers",
        x="reference",
        y="effective",
        low="effective_low",
        high="effective_high",
        color=("layer",),
        mark="mark",
        labels=AXES | {"effective": "effective robustness"},
    )
    tables = [Listing("Robustness of every model", "Intervals are over examples." if known else WITHOUT_N, rows)]
    if len(trends.places):
        tables.append(
            Listing(
                "Models among all others",
                "Whether the others are similar to it, and whether its events stay within their narrowest wedge.",
                trends.places,
                {
                    "low": "effective, low",
                    "high": "effective, high",
                    "slope": "slope of the others",
                    "zeta": "ζ of the others",
                },
            )
        )
    return Section("Robustness", "Who keeps more than the line of the others predicts.", (figure,), tuple(tables))
