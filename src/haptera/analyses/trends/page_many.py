"""The page of trends to many sets: lines, R² of every pair, robustness of every model on every set, and agreement."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.report.figure import Figure, layer
from haptera.report.section import Listing, Section

if TYPE_CHECKING:
    from haptera.analyses.trends.many import ManyTrends

POINTS = 61
SHORT = {"r2": "R²", "left_out": "off", "without": "off without a line", "sampling": "off by sampling alone"}
SHORT |= {"low": "R², low", "high": "R², high", "lost": "accuracy lost on average"}
LINES = "A point is a model. The line is that which predicts left-out models of the set best; choose a set above."
R2 = "Of the accuracies on the one set, by a line from those on the other. Rows and columns are sets."
EFFECTIVE = "Accuracy on each set above the line of all other models, or of the standard ones; blue is above."
AGREE = (
    "Rank correlation of effective robustness over models. Sets agree if the whole 95 % interval is above 0: whoever "
    "is robust on the one is robust on the other."
)


def sections(many: "ManyTrends") -> list[Section | None]:
    """Return a section for lines, one for robustness and one for agreement."""
    return [_lines(many), _robust(many), _agreement(many)]


def _lines(many: "ManyTrends") -> Section | None:
    parts = {}
    for name, trend in many.trends.items():
        x, y = trend.accuracies
        at = np.linspace(x.min(), x.max(), POINTS)
        drawn = [
            layer("point", "models", model=trend.models, reference=x, shifted=y),
            layer("line", "line", reference=at, shifted=trend.lines[trend.line].line(at)),
            layer("line", "nothing lost", reference=at[[0, -1]], shifted=at[[0, -1]]),
        ]
        parts[name] = pd.concat(drawn, ignore_index=True)
    frame = pd.concat(parts, names=["set"]).reset_index("set").reset_index(drop=True)
    axes = {"reference": f"accuracy on {many.reference}", "shifted": "accuracy on the set"}
    style: dict[str, Any] = {"select": ("set",), "labels": axes}
    matrix = Figure("R² from set to set", R2, many.r2, "heatmap", "to", "from", value=("r2",)) if len(many.r2) else None
    return Section.of(
        "Lines",
        "Whether accuracies on each set follow from those on the reference.",
        Figure("Accuracy on both sets", LINES, frame, "layers", "reference", "shifted", **style),
        matrix,
        Listing("Sets", "One row for each set.", many.verdicts, SHORT),
    )


def _robust(many: "ManyTrends") -> Section | None:
    rows = many.robustness
    style: dict[str, Any] = {"value": ("effective",), "low": "effective_low", "high": "effective_high"}
    style |= {"diverging": ("effective",), "labels": {"effective": "effective robustness"}}
    return Section.of(
        "Robustness",
        "Who keeps more than the line predicts, on which set.",
        Figure("Effective robustness", EFFECTIVE, rows, "heatmap", "set", "model", **style),
        Listing("Accuracies", "On every set.", many.accuracies.rename_axis("model").reset_index()),
    )


def _agreement(many: "ManyTrends") -> Section | None:
    if many.agreement.empty:
        return None
    one = many.agreement
    both = pd.concat([one, one.rename(columns={"one": "other", "other": "one"})], ignore_index=True)
    style: dict[str, Any] = {"value": ("correlation",), "low": "low", "high": "high", "diverging": ("correlation",)}
    return Section.of(
        "Agreement",
        "Which sets say the same about the models.",
        Figure("Agreement of sets", AGREE, both, "heatmap", "one", "other", **style),
        Listing("Pairs of sets", "By rank correlation.", one),
    )
