"""What an analysis of trends found, in sentences with their numbers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.trends.dominance import share_below, zeta
from haptera.analyses.trends.events import Events, Held
from haptera.analyses.trends.guarantee import Guarantee
from haptera.analyses.trends.placing import CLOSE, SIMILAR
from haptera.report.section import Finding, answer
from haptera.statistics.line import Line
from haptera.words import shorten

if TYPE_CHECKING:
    from haptera.analyses.trends.analysis import Trends

SHOWN = ("linear", "probit", "two_piece")
NEAR = 0.05
DEFINITIONS = {
    "line": "accuracy on shifted data as a function of accuracy on the reference; R² and residuals are in accuracy, "
    "whatever the scale of the fit",
    "off": "root mean square error for models that the line has not seen, each left out in turn",
    "dominance": "the share of examples on which a worse model is right and a better one is wrong",
    "event": "of three models, exactly these are right and the others wrong; six for each triplet",
    "wedge (δ1, δ2, ν1, ν2)": "Q of an event lies between (1 - δ1) P - ν1 and (1 + δ2) P + ν2, P and Q its shares "
    "on the reference and on shifted data",
    "by more than chance": "further outside than 1.96 standard errors",
    "effective robustness": "accuracy on shifted data above the line of all other models",
    "relative robustness": "accuracy on shifted data above that of the baseline, or else of the best other model on "
    "the reference",
    "ordered": "a better model is right wherever a worse one is",
}


def findings(trends: "Trends") -> list[Finding]:
    """Return what is asked, in a word, and the answer."""
    told = answer("line", "Is there a line?", _line(trends), _other_lines(trends), **_line_numbers(trends))
    if trends.pairs is not None:
        told += answer("similar", "Are the models similar?", _similar(trends.pairs), dominance=_dominance(trends.pairs))
    if trends.events is not None:
        asked, most = trends.events.asked, trends.events.most
        held = [asked] if asked.wedge == most.wedge else [asked, most]
        text = "; ".join(_held(each) for each in held)
        told += answer("close", "Are the two sets close?", text, events=_events(trends.events))
    if trends.guarantee is not None:
        numbers = {"bound": trends.guarantee.bound, "guarantee": _guarantee_numbers(trends.guarantee)}
        told += answer("guarantee", "Must there be a line?", _guarantee(trends.guarantee), **numbers)
    placed = [_placed(row) for row in trends.places.to_dict("records")]
    placed += [_furthest(trends.robustness)] if trends.sampled is None else []
    told += answer("robust", "Who is off it?", *placed) if placed else []
    return told + (answer("look at", "What should be checked?", _outliers(trends)) if trends.outliers else [])


def headline(trends: "Trends") -> str:
    """Return how many models and examples there are."""
    sizes = [side.n for side in (trends.sides.reference, trends.sides.shifted)]
    known = [f"{n.min():,}" + (f" to {n.max():,}" if n.min() < n.max() else "") for n in sizes if n is not None]
    examples = f"{' and '.join(known)} examples" if len(known) == 2 else "accuracies alone"
    return f"{len(trends.models):,} models, {examples}" + (", the same on both sides" if trends.sides.paired else "")


def _line(trends: "Trends") -> str:
    fits = trends.fits.set_index("fit")
    row = fits.loc[trends.line]
    how = "predicts left-out models best" if trends.fit == "best" else "is what was asked for"
    how += f" but for {trends.best}" if trends.fit == "best" and trends.line != trends.best else ""
    ends = [
        f"{row[f'slope_low_{over}']:.3f} .. {row[f'slope_high_{over}']:.3f} over {over}"
        for over in ("examples", "models")
        if over in trends.over and np.isfinite(row[f"slope_low_{over}"])
    ]
    between = f" ({', '.join(ends)})" if ends else ""
    return (
        f"{trends.line} {how} ({row['left_out']:.4f} off): R² {row['r2']:.4f}, no model further than "
        f"{row['max_residual']:.4f}, slope {row['slope']:.3f}{between}"
    )


def _other_lines(trends: "Trends") -> str:
    fits = trends.fits.set_index("fit")
    others = [kind for kind in SHOWN if kind in fits.index and kind != trends.line]
    return "; ".join(f"{kind} R² {fits['r2'][kind]:.4f}, {fits['max_residual'][kind]:.4f}" for kind in others)


def _similar(pairs: pd.DataFrame) -> str:
    largest = pairs.nlargest(1, "dominance").iloc[0]
    return (
        f"dominance at most {largest['dominance']:.4f} ({largest['worse']}, {largest['better']}), below {NEAR:g} for "
        f"{100 * share_below(pairs, NEAR):.1f} % of {len(pairs):,} pairs; similarity {pairs['excess'].mean():.3f} "
        "above independence"
    )


def _held(held: Held) -> str:
    found = held.closeness
    if not found.outside:
        return f"{held.wedge} holds all {found.events:,} events"
    return (
        f"{held.wedge} holds {100 * found.share_inside:.2f} % of {found.events:,} events, {found.outside:,} are "
        f"outside, {found.clear:,} by more than chance"
    )


def _guarantee(guarantee: Guarantee) -> str:
    triplets = guarantee.triplets
    broken = int(triplets["broken"].sum())
    kept = f"{broken:,} of {len(triplets):,} triplets break" if broken else f"all {len(triplets):,} triplets keep"
    return (
        f"a line within {guarantee.bound:.3f} of all ordered models; the best is within {guarantee.best:.3f}; "
        f"{kept} bound (2), largest residual {triplets['residual'].max():.4f}"
    )


def _furthest(robustness: pd.DataFrame) -> str:
    """Who is furthest from the line, where nobody knows how sure that is."""
    most, least = robustness.iloc[0], robustness.iloc[-1]
    return (
        f"furthest above the line {most['model']} {most['effective']:+.3f}, furthest below {least['model']} "
        f"{least['effective']:+.3f}; without n nobody knows whether that is more than chance"
    )


def _placed(row: Mapping[Any, Any]) -> str:
    ends = "" if np.isnan(row["low"]) else f" ({row['low']:+.3f} .. {row['high']:+.3f})"
    why = []
    if CLOSE in row["case"]:
        why.append(f"{row['clear']:,} of its {row['events']:,} events clearly outside the wedge of the others")
    if SIMILAR in row["case"]:
        why.append(f"dominance {row['dominance']:.3f}, the others at most {row['zeta']:.3f}")
    return f"{row['model']} {row['effective']:+.3f}{ends}, {row['case']}" + (f" ({'; '.join(why)})" if why else "")


def _outliers(trends: "Trends") -> str:
    names = trends.outliers
    if trends.events is None:
        return f"{shorten(names)}: far from the line of all others; check the file"
    tested = trends.events.tested
    owned = trends.events.owners.set_index("model")["clear"][names[0]] / max(tested.closeness.clear, 1)
    return f"{names[0]} owns {100 * owned:.0f} % of the events clearly outside {tested.wedge}: check its file" + (
        f"; then {shorten(names[1:])}" if names[1:] else ""
    )


def _line_numbers(trends: "Trends") -> dict[str, Any]:
    """Return the fits and the robustness of every model; None for what is not known of these files."""
    rows = {row["fit"]: row for row in trends.fits.to_dict("records")}
    frame = trends.robustness.set_index("model")
    numbers: dict[str, Any] = {"models": len(trends.models)}
    for kind in ("linear", "probit", "logit", "two_piece", "chebyshev", "robust", "robust_probit"):
        numbers[kind] = _fit_json(trends.lines[kind].line, rows[kind]) if kind in rows else None
    numbers |= {"best_fit": trends.best, "fit": trends.line, "outliers": list(trends.outliers)}
    for name in ("effective", "relative"):
        ends = frame[[f"{name}_low", f"{name}_high"]].to_numpy().tolist()
        known = None if trends.sampled is None else dict(zip(frame.index, ends, strict=True))
        numbers[f"{name}_robustness"] = frame[name].to_dict()
        numbers[f"{name}_robustness_interval"] = known
    numbers["intervals_over"] = None if trends.sampled is None else "examples"
    numbers["placed"] = trends.places.to_dict("records")
    numbers |= {} if trends.pairs is not None else {"dominance": None}
    numbers |= {} if trends.events is not None else {"events": None}
    return numbers | ({} if trends.guarantee is not None else {"bound": None, "guarantee": None})


def _fit_json(line: Line, row: Mapping[Any, Any]) -> dict[str, Any]:
    shape: dict[str, Any] = {"slope": row["slope"], "intercept": row["intercept"]}
    if line.switch is not None:
        shape = {"pieces": line.pieces, "switch": line.switch}
    ends = {
        over: [row[f"slope_low_{over}"], row[f"slope_high_{over}"]]
        for over in ("examples", "models")
        if f"slope_low_{over}" in row
    }
    goodness = {name: row[name] for name in ("r2", "max_residual", "left_out", "left_out_max")}
    return shape | goodness | {"worst": row["worst"], "slope_interval": ends}


def _dominance(pairs: pd.DataFrame) -> dict[str, Any]:
    return {
        "pairs": len(pairs),
        "max": zeta(pairs),
        f"share_below_{NEAR:g}": share_below(pairs, NEAR),
        "zeta_at_95": zeta(pairs, 0.95),
        "similarity_above_independence": pairs["excess"].mean(),
    }


def _events(events: Events) -> dict[str, Any]:
    """Return how many events there are, and how many the wedges do not hold."""
    asked, most = (
        {"outside": held.closeness.outside, "clearly_outside": held.closeness.clear}
        | {"inside": held.closeness.share_inside, "wedge": list(held.wedge)}
        for held in (events.asked, events.most)
    )
    return {"count": events.asked.closeness.events, **asked, "at_share": {"share": events.share, **most}}


def _guarantee_numbers(guarantee: Guarantee) -> dict[str, Any]:
    triplets = guarantee.triplets
    return {
        "wedge": list(guarantee.wedge),
        "corollary": guarantee.bound,
        "best_line": guarantee.best,
        "triplets": len(triplets),
        "broken": triplets["broken"].sum(),
        "largest_residual": triplets["residual"].max(),
    }
