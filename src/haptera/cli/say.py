"""What commands print: results on stdout, everything else on stderr."""

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from haptera.run.stopping import CODE, say_stopped

if TYPE_CHECKING:
    import pandas as pd


def complain(text: str) -> None:
    """Print one line about what went wrong."""
    print(f"error: {text}", file=sys.stderr)  # noqa: T201


def say(text: str) -> None:
    """Print one line of the result."""
    typer.echo(text)


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
    """Return the mean of a measure per model, stream and adapter, as text."""
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
