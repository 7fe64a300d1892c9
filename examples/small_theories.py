"""The small theories behind adaptation, each as a frame and a figure on one page.

Run it as `python examples/small_theories.py [FOLDER]`; with a folder, it writes `theories.html` there.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from haptera.adapters.prior import Statistics, prior_curve
from haptera.theory.collapse import trajectory
from haptera.theory.figures import collapse_figure, phase_figure, prior_figure, write_figures
from haptera.theory.two_points import phase_diagram


def main(folder: Path | None) -> None:
    """Temperatures that are safe, entropy minimisation that collapses, and the best prior for batches of n."""
    phases = phase_diagram(np.geomspace(0.01, 10, 25))
    forgotten = phases[phases["collapsed"]]
    print(f"two points: {len(forgotten)} of {len(phases)} pairs of temperatures collapse,", end=" ")
    print(f"{int(forgotten['safe'].sum())} of them where none was promised")
    runs = pd.concat([trajectory(condition, steps=60_000) for condition in (1, 2)])
    for condition, run in runs.groupby("condition"):
        values = run["accuracy"]
        print(f"collapse, condition {condition}: accuracy {values.iloc[0]:.3f}, at best {values.max():.3f}", end=", ")
        print(f"in the end {values.iloc[-1]:.3f}; scale x {run['size'].iloc[-1] / run['size'].iloc[0]:.1f}")
    source, target = Statistics(np.zeros(1), np.ones(1)), Statistics(np.full(1, 0.5), np.full(1, 1.5))
    curves = pd.concat([prior_curve(source, target, n) for n in (1, 8, 64)])
    for n, curve in curves.groupby("n"):
        best = curve.loc[curve["simulated"].idxmin()]
        print(f"prior: for batches of {n}, N = {best['prior']:g} brings statistics nearest to the target's")
    if folder is not None:
        write_figures([phase_figure(phases), collapse_figure(runs), prior_figure(curves)], folder / "theories.html")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
