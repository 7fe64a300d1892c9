"""The frames behind the page of trends: models and lines, events and wedges, and what the wedges promise."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from haptera.analyses.trends.closeness import density
from haptera.analyses.trends.events import Events
from haptera.analyses.trends.guarantee import region
from haptera.analyses.trends.residual_bound import residual_bounds
from haptera.analyses.trends.wedge import Wedge

if TYPE_CHECKING:
    from haptera.analyses.trends.analysis import Trends

POINTS, BINS, CURVE, REGION = 101, 200, 13, 41
OTHERS = ("linear", "probit", "logit", "two_piece", "chebyshev")
ZETAS = (0.0, 0.05, 0.1)


def models_and_lines(trends: "Trends") -> pd.DataFrame:
    """Points, lines and bands over accuracy on the reference."""
    x, y = trends.accuracies
    effective = trends.robustness.set_index("model")["effective"].loc[list(trends.models)]
    points = pd.DataFrame({"mark": "point", "layer": "models", "model": trends.models, "reference": x, "shifted": y})
    points["effective"] = effective.to_numpy()
    at = np.linspace(x.min(), x.max(), POINTS)
    line = trends.prediction(at, drawn_over(trends))
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


def events_and_wedges(events: Events) -> pd.DataFrame:
    """Cells of the grid, and each wedge as a band."""
    cells = density(*events.counts, bins=BINS).assign(mark="cell", layer="events")
    p = np.linspace(0, cells["p"].max(), 201)  # the lower bound has a corner where it leaves 0
    parts = [cells]
    for held in {held.wedge: held for held in (events.asked, events.most)}.values():
        name = f"{held.wedge}: {100 * held.closeness.share_inside:.4g} % inside"
        ends = {"low": np.maximum(held.wedge.lower(p), 0), "high": held.wedge.upper(p)}
        parts.append(pd.DataFrame({"mark": "band", "layer": name, "p": p} | ends))
    return pd.concat(parts, ignore_index=True)


def frontier_frame(events: Events) -> pd.DataFrame:
    """The frontiers of all shares below one another."""
    parts = [frame.assign(events=f"{100 * share:g} % of the events") for share, frame in events.frontiers.items()]
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(deltas=frame["delta1"] + frame["delta2"])[
        ["events", "nu", "deltas", "delta1", "delta2", "bound"]
    ]


def regions(trends: "Trends", wedge: Wedge) -> pd.DataFrame:
    """Models, and the regions of figure 2 once and thrice."""
    x, y = trends.accuracies
    low, high = int(np.argmin(x)), int(np.argmax(x))
    middle = int(np.argmin(np.abs(x - (x[low] + x[high]) / 2)))
    at = np.linspace(x[low], x[high], REGION)
    known = {"bound (2) once": [low, high], f"thrice, with {trends.models[middle]}": [low, middle, high]}
    parts = [_models(trends)]
    for layer, places in known.items():
        frame = region(x[places], y[places], wedge, at).rename(columns={"accuracy": "reference"})
        parts.append(frame[frame["low"] <= frame["high"]].assign(mark="band", layer=layer))
    return pd.concat(parts, ignore_index=True)


def lower_bounds(trends: "Trends") -> pd.DataFrame:
    """The line of the worst and the best model, less the exact bound, for some ζ; and the fitted line."""
    assert trends.guarantee is not None
    x, y = trends.accuracies
    low, high = int(np.argmin(x)), int(np.argmax(x))
    at = np.linspace(x[low], x[high], CURVE)
    ends = y[low] + (y[high] - y[low]) * (at - x[low]) / (x[high] - x[low])
    wedges = [trends.guarantee.wedge] + ([trends.events.most.wedge] if trends.events else [])
    line = pd.DataFrame({"mark": "line", "layer": f"{trends.line} line", "reference": at})
    line["shifted"] = trends.lines[trends.line].line(at)
    parts = []
    for wedge in dict.fromkeys(wedges):
        bounds = residual_bounds(x[low], x[high], at, wedge, ZETAS)
        curves = pd.DataFrame(
            {"mark": "line", "layer": [f"lower bound, ζ = {zeta:g}" for zeta in bounds["zeta"]]}
            | {"reference": bounds["accuracy"], "shifted": np.tile(ends, len(ZETAS)) - bounds["bound"]}
        )
        curves["shifted"] = curves["shifted"].clip(lower=0)
        parts += [part.assign(wedge=str(wedge)) for part in (_models(trends), line, curves)]
    return pd.concat(parts, ignore_index=True)


def _models(trends: "Trends") -> pd.DataFrame:
    x, y = trends.accuracies
    return pd.DataFrame({"mark": "point", "layer": "models", "model": trends.models, "reference": x, "shifted": y})


def drawn_over(trends: "Trends") -> str:
    """Return over what the interval of the line is drawn."""
    return "models" if trends.sampled is None else "examples"
