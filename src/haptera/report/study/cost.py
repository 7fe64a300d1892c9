"""What an adapter costs: seconds per image, beside the accuracy it buys."""

import pandas as pd

from haptera.report.figure import Figure
from haptera.report.section import Listing, Section
from haptera.report.study.cells import NONE, adapters, cells, in_order, means, pool, streams, summed

MEASURE, RELATIVE = "seconds_per_image", "relative_seconds"
LABELS = {
    "milliseconds": "ms per image",
    "per_second": "images per second",
    "relative": "times none",
    "accuracy": "accuracy under shift",
}


def section(table: pd.DataFrame) -> Section | None:
    """Time per image, and accuracy against it where accuracy was measured."""
    frame = costs(table)
    if frame.empty:
        return None
    caption = (
        "Time is the mean over all cells and seeds, without the first batch of a cell, on the machine of the settings."
    )
    compared = " “Times none” compares with the same model unadapted, on the same images: the mean over streams."
    read = frame.drop(columns=["low", "high"], errors="ignore")
    listing = Listing("Time per image", caption + compared, read, LABELS)
    drawn = frame.dropna(subset="accuracy") if "accuracy" in frame else frame[:0]
    if drawn.empty:
        return Section("Cost", "What each adapter costs.", tables=(listing,))
    stream = streams(cells(table))[0]
    figure = Figure(
        title="Accuracy against time per image",
        caption=f"Accuracy is the mean over shifts in the stream {stream}; bars are its interval. {caption}",
        frame=drawn.reset_index(drop=True),
        kind="scatter",
        x="milliseconds",
        y="accuracy",
        low="low",
        high="high",
        color=("adapter",),
        palette=adapters(table),
        names="model" if drawn["model"].nunique() > 1 else None,
        log_x=True,
        limits=(0.0, 1.0),
        labels=LABELS,
    )
    return Section("Cost", "What each adapter costs, and what it buys.", (figure,), (listing,))


def costs(table: pd.DataFrame) -> pd.DataFrame:
    """One row per model and adapter: time per image, and mean accuracy under shift if there is any."""
    seconds = in_order(pool(summed(table, MEASURE), ["model", "adapter"]), ["model", "adapter"], {})
    frame = seconds[["model", "adapter"]].assign(
        milliseconds=1000 * seconds["value"], per_second=1 / seconds["value"].where(seconds["value"] > 0)
    )
    ratios = pool(summed(table, RELATIVE), ["model", "adapter"]).rename(columns={"value": "relative"})
    frame = frame.merge(ratios[["model", "adapter", "relative"]], on=["model", "adapter"], how="left")
    compared = frame["model"].isin(ratios["model"]) & (frame["adapter"] == NONE)
    frame["relative"] = frame["relative"].mask(compared, 1.0)
    rows = means(table)
    rows = rows[rows["stream"].isin(streams(cells(table))[:1])]
    if rows.empty:
        return frame
    mean = rows[["model", "adapter", "value", "low", "high"]].rename(columns={"value": "accuracy"})
    return frame.merge(mean, on=["model", "adapter"], how="left")
