"""The page of a measurement of stability: networks, layers, ranges of deformations, errors, and the phase diagram."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.stability import SETTING
from haptera.report.figure import Figure
from haptera.report.section import Listing, Picture, Section
from haptera.report.study.stability import against_error

if TYPE_CHECKING:
    from haptera.analyses.stability.analysis import Stability
    from haptera.analyses.stability.phase_diagram import PhaseDiagram

LABELS = {"log value": "log₁₀ of the index", "n": "images", "delta": "δ, pixels", "cutoff": "c"}
VALUES = ["value", "low", "high"]
MEDIANS: dict[str, Any] = {"start": {"aggregate": "median"}, "labels": LABELS}
CURVES: dict[str, Any] = {"start": {"aggregate": "median"}, "labels": LABELS | {"value": "index"}, "log_y": True}
CURVES |= {"low": "low", "high": "high", "color": ("model",)}
NETWORKS = (
    "Logarithms to base 10: below 0, deformations move the output less than noise does (R), or both less than another "
    "image (D, G). Point at a field for the index itself."
)
DEFORMATIONS = (
    "The temperature follows from δ by the exact sum over modes; where fields that fold are drawn again, δ is that of "
    "the others; norms are of the change in pixels."
)
USED = {"delta_used": "δ, of the fields used", "norm_mean": "mean norm", "norm_median": "median norm"}
USED |= {"folded": "share folded"}
DEPTH = (
    "Layers in the order in which they are run, the pixels first and the output last; point at one for its name. "
    "Distances between images are taken within batches, but for the output."
)
RANGE = (
    "Where δ is well below a pixel, what is seen depends on the interpolation; Gaussian weights change an image even "
    "where nothing moves."
)
BIJECTIONS = "Share of fields that do not fold, measured; δ by the exact sum."
PLACES = {"delta": "δ, pixels", "good": "a good place", "gradient_norm": "mean ‖∇τ‖²", "cutoff": "c"}
BOUNDARIES = (
    "Between δ = ½ and where half of the fields fold, deformations are visible and bijections. (8/π³)/c² is what the "
    "print wants T to be far below."
)
SAMPLES = "One field for each place. Framed where at least half of the fields are bijections and δ is at least ½ pixel."


def sections(found: "Stability") -> list[Section]:
    """Return every section for which something is known."""
    rows = _logarithms(found.indices)
    outputs, select = rows[rows["layer"] == "output"], ("index", "aggregate")
    made = [_networks(outputs, found.deformations)]
    if rows["layer"].nunique() > 1:
        frame = _positive(rows[["setting", *select, "model", "depth", "layer", *VALUES]])
        curves = CURVES | {"select": ("setting", *select)}
        figure = Figure("Over depth", DEPTH, frame, "line", "depth", "value", **curves)
        made.append(Section("Layers", "Where stability builds up.", (figure,)))
    if len(found.deformations) > 1:
        # Over δ, a line for each cutoff and interpolation; over c where there is one δ only.
        used = found.deformations[[*SETTING, "delta_used"]]
        outputs = outputs.merge(used, on=SETTING).assign(delta=lambda frame: frame["delta_used"])  # as the fields were
        along, other, symbol = ("delta", "cutoff", "c") if outputs["delta"].nunique() > 1 else ("cutoff", "delta", "δ")
        words = [f"{symbol} = {value:g}, {how}" for value, how in outputs[[other, "interpolation"]].to_numpy()]
        frame = _positive(outputs.assign(of=words)[[*select, "model", "of", along, "n", *VALUES]])
        curves = CURVES | {"select": select, "dash": "of"}
        figure = Figure("Over deformations", RANGE, frame, "line", along, "value", **curves)
        made.append(Section("Range", "How the indices depend on the deformations.", (figure,)))
    if len(found.against_error) > 1:
        made.append(against_error(found.against_error, found.laws))
    return made if found.phases is None else [*made, _phases(found.phases)]


def _networks(outputs: pd.DataFrame, deformations: pd.DataFrame) -> Section:
    frame = outputs[["setting", "aggregate", "model", "index", "log value", "value", "low", "high", "n"]]
    colours: dict[str, Any] = {"value": ("log value",), "diverging": ("log value",), "select": ("setting", "aggregate")}
    figure = Figure("Indices of each network", NETWORKS, frame, "heatmap", "index", "model", **colours, **MEDIANS)
    tables = (
        Listing("Indices", "95 % intervals over images.", frame.drop(columns="log value"), LABELS),
        Listing("Deformations", DEFORMATIONS, deformations, USED | LABELS),
    )
    return Section("Networks", "How each network takes deformations, relative to noise.", (figure,), tables)


def _phases(phases: "PhaseDiagram") -> Section:
    cells = phases.cells.iloc[::-1].sort_values("cutoff", kind="stable")
    texts = {"temperature": cells["temperature"].map("{:.1e}".format), "cutoff": cells["cutoff"].map("{:g}".format)}
    cells = cells.assign(**texts, good=np.where(cells["good"], "yes", "no"))
    colours: dict[str, Any] = {"value": ("bijective", "delta"), "limits": (0.0, 1.0), "labels": PLACES}
    style: dict[str, Any] = {"color": ("line",), "labels": {"temperature": "T", "cutoff": "c"}, "log_y": True}
    figures = (
        Figure("Bijections", BIJECTIONS, cells, "heatmap", "cutoff", "temperature", **colours),
        Figure("Boundaries", BOUNDARIES, phases.lines, "line", "cutoff", "temperature", **style),
    )
    text = "Which deformations of the first image are diffeomorphisms."
    return Section("Phases", text, figures, (), (Picture("Samples", SAMPLES, phases.png),))


def _logarithms(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the setting in words, and the logarithm of the index to base 10."""
    words = [f"δ = {delta:g}, c = {cutoff:g}, {how}" for delta, cutoff, how in rows[SETTING].to_numpy()]
    with np.errstate(divide="ignore"):
        log = np.log10(rows["value"]).replace(-np.inf, np.nan)
    return rows.assign(setting=words, **{"log value": log})


def _positive(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows without the values that have no place on a logarithmic axis."""
    return rows.assign(**{name: rows[name].where(rows[name] > 0) for name in VALUES})
