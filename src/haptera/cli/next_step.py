"""Next step: the one command that people run after an analysis, said on a terminal below what it found.

It goes to stderr and only where somebody is looking, so that what a command prints to files and pipes is its result.
"""

import sys
from pathlib import Path

NEXT = {
    "study": "haptera export table {out}",
    "compare": "haptera gate NEW --baseline OLD",
    "gate": "haptera report CANDIDATE",
    "check-model": "haptera run --model MODEL --data DATA --adapter none --adapter batchnorm",
    "diagnose": "haptera tune --model MODEL --data REFERENCE --adapter batchnorm",
    "trends": "haptera run --model MODEL --data DATA",
    "dependencies": "haptera dependencies new LOGITS",
    "new-classes": "haptera dependencies cut BEFORE AFTER CLASS",
    "cut": "haptera dependencies AFTER",
    "stability": "haptera run --model MODEL --data DATA --stream clean --stream stability",
    "embed": "haptera attribute {out}",
    "attribute": "haptera transform MODEL RECORDING --out TABLE",
    "identify": "haptera embed RECORDING",
    "live": "haptera live LOG --serve",
    "pose": "haptera pose audit PROJECT",
    "pose audit": "haptera pose train PROJECT",
}
"""Kind of an analysis -> the command; `{out}` is where the analysis was written, words in capitals are the reader's."""


def next_step(kind: str, out: Path | None) -> str:
    """Return the command after an analysis of a kind; empty where there is none, or where nothing was written for it.

    >>> next_step("study", Path("audit"))
    'haptera export table audit'
    """
    text = NEXT.get(kind, "")
    return "" if "{out}" in text and out is None else text.format(out=out)


def say_next(kind: str, out: Path | None) -> None:
    """Print the command after an analysis where stderr is a terminal."""
    if sys.stderr.isatty() and (text := next_step(kind, out)):
        print(f"next        {text}", file=sys.stderr)  # noqa: T201
