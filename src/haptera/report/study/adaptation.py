"""What goes on inside adapters along a stream, whether they collapse, and what they forget."""

import pandas as pd

from haptera import catalog
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section
from haptera.report.study.cells import CLEAN, NONE, adapters, cells, in_order, led_by, named, pool, summed
from haptera.report.study.findings import model_order
from haptera.report.study.time import LINE, streams_in_parts
from haptera.report.thin import FEWEST, bounded, over_steps

MOST_POINTS = 60_000
WORDS = {
    "kept": "share of samples learnt from",
    "resets": "resets so far",
    "loss": "loss",
    "change": "change of the weights",
    "skipped": "steps not learnt from",
    "entropy": "entropy of the mean prediction of a batch",
    "shift_size": "size of the shift",
    "largest": "largest class in the mean prediction of a batch",
    "largest_class_share": "share of the largest class",
    "mean_prediction_entropy": "entropy of the mean prediction",
}
"""What a record is called on the page, in the order of the dropdown; others follow under their own names."""
SIGNS = ("largest_class_share", "mean_prediction_entropy")


def section(table: pd.DataFrame) -> Section | None:
    """Records and signs of collapse along the stream, where a model was adapted; collapse and forgetting as tables."""
    ours = set(catalog.entries("measures")) - set(SIGNS)
    # A record of one layer has a colon in its name; the section about shifts shows those.
    records = [name for name in table["measure"].unique() if name not in ours and ":" not in name]
    points, left_out = along(table, records)
    adapted = not points.empty and (points["adapter"] != NONE).any()
    figures = (_figure(points, left_out, table),) if adapted else ()
    tables = [_collapse(named(table, "collapse")), _forgetting(summed(table, "forgetting"))]
    listings = tuple(listing for listing in tables if listing is not None)
    if not figures and not listings:
        return None
    text = "What adapters report while they learn, the signs of a collapse that need no labels, and what was lost."
    return Section("Adaptation", text, figures, listings)


def _figure(points: pd.DataFrame, left_out: str, table: pd.DataFrame) -> Figure:
    counts = points.groupby("model")["adapter"].nunique()
    best = sorted(filter(counts.__contains__, model_order(table, cells(table))), key=lambda model: -counts[model])
    return Figure(
        title="Inside the adapters",
        caption="Each point is a window of batches, placed at its last step; seeds are averaged. One class that takes "
        "more and more of the predictions, or a falling entropy of their mean, is a sign of collapse." + left_out,
        frame=points,
        kind="line",
        x="step",
        y="value",
        color=("adapter",),
        palette=adapters(table),
        select=("shown", "stream", "model"),
        start={"model": best[0]} if best else {},
        labels={"shown": "show"},
        quantity="shown",
    )


def along(table: pd.DataFrame, names: list[str]) -> tuple[pd.DataFrame, str]:
    """The points of every record that has steps, and what was left out."""
    kept = [named(table, name).dropna(subset="step").assign(shown=WORDS.get(name, name)) for name in names]
    kept = [rows for rows in kept if not rows.empty]
    if not kept:
        return pd.DataFrame(), ""
    lines = ["shown", *LINE]
    parted = [streams_in_parts(part)[0] for part in kept]
    every = pd.concat([part.astype(dict.fromkeys(LINE, "str")) for part in parted])
    longest = every.groupby("stream")["step"].max().sort_values(ascending=False, kind="stable")
    shifted = every.loc[every["shift"] != CLEAN, "stream"].unique()
    lively = [stream for stream in longest.index if stream in shifted]  # a reader does not open on clean data
    orders = {
        "shown": led_by(WORDS.values(), every["shown"].unique()),
        "stream": led_by(lively, longest.index),
    }
    order = in_order(every[lines].drop_duplicates(), ["stream", "shown", "model", "adapter"], orders)
    shown, left_out = bounded(order, "stream", MOST_POINTS // FEWEST)
    if left_out:
        every = every[every["stream"].isin(shown["stream"].unique())]
    points, _ = over_steps(every, lines, MOST_POINTS)
    points = in_order(points, [*lines, "step"], orders)
    return points[[*lines, "step", "value"]], left_out


def _collapse(rows: pd.DataFrame) -> Listing | None:
    if rows.empty or "against" not in rows:
        return None
    by = ["model", "stream", "adapter", "against"]
    fell = rows["value"] > 0
    groups = rows.assign(fell=fell).groupby(by, observed=True)
    frame = groups.agg(
        runs=("fell", "size"), collapsed=("fell", "sum"), first=("step", "min"), share=("value", "mean")
    ).reset_index()
    places = rows[fell].sort_values("value", ascending=False)
    if "part" in places:
        worst = places.dropna(subset="part").drop_duplicates(by).set_index(by)["part"].rename("worst")
        frame = frame.join(worst, on=by)
    frame = frame.astype(dict.fromkeys(by, "str"))
    frame = frame.sort_values(["share", *by], ascending=[False, True, True, True, True], ignore_index=True)
    caption = (
        f"{int(fell.sum()):,} of {len(rows):,} runs stay below what they are compared with for good, by more than the "
        "interval: “none” is the unadapted model, another name the parent that does not learn. A run is one cell; the "
        "step is the first of all runs, the share is that of the steps below, 0 for a run that never collapses."
    )
    labels = {"first": "first step", "share": "share below", "worst": "worst part"}
    return Listing("Collapse", caption, frame.dropna(axis=1, how="all"), labels)


def _forgetting(rows: pd.DataFrame) -> Listing | None:
    if rows.empty:
        return None
    by = ["model", "stream", "adapter"]
    frame = pool(rows, by).rename(columns={"value": "lost"})
    caption = (
        "Accuracy on clean data at the end of a stream, the unadapted model’s minus the adapted one’s; negative where "
        "adaptation has helped there too. Parts and seeds are averaged, and so are the ends of the intervals."
    )
    frame = frame.sort_values(["lost", *by], ascending=[False, True, True, True], ignore_index=True)
    return Listing("Forgetting", caption, frame, {"n": "images"})
