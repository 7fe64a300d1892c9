"""What an analysis of trends found, in sentences with their numbers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.trends.dominance import share_below, zeta
from haptera.analyses.trends.events import Events
from haptera.analyses.trends.guarantee import Guarantee
from haptera.analyses.trends.robustness import CLOSE, SIMILAR
from haptera.report.section import Finding, answer
from haptera.statistics.line import FITS
from haptera.words import shorten

if TYPE_CHECKING:
    from haptera.analyses.trends.analysis import Trends

SHOWN = ("linear", "probit", "two_piece")
NEAR = 0.05
WHY = {
    CLOSE: "{clear:,} of its {events:,} events clearly outside the wedge of the others",
    SIMILAR: "dominance {dominance:.3f}, the others at most {zeta:.3f}",
}
"""Case of a model that is off the line -> why."""
GOODNESS = ["r2", "max_residual", "left_out", "left_out_max", "worst"]
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


def headline(trends: "Trends") -> str:
    """Return how many models and examples there are."""
    sizes = [side.size for side in (trends.sides.reference, trends.sides.shifted)]
    examples = f"{' and '.join(sizes)} examples" if all(sizes) else "accuracies alone"
    return f"{len(trends.models):,} models, {examples}" + ", the same on both sides" * trends.sides.paired


def findings(trends: "Trends") -> list[Finding]:
    """Return what is asked, in a word, and the answer."""
    off = [_place(row) for row in trends.places.to_dict("records")]
    off += [_name_furthest(trends.robustness)] if trends.sampled is None else []
    return [
        *answer("line", "Is there a line?", *_describe_lines(trends), **_numbers(trends)),
        *(_similar(trends.pairs) if trends.pairs is not None else ()),
        *(_close(trends.events) if trends.events else ()),
        *(_guarantee(trends.guarantee) if trends.guarantee else ()),
        *answer("robust", "Who is off it?", *off),
        *answer("look at", "What should be checked?", _name_outliers(trends)),
    ]


def _describe_lines(trends: "Trends") -> tuple[str, str]:
    fits = trends.fits.set_index("fit")
    row, how = fits.loc[trends.line], "is what was asked for"
    if trends.fit == "best":
        how = "predicts left-out models best" + f" but for {trends.best}" * (trends.line != trends.best)
    slopes = trends.slopes[trends.line].items()
    ends = [f"{low:.3f} .. {high:.3f} over {over}" for over, (low, high) in slopes if np.isfinite(low)]
    line = (
        f"{trends.line} {how} ({row['left_out']:.4f} off): R² {row['r2']:.4f}, no model further than "
        f"{row['max_residual']:.4f}, slope {row['slope']:.3f}" + f" ({', '.join(ends)})" * bool(ends)
    )
    others = fits.loc[[kind for kind in SHOWN if kind in fits.index and kind != trends.line]]
    return line, "; ".join(f"{kind} R² {row['r2']:.4f}, {row['max_residual']:.4f}" for kind, row in others.iterrows())


def _numbers(trends: "Trends") -> dict[str, Any]:
    """Return the fits and the robustness of every model; None for what is not known of these files."""
    fits, known = trends.fits.set_index("fit"), trends.sampled is not None
    numbers: dict[str, Any] = {"models": len(trends.models)} | dict.fromkeys(FITS)
    for kind, found in trends.lines.items():
        numbers[kind] = found.line.shape | dict(fits.loc[kind, GOODNESS]) | {"slope_interval": trends.slopes[kind]}
    numbers |= {"best_fit": trends.best, "fit": trends.line, "outliers": trends.outliers, "placed": trends.places}
    rows = trends.robustness.set_index("model")
    for name in ("effective", "relative"):
        ends = rows[[f"{name}_low", f"{name}_high"]].T.to_dict("list")
        numbers |= {f"{name}_robustness": rows[name], f"{name}_robustness_interval": ends if known else None}
    known_later = {"dominance": trends.pairs, "events": trends.events, "guarantee": trends.guarantee}
    missing = [name for name, part in known_later.items() if part is None]
    missing += ["bound"] if trends.guarantee is None else []
    return numbers | {"intervals_over": "examples" if known else None} | dict.fromkeys(missing)


def _similar(pairs: pd.DataFrame) -> list[Finding]:
    largest = pairs.nlargest(1, "dominance").iloc[0]
    near, excess = share_below(pairs, NEAR), pairs["excess"].mean()
    text = (
        f"dominance at most {largest['dominance']:.4f} ({largest['worse']}, {largest['better']}), below {NEAR:g} for "
        f"{100 * near:.1f} % of {len(pairs):,} pairs; similarity {excess:.3f} above independence"
    )
    numbers = {"pairs": len(pairs), "max": zeta(pairs), f"share_below_{NEAR:g}": near, "zeta_at_95": zeta(pairs, 0.95)}
    numbers |= {"similarity_above_independence": excess}
    return answer("similar", "Are the models similar?", text, dominance=numbers)


def _close(events: Events) -> list[Finding]:
    held = {each.wedge: str(each) for each in (events.asked, events.most)}
    asked, most = (
        {"outside": each.outside, "clearly_outside": each.clear, "inside": each.share_inside, "wedge": each.wedge}
        for each in (events.asked, events.most)
    )
    numbers = {"count": events.asked.events, **asked, "at_share": {"share": events.share, **most}}
    return answer("close", "Are the two sets close?", "; ".join(held.values()), events=numbers)


def _guarantee(guarantee: Guarantee) -> list[Finding]:
    found = guarantee.count()
    kept = "{broken:,} of {triplets:,} triplets break" if found["broken"] else "all {triplets:,} triplets keep"
    text = "a line within {corollary:.3f} of all ordered models; the best is within {best_line:.3f}; "
    text = (text + kept + " bound (2), largest residual {largest_residual:.4f}").format_map(found)
    return answer("guarantee", "Must there be a line?", text, bound=guarantee.bound, guarantee=found)


def _place(row: Mapping[Any, Any]) -> str:
    ends = "" if np.isnan(row["low"]) else f" ({row['low']:+.3f} .. {row['high']:+.3f})"
    why = [text.format_map(row) for case, text in WHY.items() if case in row["case"]]
    return f"{row['model']} {row['effective']:+.3f}{ends}, {row['case']}" + f" ({'; '.join(why)})" * bool(why)


def _name_furthest(robustness: pd.DataFrame) -> str:
    """Say who is furthest from the line, where nobody knows how sure that is."""
    most, least = robustness.iloc[0], robustness.iloc[-1]
    return (
        f"furthest above the line {most['model']} {most['effective']:+.3f}, furthest below {least['model']} "
        f"{least['effective']:+.3f}; without n nobody knows whether that is more than chance"
    )


def _name_outliers(trends: "Trends") -> str:
    if not trends.outliers or trends.events is None:
        return f"{shorten(trends.outliers)}: far from the line of all others; check the file" if trends.outliers else ""
    (worst, *others), tested = trends.outliers, trends.events.tested
    owned = trends.events.owners.set_index("model")["clear"][worst] / max(tested.clear, 1)
    then = f"; then {shorten(others)}" if others else ""
    return f"{worst} owns {100 * owned:.0f} % of the events clearly outside {tested.wedge}: check its file{then}"
