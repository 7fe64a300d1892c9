"""Summary: the scores of a pose model in a few lines of text."""

import pandas as pd

CELL = ["model", "stream", "shift", "severity", "adapter"]


def overall(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of all parts and individuals together."""
    return rows[(rows["part"] == "") & (rows["individual"] == "")]


def lines(rows: pd.DataFrame, threshold: float) -> list[str]:
    """Both scores of every cell with intervals; parts and individuals too, where there is one cell only."""
    every = overall(rows)
    cells = every[CELL].drop_duplicates().sort_values(CELL)
    found = []
    for _, cell in cells.iterrows():
        shift = f"{cell['shift']} {cell['severity']:g}" if cell["severity"] > 0 else cell["shift"]
        name = " · ".join(word for word in (cell["stream"], shift, cell["adapter"]) if word)
        own = every[(every[CELL].fillna(-1) == cell.fillna(-1)).all(axis=1)]
        found.append(f"{name:<44} {_text(own, threshold)}")
    if len(cells) > 1:
        return found
    for column in ("part", "individual"):
        names = rows.loc[rows[column] != "", column].unique()
        found += [f"  {name:<42} {_text(rows[rows[column] == name], threshold)}" for name in names]
    return found


def _text(rows: pd.DataFrame, threshold: float) -> str:
    words = []
    for measure, label in (("normalised_error", "error"), ("pck", f"PCK@{threshold:g}")):
        row = rows[rows["measure"] == measure].iloc[0]
        known = row["low"] == row["low"]
        words.append(f"{label} {row['value']:.3f}" + (f" ({row['low']:.3f} .. {row['high']:.3f})" if known else ""))
    return "   ".join(words)
