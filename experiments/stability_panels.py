"""Relative stability on CIFAR-10 against δ, the cut-off, the interpolation and depth: figures 3 and 14.

    python experiments/stability_panels.py [--samples 501]

The network is that of `python experiments/cifar_networks.py batch`, before training (mean 0 and variance 1 in
BatchNorm) and after; the source probes sixteen. Into `docs/evidence/results` it writes `stability_panels.txt`, R as
medians with 95 % intervals over images.
"""

import argparse
from pathlib import Path

import pandas as pd
import torch

from cifar_data import clean
from cifar_networks import RECIPES, source_of
from haptera import stability
from haptera.analyses.stability.analysis import Stability

RESULTS = Path(__file__).parents[1] / "docs" / "evidence" / "results"
DELTAS, CUTOFFS, WAYS = (0.3, 0.5, 1.0, 2.0), (3, 5, 15), ("bilinear", "gaussian")
BEFORE, AFTER = "before", "after"


def networks() -> dict[str, torch.nn.Module]:
    """Return the network before and after training."""
    return {BEFORE: RECIPES["batch"].build().eval(), AFTER: source_of("batch")()}


def with_interval(row: pd.Series) -> str:
    return f"{row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})"


def panels(measured: Stability) -> list[str]:
    """Figure 3, left and centre: R against δ, a line for each cut-off and interpolation."""
    rows = measured.indices.query("layer == 'output' and index == 'R' and aggregate == 'median'")
    folded = measured.deformations.set_index(["interpolation", "cutoff", "delta"])["folded"]
    lines = [f"{'':22}{'δ':>5}  {'before training':>24}  {'after':>24}  folded"]
    for place, own in rows.groupby(["interpolation", "cutoff", "delta"], observed=True):
        way, cutoff, delta = place
        told = {row["model"]: with_interval(row) for _, row in own.iterrows()}
        name = f"{way}, c = {cutoff:g}" if delta == DELTAS[0] else ""
        lines.append(f"{name:22}{delta:5g}  {told[BEFORE]:>24}  {told[AFTER]:>24}  {folded[place]:6.0%}")
    return lines


def depths(measured: Stability) -> list[str]:
    """Figure 14: R by depth."""
    rows = measured.indices.query("index == 'R' and aggregate == 'median' and layer != 'pixels'")
    frame = rows.pivot_table(index=["depth", "layer"], columns="model", values="value", observed=True)
    return [
        f"{'layer':22}{'before training':>16}{'after':>8}",
        *(f"{layer:22}{own[BEFORE]:16.3f}{own[AFTER]:8.3f}" for (_, layer), own in frame.iterrows()),
    ]


def main(samples: int) -> None:
    nets, data = networks(), clean()
    settings = {"samples": samples, "progress": False}
    measured = stability(nets, data, delta=DELTAS, cutoff=CUTOFFS, interpolation=WAYS, **settings)
    layered = stability(nets, data, layers=True, **settings)
    lines = [
        f"a residual network with BatchNorm, 32 px, {samples} test images of CIFAR-10; median R with 95 % interval",
        "",
        *panels(measured),
        "",
        "by depth, δ = 1, c = 3, bilinear",
        *depths(layered),
    ]
    (RESULTS / "stability_panels.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=501, help="images")
    torch.set_num_threads(1)
    main(parser.parse_args().samples)
