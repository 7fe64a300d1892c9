"""Which model breaks under which shift: a heatmap, for each adapter and for its difference to none."""

import pandas as pd

from haptera.report.figure import Figure
from haptera.report.section import Section
from haptera.report.study.cells import CLEAN, KEYS, cells, clean, in_order, led_by, pool, shifted, streams
from haptera.report.study.findings import model_order
from haptera.report.thin import bounded

MEAN_SHIFT = "mean over shifts"
MEAN_SEVERITY = "mean over severities"
MOST_ROWS = 100_000
PICTURE = ["stream", "adapter", "severity"]
COLUMNS = [*PICTURE, "model", "shift", "accuracy", "change", "low", "high", "n"]


def section(table: pd.DataFrame) -> Section | None:
    """Models by shifts, where there is accuracy on shifted data."""
    frame = by_shift(table)
    if frame.empty:
        return None
    frame, left_out = bounded(frame, "stream", MOST_ROWS)
    caption = "Models that hold up best come first."
    shown: tuple[str, ...] = ("accuracy",)
    if frame["change"].notna().any():
        shown = ("accuracy", "change")
        caption += " The difference to none is taken over the cells and seeds that have both."
    else:
        frame = frame.drop(columns="change")
    figure = Figure(
        title="Accuracy of each model under each shift",
        caption=caption + left_out,
        frame=frame,
        kind="heatmap",
        x="shift",
        y="model",
        value=shown,
        low="low",
        high="high",
        select=tuple(PICTURE),
        limits=(0.0, 1.0),
        diverging=shown[1:],
        labels={"change": "difference to none", "n": "images"},
    )
    return Section("Shifts", "Where each model holds, and what an adapter changes there.", (figure,))


def by_shift(table: pd.DataFrame) -> pd.DataFrame:
    """Cells at each severity and in the mean over severities, beside clean data and the mean over shifts."""
    changes = cells(table, "adaptation_gain").rename(columns={"value": "change"})
    pooled = cells(table).merge(changes[[*KEYS, "change"]], on=KEYS, how="left")
    rows = shifted(pooled)
    if rows.empty:
        return rows.reindex(columns=COLUMNS)
    frame, severities = _by_severity(rows)
    beside = [frame]
    if frame["shift"].nunique() > 1:
        beside.append(pool(frame, [*PICTURE, "model"]).assign(shift=MEAN_SHIFT))
    lines = frame[[*PICTURE, "model"]].drop_duplicates()
    changed = pool(pooled[pooled["shift"] == CLEAN], ["model", "adapter"])[["model", "adapter", "change"]]
    unshifted = clean(table).merge(changed, on=["model", "adapter"], how="left")
    beside.append(lines.merge(unshifted, on=["model", "adapter"]).assign(shift=CLEAN))
    shifts = led_by([CLEAN], frame["shift"].unique())
    orders = {
        "stream": streams(pooled),
        "severity": severities,
        "model": model_order(table, pooled),
        "shift": [CLEAN, *shifts, MEAN_SHIFT],
    }
    frame = in_order(pd.concat(beside), [*PICTURE, "model", "shift"], orders)
    return frame.rename(columns={"value": "accuracy"})[COLUMNS]


def _by_severity(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Severities as names, the mean over them first; a single one is not averaged, a missing one is "any"."""
    levels = [f"{level:g}" for level in sorted(rows["severity"].dropna().unique())]
    mean = pool(rows, ["stream", "adapter", "model", "shift"])
    if len(levels) < 2:
        return mean.assign(severity=levels[0] if levels else "any"), levels or ["any"]
    single = rows[rows["severity"].notna()]
    single = single.assign(severity=single["severity"].map("{:g}".format))
    return pd.concat([mean.assign(severity=MEAN_SEVERITY), single]), [MEAN_SEVERITY, *levels]
