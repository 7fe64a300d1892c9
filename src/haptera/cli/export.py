"""`export`: the results of a study in other programs' formats, and in the programs that keep experiments."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from haptera.cli import trackers
from haptera.cli.options import Quiet
from haptera.cli.say import say, session

app = typer.Typer(help="Write the results of a study for papers, trackers and model cards.", no_args_is_help=True)


@app.callback()
def _export() -> None:
    """Write the results of a study for papers, trackers and model cards."""


@app.command()
def table(
    results: Annotated[
        Path, typer.Argument(help="The folder of a study, or a table of results (.parquet, .csv).", show_default=False)
    ],
    form: Annotated[str, typer.Option("--format", help="latex, markdown, csv or html.")] = "markdown",
    out: Annotated[Path | None, typer.Option(help="Write into this file instead of printing.")] = None,
    measure: Annotated[str, typer.Option(help="error, accuracy, or another measure with a row for each shift.")] = (
        "error"
    ),
    stream: Annotated[list[str] | None, typer.Option(help="Only this stream; repeatable.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this model; repeatable.")] = None,
    adapter: Annotated[
        list[str] | None, typer.Option(help="Only this adapter; repeatable, in the order of the rows.")
    ] = None,
    spread: Annotated[
        str, typer.Option(help="Standard deviation over seeds with the mean, with all or none.")
    ] = "mean",
    digits: Annotated[int | None, typer.Option(help="Decimals; 1 for per cent by default.", min=0, max=6)] = None,
    published: Annotated[bool, typer.Option(help="Published results below, where the protocol fits.")] = True,
    quiet: Quiet = False,
) -> None:
    """Write adapters by shifts, a table for each stream and model, with the best in bold and the second underlined."""
    from haptera.files.atomic import write_text
    from haptera.report.paper.formats import check_format, write_tables
    from haptera.report.paper.table import Choice, paper_tables

    check_format(form, spread)
    choice = Choice(measure, stream or (), model or (), adapter or (), digits, published)
    with session(quiet):
        if results.is_file():
            from haptera.table import read

            rows, order = read(results), []
        else:
            from haptera.run.results import results_of

            report = results_of(results).report()
            rows, order = report.table(), [str(row["adapter"]) for row in report.protocol.get("adapters", [])]
        made = paper_tables(rows, choice, order)
        for note in dict.fromkeys(note for each in made for note in each.notes):
            logging.getLogger("haptera").info(note)
    text = write_tables(made, form, spread)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)
        say(str(out))


for command in (trackers.mlflow, trackers.wandb, trackers.tensorboard, trackers.card):
    app.command()(command)
