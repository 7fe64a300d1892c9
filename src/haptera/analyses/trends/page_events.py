"""Sections of the page of trends that need to know who is right on which example."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from haptera.analyses.trends.closeness import density
from haptera.analyses.trends.events import Events
from haptera.analyses.trends.guarantee import region
from haptera.analyses.trends.residual_bound import residual_bounds
from haptera.analyses.trends.wedge import Wedge
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section

if TYPE_CHECKING:
    from haptera.analyses.trends.analysis import Trends

MOST_PAIRS = 5_000
BINS = 200
AXES = {"reference": "accuracy on the reference", "shifted": "accuracy on shifted data"}
CURVE, REGION = 13, 41
ZETAS = (0.0, 0.05, 0.1)


def similarity_section(trends: "Trends") -> Section | None:
    """Dominance of all pairs against the difference of their accuracies."""
    if trends.pairs is None:
        return None
    pairs, caption = trends.pairs, "A point is a pair of models; below, each with its similarity."
    if len(pairs) > MOST_PAIRS:
        caption = f"These are the {MOST_PAIRS:,} of {len(pairs):,} pairs with the largest dominance."
        pairs = pairs.nlargest(MOST_PAIRS, "dominance")
    figure = Figure(
        "Dominance against difference of accuracy",
        f"How often the worse of two models is right where the better one is wrong. {caption}",
        pairs.drop(columns="count").assign(mark="point", layer="pairs of models"),
        kind="layers",
        x="difference",
        y="dominance",
        color=("layer",),
        mark="mark",
        labels={"difference": "difference of accuracy", "n": "examples"},
    )
    text = "Models are similar if a better one is right nearly wherever a worse one is."
    return Section("Similarity", text, (figure,))


def closeness_section(trends: "Trends") -> Section | None:
    """Events on both sides with the wedge, the frontier of wedges, and who owns the events outside."""
    if trends.events is None:
        return None
    events = trends.events
    labels = {"p": "P: share of examples on the reference", "q": "Q: share on shifted data"}
    figures = (
        Figure(
            "Events of all triplets",
            f"{events.asked.closeness.events:,} events, counted in a grid, and the wedges that hold all or most.",
            events_and_wedges(events),
            kind="layers",
            x="p",
            y="q",
            low="low",
            high="high",
            value=("events",),
            color=("layer",),
            mark="mark",
            labels=labels,
        ),
        Figure(
            "The narrowest wedges",
            "For each ν = ν1 = ν2 the least δ1 + δ2 that holds a share of the events. The best of each family has the "
            "least bound of corollary 1.",
            frontier_frame(events),
            kind="line",
            x="nu",
            y="deltas",
            color=("events",),
            labels={"nu": "ν", "deltas": "δ1 + δ2", "delta1": "δ1", "delta2": "δ2", "bound": "bound (3)"},
        ),
    )
    owners = Listing(
        "Who owns the events outside",
        f"Events outside {events.tested.wedge}. Each belongs to three models, so shares add up to three.",
        events.owners,
        {"share": "share of all outside", "own_share": "share of its own events"},
    )
    text = "Sets are close if the events that decide how models differ keep their probabilities."
    return Section("Closeness", text, figures, (owners,))


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


def guarantee_section(trends: "Trends") -> Section | None:
    """What the wedges promise about models between the worst and the best."""
    if trends.guarantee is None or trends.guarantee.triplets.empty:
        return None
    triplets = trends.guarantee.triplets
    nearest = triplets.assign(room=triplets["bound"] - triplets["residual"]).nsmallest(1_000, "room")
    figures = (
        Figure(
            "Where ordered models must lie",
            "Bound (2) applied to the worst and the best model, and with the one in the middle known too: figure 2 "
            f"of the source; the wedge is {trends.guarantee.wedge}. These models are not quite ordered, so they may be "
            "outside.",
            regions(trends, trends.guarantee.wedge),
            kind="layers",
            x="reference",
            y="shifted",
            low="low",
            high="high",
            color=("layer",),
            mark="mark",
            labels=AXES,
        ),
        Figure(
            "Lower bounds for approximately ordered models",
            "No model between the worst and the best can be lower, if no dominance exceeds ζ and its events stay in "
            "the wedge: the exact maximum of (6), where figure 4 of the source has that of a grid.",
            lower_bounds(trends),
            kind="layers",
            x="reference",
            y="shifted",
            color=("layer",),
            select=("wedge",),
            mark="mark",
            labels=AXES,
        ),
    )
    listing = Listing("Triplets nearest to their bound", "Bound (2) for the middle of three models.", nearest, {})
    text = "Close sets and similar models leave no room but near a line."
    return Section("Guarantees", text, figures, (listing,))


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
