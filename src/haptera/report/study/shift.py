"""How large each shift is inside the networks, layer by layer, and what its size predicts: the records of `Watch`."""

import pandas as pd

from haptera.families import FAMILY, HELD_OUT
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section
from haptera.report.study.cells import CLEAN, named, pool, summed
from haptera.statistics.line import ShiftLine

SIZE = "shift_size"
CELL = ["model", "shift", "severity"]
LINES = (
    "For each model a line from size to error through the hold-out corruption of a family and clean data predicts the "
    "error of the family's other corruptions; measured is what labels say. A family whose hold-out corruption was not "
    "watched has none. Inside: the line has seen such sizes."
)


def section(table: pd.DataFrame) -> Section | None:
    """The profile over depth, error against size, and predicted errors, where an adapter recorded sizes."""
    sizes = named(table, SIZE)
    if sizes.empty:
        return None
    watched = cells_with_errors(table, sizes)
    figures = [figure for figure in (_profile(table), _scatter(watched)) if figure is not None]
    predicted = predictions(watched)
    tables = () if predicted.empty else (Listing("Predicted and measured errors", LINES, predicted),)
    text = "How far activations are from what each network was trained on, with no labels needed."
    return Section("Size of the shift", text, tuple(figures), tables) if figures else None


def cells_with_errors(table: pd.DataFrame, sizes: pd.DataFrame) -> pd.DataFrame:
    """`model`, `shift`, `severity`, `size` and `error` (missing without labels), and the family of the shift."""
    own = sizes[["model", "stream", "adapter"]].drop_duplicates()
    errors = summed(table, "error").merge(own.astype("str"), on=["model", "stream", "adapter"])
    frame = pool(sizes, CELL)[[*CELL, "value"]].rename(columns={"value": "size"})
    errors = pool(errors, CELL)[[*CELL, "value"]].rename(columns={"value": "error"})
    frame = frame.merge(errors, on=CELL, how="left")
    return frame.assign(family=frame["shift"].map(FAMILY).fillna(frame["shift"]))


def predictions(watched: pd.DataFrame) -> pd.DataFrame:
    """One row for each shift of a family whose hold-out corruption was watched at two severities or more."""
    rows = []
    known = watched.dropna(subset="error")
    for model, own in known.groupby("model", observed=True):
        start = own[own["shift"] == CLEAN]
        for family, group in own.groupby("family"):
            held = group[group["shift"].isin(HELD_OUT)]
            fitted = pd.concat([start, held])
            if len(held) < 2 or len(fitted) < 3 or fitted["size"].nunique() < 2:
                continue
            line = ShiftLine.fit(fitted["size"].to_numpy(), fitted["error"].to_numpy())
            for _, row in group[~group["shift"].isin(HELD_OUT)].iterrows():
                predicted = line.predict(row["size"])
                found = {"model": model, "family": family, "shift": row["shift"], "severity": row["severity"]}
                found |= {"size": row["size"], "predicted": predicted}
                rows.append(found | {"measured": row["error"], "inside": line.inside(row["size"])})
    return pd.DataFrame(rows)


def _profile(table: pd.DataFrame) -> Figure | None:
    names = [name for name in table["measure"].unique() if str(name).startswith(f"{SIZE}:")]
    if not names:
        return None
    parts = [
        pool(named(table, name), CELL).assign(layer=name.partition(":")[2], depth=depth)
        for depth, name in enumerate(names)
    ]
    frame = pd.concat(parts, ignore_index=True).rename(columns={"value": "size"})
    clean, others = frame[frame["shift"] == CLEAN], frame[frame["shift"] != CLEAN]
    if not others.empty:  # clean data is severity 0 of every shift
        start = clean.drop(columns="shift").merge(others[["model", "shift"]].drop_duplicates(), on="model")
        frame = pd.concat([start, others], ignore_index=True)
    frame = frame.sort_values([*CELL, "depth"], ignore_index=True, na_position="first")
    frame["severity"] = frame["severity"].fillna(0).map("{:g}".format)
    return Figure(
        title="Size over depth",
        caption="BatchNorm layers in the order of the model, the first at the left; severity 0 is clean data. The size "
        "is the distance of a batch's statistics from those of training, in deviations of training, less what chance "
        "gives.",
        frame=frame[[*CELL, "depth", "layer", "size"]],
        kind="line",
        x="depth",
        y="size",
        color=("severity",),
        select=("model", "shift"),
    )


def _scatter(watched: pd.DataFrame) -> Figure | None:
    frame = watched.dropna(subset="error")
    if len(frame) < 3:
        return None
    return Figure(
        title="Error against size",
        caption="Each point is one shift at one severity; points of a family lie near a line.",
        frame=frame[["model", "family", "shift", "severity", "size", "error"]],
        kind="scatter",
        x="size",
        y="error",
        color=("family",),
        select=("model",),
        limits=(0.0, 1.0),
        labels={"size": "size of the shift"},
    )
