"""The command line: thin, and quick to answer. A command is imported when it is asked for, and no other."""

import os
import shlex
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import typer

from haptera import catalog
from haptera.cli.flags import Command, Group, with_plain_flags
from haptera.cli.say import complain
from haptera.errors import HapteraError
from haptera.run.stopping import ending_quietly

COMMANDS = {
    "demo": ("study:demo", "Train a dozen small networks on digits and report how well they hold up."),
    "run": ("study:run", "Run a study: models x streams x adapters, whatever of it is missing in the folder."),
    "import": ("study:import_", "Add predictions made elsewhere to a study."),
    "measure": ("study:measure", "Measure the finished cells of a study again and write table.parquet."),
    "report": ("study:report", "Write report.html from the table of a study."),
    "export": ("export:app", "Write the results of a study for papers, trackers and model cards."),
    "tune": ("tune:tune", "Choose settings of an adapter on hold-out corruptions."),
    "profile": ("profile:profile", "Measure a model once on reference images, for guards and alarms."),
    "live": ("live:app", "Watch a deployed model: the page of a guard's log, written or served, and a rehearsal."),
    "dependencies": ("dependencies:app", "Say which classes of a network follow from others, and what that costs."),
    "pose": ("pose:app", "Keypoints: train, predict, score and audit pose models."),
    "transform": ("transform:transform", "Embed recordings by a model that `embed` saved."),
    "calibrate": ("corruptions:calibrate", "Measure how hard every pair of corruptions is, for the stream ccc."),
    "materialise": ("corruptions:materialise", "Write a corrupted data set to disk."),
    "list": ("lists:list_", "Show what the catalog holds, plugins included."),
    "verify": ("lists:verify", "Check that what is finished in a folder is what it was when it was finished."),
    "check": ("lists:check", "Run the laws on a shift, stream, adapter, measure or analysis of your own."),
}
"""Name -> where the command is, and its summary; the analyses of the catalog are commands as well."""
PANELS = {
    "Studies": ("demo", "run", "import", "measure", "report", "compare", "gate", "export"),
    "Adaptation and deployment": ("tune", "profile", "live"),
    "Data and parts": ("materialise", "calibrate", "list", "verify", "check"),
}
"""Heading of the help -> its commands; the others answer questions about a model or a recording."""


def app_for(asked: str | None) -> typer.Typer:
    """Return the command line, with the command that is asked for and summaries of the others."""
    app = typer.Typer(
        name="haptera",
        help="How well a trained model holds up when the world shifts, and how to make it hold up without labels.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        cls=Group,
    )
    app.callback(invoke_without_command=True)(_root)
    for name, (target, summary) in COMMANDS.items():
        module, _, attribute = target.partition(":")
        if name != asked:
            app.command(name, help=summary, rich_help_panel=_panel(name))(_nothing)
        elif isinstance(found := getattr(import_module(f"haptera.cli.{module}"), attribute), typer.Typer):
            app.add_typer(with_plain_flags(found), name=name, cls=found.info.cls or Group)
        else:
            app.command(name, cls=Command)(found)
    for name, entry in catalog.entries("analyses").items():
        if name in COMMANDS:  # one with commands of its own
            continue
        if name == asked:
            app.command(name, cls=Command)(_analysis(name))
        else:
            summary = f"{entry.summary[:1].upper()}{entry.summary[1:]}."
            app.command(name, help=summary, rich_help_panel=_panel(name))(_nothing)
    return app


def _panel(name: str) -> str:
    """Return the heading under which help lists a command."""
    return next((panel for panel, names in PANELS.items() if name in names), "Questions about a model or a recording")


def _analysis(name: str) -> Callable[..., None]:
    from haptera.cli.present import command_of

    return command_of(catalog.find("analyses", name))


def _nothing() -> None:
    """Stand for a command that was not asked for."""


def _root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        from haptera import __version__

        typer.echo(__version__)
        raise typer.Exit()


def _words_to_complete() -> list[str]:
    """Return the line of a shell that asks how to complete it, which comes in variables and not as arguments."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS")
    if "_HAPTERA_COMPLETE" not in os.environ or not line:
        return []
    try:
        return shlex.split(line)[1:]
    except ValueError:  # a quotation that is still open
        return line.split()[1:]


def main(arguments: list[str] | None = None) -> Any:
    """Run a command and end the process with its exit code."""
    with ending_quietly():
        try:
            given = _words_to_complete() or (sys.argv[1:] if arguments is None else arguments)
            app_for(next((each for each in given if not each.startswith("-")), None))(arguments)
        except HapteraError as error:
            complain(str(error))
            sys.exit(error.exit_code)
