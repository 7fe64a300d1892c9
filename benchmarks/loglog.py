"""Charts with logarithmic axes as SVG, for the tables that benchmarks write into the documentation."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#b8860b", "#2f9fd8")  # told apart by colour-blind eyes too
INK, FAINT, GRID = "#1f2328", "#59636e", "#e3e6ea"
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, LABELS = 420, 300, 62, 34, 50, 120


@dataclass
class Series:
    """Points of one colour: single ones, a line through them, or a dashed line for what is expected."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    kind: str = "points"


def charts(path: Path, panels: Sequence[tuple[str, str, str, Sequence[Series]]]) -> None:
    """Panels side by side, each with a title, the names of both axes, and its series."""
    across = LEFT + WIDTH + LABELS
    extent = f'width="{across * len(panels)}" height="{TOP + HEIGHT + BOTTOM}"'
    box = f'viewBox="0 0 {across * len(panels)} {TOP + HEIGHT + BOTTOM}"'
    style = 'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="12"'
    drawn = [f'<svg xmlns="http://www.w3.org/2000/svg" {box} {extent} {style}>', f'<rect {extent} rx="6" fill="#fff"/>']
    for place, panel in enumerate(panels):
        drawn += [f'<g transform="translate({place * across + LEFT} {TOP})">', *_panel(*panel), "</g>"]
    path.write_text("\n".join([*drawn, "</svg>", ""]), encoding="utf-8")


def _panel(title: str, x_name: str, y_name: str, series: Sequence[Series]) -> list[str]:
    ends = [_ends([getattr(one, axis) for one in series]) for axis in ("x", "y")]

    def x(value: float) -> float:
        return (np.log10(value) - ends[0][0]) / (ends[0][1] - ends[0][0]) * WIDTH

    def y(value: float) -> float:
        return HEIGHT - (np.log10(value) - ends[1][0]) / (ends[1][1] - ends[1][0]) * HEIGHT

    drawn = [_text(WIDTH / 2, -14, title, INK), _text(WIDTH / 2, HEIGHT + 40, x_name, FAINT)]
    drawn.append(_text(-LEFT + 6, -14, y_name, FAINT, "start"))
    for value in _ticks(ends[0]):
        drawn += [_line(x(value), 0, x(value), HEIGHT), _text(x(value), HEIGHT + 18, f"{value:g}", FAINT)]
    for value in _ticks(ends[1]):
        drawn += [_line(0, y(value), WIDTH, y(value)), _text(-8, y(value) + 4, f"{value:g}", FAINT, "end")]
    labels: list[tuple[float, str, str]] = []
    for place, one in enumerate(series):
        colour = FAINT if one.kind == "dashed" else COLOURS[place % len(COLOURS)]
        points = [(x(a), y(b)) for a, b in zip(one.x, one.y, strict=True)]
        if one.kind != "points":
            dash = ' stroke-dasharray="4 4"' if one.kind == "dashed" else ""
            line = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
            drawn.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        if one.kind != "dashed":
            drawn += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4" fill="{colour}"/>' for a, b in points]
        labels.append((points[-1][1] if one.kind != "points" else 16.0 * (place + 1), one.name, colour))
    return drawn + [_text(WIDTH + 8, at + 4, name, colour, "start") for at, name, colour in _apart(labels)]


def _ends(values: Sequence[Sequence[float]]) -> tuple[float, float]:
    logs = np.log10(np.concatenate([np.asarray(some, float) for some in values]))
    room = max(0.06 * np.ptp(logs), 0.05)
    return float(logs.min() - room), float(logs.max() + room)


def _ticks(ends: tuple[float, float]) -> list[float]:
    decades = ends[1] - ends[0]
    steps = range(1, 10) if decades < 0.8 else (1, 2, 5) if decades < 2.5 else (1,)
    powers = range(int(np.floor(ends[0])), int(np.ceil(ends[1])) + 1)
    return [
        step * 10.0**power for power in powers for step in steps if ends[0] <= np.log10(step * 10.0**power) <= ends[1]
    ]


def _apart(labels: list[tuple[float, str, str]]) -> list[tuple[float, str, str]]:
    """Labels moved down until none lies on another."""
    placed: list[tuple[float, str, str]] = []
    for at, name, colour in sorted(labels):
        placed.append((max(at, placed[-1][0] + 15) if placed else at, name, colour))
    return placed


def _text(x: float, y: float, words: str, colour: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}">{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{GRID}"/>'
