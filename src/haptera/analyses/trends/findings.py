"""What an analysis of trends found, in sentences with their numbers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.trends.closeness import LARGE
from haptera.analyses.trends.dominance import share_below, zeta
from haptera.analyses.trends.events import Events
from haptera.analyses.trends.own_bound import OwnBound
from haptera.analyses.trends.robustness import CLOSE, SIMILAR
from haptera.analyses.trends.verdict import YES, Verdict
from haptera.report.section import Finding, answer, lead
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
    "effective robustness": "accuracy on shifted data above the line of all other models, or of the standard ones",
    "relative robustness": "accuracy on shifted data above that of the baseline, or else above what the line says of "
    "the best other model on the reference",
    "is there a line": "yes, if the whole 95 % interval of R² is above 0.8, no, if it is below, and there are five "
    "models or more; R² is on the scale of the fit",
    "without a line": "the same error if the mean of the other models is all that is known",
    "by sampling alone": "the same error if every model were exactly on the line and examples were drawn again; where "
    "only n is known, at most that",
    "ζ": "the largest dominance of two models, in the triplets that a line through the worst and the best needs",
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
    unlike = "What should be checked?" if trends.suspects or trends.events is None else "Who is unlike the others?"
    told = [
        *answer("line", "Is there a line?", *_say_verdict(trends), **_numbers(trends)),
        *answer("fit", "Which line?", *_describe_lines(trends)),
        *(_similar(trends.pairs) if trends.pairs is not None else ()),
        *(_close(trends.events) if trends.events else ()),
        *(_guarantee(trends) if trends.guarantee else ()),
        *answer("robust", "Who is off it?", *off),
        *answer("look at", unlike, _name_outliers(trends)),
    ]
    return lead(told, _leads(trends))


def _leads(trends: "Trends") -> dict[str, tuple[str, str]]:
    """Return the number of each answer and where the page shows it."""
    verdict, off = trends.verdict, trends.fits.set_index("fit")["left_out"].to_dict()[trends.line]
    leads = {"line": (f"{verdict.word}: R² {verdict.r2:.2f}", "Accuracy on both sides")}
    leads |= {"fit": (f"{off:.3f} off", "Fits"), "look at": ("", "Who owns the events outside")}
    if trends.pairs is not None:
        leads["similar"] = (f"at most {zeta(trends.pairs):.4f}", "Dominance against difference of accuracy")
    leads |= {"close": ("", "Events of all triplets"), "guarantee": ("", "Where ordered models must lie")}
    for own in trends.own_bounds[:1]:
        leads["guarantee"] = (f"within {own.value:.3f}", "The guarantee at the data's own ζ")
    number = f"{float(trends.places['effective'].iloc[0]):+.3f}".replace("-", "−") if len(trends.places) else ""
    return leads | {"robust": (number, "Effective robustness")}


def describe_verdict(verdict: Verdict) -> str:
    """Return the verdict as a sentence says it, with the two yardsticks of the error."""
    text = (
        f"{verdict.word}: the {verdict.fit} line of {verdict.models:,} models has R² {verdict.r2:.4f} "
        f"({verdict.low:.4f} .. {verdict.high:.4f}) on its scale; left-out models are {verdict.left_out:.4f} off "
        f"({verdict.without:.4f} without a line)"
    )
    if verdict.beyond is None:
        return text
    return text + f", {'more' if verdict.beyond else 'no more'} than sampling alone gives ({verdict.sampling:.4f})"


def _say_verdict(trends: "Trends") -> list[str]:
    told = [describe_verdict(trends.verdict)]
    if (again := trends.verdict_without) is not None:
        told.append(f"without {shorten(again.aside)}: {describe_verdict(again)}")
    if not trends.seen.all():
        told.append(
            f"it is the line of {trends.seen.sum():,} standard models; {(~trends.seen).sum():,} others are placed "
            "against it"
        )
    if trends.sampled is not None and trends.verdict.word == YES:
        off, every = count_off(trends), len(trends.models)
        told.append(
            f"{off} of {every:,} models are off it by more than sampling; of so many {every / 20:.1f} are by chance"
        )
    return told


def count_off(trends: "Trends") -> int:
    """Return how many models have an interval of effective robustness without 0."""
    rows = trends.robustness
    return int(((rows["effective_low"] > 0) | (rows["effective_high"] < 0)).sum())


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
    numbers: dict[str, Any] = {"models": len(trends.models), "verdict": trends.verdict.numbers}
    again = trends.verdict_without
    numbers |= {"verdict_without": again and again.numbers, "standard": int(trends.seen.sum())}
    numbers |= {"others": int((~trends.seen).sum()), "off_the_line": count_off(trends) if known else None}
    numbers |= {"off_by_chance": len(trends.models) / 20 if known else None, **dict.fromkeys(FITS)}
    for kind, found in trends.lines.items():
        numbers[kind] = found.line.shape | dict(fits.loc[kind, GOODNESS]) | {"slope_interval": trends.slopes[kind]}
    numbers |= {"best_fit": trends.best, "fit": trends.line, "outliers": trends.outliers, "placed": trends.places}
    numbers |= {"check_files": trends.suspects}
    rows = trends.robustness.set_index("model")
    for name in ("effective", "relative"):
        ends = rows[[f"{name}_low", f"{name}_high"]].T.to_dict("list")
        numbers |= {f"{name}_robustness": rows[name], f"{name}_robustness_interval": ends if known else None}
    known_later = {"dominance": trends.pairs, "events": trends.events, "guarantee": trends.guarantee}
    missing = [name for name, part in known_later.items() if part is None]
    missing += ["bound", "own_bounds", "tolerated"] if trends.guarantee is None else []
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
        | {"large": each.large, "large_inside": each.large_inside}
        for each in (events.asked, events.most)
    )
    numbers = {"count": events.asked.events, **asked, "at_share": {"share": events.share, **most}}
    large = ""
    if events.most.large:
        large = (
            f"of the {events.most.large:,} events with P of {float(LARGE):g} or more (appendix A) {events.most.wedge} "
            f"holds {100 * events.most.large_inside:.2f} %"
        )
    return answer("close", "Are the two sets close?", "; ".join(held.values()), large, events=numbers)


def _guarantee(trends: "Trends") -> list[Finding]:
    guarantee = trends.guarantee
    assert guarantee is not None
    found = guarantee.count()
    kept = "{broken:,} of {triplets:,} triplets break" if found["broken"] else "all {triplets:,} triplets keep"
    text = "if they were ordered, a line within {corollary:.3f} of all models (3); the best is within {best_line:.3f}; "
    text = (text + kept + " bound (2), largest residual {largest_residual:.4f}").format_map(found)
    own = [_describe_bound(bound) for bound in trends.own_bounds[:1]]
    pieces = "; ".join(_describe_piece(bound) for bound in trends.own_bounds[1:])
    asked = trends.asked_bound
    asked_text = f"with {asked.wedge}, {_describe_bound(asked)}" if asked else ""
    numbers: dict[str, Any] = {"own_bounds": [bound.numbers for bound in trends.own_bounds]}
    numbers |= {"tolerated": trends.tolerated}
    numbers |= {"asked_bound": asked and asked.numbers}
    texts = (*own, asked_text, pieces, _describe_tolerated(trends.tolerated), text)
    return answer("guarantee", "Must there be a line?", *texts, bound=guarantee.bound, guarantee=found, **numbers)


def _describe_bound(bound: OwnBound) -> str:
    low, high = bound.accuracies
    found = bound.numbers
    return (
        f"{bound.piece}, at their own ζ = {bound.zeta:.4f}, between {low:.3f} and {high:.3f}: none further than "
        f"{bound.value:.3f} from the line of both ends (6), {found['ordered_bound']:.3f} if they were ordered (2); "
        f"seen {found['largest_residual']:.3f}"
    )


def _describe_piece(bound: OwnBound) -> str:
    low, high = bound.accuracies
    found = bound.numbers
    return (
        f"{bound.piece} ({low:.3f} to {high:.3f}, ζ = {bound.zeta:.4f}) {bound.value:.3f}, if ordered "
        f"{found['ordered_bound']:.3f}, seen {found['largest_residual']:.3f}"
    )


def _describe_tolerated(found: Mapping[str, Any] | None) -> str:
    if not found or not found["outside"]:
        return ""
    return (
        f"of {found['outside']:,} events outside {found['wedge']} a line needs {found['needed']:,}; the others are "
        "tolerated (section 4)"
    )


def _place(row: Mapping[Any, Any]) -> str:
    ends = "" if np.isnan(row["low"]) else f" ({row['low']:+.3f} .. {row['high']:+.3f})"
    why = [text.format_map(row) for case, text in WHY.items() if case in row["case"]]
    relative = f", relative {row['relative']:+.3f}" if np.isfinite(row["relative"]) else ""
    return f"{row['model']} {row['effective']:+.3f}{ends}{relative}, {row['case']}" + f" ({'; '.join(why)})" * bool(why)


def _name_furthest(robustness: pd.DataFrame) -> str:
    """Say who is furthest from the line, where nobody knows how sure that is."""
    most, least = robustness.iloc[0], robustness.iloc[-1]
    return (
        f"furthest above the line {most['model']} {most['effective']:+.3f}, furthest below {least['model']} "
        f"{least['effective']:+.3f}; without n nobody knows whether that is more than chance"
    )


def _name_outliers(trends: "Trends") -> str:
    if not trends.outliers:
        return ""
    if trends.events is None:
        return f"{shorten(trends.outliers)}: far from the line of all others, a wrong number or a model of another kind"
    (worst, *others), tested = trends.suspects or trends.outliers, trends.events.tested
    owned = trends.events.owners.set_index("model")["clear"][worst] / max(tested.clear, 1)
    then = f"; then {shorten(others)}" if others else ""
    sign = "and is right where all others are wrong: check its file" if trends.suspects else "unlike the others"
    return f"{worst} owns {100 * owned:.0f} % of the events clearly outside {tested.wedge}, {sign}{then}"


def notes(trends: "Trends") -> list[str]:
    """Return what a reader must know: how the sides were joined, what was moved, and what is missing."""
    told = [
        *trends.sides.notes,
        *(
            f"{side.source}: accuracies of 0 or 1 moved inside by 1 / (2n) on probit: {shorten(side.at_the_ends)}"
            for side in trends.sides
            if side.at_the_ends and side.n is not None
        ),
        *(f"{each}; without n these fits are left out" for each in trends.unplaced),
    ]
    if not trends.sides.sized:
        told.append(
            "n, the number of examples, is not known on both sides: robustness has no interval, and that of a line "
            "is over models alone; --n REFERENCE SHIFTED gives both numbers"
        )
    if trends.drawn < trends.draws:
        told.append(f"{len(trends.models):,} models are drawn {trends.drawn:,} times, not {trends.draws:,}")
    if (
        trends.sides.reference.correct is not None
        and trends.events is None
        and trends.sides.shifted.correct is not None
    ):
        pairs = " or pair" * (trends.pairs is None)
        told.append(f"{len(trends.models):,} models are too many to look at every triplet{pairs} of them")
    return told
