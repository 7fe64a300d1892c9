"""Calibration in a study: the reliability diagram, and in numbers whether confidence can be believed."""

import numpy as np
import pandas as pd

from haptera.measures.averages import over_shifts
from haptera.measures.calibration import BINS
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section
from haptera.report.study.cells import adapters, cells, in_order, led_by, named, shifted, streams, summed
from haptera.report.study.findings import model_order
from haptera.report.thin import bounded
from haptera.statistics.intervals import wilson

SCORES = ("expected_calibration_error", "brier_score", "negative_log_likelihood")
ALL = "all shifts"
MOST_ROWS = 60_000
LINE = ["stream", "shift", "model", "adapter"]
NUMBERS = (
    "Means over shifts of means over severities; of clean data in streams without a shift. The calibration error has "
    "15 bins, the log-likelihood is in nats; lower is better for all three."
)
LABELS = {
    "expected_calibration_error": "calibration error",
    "brier_score": "Brier score",
    "negative_log_likelihood": "log-likelihood, negative",
}


def section(table: pd.DataFrame) -> Section | None:
    """The diagram and the numbers, where probabilities were kept."""
    bins = named(table, "reliability")
    found = {score: rows for score in SCORES if not (rows := summed(table, score)).empty}
    if bins.empty and not found:
        return None
    pooled = cells(table)
    orders = {"stream": streams(pooled), "model": model_order(table, pooled)}
    figures, tables = [], []
    if not bins.empty and "confidence" in bins:
        figures.append(_diagram(*bounded(diagram(bins, orders), "stream", MOST_ROWS), adapters(table)))
    if found:
        tables.append(Listing("Calibration in numbers", NUMBERS, scores(found, orders), LABELS))
    if not figures and not tables:
        return None
    return Section("Calibration", "Whether models are right as often as they say.", tuple(figures), tuple(tables))


def _diagram(frame: pd.DataFrame, left_out: str, palette: tuple[str, ...]) -> Figure:
    counts = frame.groupby("model", sort=False)["adapter"].nunique()
    return Figure(
        title="Accuracy against confidence",
        caption="Each point is a bin of confidence, 15 in all, empty ones left out; severities are pooled, seeds are "
        "averaged. On the dashed line a model is right as often as it says; below it, it says too much. Bands are 95 % "
        "intervals." + left_out,
        frame=frame,
        kind="line",
        x="confidence",
        y="accuracy",
        low="low",
        high="high",
        color=("adapter",),
        palette=palette,
        select=("stream", "shift", "model"),
        start={"model": str(counts.idxmax())},
        limits=(0.0, 1.0),
        labels={"n": "images"},
        diagonal=True,
    )


def diagram(rows: pd.DataFrame, orders: dict[str, list[str]]) -> pd.DataFrame:
    """One row per line and bin that has samples: mean confidence, accuracy with its interval, n."""
    seeds = rows.groupby(["stream", "model", "adapter"], observed=True)["seed"].transform("nunique").clip(lower=1)
    weight = (rows["n"].astype(float) / seeds).to_numpy(float)  # another seed shows the same images
    sums = rows[LINE].assign(
        bin=np.ceil(rows["confidence"].to_numpy(float) * BINS),  # a mean within a bin tells which bin it is
        n=weight,
        right=rows["value"].to_numpy(float) * weight,
        sure=rows["confidence"].to_numpy(float) * weight,
    )
    several = sums.groupby("stream", observed=True)["shift"].transform("nunique") > 1
    sums = pd.concat([sums[several].assign(shift=ALL), sums]).astype(dict.fromkeys(LINE, "str"))
    bins = sums.groupby([*LINE, "bin"], as_index=False)[["n", "right", "sure"]].sum()
    ends = [wilson(right, n) for right, n in zip(bins["right"], bins["n"], strict=True)]
    frame = bins.assign(
        confidence=bins["sure"] / bins["n"],
        accuracy=bins["right"] / bins["n"],
        low=[low for low, _ in ends],
        high=[high for _, high in ends],
        n=bins["n"].round().astype(int),
    )
    orders = orders | {"shift": led_by([ALL], frame["shift"].unique())}
    orders["stream"] = led_by(orders["stream"], frame["stream"].unique())
    return in_order(frame, [*LINE, "bin"], orders)[[*LINE, "confidence", "accuracy", "low", "high", "n"]]


def scores(found: dict[str, pd.DataFrame], orders: dict[str, list[str]]) -> pd.DataFrame:
    """One row per model, stream and adapter with every score there is."""
    by = ["model", "stream", "adapter"]
    columns = {}
    for score, rows in found.items():
        rows = rows.astype(dict.fromkeys([*by, "shift"], "str"))
        moved = shifted(rows)
        still = rows[~rows["stream"].isin(moved["stream"].unique())]
        numbers = pd.concat([moved, still])[[*by, "shift", "severity", "value", "low", "high", "n"]]
        columns[score] = over_shifts(numbers, by).set_index(by)["value"]
    frame = pd.DataFrame(columns).reset_index()
    orders = orders | {"stream": led_by(orders["stream"], frame["stream"].unique())}
    return in_order(frame, by, orders)
