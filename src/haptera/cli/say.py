"""What commands print: results on stdout, everything else on stderr."""

import json
import logging
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from haptera.run.stopping import CODE, say_stopped

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 100
"""Characters of a line where there is no terminal that says how many it has."""
SENTENCE = re.compile(r"(?:\w[\w -]{0,15}?  +| *)(?=\S)")
"""What a sentence of a result begins with: a word and the room after it, or nothing."""
GAP = re.compile(r" {3,}")
LABELLED = re.compile(r"[^\W\d]\S* (?:.*\d|undefined)")
"""A number with its name, such as `error 0.754 (0.195 to 2.922)`."""


def complain(text: str) -> None:
    """Print one line about what went wrong."""
    print(f"error: {text}", file=sys.stderr)  # noqa: T201


def say(text: str) -> None:
    """Print one line of the result."""
    typer.echo(text)


def say_folded(text: str) -> None:
    """Print a result, on a terminal with sentences that are no wider than it; files and pipes get whole lines."""
    say(fold(text, shutil.get_terminal_size((WIDTH, 24)).columns) if sys.stdout.isatty() else text)


def fold(text: str, width: int) -> str:
    """Return a text with sentences no wider than a terminal, below where they begin; tables and JSON stay.

    >>> print(fold("breaks      net breaks under fog", 24))
    breaks      net breaks
                under fog
    """
    lines: list[str] = []
    for line in map(str.rstrip, text.splitlines()):
        match = SENTENCE.match(line)
        if len(line) > width and (columns := _labelled(line)):
            lines += _in_columns(*columns, width)
        elif len(line) > width and match and "   " not in line[match.end() :] and line[:1] not in "{[|":
            indent = " " * match.end()
            lines += textwrap.wrap(
                line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
            )
        else:
            lines.append(line)
    return "\n".join(lines)


def _labelled(line: str) -> tuple[str, list[str]] | None:
    """Return what a line of labelled numbers begins with, and these; None for other lines, such as rows of a table.

    >>> _labelled("net   R 1.2 (1.1 to 1.3)   D 0.3"), _labelled("net   0.3   0.4")
    (('net   ', ['R 1.2 (1.1 to 1.3)', 'D 0.3']), None)
    """
    start = len(line) - len(line.lstrip())
    parts = GAP.split(line[start:])
    if not start and len(parts) > 1:  # a line that is not set in begins with what the numbers are about
        start = line.index(parts[1], len(parts[0]))
        parts = parts[1:]
    return (line[:start], parts) if len(parts) > 1 and all(map(LABELLED.match, parts)) else None


def _in_columns(start: str, parts: list[str], width: int) -> Iterator[str]:
    """Yield lines with as many labelled numbers as fit, below where the first stands."""
    line = start + parts[0]
    for part in parts[1:]:
        if len(line) + 3 + len(part) > width:
            yield line
            line = " " * len(start) + part
        else:
            line += "   " + part
    yield line


def say_json(content: Mapping[str, Any]) -> None:
    """Print the one JSON object of `--json`; null for what is not finite."""
    from haptera.files.json import plain

    typer.echo(json.dumps(plain(content), default=str, allow_nan=False))


@contextmanager
def session(quiet: bool = False, out: Path | None = None) -> Iterator[None]:
    """Show what the library logs; when interrupted, say how far it came and how to go on, and end with 130.

    Args:
        quiet: show errors alone.
        out: the folder in which the same command goes on; None where there is none.
    """
    log, handler = logging.getLogger("haptera"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain())
    before = log.level
    log.setLevel(logging.ERROR if quiet else logging.INFO)
    log.addHandler(handler)
    try:
        yield
    except KeyboardInterrupt as error:
        note = "".join(getattr(error, "__notes__", ()))  # such as ` after 3 of 8 cells`
        if not note and out is None:
            raise
        from haptera.run.ledgers import how_far

        say_stopped(f"{note or how_far(out or Path())}; the same command goes on from there")
        raise typer.Exit(CODE) from None
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


class _Plain(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        prefix = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        return prefix + record.getMessage()


def overview(table: "pd.DataFrame", measure: str = "accuracy") -> str:
    """Return the mean of a measure as text: a row per model and adapter, a column per stream.

    Columns that do not fit the terminal go on below. On a terminal the best of each model in each stream is green.
    """
    rows = table[table["measure"] == measure]
    if rows.empty:
        return f"no {measure}: " + ("no cell is finished" if table.empty else "the data has no labels")
    means = rows.groupby(["model", "adapter", "stream"], observed=True)["value"].mean().unstack("stream")
    means = means.sort_index(key=lambda names: names.where(names != "none", ""), kind="stable")
    means = means.sort_index(level="model", sort_remaining=False, kind="stable")
    names = [("model", "adapter"), *[(str(model), str(adapter)) for model, adapter in means.index]]
    widths = [max(len(name[place]) for name in names) for place in (0, 1)]
    starts = [f"{model:<{widths[0]}}  {adapter:<{widths[1]}}" for model, adapter in names]
    blocks = []
    for streams in _fitting([str(stream) for stream in means], len(starts[0])):
        lines = [starts[0] + "".join(f"  {stream:>{_room(stream)}}" for stream in streams)]
        for start, (model, _), (_, values) in zip(starts[1:], means.index, means.iterrows(), strict=True):
            best = means.loc[model].max()
            cells = [_number(values[each], best[each], _room(each), len(means.loc[model])) for each in streams]
            lines.append(start + "".join(cells).rstrip())
        blocks.append("\n".join(lines))
    return f"mean {measure}\n" + "\n\n".join(blocks)


def _room(stream: str) -> int:
    return max(len(stream), 5)


def _number(value: float, best: float, room: int, of: int) -> str:
    """Return a number of the table, green if it is the best of several."""
    text = f"  {'' if value != value else f'{value:.3g}':>{room}}"
    return typer.style(text, fg="green") if of > 1 and value == best and sys.stdout.isatty() else text


def _fitting(streams: list[str], start: int) -> list[list[str]]:
    """Return the columns of each block of a table, so that no line is wider than the terminal."""
    most = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    blocks: list[list[str]] = [[]]
    used = start
    for stream in streams:
        if blocks[-1] and used + 2 + _room(stream) > most:
            blocks.append([])
            used = start
        blocks[-1].append(stream)
        used += 2 + _room(stream)
    return blocks
