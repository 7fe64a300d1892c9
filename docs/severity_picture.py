"""Draws accuracy against severity, a panel for each family and table of constants, as the page on shifts shows it.

python docs/severity_picture.py accuracy_by_severity.csv accuracy_by_severity.svg
"""

import sys
from html import escape
from pathlib import Path

import pandas as pd

from haptera.catalog import entries, find

FAMILIES = ("noise", "blur", "weather", "digital")
TABLES = {"imagenet": "constants of ImageNet-C", "cifar": "constants of CIFAR-10-C"}
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#b8860b", "#2f9fd8")  # told apart by colour-blind eyes too
INK, FAINT, GRID = "#1f2328", "#59636e", "#e3e6ea"
LEFT, TOP, WIDTH, HEIGHT, GAP = 52, 44, 240, 140, 26  # of the first panel, of a panel, between panels
LABELS = 140  # pixels right of the last panel
LINE = 15  # pixels that a label needs


def main(source: Path, picture: Path) -> None:
    frame = pd.read_csv(source)
    clean = frame[frame["stream"] == "clean"]
    across, down = WIDTH + GAP, HEIGHT + GAP
    size = LEFT + len(TABLES) * across - GAP + LABELS, TOP + len(FAMILIES) * down + 18
    drawn = [text(LEFT + column * across + WIDTH / 2, 26, words) for column, words in enumerate(TABLES.values())]
    for row, family in enumerate(FAMILIES):
        names = [name for name in entries("shifts") if find("shifts", name).family == family]
        top = TOP + row * down
        for column, table in enumerate(TABLES):
            drawn += panel(LEFT + column * across, top, first=column == 0, last=family == FAMILIES[-1])
            ends = {}
            for name, colour in zip(names, COLOURS, strict=False):
                own = frame[(frame["stream"] == table) & (frame["shift"] == name)]
                points = pd.concat([clean, own]).sort_values("severity")
                drawn += curve(points, LEFT + column * across, top, colour, dashed=find("shifts", name).holdout)
                ends[name] = (y(points["value"].iloc[-1], top), colour)
        right = LEFT + len(TABLES) * across - GAP + 8
        drawn += [text(right, place + 4, name, colour, "start") for name, place, colour in spread(ends)]
        drawn.append(text(14, top + HEIGHT / 2, family, turn=True))
    drawn.append(text(LEFT + len(TABLES) * across / 2 - GAP / 2, size[1] - 8, "severity", FAINT))
    drawn += [
        text(6, 26, "accuracy", FAINT, "start"),
        text(size[0] - LABELS + 8, 26, "dashed: hold-out", FAINT, "start"),
    ]
    extent = f'width="{size[0]}" height="{size[1]}"'
    style = 'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="12"'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" {extent} {style}>'
    card = f'<rect {extent} rx="6" fill="#fff"/>'  # reads on a dark page as well
    picture.write_text("\n".join([start, card, *drawn, "</svg>", ""]), encoding="utf-8")


def x(severity: float, left: float) -> float:
    return left + severity / 5 * WIDTH


def y(accuracy: float, top: float) -> float:
    return top + (1 - accuracy) * HEIGHT


def panel(left: float, top: float, *, first: bool, last: bool) -> list[str]:
    """Grid lines, with numbers left of the first column and below the last row."""
    lines = []
    for share in (0, 0.25, 0.5, 0.75, 1):
        level = y(share, top)
        lines.append(f'<path d="M{left} {level:g}h{WIDTH}" stroke="{GRID}"/>')
        if first:
            lines.append(text(left - 6, level + 4, f"{share:.0%}", FAINT, "end"))
    if last:
        lines += [text(x(severity, left), top + HEIGHT + 16, str(severity), FAINT) for severity in range(6)]
    return lines


def curve(points: pd.DataFrame, left: float, top: float, colour: str, *, dashed: bool) -> list[str]:
    """A line through the accuracies and a band between the ends of their intervals."""
    across = [x(severity, left) for severity in points["severity"]]

    def path(column: str) -> list[str]:
        return [f"{one:.1f} {y(value, top):.1f}" for one, value in zip(across, points[column], strict=True)]

    dashes = ' stroke-dasharray="5 3"' if dashed else ""
    return [
        f'<path d="M{" L".join(path("low") + path("high")[::-1])}Z" fill="{colour}" fill-opacity=".14"/>',
        f'<path d="M{" L".join(path("value"))}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes}/>',
    ]


def spread(ends: dict[str, tuple[float, str]]) -> list[tuple[str, float, str]]:
    """Names at the heights of their lines' ends, moved apart and around the same middle where they would overlap."""
    groups: list[list[tuple[str, float, str]]] = []
    for name, (height, colour) in sorted(ends.items(), key=lambda item: item[1][0]):
        groups.append([(name, height, colour)])
        while len(groups) > 1 and _places(groups[-2])[-1] + LINE > _places(groups[-1])[0]:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [
        (name, place, colour)
        for group in groups
        for (name, _, colour), place in zip(group, _places(group), strict=True)
    ]


def _places(group: list[tuple[str, float, str]]) -> list[float]:
    middle = sum(height for _, height, _ in group) / len(group)
    return [middle + (number - (len(group) - 1) / 2) * LINE for number in range(len(group))]


def text(across: float, down: float, words: str, colour: str = INK, anchor: str = "middle", turn: bool = False) -> str:
    turned = f' transform="rotate(-90 {across:g} {down:g})"' if turn else ""
    plain = escape(words.replace("_", " "))
    return f'<text x="{across:g}" y="{down:g}" fill="{colour}" text-anchor="{anchor}"{turned}>{plain}</text>'


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
