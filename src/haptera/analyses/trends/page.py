"""The page of an analysis of trends: lines, robustness, similarity, closeness, guarantees, each with its table."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from haptera.analyses.trends.frames import (
    OTHERS,
    drawn_over,
    events_and_wedges,
    frontier_frame,
    lower_bounds,
    models_and_lines,
    regions,
)
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section

if TYPE_CHECKING:
    from haptera.analyses.trends.analysis import Trends

MOST_PAIRS = 5_000
AXES = {"reference": "accuracy on the reference", "shifted": "accuracy on shifted data"}
LAYERS: dict[str, Any] = {"kind": "layers", "color": ("layer",), "mark": "mark"}
BANDS = LAYERS | {"low": "low", "high": "high"}
ACCURACIES: dict[str, Any] = {"x": "reference", "y": "shifted", "labels": AXES}
WITHOUT_N = "There is no interval, for n, the number of examples, is not known on both sides."
FITS = (
    "The one that predicts left-out models best comes first. Slope and intercept are on the scale of the fit, of two "
    "pieces those of the first; intervals are at 95 %, over examples and over models."
)
FIT = {"r2": "R²", "max_residual": "largest residual", "worst": "of", "left_out": "off", "left_out_max": "at most"}
PLACES = "Whether the others are similar to it, and whether its events stay within their narrowest wedge."
PLACE = {"low": "effective, low", "high": "effective, high", "slope": "slope of the others", "zeta": "ζ of the others"}
EVENT = {"p": "P: share of examples on the reference", "q": "Q: share on shifted data"}
NARROWEST = (
    "For each ν = ν1 = ν2 the least δ1 + δ2 that holds a share of the events. The best of each family has the least "
    "bound of corollary 1."
)
NARROW = {"nu": "ν", "deltas": "δ1 + δ2", "delta1": "δ1", "delta2": "δ2", "bound": "bound (3)"}
LOWER = (
    "No model between the worst and the best can be lower, if no dominance exceeds ζ and its events stay in the wedge: "
    "the exact maximum of (6), where figure 4 of the source has that of a grid."
)


def sections(trends: "Trends") -> list[Section]:
    """Return every section for which something is known."""
    makers = (line_section, robustness_section, similarity_section, closeness_section, guarantee_section)
    return [section for make in makers if (section := make(trends)) is not None]


def line_section(trends: "Trends") -> Section:
    """Models on both sides with the fitted lines, on plain and on probit axes, and the fits as a table."""
    frame, over = models_and_lines(trends), drawn_over(trends)
    caption = (
        f"A point is a model; point at it for its name. The area around the {trends.line} line is its 95 % interval "
        f"over {over}; in that of new models, 95 % of these should be. On the dashed line nothing is lost."
    )
    others = [f"{kind} line" for kind in OTHERS if kind not in ("linear", trends.line)]
    shown = [layer for layer in frame["layer"].unique() if layer not in others]
    more = BANDS | ACCURACIES | {"frame": frame, "dash": "dash", "choose": "layer", "start": {"layer": shown}}
    figures = [Figure("Accuracy on both sides", caption, **more)]
    if "probit" in trends.lines:
        figures.append(Figure("The same on probit axes", "A probit line is straight here.", scale="probit", **more))
    slopes = {f"slope_{end}_{over}": f"slope, {end} ({over})" for end in ("low", "high") for over in trends.over}
    text = "How accuracy on shifted data follows from accuracy on the reference."
    return Section("Line", text, tuple(figures), (Listing("Fits", FITS, trends.fits, FIT | slopes),))


def robustness_section(trends: "Trends") -> Section:
    """Effective robustness of every model, and the models that were placed."""
    rows, known = trends.robustness, trends.sampled is not None
    points = rows[["model", "reference", "effective", "effective_low", "effective_high"]]
    points = points.assign(mark="point", layer="models")
    ends = [rows["reference"].min(), rows["reference"].max()]
    zero = pd.DataFrame({"mark": "line", "layer": "the line of the others", "reference": ends, "effective": 0.0})
    bars = "Bars, drawn for at most 80 models, are 95 % intervals over examples." if known else WITHOUT_N
    caption = f"Accuracy on shifted data above the {trends.line} line of all others. {bars}"
    more = LAYERS | {"low": "effective_low", "high": "effective_high", "x": "reference", "y": "effective"}
    labels = AXES | {"effective": "effective robustness"}
    frame = pd.concat([points, zero], ignore_index=True)
    tables = [Listing("Robustness of every model", "Intervals are over examples." if known else WITHOUT_N, rows)]
    tables += [Listing("Models among all others", PLACES, trends.places, PLACE)] if len(trends.places) else []
    figures = (Figure("Effective robustness", caption, frame, labels=labels, **more),)
    return Section("Robustness", "Who keeps more than the line of the others predicts.", figures, tuple(tables))


def similarity_section(trends: "Trends") -> Section | None:
    """Dominance of all pairs against the difference of their accuracies."""
    if trends.pairs is None:
        return None
    pairs, which = trends.pairs, "A point is a pair of models; below, each with its similarity."
    if len(pairs) > MOST_PAIRS:
        which = f"These are the {MOST_PAIRS:,} of {len(pairs):,} pairs with the largest dominance."
        pairs = pairs.nlargest(MOST_PAIRS, "dominance")
    caption = f"How often the worse of two models is right where the better one is wrong. {which}"
    frame = pairs.drop(columns="count").assign(mark="point", layer="pairs of models")
    more = LAYERS | {"x": "difference", "y": "dominance"}
    labels = {"difference": "difference of accuracy", "n": "examples"}
    figure = Figure("Dominance against difference of accuracy", caption, frame, labels=labels, **more)
    return Section(
        "Similarity", "Models are similar if a better one is right nearly wherever a worse one is.", (figure,)
    )


def closeness_section(trends: "Trends") -> Section | None:
    """Events on both sides with the wedge, the frontier of wedges, and who owns the events outside."""
    if (events := trends.events) is None:
        return None
    count = events.asked.closeness.events
    caption = f"{count:,} events, counted in a grid, and the wedges that hold all or most."
    cells = BANDS | {"x": "p", "y": "q", "value": ("events",), "labels": EVENT}
    frontier: dict[str, Any] = {"color": ("events",), "labels": NARROW}
    figures = (
        Figure("Events of all triplets", caption, events_and_wedges(events), **cells),
        Figure("The narrowest wedges", NARROWEST, frontier_frame(events), "line", "nu", "deltas", **frontier),
    )
    caption = f"Events outside {events.tested.wedge}. Each belongs to three models, so shares add up to three."
    labels = {"share": "share of all outside", "own_share": "share of its own events"}
    owners = Listing("Who owns the events outside", caption, events.owners, labels)
    text = "Sets are close if the events that decide how models differ keep their probabilities."
    return Section("Closeness", text, figures, (owners,))


def guarantee_section(trends: "Trends") -> Section | None:
    """What the wedges promise about models between the worst and the best."""
    if trends.guarantee is None or trends.guarantee.triplets.empty:
        return None
    triplets, wedge = trends.guarantee.triplets, trends.guarantee.wedge
    nearest = triplets.assign(room=triplets["bound"] - triplets["residual"]).nsmallest(1_000, "room")
    caption = (
        "Bound (2) applied to the worst and the best model, and with the one in the middle known too: figure 2 of the "
        f"source; the wedge is {wedge}. These models are not quite ordered, so they may be outside."
    )
    bounds = LAYERS | ACCURACIES | {"frame": lower_bounds(trends), "select": ("wedge",)}
    figures = (
        Figure("Where ordered models must lie", caption, regions(trends, wedge), **BANDS, **ACCURACIES),
        Figure("Lower bounds for approximately ordered models", LOWER, **bounds),
    )
    listing = Listing("Triplets nearest to their bound", "Bound (2) for the middle of three models.", nearest)
    return Section("Guarantees", "Close sets and similar models leave no room but near a line.", figures, (listing,))
