"""One way to run any analysis as a command, and to show what it found.

A command is made from a function that returns an `Analysis`: its parameters become arguments and options, and its
docstring their help (`expand_groups`). Every command gets `--out`, `--quiet` and `--json` as well; a function that has
a parameter `out` keeps a ledger there and goes on where it was stopped, and one that has `progress` is told whether to
show a bar.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from haptera.cli.next_step import say_next
from haptera.cli.options import Json, Out, Quiet, expand_groups, set_options
from haptera.cli.say import say, say_folded, say_json, session

if TYPE_CHECKING:
    from haptera.analysis import Analysis

OWN = {"out": (Out, None), "quiet": (Quiet, False), "as_json": (Json, False)}


def command_of(function: "Callable[..., Analysis]") -> Callable[..., None]:
    """Return a function that the command line can call: it runs an analysis and shows what it found."""
    known = inspect.signature(function).parameters
    run = expand_groups(function, without=(*OWN, "progress"))

    @wraps(function)
    def command(out: Path | None, quiet: bool, as_json: bool, **given: Any) -> None:
        given |= {"out": out} if "out" in known else {}
        given |= {"progress": False if quiet else None} if "progress" in known else {}
        with session(quiet, given.get("out")):
            present(run(**given), out, quiet, as_json)

    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [inspect.Parameter(name, keyword, default=default, annotation=kind) for name, (kind, default) in OWN.items()]
    return set_options(command, [*inspect.signature(run).parameters.values(), *own])


def present(analysis: "Analysis", out: Path | None, quiet: bool, as_json: bool) -> None:
    """Write an analysis into its folder, if there is one, and print it; ends with 1 for failures and objections."""
    out = out or analysis.folder
    files = {} if out is None else {name: str(path) for name, path in analysis.save(out).items()}
    if as_json:
        say_json(analysis.json() | ({"files": files} if files else {}))
    else:
        say_folded(analysis.summary(notes=not quiet))
        if files:
            say("  ".join(files.values()))
        if not quiet:
            say_next(analysis.kind, out)
    if analysis.failures or analysis.objections:
        raise typer.Exit(1)
