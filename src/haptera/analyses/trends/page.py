"""The page of an analysis of trends: lines, robustness, similarity, closeness, guarantees, each with its table."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.trends.closeness import density
from haptera.analyses.trends.guarantee import regions
from haptera.analyses.trends.residual_bound import ZETAS, lower_bounds
from haptera.report.figure import Figure, layer
from haptera.report.section import Listing, Section

if TYPE_CHECKING:
    from haptera.analyses.trends.analysis import Trends

MOST_PAIRS, MOST_TRIPLETS = 5_000, 1_000
OTHER_MODELS = "models that the line has not seen"
POINTS, BINS, CORNERS = 101, 200, 201
OTHERS = ("linear", "probit", "logit", "two_piece", "chebyshev")
BANDS: dict[str, Any] = {"low": "low", "high": "high"}
WITHOUT_N = "There is no interval, for n, the number of examples, is not known on both sides."
LINE = (
    "A point is a model; point at it for its name and robustness. Those off the line, or unlike all others, are named. "
    "{bars}The area around the {line} line is its 95 % interval over {over}; in that of new models, 95 % of these "
    "should be. On the dashed line nothing is lost."
)
BARS = "Bars, drawn for at most 80 models, are 95 % intervals over examples. "
PROBIT = "A probit line is straight here, and the one that belongs to these axes is drawn."
OWN = (
    "How far each model between the worst and the best can be from their line: exactly, at the data's own ζ and in the "
    "wedge of the triplets that a line needs, and by proposition 1, which holds for ordered models alone."
)
OWNS = {"bound": "exact bound (6)", "ordered": "if ordered (2)"}
FITS = (
    "The one that predicts left-out models best comes first. Slope and intercept are on the scale of the fit, of two "
    "pieces those of the first; intervals are at 95 %, over examples and over models."
)
FIT = {"r2": "R²", "max_residual": "largest residual", "worst": "of", "left_out": "off", "left_out_max": "at most"}
FIT |= {f"slope_{end}_{over}": f"slope, {end} ({over})" for end in ("low", "high") for over in ("examples", "models")}
PLACES = "Whether the others are similar to it, and whether its events stay within their narrowest wedge."
PLACE = {"low": "effective, low", "high": "effective, high", "slope": "slope of the others", "zeta": "ζ of the others"}
EVENT = {"p": "P: share of examples on the reference", "q": "Q: share on shifted data"}
NARROWEST = (
    "For each ν = ν1 = ν2 the least δ1 + δ2 that holds a share of the events. The best of each family has the least "
    "bound of corollary 1."
)
NARROW = {"nu": "ν", "deltas": "δ1 + δ2", "delta1": "δ1", "delta2": "δ2", "bound": "bound (3)"}
OWNERS = {"share": "share of all outside", "own_share": "share of its own events"}
ORDERED = (
    "Bound (2) applied to the worst and the best model, and with the one in the middle known too: figure 2 of the "
    "source; the wedge is {wedge}. These models are not quite ordered, so they may be outside."
)
LOWER = (
    "No model between the worst and the best can be lower, if no dominance exceeds ζ and its events stay in the wedge: "
    "the exact maximum of (6), where figure 4 of the source has that of a grid."
)


def sections(trends: "Trends") -> list[Section | None]:
    """Return every section for which something is known."""
    makers = (line_section, robustness_section, similarity_section, closeness_section, guarantee_section)
    return [make(trends) for make in makers]


def line_section(trends: "Trends") -> Section | None:
    """Models on both sides with the fitted lines, on plain and on probit axes, and the fits as a table."""
    over, chosen, x = next(iter(trends.over)), f"{trends.line} line", trends.accuracies[0]
    at = np.linspace(x.min(), x.max(), POINTS)
    line = trends.prediction(at, over)
    lines = {f"{kind} line": found.line(at) for kind, found in trends.lines.items() if kind in OTHERS}
    known = trends.sampled is not None
    parts = [
        *_models(trends),
        layer("band", "new models", reference=at, low=line["new_low"], high=line["new_high"]),
        layer("band", chosen, reference=at, low=line["low"], high=line["high"]),
        *(layer("line", name, reference=at, shifted=y) for name, y in ({chosen: line["line"]} | lines).items()),
        layer("line", "nothing lost", reference=at[[0, -1]], shifted=at[[0, -1]], dash="reference"),
    ]
    always = ["models", OTHER_MODELS, "new models", chosen]
    frame = pd.concat(parts, ignore_index=True).fillna({"dash": "fitted"})
    here = set(frame["layer"])

    def start(own: str) -> dict[str, Any]:
        wanted = dict.fromkeys([*always, own, "nothing lost"])
        return {"start": {"layer": [name for name in wanted if name in here]}}

    style = _axes(trends) | BANDS | {"dash": "dash", "choose": "layer", "frame": frame, "names": "beside"}
    style |= {"x_low": "reference_low", "x_high": "reference_high"}
    caption = LINE.format(line=trends.line, over=over, bars=BARS if known else "")
    probit = Figure("The same on probit axes", PROBIT, scale="probit", **style, **start("probit line"))
    return Section.of(
        "Line",
        "How accuracy on shifted data follows from accuracy on the reference.",
        Figure("Accuracy on both sides", caption, **style, **start("linear line")),
        probit if "probit" in trends.lines else None,
        Listing("Fits", FITS, trends.fits, FIT),
    )


def robustness_section(trends: "Trends") -> Section | None:
    """Effective robustness of every model, and the models that were placed."""
    rows, known = trends.robustness, trends.sampled is not None
    points = layer("point", "models", **rows[["model", "reference", "effective", "effective_low", "effective_high"]])
    ends = [rows["reference"].min(), rows["reference"].max()]
    frame = pd.concat([points, layer("line", "the line of the others", reference=ends, effective=0.0)])
    bars = "Bars, drawn for at most 80 models, are 95 % intervals over examples." if known else WITHOUT_N
    caption = f"Accuracy on shifted data above the {trends.line} line of all others. {bars}"
    style: dict[str, Any] = {"low": "effective_low", "high": "effective_high"}
    style |= {"labels": _axes(trends)["labels"] | {"effective": "effective robustness"}}
    return Section.of(
        "Robustness",
        "Who keeps more than the line of the others predicts.",
        Figure("Effective robustness", caption, frame, "layers", "reference", "effective", **style),
        Listing("Robustness of every model", "Intervals are over examples." if known else WITHOUT_N, rows),
        Listing("Models among all others", PLACES, trends.places, PLACE),
    )


def similarity_section(trends: "Trends") -> Section | None:
    """Dominance of all pairs against the difference of their accuracies."""
    if trends.pairs is None:
        return None
    pairs, which = trends.pairs, "A point is a pair of models; below, each with its similarity."
    if len(pairs) > MOST_PAIRS:
        which = f"These are the {MOST_PAIRS:,} of {len(pairs):,} pairs with the largest dominance."
        pairs = pairs.nlargest(MOST_PAIRS, "dominance")
    title = "Dominance against difference of accuracy"
    caption = f"How often the worse of two models is right where the better one is wrong. {which}"
    frame = layer("point", "pairs of models", **pairs.drop(columns="count"))
    labels = {"difference": "difference of accuracy", "n": "examples"}
    figure = Figure(title, caption, frame, "layers", "difference", "dominance", labels=labels)
    text = "Models are similar if a better one is right nearly wherever a worse one is."
    return Section.of("Similarity", text, figure)


def closeness_section(trends: "Trends") -> Section | None:
    """Events on both sides with the wedge, the frontier of wedges, and who owns the events outside."""
    if (events := trends.events) is None:
        return None
    parts = [layer("cell", "events", **density(*events.counts, bins=BINS))]
    p = np.linspace(0, parts[0]["p"].max(), CORNERS)  # the lower bound has a corner where it leaves 0
    for held in {held.wedge: held for held in (events.asked, events.most)}.values():
        name, low = f"{held.wedge}: {100 * held.share_inside:.4g} % inside", np.maximum(held.wedge.lower(p), 0)
        parts.append(layer("band", name, p=p, low=low, high=held.wedge.upper(p)))
    grid: dict[str, Any] = BANDS | {"value": ("events",), "labels": EVENT}
    caption = f"{events.asked.events:,} events, counted in a grid, and the wedges that hold all or most."
    families = {f"{100 * share:g} % of the events": frame for share, frame in events.frontiers.items()}
    frontier = pd.concat(families, names=["events"]).reset_index("events")
    frontier["deltas"] = frontier["delta1"] + frontier["delta2"]
    narrow: dict[str, Any] = {"color": ("events",), "labels": NARROW}
    outside = f"Events outside {events.tested.wedge}. Each belongs to three models, so shares add up to three."
    return Section.of(
        "Closeness",
        "Sets are close if the events that decide how models differ keep their probabilities.",
        Figure("Events of all triplets", caption, pd.concat(parts, ignore_index=True), "layers", "p", "q", **grid),
        Figure("The narrowest wedges", NARROWEST, frontier, "line", "nu", "deltas", **narrow),
        Listing("Who owns the events outside", outside, events.owners, OWNERS),
    )


def guarantee_section(trends: "Trends") -> Section | None:
    """What the wedges promise about models between the worst and the best."""
    if trends.guarantee is None or trends.guarantee.triplets.empty:
        return None
    points, triplets, wedge = _points(trends), trends.guarantee.triplets, trends.guarantee.wedge
    nearest = triplets.assign(room=triplets["bound"] - triplets["residual"]).nsmallest(MOST_TRIPLETS, "room")
    known = regions(*trends.accuracies, wedge, trends.models)
    bands = layer("band", known["known"], reference=known["accuracy"], low=known["low"], high=known["high"])
    ordered = pd.concat([points, bands], ignore_index=True)
    lower = {}
    zetas = [*ZETAS, *(bound.zeta for bound in trends.own_bounds[:1])]
    for each in [wedge, *([trends.events.most.wedge] if trends.events else [])]:
        rows = lower_bounds(*trends.accuracies, each, sorted(set(zetas)))
        names, at = "lower bound, ζ = " + rows["zeta"].map("{:.4g}".format), rows["accuracy"].unique()
        curves = layer("line", names, reference=rows["accuracy"], shifted=rows["least"])
        line = layer("line", f"{trends.line} line", reference=at, shifted=trends.lines[trends.line].line(at))
        lower[str(each)] = pd.concat([points, line, curves])
    bounds: dict[str, Any] = _axes(trends) | {"frame": pd.concat(lower, names=["wedge"]).reset_index("wedge")}
    own, listing = _own_bounds(trends)
    return Section.of(
        "Guarantees",
        "Close sets and similar models leave no room but near a line.",
        own,
        listing,
        Figure("Where ordered models must lie", ORDERED.format(wedge=wedge), ordered, **_axes(trends), **BANDS),
        Figure("Lower bounds for approximately ordered models", LOWER, select=("wedge",), **bounds),
        Listing("Triplets nearest to their bound", "Bound (2) for the middle of three models.", nearest),
    )


def _axes(trends: "Trends") -> dict[str, Any]:
    """Return which columns a figure of accuracies has, and the names of the data on its axes."""
    names = {"reference": trends.sides.reference.name, "shifted": trends.sides.shifted.name}
    labels = {column: f"accuracy on {name}" for column, name in names.items()}
    return {"kind": "layers", "x": "reference", "y": "shifted", "labels": labels}


def _models(trends: "Trends") -> list[pd.DataFrame]:
    """Return the models as points, those that the line was not fitted to in a layer of their own."""
    rows = trends.points.rename(columns={"shifted_low": "low", "shifted_high": "high"})
    columns = ["model", "reference", "shifted", "reference_low", "reference_high", "low", "high", "beside"]
    columns += ["effective", "effective_low", "effective_high", "relative", "relative_low", "relative_high"]
    names = np.where(rows["seen"], "models", OTHER_MODELS)
    return [layer("point", names, **rows[columns])]


def _own_bounds(trends: "Trends") -> tuple[Figure | None, Listing | None]:
    """Return the exact bounds at the data's own ζ as a figure, and the models with them."""
    if not trends.own_bounds:
        return None, None
    bound = trends.own_bounds[0]
    rows = bound.models
    parts = [layer("point", "residual seen", model=rows["model"], accuracy=rows["accuracy"], residual=rows["residual"])]
    for column, name in OWNS.items():
        parts.append(layer("line", name, accuracy=rows["accuracy"], residual=rows[column]))
    labels = {
        "accuracy": f"accuracy on {trends.sides.reference.name}",
        "residual": "distance from the line of both ends",
    }
    frame = pd.concat(parts, ignore_index=True)
    caption = f"{OWN} ζ = {bound.zeta:.4f}, wedge {bound.wedge}, between {bound.ends[0]} and {bound.ends[1]}."
    every = pd.concat([each.models.assign(piece=each.piece) for each in trends.own_bounds], ignore_index=True)
    figure = Figure(
        "The guarantee at the data's own ζ", caption, frame, "layers", "accuracy", "residual", labels=labels
    )
    return figure, Listing(
        "Models and their exact bounds", "Of all models, and of each piece of the line.", every, OWNS
    )


def _points(trends: "Trends") -> pd.DataFrame:
    x, y = trends.accuracies
    return layer("point", "models", model=trends.models, reference=x, shifted=y)
