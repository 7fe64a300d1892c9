"""Accuracy against severity, a panel for each family and table of constants, as the evidence on shifts shows it.

    python experiments/accuracy_by_severity.py [--draw]

Runs `examples/accuracy_by_severity.py`, which says what it needs, and writes `accuracy_by_severity.csv`, `.txt` and
`.svg` into `docs/evidence/results`. `--draw` draws the picture again from the CSV that is there.
"""

import sys
from pathlib import Path

import pandas as pd
from matplotlib.ticker import PercentFormatter

from charts import COLOURS, RESULTS, figure, label_ends, run_example, save
from haptera.catalog import entries, find

NAME = "accuracy_by_severity"
FAMILIES = ("noise", "blur", "weather", "digital")
TABLES = {"imagenet": "constants of ImageNet-C", "cifar": "constants of CIFAR-10-C"}


def draw(source: Path, picture: Path) -> None:
    frame = pd.read_csv(source)
    clean = frame[frame["stream"] == "clean"]
    drawing = figure(7.6, 7.2)
    panels = drawing.subplots(len(FAMILIES), len(TABLES), sharex=True, sharey=True)
    panels[0][0].set(ylim=(0, 1), xlim=(0, 5))
    panels[0][0].yaxis.set_major_formatter(PercentFormatter(1))
    for row, family in zip(panels, FAMILIES, strict=True):
        names = [name for name in entries("shifts") if find("shifts", name).family == family]
        for axes, table in zip(row, TABLES, strict=True):
            ends = {}
            for name, colour in zip(names, COLOURS, strict=False):
                own = frame[(frame["stream"] == table) & (frame["shift"] == name)]
                points = pd.concat([clean, own]).sort_values("severity")
                dashes = "--" if find("shifts", name).holdout else "-"
                axes.plot(points["severity"], points["value"], dashes, color=colour)
                axes.fill_between(points["severity"], points["low"], points["high"], color=colour, alpha=0.14, lw=0)
                ends[name] = (points["value"].iloc[-1], colour)
        label_ends(row[-1], ends, gap=0.11)
        row[0].set_ylabel(f"{family}\naccuracy")
    for axes, title in zip(panels[0], TABLES.values(), strict=True):
        axes.set_title(title)
    drawing.supxlabel("severity; dashed: hold-out")
    save(drawing, picture)


if __name__ == "__main__":
    again = "--draw" in sys.argv[1:]
    table = RESULTS / f"{NAME}.csv" if again else run_example("accuracy_by_severity.py", NAME)
    draw(table, RESULTS / f"{NAME}.svg")
