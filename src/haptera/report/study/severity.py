"""How accuracy falls as a shift grows: a line per model and adapter, for one shift or the mean over shifts."""

import pandas as pd

from haptera.report.figure import Figure
from haptera.report.section import Section
from haptera.report.study.cells import (
    CLEAN,
    adapters,
    cells,
    clean,
    in_order,
    led_by,
    models_after_adapters,
    pool,
    shifted,
    streams,
)
from haptera.report.study.findings import model_order
from haptera.report.thin import bounded

MEAN = "mean over shifts"
BEST, WORST = 3, 2
MOST_ROWS = 100_000
LINE = ["stream", "shift", "model", "adapter"]
DASHES = 4
"""Adapters that dashes tell apart while colours stand for models."""
TEXT = "How far accuracy falls as each shift grows."
CAPTION = (
    "Severity 0 is clean data. The mean over shifts takes, at each severity, the shifts measured there. Bands are 95 % "
    "intervals (for means: the mean of interval ends), drawn for at most ten lines."
)


def section(table: pd.DataFrame) -> Section | None:
    """Accuracy against severity, where a stream has at least two severities."""
    frame = against_severity(table)
    if frame.empty:
        return None
    frame, left_out = bounded(frame, "stream", MOST_ROWS)
    if frame["adapter"].nunique() > DASHES or frame["model"].nunique() == 1:
        return Section("Severity", TEXT, (_by_adapter(frame, left_out, table),))
    models = list(frame["model"].unique())
    few = models if len(models) <= BEST + WORST else models[:BEST] + models[-WORST:]
    chosen = f" At first the {BEST} best and the {WORST} worst models are shown." if len(few) < len(models) else ""
    figure = Figure(
        title="Accuracy against severity",
        caption=CAPTION + chosen + left_out,
        frame=frame,
        kind="line",
        x="severity",
        y="accuracy",
        low="low",
        high="high",
        color=("model",),
        palette=models_after_adapters(table, models),
        dash="adapter",
        select=("stream", "shift"),
        choose="model",
        start={"model": few},
        limits=(0.0, 1.0),
        labels={"n": "images"},
    )
    return Section("Severity", TEXT, (figure,))


def _by_adapter(frame: pd.DataFrame, left_out: str, table: pd.DataFrame) -> Figure:
    """A colour for each adapter, one model at a time: there is one only, or more adapters than dashes tell apart."""
    return Figure(
        title="Accuracy against severity",
        caption=CAPTION + left_out,
        frame=frame,
        kind="line",
        x="severity",
        y="accuracy",
        low="low",
        high="high",
        color=("adapter",),
        palette=adapters(table),
        select=("stream", "shift", *(["model"] if frame["model"].nunique() > 1 else [])),
        limits=(0.0, 1.0),
        labels={"n": "images"},
    )


def against_severity(table: pd.DataFrame) -> pd.DataFrame:
    """Cells with a severity, the mean over shifts, and clean data as severity 0 of each."""
    pooled = cells(table)
    rows = pooled[pooled["severity"].notna() & pooled["shift"].ne(CLEAN)]
    counts = shifted(rows).groupby("stream")["severity"].nunique()
    rows = rows[rows["stream"].isin(counts.index[counts > 1])]
    if rows["shift"].nunique() > 1:
        mean = pool(rows, ["stream", "model", "adapter", "severity"]).assign(shift=MEAN)
        rows = pd.concat([mean, rows])
    unshifted = rows[LINE].drop_duplicates().merge(clean(table), on=["model", "adapter"]).assign(severity=0.0)
    # A shift measured at severity 0 speaks for itself; clean data stands in for the others.
    frame = pd.concat([rows, unshifted]).drop_duplicates([*LINE, "severity"])
    orders = {
        "stream": streams(pooled),
        "shift": led_by([MEAN], frame["shift"].unique()),
        "model": model_order(table, pooled),
    }
    frame = in_order(frame, [*LINE, "severity"], orders).rename(columns={"value": "accuracy"})
    return frame[[*LINE, "severity", "accuracy", "low", "high", "n"]]
