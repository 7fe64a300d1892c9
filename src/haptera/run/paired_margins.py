"""Paired margins: with one seed, how far ahead the best adapter is, with an interval over the images themselves.

The table has only the two accuracies, and `margins.py` takes them as independent. The cells have every answer: the two
adapters are mostly right and wrong about the same images, so the interval of their difference is far narrower. The unit
is an image, with the mean of its differences over shifts (of the mean over severities), and the interval is Student's
over images; Bonett and Price's where there is a single shift and severity. It is about other images, not about other
seeds. Where the images do not give the margin of the table, or hardly any image tells the two apart, the interval stays
as it is. Costs reading the cells of two adapters for each model and stream.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from haptera.errors import HapteraError
from haptera.families import HELD_OUT
from haptera.measures.images import SAMPLE
from haptera.measures.pairs import NONE, paired_interval
from haptera.measures.shift_means import MIRRORED
from haptera.outputs import Outputs
from haptera.run.cells import CellEntry, cells_of
from haptera.run.ledger import Ledger
from haptera.statistics.intervals import mean_of_units
from haptera.table import Rows

MARGINS = ("adapter_margin", "shift_margin")
PAIR = ("model", "stream", "adapter", "against")
FEWEST = 30
"""Images whose difference is not 0 below which Student's interval over images is not used."""
CLOSE = 1e-9


def pair_margins(ledger: Ledger, rows: Rows) -> Rows:
    """Return rows in which the margins of one seed have intervals over images, and `images` says over how many."""
    margins: dict[tuple[str, ...], list[int]] = {}
    for place, row in enumerate(rows):
        if row["measure"] in MARGINS and row["seeds"] == 1 and row["model"] and row.get("of", "error") in MIRRORED:
            margins.setdefault(tuple(str(row[name]) for name in PAIR), []).append(place)
    paired = list(rows)
    if margins:
        cells: dict[tuple[str, str], list[CellEntry]] = {}
        for cell in cells_of(ledger):
            cells.setdefault((cell.model, cell.stream), []).append(cell)
        for (model, stream, best, second), places in margins.items():
            differences = _differences(ledger, cells.get((model, stream), []), best, second)
            for place in places:
                paired[place] = paired[place] | _interval(differences, paired[place])
    return paired


def _differences(ledger: Ledger, cells: Sequence[CellEntry], best: str, second: str) -> pd.DataFrame:
    """Return a row for each image and a column for each shift and severity; empty where the two do not pair.

    Args:
        ledger: of the study.
        cells: of one model and stream.
        best: an adapter.
        second: another one.
    """
    sides = [[cell for cell in cells if (cell.adapter or NONE) == adapter] for adapter in (best, second)]
    seeds = {cell.seed for cell in sides[0]} & {cell.seed for cell in sides[1]}
    if len(seeds) != 1:
        return pd.DataFrame()
    try:
        one, other = (_answers(ledger, [cell for cell in side if cell.seed in seeds]) for side in sides)
    except HapteraError:  # a damaged cell, or one without labels, which the table leaves out as well
        return pd.DataFrame()
    wide = (one - other).unstack(["shift", "severity"])
    return pd.DataFrame() if wide.isna().to_numpy().any() else wide


def _interval(differences: pd.DataFrame, row: dict[str, Any]) -> dict[str, Any]:
    """Return the interval of a margin over images, where these give the margin."""
    if row["measure"] == "shift_margin" and len(differences):
        tested = [column for column in differences.columns.tolist() if column[0] not in HELD_OUT]
        differences = differences[tested] if tested else differences
    if differences.empty:
        return {}
    units = differences.T.groupby(level="shift").mean().mean().to_numpy()
    if abs(units.mean() - row["value"]) > CLOSE:
        return {}
    if differences.shape[1] == 1:
        low, high = paired_interval(int((units > 0).sum()), int((units < 0).sum()), len(units))
    elif (units != 0).sum() >= FEWEST:
        found = mean_of_units(units)
        low, high = found.low, found.high
    else:
        return {}
    return {"low": max(low, -1.0), "high": min(high, 1.0), "images": len(units)}


def _answers(ledger: Ledger, cells: Iterable[CellEntry]) -> pd.Series:
    """Return whether an answer was right, by image, shift and severity; the mean where an image came several times."""
    frames = []
    for cell in cells:
        outputs = Outputs.load(ledger.path(cell.piece))
        context = outputs.context
        columns = {"image": context.get(SAMPLE, outputs.ids), "right": outputs.correct().astype(float)}
        for name, absent in (("shift", ""), ("severity", np.nan), ("epoch", 0)):
            columns[name] = context.get(name, np.full(len(outputs), absent))
        frames.append(pd.DataFrame(columns))
    frame = pd.concat(frames, ignore_index=True)
    frame = frame[(frame["epoch"] == frame["epoch"].max()) & (frame["shift"] != "clean") & (frame["severity"] != 0)]
    return frame.groupby(["image", "shift", "severity"], dropna=False)["right"].mean()
