"""Pictures of the documentation, drawn by matplotlib: one style, and panels with logarithmic axes."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "evidence" / "results"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#b8860b", "#2f9fd8")  # told apart by colour-blind eyes too
INK, FAINT, GRID = "#1f2328", "#59636e", "#e3e6ea"
STYLE = {
    "axes.edgecolor": GRID,
    "axes.grid": True,
    "axes.labelcolor": FAINT,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "grid.color": GRID,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "haptera",  # the same picture is the same file
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
}


@dataclass
class Series:
    """Points of one colour: single ones, a line through them, or a dashed line for what is expected."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    kind: str = "points"


def figure(width: float, height: float) -> Figure:
    """Return an empty picture in the style of the documentation, its size in inches."""
    mpl.rcParams.update(STYLE)
    return Figure(figsize=(width, height), layout="constrained")


def save(drawing: Figure, path: Path) -> None:
    """Write a picture as SVG, on white, so that it reads on a dark page as well."""
    drawing.savefig(path, format="svg", metadata={"Date": None})


def label_ends(axes: Axes, ends: dict[str, tuple[float, str]], gap: float = 0.075) -> None:
    """Write names right of the axes at the heights where their lines end, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    shares = {name: (y - low) / (high - low) for name, (y, _) in ends.items()}
    order = sorted(shares, key=shares.__getitem__)
    heights = spread([shares[name] for name in order], gap)
    for name, height in zip(order, heights, strict=True):
        text = name.replace("_", " ")
        axes.text(1.02, height, text, color=ends[name][1], transform=axes.transAxes, va="center")


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Return sorted heights with at least `gap` between neighbours, each group around its own mean."""
    groups = [[height] for height in heights]
    for _ in heights:
        for place, (one, other) in enumerate(pairwise(groups)):
            if _placed(one, gap)[-1] + gap > _placed(other, gap)[0]:
                groups[place : place + 2] = [one + other]
                break
    return [height for group in groups for height in _placed(group, gap)]


def _placed(group: Sequence[float], gap: float) -> list[float]:
    middle = sum(group) / len(group)
    return [middle + (number - (len(group) - 1) / 2) * gap for number in range(len(group))]


def charts(path: Path, panels: Sequence[tuple[str, str, str, Sequence[Series]]]) -> None:
    """Draw panels with logarithmic axes side by side, each with a title, the names of both axes, and its series."""
    drawing = figure(5.4 * len(panels), 3.6)
    every = drawing.subplots(1, len(panels), squeeze=False)[0]
    for axes, (title, x_name, y_name, series) in zip(every, panels, strict=True):
        axes.set(title=title, xlabel=x_name, ylabel=y_name, xscale="log", yscale="log")
        for place, one in enumerate(series):
            dashed = one.kind == "dashed"
            colour = FAINT if dashed else COLOURS[place % len(COLOURS)]
            line = {"points": "", "line": "-", "dashed": "--"}[one.kind]
            axes.plot(one.x, one.y, color=colour, linestyle=line, marker="" if dashed else "o", label=one.name)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axis.set_minor_formatter(NullFormatter())
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    save(drawing, path)


def run_example(name: str, result: str) -> Path:
    """Run an example in a fresh folder and keep its CSV and what it printed; return the path of the CSV.

    The folder is fresh because cells do not know when the code of a shift changes.
    """
    folder = ROOT / "build" / result
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, str(ROOT / "examples" / name), str(folder)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (RESULTS / f"{result}.txt").write_text(text, encoding="utf-8")
    return shutil.copy(folder / f"{result}.csv", RESULTS / f"{result}.csv")
