"""What a measurement of stability found, in sentences with their numbers."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.stability import INIT, SETTING
from haptera.report.section import Finding, answer, enlarge, lead
from haptera.words import interval

if TYPE_CHECKING:
    from haptera.analyses.stability.analysis import Stability

DEFINITIONS = {
    "R": "how far the output moves when images are deformed, over how far it moves when they get noise of the same "
    "norm; squared distances, median over median (or mean over mean)",
    "D": "the same for deformations, over how far apart the outputs of two images are",
    "G": "the same for noise; R = D / G",
    "δ": "the root mean square displacement of the centre of an image, in pixels",
    "c": "the cutoff: waves of the deformation with i² + j² ≤ c² are kept",
    "folded": "fields that are not a bijection: somewhere the determinant of their derivative is not positive",
    "intervals": "95 %, over images (bootstrap)",
}


def findings(found: "Stability") -> list[Finding]:
    """Return a line for each network, about medians at the first setting, then the deformations and the law."""
    told: list[Finding] = []
    settings = found.deformations.to_dict("records")
    for model in [*found.models, *found.initial]:
        rows, error = found.rows(model), found.error(model)
        medians = rows[rows["aggregate"] == "median"].to_dict("records")
        parts = [_index(row) for row in medians]
        parts += [] if error is None else [f"error {error:.1%}"]
        numbers = {} if told else _numbers(found, settings)
        made = answer(model, f"How stable is {model}?", "   ".join(parts), **numbers)
        large = [f"R {row['value']:.2g}" for row in medians if row["index"] == "R" and np.isfinite(row["value"])]
        told += enlarge(made, "".join(large), "Indices of each network")
    told += answer("deformation", "Against what?", *map(_deformation, settings), deformations=settings)
    if found.laws:
        laws = {index: vars(law) for index, law in found.laws.items()}
        told += answer("law", "Does it go with the error?", *map(_law, found.laws.items()), laws=laws)
    size = f"{found.images:,} of {found.size[0]} x {found.size[1]} pixels; medians, 95 % over images"
    told += answer("images", "On what?", size, images=found.images)
    return lead(told, {"deformation": ("", "Deformations"), "law": ("", "Error against stability")})


def _index(row: Mapping[Any, Any]) -> str:
    """Return a value with its interval; undefined where noise, or another image, changes nothing."""
    if np.isnan(row["value"]):
        return f"{row['index']} undefined"
    ends = "" if np.isnan(row["low"]) else f" ({row['low']:.3g} to {row['high']:.3g})"
    return f"{row['index']} {row['value']:.3g}{ends}"


def _deformation(row: Mapping[Any, Any]) -> str:
    used = "" if np.isclose(row["delta_used"], row["delta"]) else f" (asked for δ {row['delta']:g})"
    where = f"δ {row['delta_used']:.3g}{used}, c {row['cutoff']:g}, {row['interpolation']}"
    return f"{where}: T {row['temperature']:.3g}, {row['folded']:.1%} of the fields fold"


def _law(item: tuple[str, Any]) -> str:
    index, law = item
    fit = f"error ≈ {law.prefactor:.2g} {index}^{law.exponent:.2f}"
    sure = interval(law.correlation_low, law.correlation_high)
    return f"{fit}; correlation of logs {law.correlation:.2f}{sure}, {law.n} networks"


def _numbers(found: "Stability", settings: Sequence[Mapping[Any, Any]]) -> dict[str, Any]:
    """Return the numbers of the first network at the first setting, then of all of them where there are more."""
    every = [_measurement(found, name, setting) for setting in settings for name in found.models]
    return every[0] | ({"measurements": every} if len(every) > 1 else {})


def _measurement(found: "Stability", model: str, setting: Mapping[Any, Any]) -> dict[str, Any]:
    rows = found.indices[found.indices["model"] == model]
    for key in SETTING:
        rows = rows[rows[key] == setting[key]]
    layers = [{"layer": layer} | _indices(own) for layer, own in rows.groupby("layer", sort=False) if layer != "output"]
    before = _measurement(found, model + INIT, setting) if model + INIT in found.initial else None
    return {
        "model": model,
        **{key: setting[key] for key in (*SETTING, "delta_used", "temperature", "folded")},
        **_indices(rows[rows["layer"] == "output"]),
        "error": found.error(model),
        "layers": layers,
        **({"init": {key: before[key] for key in ("R", "D", "G", "layers")}} if before else {}),
    }


def _indices(rows: pd.DataFrame) -> dict[str, Any]:
    """Return `{"R": {"mean": ..., "mean_interval": [...], "median": ..., ...}, ...}`."""
    values: dict[str, Any] = {}
    for row in rows.to_dict("records"):
        here = values.setdefault(row["index"], {})
        here |= {row["aggregate"]: row["value"], f"{row['aggregate']}_interval": [row["low"], row["high"]]}
    return values
