"""The command line: thin, and quick to answer. Each command imports what it needs when it runs."""

import sys
from typing import Any

import typer

from haptera.cli import (
    attribute,
    calibrate,
    demo,
    dependencies,
    diagnose,
    embed,
    identify,
    lists,
    materialise,
    pose,
    stability,
    study,
    trends,
    tune,
)
from haptera.cli.say import complain
from haptera.errors import HapteraError
from haptera.run.stopping import ending_quietly

app = typer.Typer(
    name="haptera",
    help="How a trained model holds when the world shifts, why, and how to make it hold without labels.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("demo")(demo.demo)
app.command("run")(study.run)
app.command("import")(study.import_)
app.command("measure")(study.measure)
app.command("report")(study.report)
app.command("tune")(tune.tune)
app.command("diagnose")(diagnose.diagnose)
app.command("trends")(trends.trends)
app.command("dependencies")(dependencies.dependencies)
app.command("stability")(stability.stability)
app.command("embed")(embed.embed)
app.command("attribute")(attribute.attribute)
app.command("identify")(identify.identify)
app.add_typer(pose.app, name="pose")
app.command("calibrate")(calibrate.calibrate)
app.command("materialise")(materialise.materialise)
app.command("list")(lists.list_)
app.command("check")(lists.check)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        from haptera import __version__

        typer.echo(__version__)
        raise typer.Exit()


def main(arguments: list[str] | None = None) -> Any:
    """Run a command and end the process with its exit code."""
    with ending_quietly():
        try:
            app(arguments)
        except HapteraError as error:
            complain(str(error))
            sys.exit(error.exit_code)
