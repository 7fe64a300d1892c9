"""Every printed number of the source on linear trends beside ours, on the predictions that it was made from.

    python experiments/trends_of_published_models.py [DATA] [--out FOLDER]

DATA, by default `../shared/data` beside the repository, holds `imagenet_66_models_correct.npz` and
`cifar10_30_models_correct.npz` (`models`, and packed correctness on both test sets, from the predictions published with
ImageNetV2), and the two tables of timm. Writes `trends_published.md` and `trends_verdicts.txt` into FOLDER, by default
`docs/evidence/results`; two minutes on one core.
"""

import argparse
import os
from pathlib import Path

import numpy as np

from charts import RESULTS
from haptera.analyses.trends.analysis import Trends
from haptera.analyses.trends.closeness import closeness
from haptera.analyses.trends.dominance import share_below, zeta
from haptera.analyses.trends.guarantee import corollary, proposition, triplet_residuals
from haptera.analyses.trends.reading import read_side
from haptera.analyses.trends.residual_bound import residual_bound
from haptera.analyses.trends.side import join
from haptera.analyses.trends.verdict import judge
from haptera.analyses.trends.wedge import Wedge
from haptera.statistics.line import fit, r_squared
from haptera.theory.known_models import EXAMPLE_1, EXAMPLE_2, residual

DATA = Path(__file__).parents[2] / "shared" / "data"
WHOLE, MOST = Wedge(0.31, 0.38, 0.005, 0.008), Wedge(0, 0.25, 0.005, 0.005)
WIDE, NARROW = Wedge(0, 1.7, 0.005, 0.02), Wedge(0, 0.8, 0.005, 0.01)
THREE = (0.6, 0.7, 0.8)
Row = tuple[str, str, str, str]


def open_trends(data: Path, name: str, sides: tuple[str, str], **settings: object) -> Trends:
    """Return the analysis of two arrays of a file."""
    return Trends(join(*(read_side(f"{data / name}:{side}") for side in sides)), **settings)


def compare(printed: float, ours: float, digits: int) -> str:
    """Say whether a printed number is ours, rounded as it is printed."""
    return "same" if abs(printed - ours) <= 0.5 * 10**-digits + 1e-12 else "differs"


def imagenet_rows(trends: Trends) -> list[Row]:
    """Sections 2 to 5 of the source."""
    assert trends.events is not None
    assert trends.pairs is not None
    x, y = trends.accuracies
    fits = trends.fits.set_index("fit")
    most = closeness(*trends.events.counts, MOST)
    outside = closeness(*trends.events.counts, WHOLE).outside
    pieces = fit(x, y, "two_piece", switch=6)
    pieces_r2 = r_squared(y, pieces.residual)
    apart_r2 = r_squared(y, fit(x, y, "two_piece", switch=6, joined=False).residual)
    probit_r2 = judge(x, y, "probit").r2
    count, far, first = trends.events.asked.events, fits["max_residual"], float(proposition(*THREE, WHOLE))
    below = share_below(trends.pairs, 0.05)
    largest = zeta(trends.pairs)
    exact = [residual_bound(THREE, wedge, 0.05).value for wedge in (WHOLE, MOST)]
    excess = trends.pairs["excess"].mean()
    broken = int(triplet_residuals(x, y, MOST)["broken"].sum())
    return [
        ("events of all triplets (section 4)", "274,560", f"{count:,}", compare(274_560, count, 0)),
        (f"events outside {WHOLE}", "0", str(outside), compare(0, outside, 0)),
        (f"events inside {MOST}", "95 %", f"{100 * most.share_inside:.2f} %", "about"),
        ("dominance below .05 (section 3)", "76 %", f"{100 * below:.1f} %", compare(76, 100 * below, 0)),
        ("largest dominance", "< .09", f"{largest:.5f}", "same" if largest < 0.09 else "differs"),
        ("similarity above independence", "about .25", f"{excess:.3f}", "about"),
        ("R², linear", ".988", f"{fits['r2']['linear']:.5f}", compare(0.988, fits["r2"]["linear"], 3)),
        ("largest residual, linear", ".044", f"{far['linear']:.4f}", compare(0.044, far["linear"], 3)),
        ("R², probit", ".998", f"{fits['r2']['probit']:.5f}", compare(0.998, fits["r2"]["probit"], 3)),
        ("largest residual, probit", ".01", f"{far['probit']:.4f}", compare(0.01, far["probit"], 2)),
        ("R², two pieces, switch at the 6th (figure 5)", ".997", f"{pieces_r2:.5f}", compare(0.997, pieces_r2, 3)),
        (
            "R² of probit less that of two pieces",
            "4e-4",
            f"{fits['r2']['probit'] - pieces_r2:.1e}; {probit_r2 - apart_r2:.1e}",
            "pieces that meet, in accuracy; pieces that do not, R² of probit on its own scale",
        ),
        ("residual in example 1", ".2", f"{residual(*EXAMPLE_1):.3f}", compare(0.2, residual(*EXAMPLE_1), 1)),
        ("residual in example 2", ".163", f"{residual(*EXAMPLE_2):.4f}", compare(0.163, residual(*EXAMPLE_2), 3)),
        ("proposition 1 at .6, .7, .8", ".055", f"{first:.4f}", compare(0.055, first, 3)),
        ("(6) at .6, .7, .8, ζ = .05, the wide wedge", ".084", f"{exact[0]:.4f}", "a grid finds less than there is"),
        ("(6) at .6, .7, .8, ζ = .05, the narrow wedge", ".045", f"{exact[1]:.4f}", compare(0.045, exact[1], 3)),
        ("(6) at .6, .7, .8, at the data's ζ = .0909", "–", f"{residual_bound(THREE, WHOLE, 0.0909).value:.4f}", ""),
        ("corollary 1 (3)", "–", f"{corollary(float(np.ptp(x)), WHOLE):.4f}", ""),
        ("the best line (Chebyshev) leaves", "–", f"{float(np.abs(trends.lines['chebyshev'].residual).max()):.4f}", ""),
        ("triplets that break (2) with the narrow wedge", "–", f"{broken} of 45,760", ""),
    ]


