"""The page of a diagnosis: the profile over depth, what known corruptions cost, a map of them, and the best N."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from haptera.report.figure import Figure
from haptera.report.section import Listing, Section
from haptera.theory.figures import prior_figure

if TYPE_CHECKING:
    from haptera.analyses.diagnosis.analysis import Diagnosis

DEPTH = "Layers in the order of the model, the first at the left; point at one for its name."
COST = "Each point is a known corruption of the reference at one severity."
MAP = (
    "Distances on the map are those of the changes of statistics, as well as two dimensions show them (classical "
    "multidimensional scaling)."
)
REGRESSIONS = (
    "As table A.6: a line through the hold-out corruption of a family predicts the mean error of its other ones. "
    "“off” is the mean absolute difference, “adapted” means with BatchNorm statistics of the corrupted images."
)
BY_FAMILY = (
    "What a line through the hold-out corruption of a family, at five severities, and clean data says of a shift of "
    "this size, were it of that family; inside: the line has seen such sizes."
)
METHODS = (
    "What each says of the accuracy on the data; off: mean absolute error on corruptions that choose, each left "
    "out in turn; weight: how much it counts. A line goes through clean data and these corruptions."
)
BEST = "The N with the least distance, for the whole network and for each layer alone (lower bound)."
CURVES = {"prior": "network, lower bound", "upper": "network, upper bound", "simulated": "network, simulated"}
DISTANCES = {"wasserstein": "Wasserstein", "normalised": "Wasserstein, normalised", "jeffreys": "Jeffreys"}


def sections(found: "Diagnosis") -> list[Section]:
    """Return every section for which something is known."""
    made = [_depth(found.profile)]
    if not found.known.empty and found.known["error"].notna().all():
        made.append(_cost(found))
    if "x" in found.known:
        data = pd.DataFrame([{"family": "the data", "shift": "the data", "x": found.place[0], "y": found.place[1]}])
        frame = pd.concat([data, found.known[["family", "shift", "severity", "x", "y", "cosine"]]], ignore_index=True)
        figure = Figure("Map of shifts", MAP, frame, "scatter", "x", "y", color=("family",))
        made.append(Section("What it is like", "Known corruptions beside the data.", (figure,)))
    if not found.prior_curves.empty:
        best = found.priors.set_index("n").rename(columns=CURVES).T.rename_axis("of").reset_index()
        best = best.rename(columns={n: f"batches of {n:g}" for n in found.priors["n"]})
        figures, tables = (prior_figure(found.prior_curves),), (Listing("Best N", BEST, best),)
        made.append(Section("BatchNorm", "How much training statistics should count.", figures, tables))
    return made


def _depth(profile: pd.DataFrame) -> Section:
    names = {name: text for name, text in DISTANCES.items() if name in profile}
    frame = profile.rename(columns=names).melt(["layer", "depth", "channels"], list(names.values()), "distance")
    frame = frame[["distance", "depth", "value", "layer", "channels"]]
    choice: dict[str, Any] = {"select": ("distance",), "start": {"distance": DISTANCES["normalised"]}}
    figure = Figure("Distance over depth", DEPTH, frame, "line", "depth", "value", color=("distance",), **choice)
    listing = Listing("Layers", "Roots of means over channels; Jeffreys' divergence is a mean.", profile)
    return Section("Where", "In which layers the statistics of the data differ.", (figure,), (listing,))


def _cost(found: "Diagnosis") -> Section:
    frame = found.known[["family", "shift", "severity", "size", "error", "cosine"]]
    caption = f"{COST} The data has size {found.test.size:.3f}."
    more: dict[str, Any] = {"limits": (0.0, 1.0), "labels": {"size": "size of the shift"}}
    figure = Figure("Error against size", caption, frame, "scatter", "size", "error", color=("family",), **more)
    tables = [Listing("Error by family", BY_FAMILY, found.families)]
    if found.predicted is not None:
        tables.insert(0, Listing("Accuracy without labels", METHODS, pd.DataFrame(found.predicted.methods)))
    if not found.regressions.empty:
        tables.append(Listing("How well lines predict errors", REGRESSIONS, found.regressions))
    return Section("Cost", "What shifts of this size do to accuracy.", (figure,), tuple(tables))
