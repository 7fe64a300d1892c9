"""How accuracy moves while a stream goes on: a line per adapter, the shift of the moment shaded behind it."""

import pandas as pd

from haptera.report.figure import Figure
from haptera.report.section import Section
from haptera.report.study.cells import CLEAN, adapters, cells, in_order, led_by, named
from haptera.report.study.findings import model_order
from haptera.report.thin import FEWEST, blocks, bounded, over_steps

MEASURE = "accuracy_over_steps"
LINE = ["stream", "model", "adapter"]
READ = ["step", "severity", "value", "low", "high", "n", "seed", "interleaved"]
MOST_POINTS = 200_000


def section(table: pd.DataFrame) -> Section | None:
    """Accuracy over the steps of a stream, where it was measured."""
    rows = named(table, MEASURE, READ)
    stepless = rows["step"].isna()
    rows = apart(rows[~stepless] if stepless.any() else rows)  # a copy of a million rows is not for nothing
    if rows.empty:
        return None
    points, windows, left_out = over_time(rows, MOST_POINTS)
    caption = (
        "Each point is a window of batches, placed at its last step; bands are 95 % intervals, drawn for at most ten "
        "lines."
    )
    if windows > 1:
        caption += f" Up to {windows} neighbouring windows are averaged, weighted by n, into one point."
    if rows["seed"].nunique() > 1:
        caption += " Seeds are averaged, weighted by n."
    points = flagged(points, named(table, "collapse"))
    if "collapse" in points:
        caption += (
            " A cross marks from where an adapter stays below the unadapted model, or below its parent that does not "
            "learn, for good; with several seeds, where it does in most of them."
        )
    counts = points.groupby("model", observed=True)["adapter"].nunique()
    best = sorted(filter(counts.__contains__, model_order(table, cells(table))), key=lambda model: -counts[model])
    figure = Figure(
        title="Accuracy over time",
        caption=caption + left_out,
        frame=points,
        kind="line",
        x="step",
        y="accuracy",
        low="low",
        high="high",
        color=("adapter",),
        palette=adapters(table),
        select=("stream", "model"),
        bands="shift",
        flags="collapse" if "collapse" in points else None,
        start=opening(points) | ({"model": best[0]} if best else {}),
        limits=(0.0, 1.0),
        labels={"n": "images"},
    )
    return Section("Over time", "What happens while the data keeps changing.", (figure,))


def over_time(rows: pd.DataFrame, most: int) -> tuple[pd.DataFrame, int, str]:
    """The points to draw, how many windows are in one of them at most, and what was left out."""
    rows, parts = streams_in_parts(rows)
    first = rows[[*LINE, "shift"]].iloc[blocks(rows, [*LINE, "shift"]).starts]
    shifts = first.groupby("stream", observed=True)["shift"].nunique().sort_values(ascending=False, kind="stable")
    order = led_by([stream for stream in shifts.index if stream not in parts], shifts.index)  # the liveliest first
    lines = in_order(first[LINE].drop_duplicates().astype("str"), LINE, {"stream": order})
    kept, left_out = bounded(lines, "stream", most // FEWEST)
    if left_out:
        rows = rows[rows["stream"].isin(kept["stream"].unique())]
    points, windows = over_steps(rows, LINE, most)
    points = in_order(points.rename(columns={"value": "accuracy"}), [*LINE, "step"], {"stream": order})
    return points[[*LINE, "step", "shift", "severity", "accuracy", "low", "high", "n"]], windows, left_out


def opening(points: pd.DataFrame, value: str = "accuracy") -> dict[str, str]:
    """Return the stream that the reader sees first: with most shifts, and of those where adapters differ most.

    Nothing is returned where all of it is clean, and the first stream is shown.
    """
    shifts = points[points["shift"] != CLEAN].groupby("stream", observed=True)["shift"].nunique()
    if shifts.empty:
        return {}
    lively = points[points["stream"].isin(shifts.index[shifts == shifts.max()])]
    means = lively.groupby(LINE, observed=True)[value].mean().groupby(["stream", "model"], observed=True)
    return {"stream": str((means.max() - means.min()).groupby("stream", observed=True).max().idxmax())}


def apart(rows: pd.DataFrame) -> pd.DataFrame:
    """Clean batches in between are a stream of their own, or a line would jump between them and the others."""
    if "interleaved" not in rows:
        return rows
    streams, between = rows["stream"].astype("str"), rows["interleaved"].astype("str") == "True"
    return rows.assign(stream=streams.mask(between, streams + ", the clean batches").astype("category"))


def flagged(points: pd.DataFrame, falls: pd.DataFrame) -> pd.DataFrame:
    """The points with a column `collapse` that says from where on an adapter stays below, if one does in most seeds."""
    if "against" not in falls or falls.empty:
        return points
    parts = set(points["stream"]) - set(falls["stream"].astype("str"))
    names = _part_names(falls)
    falls = falls.assign(stream=names.where(names.isin(parts), falls["stream"].astype("str")))
    falls = falls.astype({"model": "str", "adapter": "str"})
    runs = falls.groupby([*LINE, "against"])["value"].agg(lambda shares: (shares > 0).mean())
    steps = falls[falls["value"] > 0].groupby([*LINE, "against"])["step"].mean()
    first = steps[runs.reindex(steps.index) > 0.5].astype(float).reset_index().sort_values("step")
    if first.empty:
        return points
    ordered = (
        points[LINE].astype("str").assign(step=points["step"].astype(float), place=points.index).sort_values("step")
    )
    found = pd.merge_asof(first, ordered, on="step", by=LINE, direction="forward").dropna(subset="place")
    words = found.groupby("place")["against"].agg(lambda others: f"below {' and '.join(sorted(others))}, for good")
    return points.assign(collapse=words.reindex(points.index))


def streams_in_parts(rows: pd.DataFrame) -> tuple[pd.DataFrame, set[str]]:
    """Where a stream counts its steps anew under every shift, each shift and severity becomes a stream.

    Such a stream (a fresh adapter for each corruption) has one step more than once for a model and seed.
    """
    if blocks(rows, [*LINE, "seed"]).whole(rows["step"].to_numpy(dtype=float)):
        return rows, set()
    again = rows.duplicated([*LINE, "seed", "step"])
    inside = rows["stream"].isin(rows.loc[again, "stream"].unique())
    if not inside.any():
        return rows, set()
    names = _part_names(rows.loc[inside])
    streams = rows["stream"].astype("str").mask(inside, names.reindex(rows.index))
    return rows.assign(stream=streams.astype("category")), set(names.unique())


def _part_names(rows: pd.DataFrame) -> pd.Series:
    """Return a text such as `corruptions: fog 3`."""
    level = rows["severity"].map("{:g}".format).astype("str")
    names = rows["stream"].astype("str") + ": " + rows["shift"].astype("str") + " " + level
    return names.str.removesuffix(" nan")