def cifar_rows(trends: Trends) -> list[Row]:
    """Appendix A of the source."""
    assert trends.events is not None
    assert trends.pairs is not None
    narrow = closeness(*trends.events.counts, NARROW)
    outside = closeness(*trends.events.counts, WIDE).outside
    few, count = float((trends.pairs["count"] <= 400).mean()), trends.events.asked.events
    return [
        ("events (the text has 274,560, the caption 24,360)", "24,360", f"{count:,}", compare(24_360, count, 0)),
        (f"events outside {WIDE}", "0", str(outside), compare(0, outside, 0)),
        (
            f"events with P ≥ .03 inside {NARROW}",
            "over 95 %",
            f"{100 * narrow.large_inside:.2f} % of {narrow.large:,}",
            "same" if narrow.large_inside > 0.95 else "differs",
        ),
        (f"all events inside {NARROW}", "–", f"{100 * narrow.share_inside:.2f} %", ""),
        ("largest dominance", "< .08", f"{zeta(trends.pairs):.4f}", "same" if zeta(trends.pairs) < 0.08 else "differs"),
        ("dominance at most .04", "most", f"{100 * few:.1f} %", "same" if few > 0.5 else "differs"),
    ]


def own_rows(name: str, trends: Trends) -> list[Row]:
    """What the source leaves open: the guarantee at the data's own ζ."""
    rows = []
    for bound in trends.own_bounds:
        found = bound.numbers
        told = f"{found['bound']:.3f}; ordered {found['ordered_bound']:.3f}; seen {found['largest_residual']:.3f}"
        rows.append((f"{name}, {bound.piece}: bound at ζ = {bound.zeta:.4f}", "–", told, ""))
    tolerated = trends.tolerated
    assert tolerated is not None
    told = f"{tolerated['needed']:,} of {tolerated['outside']:,}"
    return [*rows, (f"{name}: events outside {tolerated['wedge']} that a line needs", "–", told, "section 4")]


def table(rows: list[Row]) -> str:
    """Return rows as Markdown."""
    lines = ["| | printed | ours | |", "|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def main() -> None:
    """Read, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--draws", type=int, default=1000)
    given = parser.parse_args()
    draws, out = {"draws": given.draws}, given.out.resolve()
    os.chdir(given.data)  # so that what is printed names files, and no folder of this machine
    imagenet = open_trends(Path(), "imagenet_66_models_correct.npz", ("imagenet", "imagenetv2"), **draws)
    cifar = open_trends(Path(), "cifar10_30_models_correct.npz", ("cifar10", "cifar10_1"), **draws)
    files = ("results-imagenet.csv", "results-imagenetv2-matched-frequency.csv")
    timm = Trends(join(*(read_side(file).with_n(n) for file, n in zip(files, (50_000, 10_000), strict=True))), **draws)
    parts = [
        "## 66 models, ImageNet and ImageNetV2",
        table(imagenet_rows(imagenet)),
        "## 30 models, CIFAR-10 and CIFAR-10.1 (appendix A)",
        table(cifar_rows(cifar)),
        "## What the source leaves open",
        table(own_rows("ImageNet", imagenet) + own_rows("CIFAR-10", cifar)),
    ]
    (out / "trends_published.md").write_text("\n\n".join(parts) + "\n")
    commands = [
        "imagenet_66_models_correct.npz:imagenet imagenet_66_models_correct.npz:imagenetv2",
        "cifar10_30_models_correct.npz:cifar10 cifar10_30_models_correct.npz:cifar10_1",
        f"{' '.join(files)} --n 50000 10000",
    ]
    told = [
        f"$ haptera trends {command}\n{each.summary()}"
        for command, each in zip(commands, (imagenet, cifar, timm), strict=True)
    ]
    (out / "trends_verdicts.txt").write_text("\n\n".join(told) + "\n")
    print("\n\n".join([*parts, *told]))


if __name__ == "__main__":
    main()
