"""A walk of CCC: the severities of the corruptions, and the accuracy below them, as the evidence on shifts shows it.

    python experiments/ccc_walk.py [--draw]

Runs `examples/ccc_on_a_trained_model.py`, which says what it needs, and writes `ccc_walk.csv`, `.txt` and `.svg` into
`docs/evidence/results`. `--draw` draws the picture again from the CSV that is there.
"""

import sys
from pathlib import Path

import pandas as pd
from matplotlib.ticker import PercentFormatter, StrMethodFormatter

from charts import COLOURS, GRID, INK, RESULTS, figure, run_example, save

NAME = "ccc_walk"
NEAR, MOST = 0.05, 0.5  # of the target: the band; the accuracy at the upper edge


def draw(source: Path, picture: Path) -> None:
    walk = pd.read_csv(source)
    edges = [*walk["start"], 2 * walk["start"].iloc[-1] - walk["start"].iloc[-2]]
    middles = (walk["start"] + pd.Series(edges[1:])) / 2
    drawing = figure(7.6, 4.4)
    above, below = drawing.subplots(2, sharex=True)
    for number, rows in walk.groupby((walk["second"] != walk["second"].shift()).cumsum()):
        if int(str(number)) % 2:
            for axes in (above, below):
                axes.axvspan(edges[rows.index[0]], edges[rows.index[-1] + 1], color=GRID, alpha=0.4, lw=0)
    names = list(dict.fromkeys([*walk["first"].head(1), *walk["second"]]))
    for name, colour in zip(names, COLOURS, strict=False):
        one, two = walk["severity_1"].where(walk["first"] == name), walk["severity_2"].where(walk["second"] == name)
        above.stairs(one.fillna(two), edges, color=colour, label=name.replace("_", " "), baseline=None, lw=1.8)
    target = walk["target"].iloc[0]
    words = f"target {100 * target:.1f} ± {100 * NEAR:g} %"
    below.axhspan(target - NEAR, target + NEAR, color=INK, alpha=0.08, lw=0, label=words)
    below.stairs(walk["expected"], edges, color=COLOURS[0], label="expected", baseline=None, lw=1.8)
    below.plot(middles, walk["accuracy"], color=COLOURS[1], label="found")
    above.set(ylabel="severity", ylim=(0, 5), xlim=(0, edges[-1]))
    below.set(ylabel="accuracy", ylim=(0, MOST), xlabel="images")
    below.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    below.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    for axes in (above, below):
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False)
    save(drawing, picture)


if __name__ == "__main__":
    again = "--draw" in sys.argv[1:]
    table = RESULTS / f"{NAME}.csv" if again else run_example("ccc_on_a_trained_model.py", NAME)
    draw(table, RESULTS / f"{NAME}.svg")
