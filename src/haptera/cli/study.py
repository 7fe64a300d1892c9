"""`run`, `import`, `measure`, `report`: a study from the command line."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from haptera.cli.options import Folder, Json, RunOptions, StudyOptions, expand_groups
from haptera.cli.say import logging_to_stderr, overview, resumable, say, say_json
from haptera.errors import HapteraError
from haptera.words import count


@expand_groups
def run(
    named: StudyOptions,
    how: RunOptions,
    file: Annotated[
        Path | None, typer.Argument(help="A study file (TOML); or use the flags.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for outputs, table and report.")] = Path("haptera-study"),
    stream: Annotated[
        list[str] | None, typer.Option(help="name:key=value; repeatable. `haptera list streams`.")
    ] = None,
    adapter: Annotated[
        list[str] | None, typer.Option(help="name:key=value; repeatable. `haptera list adapters`.")
    ] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Repeatable.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Samples per batch; 64 by default.")] = None,
) -> None:
    """Run a study: models x streams x adapters, whatever of it is missing in the folder."""
    from haptera.run.build import make_study
    from haptera.run.ledger import how_far
    from haptera.run.settings import read_study

    content, folder = (read_study(file), file.parent) if file else ({}, Path())
    base = Path.cwd() if file else Path()  # paths in the file are relative to it, those of flags to where we are
    flags = named.content(base, stream or [], adapter or [])
    others = {"seeds": seed, "batch_size": batch_size, "keep": how.keep, "device": how.device}
    flags |= {key: value for key, value in others.items() if value is not None}
    if both := [key for key in ("models", "streams", "adapters", "data") if key in flags and key in content]:
        raise HapteraError(f"the study file and a flag both give {both[0]}; use one of them")
    with logging_to_stderr(how.quiet), resumable(lambda: how_far(out)):
        study = make_study(content | flags, out, folder, named.allow_pickle, str(file or ""))
        table = study.run(jobs=how.jobs, cluster=how.cluster, progress=how.progress)
    summary = study.last
    if how.as_json:
        counts = {"cells": summary.ran + summary.kept + summary.failed, **asdict(summary)}
        say_json({"out": str(out), **counts, "rows": len(table), "notes": study.notes})
    else:
        say(overview(table))
        say(f"{summary}; see them with: haptera report {out}")
    if summary.failed:
        raise typer.Exit(1)


def import_(
    file: Annotated[Path, typer.Argument(help="An .npz with logits or labels, and targets and ids if known.")],
    model: Annotated[str, typer.Option(help="The model's name in the table.")],
    stream: Annotated[str, typer.Option(help="The stream's name in the table.")],
    out: Annotated[Path, typer.Option(help="The folder of a study; made if it is not there.")],
    adapter: Annotated[str, typer.Option(help="The adapter's name in the table.")] = "none",
    shift: Annotated[str, typer.Option(help="The shift the data is under.")] = "clean",
    severity: Annotated[float, typer.Option(help="Its severity.")] = 0.0,
    seed: Annotated[int, typer.Option(help="The seed's column in the table.")] = 0,
    as_json: Json = False,
) -> None:
    """Add predictions made elsewhere to a study."""
    from haptera.run.importing import import_predictions
    from haptera.run.results import measure as measure_folder

    with logging_to_stderr(quiet=False):
        cell = import_predictions(
            file, out, model=model, stream=stream, adapter=adapter, shift=shift, severity=severity, seed=seed
        )
        table = measure_folder(out)
    own = table[(table["model"] == model) & (table["stream"] == stream) & (table["adapter"] == adapter)]
    if as_json:
        say_json({"out": str(out), "key": cell.key, "rows": len(own)})
    else:
        say(overview(own))


def measure(
    folder: Folder,
    name: Annotated[
        list[str] | None, typer.Option("--measure", help="Only this one, name or name:key=value; repeatable.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure the finished cells of a study again and write table.parquet, or print one measure."""
    from haptera.run.cells import open_study
    from haptera.run.parts import make_measure
    from haptera.run.results import measure_cells, update_results

    with logging_to_stderr(quiet=False):
        if name:
            results = measure_cells(open_study(folder), [make_measure(text) for text in name])
        else:
            results = update_results(folder)
    table = results.table
    if as_json:
        rows = table.astype(object).where(table.notna(), None).to_dict("records")
        say_json({"table": str(folder / "table.parquet"), "rows": rows})
    else:
        if name and table.empty:
            say(f"no finished cell has what {', '.join(name)} needs")
        for each in table["measure"].unique() if name else ["accuracy"]:
            say(overview(table, each))
        say(count(len(table), "row") + ("" if name else f" in {folder / 'table.parquet'}"))
    if results.damage:
        raise typer.Exit(1)


def report(folder: Folder, as_json: Json = False) -> None:
    """Write report.html from the table of a study."""
    from haptera.run.results import results_of

    with logging_to_stderr(quiet=False):
        results = results_of(folder)
        path, summary = results.write_report()
    if as_json:
        say_json({"report": str(path), "summary": summary})
    else:
        say(f"{path}   ({summary})")
    if results.damage:
        raise typer.Exit(1)
