"""What commands print: results on stdout, everything else on stderr."""

import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from haptera.run.stopping import CODE, say_stopped

if TYPE_CHECKING:
    import pandas as pd


def complain(text: str) -> None:
    """One line about what went wrong."""
    print(f"error: {text}", file=sys.stderr)  # noqa: T201


def say(text: str) -> None:
    """One line of the result."""
    typer.echo(text)


def say_json(content: Mapping[str, Any]) -> None:
    """The one JSON object of `--json`; null for what is not finite."""
    from haptera.files.json import plain

    typer.echo(json.dumps(plain(content), default=str, allow_nan=False))


@contextmanager
def logging_to_stderr(quiet: bool) -> Iterator[None]:
    """Show what the library logs while a command runs."""
    log, handler = logging.getLogger("haptera"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain())
    before = log.level
    log.setLevel(logging.ERROR if quiet else logging.INFO)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


@contextmanager
def resumable(how_far: Callable[[], str] = str, always: bool = True) -> Iterator[None]:
    """When interrupted, say how far it came, such as ` after 3 of 8 cells`, and how to go on, and end with 130.

    Args:
        how_far: asked where the interruption has no note that says so.
        always: whether the same command goes on even if there is no such note.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        note = "".join(getattr(error, "__notes__", ()))
        if not (note or always):
            raise
        say_stopped(f"{note or how_far()}; the same command goes on from there")
        raise typer.Exit(CODE) from None


class _Plain(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        prefix = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        return prefix + record.getMessage()


def overview(table: "pd.DataFrame", measure: str = "accuracy") -> str:
    """The mean of a measure per model, stream and adapter, as text."""
    rows = table[table["measure"] == measure]
    if rows.empty:
        return f"no {measure}: " + ("no cell is finished" if table.empty else "the data has no labels")
    means = rows.groupby(["model", "stream", "adapter"])["value"].mean().unstack(["stream", "adapter"])
    headers = [" · ".join(column) for column in means.columns]
    width = max(len("model"), *(len(name) for name in means.index))
    lines = [f"mean {measure}", f"{'model':<{width}}  " + "  ".join(headers)]
    for name, values in means.iterrows():
        cells = ["" if value != value else f"{value:.3g}" for value in values]
        row = "  ".join(f"{cell:>{len(header)}}" for cell, header in zip(cells, headers, strict=True))
        lines.append(f"{name!s:<{width}}  {row}")
    return "\n".join(lines)
