"""Which adapter wins in which stream, by how much, and whether that would last with other seeds.

Adapters are compared on the shifts and severities that all of them met: `matched_accuracy` and `adapter_margin` of the
table.
"""

import numpy as np
import pandas as pd

from haptera.report.figure import Figure
from haptera.report.section import Listing, Section
from haptera.report.study import paper
from haptera.report.study.cells import NONE, cells, in_order, named, pool, streams, summed
from haptera.report.study.findings import model_order
from haptera.report.thin import bounded

MEAN = "mean over models"
MOST_ROWS = 50_000
LABELS = {"next": "next best", "clear": "above 0"}
CAPTION = (
    "Accuracy is the mean over shifts of the mean over severities, on the shifts and severities that all adapters of a "
    "model met."
)


def section(table: pd.DataFrame) -> Section | None:
    """Adapters by streams, where a model has at least two of them in a stream."""
    pooled = cells(table)
    orders = {"stream": streams(pooled), "model": [MEAN, *model_order(table, pooled)]}
    frame = by_stream(table, orders)
    if frame.empty:
        return None
    won = winners(table, frame, orders)
    frame, left_out = bounded(frame, "model", MOST_ROWS)
    change = frame["change"].notna().any()
    figure = Figure(
        title="Adapters by streams",
        caption=f"{CAPTION} The difference to none is in points of accuracy.{left_out}",
        frame=frame if change else frame.drop(columns="change"),
        kind="heatmap",
        x="stream",
        y="adapter",
        value=("accuracy", "change") if change else ("accuracy",),
        low="low",
        high="high",
        select=("model",),
        limits=(0.0, 1.0),
        diverging=("change",) if change else (),
        labels={"change": "difference to none", "n": "images"},
    )
    caption = f"{CAPTION} The margin is the winner’s accuracy minus that of the next best; its interval is {_how(won)}."
    won = won if won["images"].notna().any() else won.drop(columns="images")
    if (won["clear"] == "tie").any():
        caption += " A tie goes to the adapter that does not learn."
    listing = Listing("Winners", caption, won, LABELS)
    text = "Which adapter wins in each stream and under each shift, and by how much."
    return Section.of("Methods", text, figure, paper.figure(table), listing)


def by_stream(table: pd.DataFrame, orders: dict[str, list[str]]) -> pd.DataFrame:
    """One row per model, stream and adapter with the difference to the unadapted model, which is first of all MEAN."""
    frame = pool(_with_mean(summed(table, "matched_accuracy")), ["model", "stream", "adapter"])
    without = frame[frame["adapter"] == NONE].set_index(["model", "stream"])["value"]
    base = without.reindex(pd.MultiIndex.from_frame(frame[["model", "stream"]])).to_numpy()
    frame["change"] = (frame["value"] - base).where(frame["adapter"] != NONE)
    frame = in_order(frame, ["model", "adapter", "stream"], orders).rename(columns={"value": "accuracy"})
    return frame[["model", "adapter", "stream", "accuracy", "change", "low", "high", "n"]]


def winners(table: pd.DataFrame, frame: pd.DataFrame, orders: dict[str, list[str]]) -> pd.DataFrame:
    """One row per model and stream: the winner, the next best, and the margin between them."""
    rows = _with_mean(named(table, "adapter_margin")).rename(columns={"value": "margin", "against": "next"})
    kept = ["model", "stream", "adapter", "next", "margin", "low", "high", "tied", "seeds", "images"]
    rows = rows.reindex(columns=kept)
    rows = in_order(rows, ["model", "stream"], orders)
    accuracy = frame[["model", "stream", "adapter", "accuracy"]]
    rows = rows.merge(accuracy, on=["model", "stream", "adapter"], how="left").rename(columns={"adapter": "winner"})
    clear = np.where(rows["low"].isna(), "", np.where(rows["low"] > 0, "yes", "no"))
    rows["clear"] = np.where(rows["tied"] > 0, "tie", clear)
    return rows[["model", "stream", "winner", "accuracy", "next", "margin", "low", "high", "clear", "seeds", "images"]]


def _how(won: pd.DataFrame) -> str:
    """Return what the intervals of the margins are over."""
    if (seeds := won["seeds"].max()) > 1:
        return f"over {seeds:g} seeds, Student’s t"
    if won["images"].isna().all():
        return "that of two shares, for there is one seed"
    rest = "" if won["images"].notna().all() else ", and that of two shares where no number of images is given"
    return f"paired over images, for there is one seed{rest}"


def _with_mean(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows without a model are the mean over models."""
    rows = rows.astype(dict.fromkeys(["model", "stream", "adapter", "shift"], "str"))
    return rows.assign(model=rows["model"].replace("", MEAN))
