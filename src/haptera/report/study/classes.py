"""Which classes a shift attracts: those that are predicted more often, or less often, than they would be right."""

import pandas as pd

from haptera.report.figure import Figure
from haptera.report.section import Section
from haptera.report.study.cells import cells, in_order, led_by, named, streams
from haptera.report.study.findings import model_order
from haptera.report.thin import bounded

MOST_ROWS = 60_000
MOST_CLASSES = 20
PICTURE = ["stream", "severity", "model", "adapter"]
NUMBERS = ["difference", "predicted", "actual", "low", "high"]


def section(table: pd.DataFrame) -> Section | None:
    """Classes by shifts, where predictions and labels are known."""
    rows = named(table, "class_attraction")
    if rows.empty or "class" not in rows:
        return None
    frame, left_out = bounded(attraction(rows, table), "stream", MOST_ROWS)
    hardest = frame[frame["stream"] == frame["stream"].iloc[0]]["severity"].iloc[-1]
    figure = Figure(
        title="Classes that shifts attract",
        caption="Share of images predicted as a class minus the share for which it would be right; blue is predicted "
        f"too often. At most {MOST_CLASSES} classes are shown, those with the largest difference; a cell keeps ten, "
        "and where a field is empty the difference is smaller than theirs. Seeds are averaged." + left_out,
        frame=frame,
        kind="heatmap",
        x="shift",
        y="class",
        value=("difference",),
        low="low",
        high="high",
        select=tuple(PICTURE),
        start={"severity": str(hardest)},
        diverging=("difference",),
        labels={"n": "images", "actual": "would be right"},
    )
    return Section("Classes", "What a model says when it is wrong.", (figure,))


def attraction(rows: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """The classes with the largest differences in each picture, seeds averaged, what a seed did not keep being 0."""
    text = [*PICTURE[:1], *PICTURE[2:], "shift"]
    rows = rows.astype(dict.fromkeys(text, "str")).rename(columns={"value": "difference"})
    rows["severity"] = rows["severity"].map("{:g}".format).replace("nan", "any")
    cell = [*PICTURE, "shift"]
    seeds = rows.groupby(cell)["seed"].nunique().clip(lower=1).rename("seeds")
    groups = rows.groupby([*cell, "class"])
    frame = groups[NUMBERS].sum().join(groups["n"].sum()).reset_index().join(seeds, on=cell)
    frame[NUMBERS] = frame[NUMBERS].div(frame["seeds"], axis=0)
    frame["n"] = (frame["n"].astype(float) / frame["seeds"]).round().astype("Int64")  # seeds show the same images
    largest = frame["difference"].abs().groupby([frame[name] for name in [*PICTURE, "class"]]).transform("max")
    rank = largest.groupby([frame[name] for name in PICTURE]).rank(method="dense", ascending=False)
    frame = frame[rank <= MOST_CLASSES]
    pooled = cells(table)
    orders = {
        "stream": led_by(streams(pooled), frame["stream"].unique()),
        "severity": sorted(frame["severity"].unique(), key=lambda level: float(level) if level != "any" else -1.0),
        "model": model_order(table, pooled),
        "class": sorted(frame["class"].unique()),
    }
    frame = in_order(frame, [*PICTURE, "class", "shift"], orders)
    names = rows.dropna(subset="class_name").set_index("class")["class_name"].to_dict() if "class_name" in rows else {}
    frame["class"] = [str(names.get(number, int(number))) for number in frame["class"]]
    return frame[[*PICTURE, "shift", "class", "difference", "low", "high", "predicted", "actual", "n"]]
