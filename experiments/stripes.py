"""The stripe model: R against the number of points, where features are learnt and where they are not.

    python experiments/stripes.py [FOLDER]

Settings and the range of P are those of `haptera.theory.stripes`, fixed before this was run. It writes `stripes.csv`,
one row for each network, `stripes.txt`, the slopes of log R against log P with 95 % intervals, overall (Student's t
over sizes) and between neighbours, and `stripes.svg` into FOLDER, by default `docs/evidence/results`. It takes a few
minutes.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from charts import RESULTS, Series, charts
from haptera.statistics.power_law import local_slopes, log_average
from haptera.theory.stripes import slope, stripes

SIZES, SEEDS = (500, 1000, 2000, 4000, 8000), (0, 1, 2)


def summary(frame: pd.DataFrame) -> str:
    seeds = frame["seed"].nunique()
    lines = [f"R against P in 30 dimensions, log-averages over {seeds} seeds; the source expects a slope of -1", ""]
    for regime, own in frame.groupby("regime", sort=False):
        law = slope(own)
        lines.append(f"{regime}: slope {law.exponent:.2f} ({law.exponent_low:.2f} to {law.exponent_high:.2f})")
        means = own.groupby("points").agg(R=("R", log_average), error=("error", "mean"), epochs=("epochs", "mean"))
        means["fits"] = own.groupby("points")["fits"].mean()
        means["slope"] = [np.nan, *local_slopes(means.index.to_numpy(), means["R"].to_numpy())]
        lines.append(f"{'P':>8}{'R':>10}{'slope':>8}{'error':>8}{'epochs':>8}{'fitted':>8}")
        for points, row in means.iterrows():
            before = "" if np.isnan(row["slope"]) else f"{row['slope']:.2f}"
            numbers = f"{row['error']:>8.3f}{row['epochs']:>8.0f}{row['fits']:>8.0%}"
            lines.append(f"{points:>8,}{row['R']:>10.4f}{before:>8}{numbers}")
        lines.append("")
    return "\n".join(lines)


def picture(frame: pd.DataFrame, path: Path) -> None:
    """Log-averages of both regimes, and the law that is expected."""
    series = []
    for regime, own in frame.groupby("regime", sort=False):
        means = own.groupby("points")["R"].agg(log_average)
        series.append(Series(str(regime), list(means.index), list(means), "line"))
    first, sizes = series[0].y[0], np.array(series[0].x)
    series.append(Series("1/P", list(sizes), list(first * sizes[0] / sizes), "dashed"))
    charts(path, [("Stripe model, 30 dimensions", "points P", "R", series)])


def main(folder: Path, sizes: tuple[int, ...] = SIZES, seeds: tuple[int, ...] = SEEDS) -> None:
    frame = stripes(sizes, seeds)
    frame.to_csv(folder / "stripes.csv", index=False, float_format="%.5g")
    text = summary(frame)
    (folder / "stripes.txt").write_text(text, encoding="utf-8")
    picture(frame, folder / "stripes.svg")
    print(text, end="")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS)
