"""The page of a measurement of stability: networks, layers, ranges of deformations, errors, and the phase diagram."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera import __version__
from haptera.report.figure import Figure
from haptera.report.page import render, write_page
from haptera.report.section import Finding, Listing, Picture, Section
from haptera.report.study.stability import against_error

if TYPE_CHECKING:
    from haptera.analyses.stability.analysis import Stability
    from haptera.analyses.stability.phase_diagram import PhaseDiagram

DEFINITIONS = {
    "R": "how far the output moves when images are deformed, over how far it moves when they get noise of the same "
    "norm; squared distances, median over median (or mean over mean)",
    "D": "the same for deformations, over how far apart the outputs of two images are",
    "G": "the same for noise; R = D / G",
    "δ": "the root mean square displacement of the centre of an image, in pixels",
    "c": "the cutoff: waves of the deformation with i² + j² ≤ c² are kept",
    "folded": "fields that are no bijection: somewhere the determinant of their derivative is not positive",
    "intervals": "95 %, over images (bootstrap)",
}
LABELS = {"log value": "log₁₀ of the index", "n": "images", "delta": "δ, pixels", "cutoff": "c"}
LOGARITHMS = ("log value", "log low", "log high")
SETTING = ["delta", "cutoff", "interpolation"]


def write_stability(
    found: "Stability",
    path: Path,
    data: str,
    phases: "PhaseDiagram | None" = None,
    settings: Mapping[str, object] | None = None,
) -> None:
    """Write the page, whole."""
    sections = [networks_section(found), layers_section(found), range_section(found), error_section(found)]
    sections.append(None if phases is None else phase_section(phases))
    page = render(
        [section for section in sections if section is not None],
        [Finding("", question, f"{text}.") for question, text in _answers(found)],
        title=f"Stability on {Path(data).name}",
        settings={"haptera": __version__, "data": data, "images": found.images} | dict(settings or {}),
        definitions=DEFINITIONS,
        notes=found.notes,
    )
    write_page(page, path)


def networks_section(found: "Stability") -> Section:
    """R, D and G of every network."""
    rows = found.indices[found.indices["layer"] == "output"]
    frame = _logarithmic(rows)[["setting", "aggregate", "model", "index", "log value", "value", "low", "high", "n"]]
    figure = Figure(
        "Indices of each network",
        "Logarithms to base 10: below 0, deformations move the output less than noise does (R), or both less than "
        "another image (D, G). Point at a field for the index itself.",
        frame,
        kind="heatmap",
        x="index",
        y="model",
        value=("log value",),
        select=("setting", "aggregate"),
        start={"aggregate": "median"},
        diverging=("log value",),
        labels=LABELS,
    )
    listing = Listing(
        "Deformations",
        "The temperature follows from δ by the exact sum over modes; where fields that fold are drawn again, δ is that "
        "of the others; norms are of the change in pixels.",
        found.deformations,
        {
            "delta_used": "δ, of the fields used",
            "norm_mean": "mean norm",
            "norm_median": "median norm",
            "folded": "share folded",
        }
        | LABELS,
    )
    tables = (Listing("Indices", "95 % intervals over images.", frame.drop(columns="log value"), LABELS), listing)
    return Section("Networks", "How each network takes deformations, relative to noise.", (figure,), tables)


def layers_section(found: "Stability") -> Section | None:
    """The indices over depth."""
    if found.indices["layer"].nunique() < 2:
        return None
    frame = _logarithmic(found.indices)
    figure = Figure(
        "Over depth",
        "Layers in the order in which they are run, the pixels first and the output last; point at one for its name. "
        "Distances between images are taken within batches, but for the output.",
        frame[["setting", "index", "aggregate", "model", "depth", "layer", "value", *LOGARITHMS]],
        kind="line",
        x="depth",
        y="log value",
        low="log low",
        high="log high",
        color=("model",),
        select=("setting", "index", "aggregate"),
        start={"aggregate": "median"},
        labels=LABELS,
    )
    return Section("Layers", "Where stability builds up.", (figure,))


def range_section(found: "Stability") -> Section | None:
    """The indices over δ, a line for each cutoff and interpolation; over c where there is one δ only."""
    rows = found.indices[found.indices["layer"] == "output"]
    if len(found.deformations) < 2:
        return None
    used = found.deformations[[*SETTING, "delta_used"]]
    rows = rows.merge(used, on=SETTING).assign(delta=lambda frame: frame["delta_used"])  # as the fields were
    along = "delta" if rows["delta"].nunique() > 1 else "cutoff"
    other = "cutoff" if along == "delta" else "delta"
    symbol = "c" if other == "cutoff" else "δ"
    frame = _logarithmic(rows)
    frame["of"] = [f"{symbol} = {value:g}, {how}" for value, how in rows[[other, "interpolation"]].to_numpy()]
    figure = Figure(
        "Over deformations",
        "Where δ is well below a pixel, what is seen depends on the interpolation; Gaussian weights change an image "
        "even where nothing moves.",
        frame[["index", "aggregate", "model", "of", along, "value", "n", *LOGARITHMS]],
        kind="line",
        x=along,
        y="log value",
        low="log low",
        high="log high",
        color=("model",),
        dash="of",
        select=("index", "aggregate"),
        start={"aggregate": "median"},
        labels=LABELS,
    )
    return Section("Range", "How the indices depend on the deformations.", (figure,))


def error_section(found: "Stability") -> Section | None:
    """Error against the indices, with the power laws."""
    if len(found.against_error) < 2:
        return None
    return against_error(found.against_error, found.laws)


def phase_section(phases: "PhaseDiagram") -> Section:
    """Samples, the share of bijections, and the boundaries."""
    cells = phases.cells.assign(temperature=phases.cells["temperature"].map("{:.1e}".format), good=phases.cells["good"])
    cells = cells.iloc[::-1].assign(
        cutoff=cells["cutoff"].map("{:g}".format), good=np.where(cells["good"], "yes", "no")[::-1]
    )
    heat = Figure(
        "Bijections",
        "Share of fields that do not fold, measured; δ by the exact sum.",
        cells.sort_values("cutoff", key=lambda names: names.astype(float), kind="stable"),
        kind="heatmap",
        x="cutoff",
        y="temperature",
        value=("bijective", "delta"),
        limits=(0.0, 1.0),
        labels={"delta": "δ, pixels", "good": "a good place", "gradient_norm": "mean ‖∇τ‖²", "cutoff": "c"},
    )
    lines = phases.lines.assign(**{"log temperature": np.log10(phases.lines["temperature"])})
    boundaries = Figure(
        "Boundaries",
        "Between δ = ½ and where half of the fields fold, deformations are visible and bijections. (8/π³)/c² is what "
        "the print wants T to be far below.",
        lines,
        kind="line",
        x="cutoff",
        y="log temperature",
        color=("line",),
        labels={"log temperature": "log₁₀ T", "cutoff": "c"},
    )
    picture = Picture(
        "Samples",
        "One field for each place. Framed where at least half of the fields are bijections and δ is at least ½ pixel.",
        phases.png,
    )
    return Section(
        "Phases", "Which deformations of the first image are diffeomorphisms.", (heat, boundaries), (), (picture,)
    )


def sentences(found: "Stability") -> list[tuple[str, str]]:
    """Name and sentence of each finding, about medians at the first setting."""
    lines = []
    for model in [*found.models, *found.initial]:
        rows = found.rows(model)
        medians = rows[rows["aggregate"] == "median"].to_dict("records")
        parts = [_index(row) for row in medians]
        error = found.errors[found.errors["model"] == model] if len(found.errors) else found.errors
        parts += [f"error {error['error'].iloc[0]:.1%}"] if len(error) else []
        lines.append((model, "   ".join(parts)))
    for row in found.deformations.to_dict("records"):
        used = "" if np.isclose(row["delta_used"], row["delta"]) else f" (asked for δ {row['delta']:g})"
        where = f"δ {row['delta_used']:.3g}{used}, c {row['cutoff']:g}, {row['interpolation']}"
        lines.append(("deformation", f"{where}: T {row['temperature']:.3g}, {row['folded']:.1%} of the fields fold"))
    for index, law in found.laws.items():
        sure = "" if np.isnan(law.correlation_low) else f" ({law.correlation_low:.2f} to {law.correlation_high:.2f})"
        text = (
            f"error ≈ {law.prefactor:.2g} {index}^{law.exponent:.2f}; correlation of logs {law.correlation:.2f}{sure}"
        )
        lines.append(("law", f"{text}, {law.n} networks"))
    lines.append(("images", f"{found.images:,} of {found.size[0]} x {found.size[1]} pixels; medians, 95 % over images"))
    return lines + [("note", note) for note in found.notes]


def _index(row: Mapping[Any, Any]) -> str:
    """A value with its interval; undefined where noise, or another image, changes nothing."""
    if np.isnan(row["value"]):
        return f"{row['index']} undefined"
    return f"{row['index']} {row['value']:.3g}{_ends(row['low'], row['high'])}"


def _answers(found: "Stability") -> list[tuple[str, str]]:
    said = sentences(found)
    stable = min(found.models, key=lambda name: np.nan_to_num(found.value("R", model=name), nan=np.inf))
    first = f"{stable} is the most stable of {len(found.models)} networks: " if len(found.models) > 1 else ""
    answers = [("How stable is it?", first + dict(said)[stable])]
    answers.append(("Against what?", "Deformations of " + dict(said[::-1])["deformation"]))
    if found.laws:
        answers.append(("Does it go with the error?", "The " + next(text for word, text in said if word == "law")))
    return answers


def _logarithmic(rows: pd.DataFrame) -> pd.DataFrame:
    """With the setting in words, and logarithms to base 10."""
    words = [f"δ = {delta:g}, c = {cutoff:g}, {how}" for delta, cutoff, how in rows[SETTING].to_numpy()]
    with np.errstate(divide="ignore"):
        logs = {f"log {name}": np.log10(rows[name]).replace(-np.inf, np.nan) for name in ("value", "low", "high")}
    return rows.assign(setting=words, **logs)


def _ends(low: float, high: float) -> str:
    return "" if np.isnan(low) else f" ({low:.3g} to {high:.3g})"
