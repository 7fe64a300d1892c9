"""`demo`: everything once, on data that needs no download."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from haptera.cli.options import Json, Quiet
from haptera.cli.say import logging_to_stderr, resumable, say, say_json


def demo(
    out: Annotated[Path, typer.Option(help="The folder for networks, outputs, table and report.")] = Path(
        "haptera-demo"
    ),
    jobs: Annotated[int | None, typer.Option(help="Processes; one per core by default.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a dozen small networks on digits, shift the data, adapt, and write a report."""
    from haptera.run.ledger import how_far

    jobs = jobs or os.cpu_count() or 1
    with logging_to_stderr(quiet), resumable(lambda: how_far(out)):
        from haptera.demo import demo_study
        from haptera.run.results import report

        study = demo_study(out, jobs=jobs, progress=False if quiet else None)
        study.run(jobs=jobs, progress=False if quiet else None)
    path, summary = report(out)
    if as_json:
        say_json({"report": str(path), "summary": summary, **asdict(study.last)})
    else:
        say(str(study.last))
        say(summary)
        say(str(path))
    if study.last.failed:
        raise typer.Exit(1)
