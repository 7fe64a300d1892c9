"""Which adapter wins in which stream, by how much, and whether that would last with other seeds.

Adapters are compared on the shifts and severities that all of them met, with the mean over shifts of the mean over
severities. The margin of the winner over the next has an interval over seeds (Student's t of the differences, seed by
seed); with one seed it is √(a² + b²), a and b the mean half-widths of the two intervals, which does not shrink with the
number of shifts. The winner is chosen by the same numbers, so a narrow margin flatters it.
"""

import numpy as np
import pandas as pd

from holdfast.report.cells import NONE, average, cells, in_order, named, pool, shifted, streams
from holdfast.report.figure import Figure
from holdfast.report.findings import model_order
from holdfast.report.listing import Listing
from holdfast.report.section import Section
from holdfast.report.thin import bounded

MEAN = "mean over models"
MOST_ROWS = 50_000
RUN = ["model", "stream", "adapter", "seed"]
LABELS = {"next": "next best", "clear": "above 0"}
CAPTION = (
    "Accuracy is the mean over shifts of the mean over severities, on the shifts and severities that all adapters of a "
    "model met."
)


def section(table: pd.DataFrame) -> Section | None:
    """Adapters by streams, where a model has at least two of them in a stream."""
    runs = compared(table)
    if runs.empty:
        return None
    pooled = cells(table)
    orders = {"stream": streams(pooled), "model": [MEAN, *model_order(pooled)]}
    frame, left_out = bounded(by_stream(runs, orders), "model", MOST_ROWS)
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
    seeds = runs["seed"].nunique()
    how = f"over {seeds} seeds, Student’s t" if seeds > 1 else "that of two shares, for there is one seed"
    caption = f"{CAPTION} The margin is the winner’s accuracy minus that of the next best; its interval is {how}."
    listing = Listing("Winners", caption, margins(in_order(runs, ["model", "stream"], orders)), LABELS)
    return Section("Methods", "Which adapter wins in each stream, and by how much.", (figure,), (listing,))


def compared(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy per model, stream, adapter and seed on what all adapters of a model met; and the mean over models.

    A mean over models takes those that have every adapter of the stream; it needs two of them.
    """
    rows = shifted(pool(named(table, "accuracy"), [*RUN, "shift", "severity"]))
    place = ["model", "stream", "seed"]
    adapters = rows.groupby(["model", "stream"])["adapter"].transform("nunique")
    met = rows.groupby([*place, "shift", "severity"], dropna=False)["adapter"].transform("nunique")
    rows = rows[(adapters > 1) & (met == adapters)]
    if rows.empty:
        return rows
    runs = average(rows, RUN).drop(columns="shifts")
    known = runs.groupby("stream")["adapter"].transform("nunique")
    whole = runs[runs.groupby(place, dropna=False)["adapter"].transform("nunique") == known]
    several = whole[whole.groupby(["stream", "seed"], dropna=False)["model"].transform("nunique") > 1]
    means = pool(several, ["stream", "adapter", "seed"]).assign(model=MEAN)
    return pd.concat([means, runs], ignore_index=True)[runs.columns]


def by_stream(runs: pd.DataFrame, orders: dict[str, list[str]]) -> pd.DataFrame:
    """One row per model, stream and adapter, seeds pooled, with the difference to the unadapted model."""
    frame = pool(runs, ["model", "stream", "adapter"])
    without = frame[frame["adapter"] == NONE].set_index(["model", "stream"])["value"]
    base = without.reindex(pd.MultiIndex.from_frame(frame[["model", "stream"]])).to_numpy()
    frame["change"] = (frame["value"] - base).where(frame["adapter"] != NONE)
    frame = in_order(frame, ["model", "adapter", "stream"], orders).rename(columns={"value": "accuracy"})
    return frame[["model", "adapter", "stream", "accuracy", "change", "low", "high", "n"]]


def margins(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per model and stream: the winner, the next best, and the margin between them."""
    found = []
    for (model, stream), own in runs.groupby(["model", "stream"], sort=False):
        wide = own.pivot(index="seed", columns="adapter", values="value").dropna()
        if wide.empty:
            continue
        ranked = wide.mean().sort_values(ascending=False, kind="stable")
        best, second = (str(name) for name in ranked.index[:2])
        change = (wide[best] - wide[second]).to_numpy(float)
        half = _t_half(change) if len(change) > 1 else _binomial_half(own, best, second)
        margin = float(change.mean())
        row = {"model": model, "stream": stream, "winner": best, "accuracy": ranked.iloc[0], "next": second}
        row |= {"margin": margin, "low": margin - half, "high": margin + half}
        clear = "" if np.isnan(half) else "yes" if margin > half else "no"
        found.append(row | {"clear": clear, "seeds": len(change)})
    return pd.DataFrame(found)


def _t_half(change: np.ndarray) -> float:
    from scipy.special import stdtrit  # Student's t without scipy.stats, which is slow to import

    return float(stdtrit(len(change) - 1, 0.975) * change.std(ddof=1) / np.sqrt(len(change)))


def _binomial_half(own: pd.DataFrame, *adapters: str) -> float:
    halves = own.assign(half=(own["high"] - own["low"]) / 2).groupby("adapter")["half"].mean()
    return float(np.hypot(*(halves[name] for name in adapters)))
