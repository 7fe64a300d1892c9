"""Draws a walk of CCC as the page on shifts shows it: the severities of the corruptions, and the accuracy below them.

python docs/walk_picture.py ccc_walk.csv ccc_walk.svg
"""

import sys
from html import escape
from itertools import pairwise
from pathlib import Path

import pandas as pd

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#b8860b", "#2f9fd8")  # told apart by colour-blind eyes too
INK, FAINT, GRID, SHADE = "#1f2328", "#59636e", "#e3e6ea", "#f3f4f6"
LEFT, TOP, WIDTH, HEIGHT, GAP = 48, 36, 660, 130, 40  # of the upper panel, of a panel, between the two
NEAR, MOST = 0.05, 0.5  # of the target: the band; the accuracy at the upper edge


def main(source: Path, picture: Path) -> None:
    walk = pd.read_csv(source)
    edges = [*walk["start"], 2 * walk["start"].iloc[-1] - walk["start"].iloc[-2]]
    across = [LEFT + WIDTH * edge / edges[-1] for edge in edges]
    low = TOP + HEIGHT + GAP
    size = LEFT + WIDTH + 28, low + HEIGHT + 36
    path = (walk["second"] != walk["second"].shift()).cumsum()
    drawn = []
    for number, rows in walk.groupby(path):
        left, right = across[rows.index[0]], across[rows.index[-1] + 1]
        if int(str(number)) % 2:
            drawn.append(f'<path d="M{left:.1f} {TOP}H{right:.1f}V{low + HEIGHT}H{left:.1f}Z" fill="{SHADE}"/>')
    drawn += [*axis(TOP, [(share / 5, str(share)) for share in range(6)])]
    drawn += [*axis(low, [(share / 100 / MOST, f"{share} %") for share in range(0, int(100 * MOST) + 1, 10)])]
    names = list(dict.fromkeys([*walk["first"].head(1), *walk["second"]]))
    for name, colour in zip(names, COLOURS, strict=False):
        one, two = walk["severity_1"].where(walk["first"] == name), walk["severity_2"].where(walk["second"] == name)
        drawn += steps(across, one.fillna(two) / 5, TOP, colour)
    target = walk["target"].iloc[0]
    top, bottom = (low + (1 - (target + off) / MOST) * HEIGHT for off in (NEAR, -NEAR))
    drawn.append(f'<path d="M{LEFT} {top:.1f}h{WIDTH}V{bottom:.1f}h-{WIDTH}Z" fill="{INK}" fill-opacity=".08"/>')
    drawn += steps(across, walk["expected"] / MOST, low, COLOURS[0])
    points = " L".join(
        f"{(left + right) / 2:.1f} {low + (1 - value / MOST) * HEIGHT:.1f}"
        for (left, right), value in zip(pairwise(across), walk["accuracy"], strict=True)
    )
    drawn.append(f'<path d="M{points}" fill="none" stroke="{COLOURS[1]}" stroke-width="1.8"/>')
    drawn += [
        text(across[-1 if at == edges[-1] else edges.index(at)], low + HEIGHT + 16, f"{at:,}") for at in edges[::10]
    ]
    drawn.append(text(LEFT + WIDTH / 2, size[1] - 6, "images"))
    drawn += legend(TOP - 14, [("severity", FAINT), *zip(names, COLOURS, strict=False)])
    words = [
        ("accuracy", FAINT),
        ("expected", COLOURS[0]),
        ("found", COLOURS[1]),
        (f"target {100 * target:.1f} ± {100 * NEAR:g} %", FAINT),
    ]
    drawn += legend(low - 14, words)
    extent = f'width="{size[0]}" height="{size[1]}"'
    style = 'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="12"'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" {extent} {style}>'
    card = f'<rect {extent} rx="6" fill="#fff"/>'  # reads on a dark page as well
    picture.write_text("\n".join([start, card, *drawn, "</svg>", ""]), encoding="utf-8")


def axis(top: float, ticks: list[tuple[float, str]]) -> list[str]:
    """Grid lines at shares of the height, with their names."""
    lines = []
    for share, name in ticks:
        level = top + (1 - share) * HEIGHT
        lines += [f'<path d="M{LEFT} {level:g}h{WIDTH}" stroke="{GRID}"/>', text(LEFT - 6, level + 4, name, "end")]
    return lines


def steps(across: list[float], shares: pd.Series, top: float, colour: str) -> list[str]:
    """A line that is level along each step, and broken where there is nothing."""
    pieces, before = [], False
    for (left, right), share in zip(pairwise(across), shares, strict=True):
        level = top + (1 - share) * HEIGHT
        if share == share:
            pieces.append(f"{'L' if before else 'M'}{left:.1f} {level:.1f}H{right:.1f}")
        before = share == share
    return [f'<path d="{"".join(pieces)}" fill="none" stroke="{colour}" stroke-width="1.8"/>']


def legend(down: float, words: list[tuple[str, str]]) -> list[str]:
    """Names in their colours, one after the other."""
    places, at = [], float(LEFT)
    for name, colour in words:
        places.append(text(at, down, name, "start", colour))
        at += 7 * len(name) + 16
    return places


def text(across: float, down: float, words: str, anchor: str = "middle", colour: str = FAINT) -> str:
    plain = escape(words.replace("_", " "))
    return f'<text x="{across:g}" y="{down:g}" fill="{colour}" text-anchor="{anchor}">{plain}</text>'


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
