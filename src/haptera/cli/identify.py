"""`identify`: whether contrastive learning inverts a process that is known; one row of tables 6.1 and 6.2, or many."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.cli.say import count, logging_to_stderr, resumable, say, say_json
from haptera.errors import HapteraError

if TYPE_CHECKING:
    from haptera.analyses.identify.analysis import Tables
    from haptera.analyses.identify.row import Row

WIDTH = 14
WITH_A_FILE = {"file", "out", "quiet", "as_json"}


def identify(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="Rows of tables (TOML); or one row by the options.", show_default=False)
    ] = None,
    process: Annotated[
        str, typer.Option(help="space/marginal/conditional: sphere/uniform/vmf=10, box/uniform/laplace=0.05, ...")
    ] = "sphere/uniform/vmf=10",
    model: Annotated[
        str, typer.Option(help="space/law: sphere/vmf, box/laplace, box/gennorm=3, unbounded/normal, ...")
    ] = "sphere/vmf",
    dimensions: Annotated[int, typer.Option(help="Of the latents.")] = 4,
    steps: Annotated[int, typer.Option(help="Of training.")] = 1000,
    batch_size: Annotated[int, typer.Option(help="Pairs, and as many negatives, in a step.")] = 512,
    learning_rate: Annotated[float, typer.Option(help="Of Adam, at first; it falls to 0.")] = 3e-3,
    start: Annotated[
        float | None, typer.Option(help="Where radius or side begins; by default near the process's.")
    ] = None,
    fixed: Annotated[bool, typer.Option("--fixed", help="Radius or side stay where they begin.")] = False,
    supervised: Annotated[bool, typer.Option("--supervised", help="Teach an encoder the latents as well.")] = False,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    seed: Annotated[int, typer.Option(help="Of mixing, pairs and weights.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="A folder for finished rows, their table and a page.", show_default=False)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No bar.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Mix known latents, learn from pairs alone, and say how far the latents were found."""
    if file is not None:
        _tables(file, _checked_out(context, file, out), quiet, as_json)
        return
    files: dict[str, str] = {}
    with logging_to_stderr(quiet):
        from haptera.analyses.identify.row import Row, run_row

        row = Row(
            process,
            model,
            dimensions=dimensions,
            steps=steps,
            batch_size=batch_size,
            learning_rate=learning_rate,
            start=start,
            fixed=fixed,
            supervised=supervised,
            device=device,
            seeds=(seed,),
        )
        if out is None:
            record = run_row(row, seed, progress=False if quiet else None)
        else:
            found, files = _run([row], out, row.name, quiet)
            record = found.records[0]
    if as_json:
        say_json(_content(record) | ({"files": files} if files else {}))
        return
    mixing = f"mixing of condition {record['condition']:.1f}"
    say(f"{'process':<{WIDTH}}{process}, {dimensions} latents, {mixing}")
    say(f"{'model':<{WIDTH}}{model}, {steps:,} steps of {batch_size}")
    for name in (name for name in ("contrastive", "identity", "supervised") if name in record):
        say(f"{name:<{WIDTH}}R² {_text(record[name], 'r2')}   MCC {_text(record[name], 'mcc')}")
    say(f"{'loss':<{WIDTH}}{_loss(record)}")
    null = record["contrastive"]["rotation_mcc"]
    say(f"{'rotations':<{WIDTH}}MCC {null:.3f} of a random rotation of the latents")
    if files:
        say("  ".join(files.values()))


def _checked_out(context: typer.Context, file: Path, out: Path | None) -> Path:
    """The folder for the rows of a file, which have their settings from it alone."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    # By name, as newer versions of typer have a copy of click of their own.
    given = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if both := [name for name in given if name not in WITH_A_FILE]:
        option = both[0].replace("_", "-")
        raise HapteraError(f"--{option} is for one row, and the rows of {file} have their own; write it there")
    if out is None:
        raise HapteraError(f"{file} has rows of tables, which need --out, a folder for what is finished")
    return out


def _tables(file: Path, out: Path, quiet: bool, as_json: bool) -> None:
    with logging_to_stderr(quiet):
        from haptera.analyses.identify.analysis import finished, read_rows

        rows = read_rows(file)

        def how_far() -> str:
            done, every = finished(rows, out)
            return f" after {done} of {count(every, 'row')}"

        with resumable(how_far):
            found, files = _run(rows, out, file.stem, quiet)
    if as_json:
        counts = {"ran": found.ran, "kept": found.kept, "failed": found.failures}
        say_json({"rows": [_content(record) for record in found.records], **counts, "files": files})
    else:
        _say_rows(found)
        say(f"{count(found.ran, 'row')} run, {found.kept} found finished, {len(found.failures)} failed")
        say("  ".join(files.values()))
    if found.failures:
        raise typer.Exit(1)


def _run(rows: "list[Row]", out: Path, title: str, quiet: bool) -> "tuple[Tables, dict[str, str]]":
    """Run what is missing, and write table and page."""
    from dataclasses import asdict

    from haptera.analyses.identify.analysis import run_rows
    from haptera.analyses.identify.page import write_identify
    from haptera.files.atomic import write_text

    found = run_rows(rows, out, progress=False if quiet else None)
    files = {"report": out / "identify.html", "table": out / "identify.csv"}
    write_text(files["table"], found.table().to_csv(index=False))
    write_identify(found, files["report"], f"Identifiability: {title}", {"rows": [asdict(row) for row in rows]})
    return found, {name: str(path) for name, path in files.items()}


def _say_rows(found: "Tables") -> None:
    """Means over seeds, a line for each row."""
    from haptera.analyses.identify.page import per_row

    rows = per_row(found.table())
    width = max(map(len, rows["title"])) + 2
    say(f"{'row':<{width}}   R²    MCC  rotations")
    for row in rows.itertuples():
        say(f"{row.title:<{width}}{row.r2:5.3f}  {row.mcc:5.3f}      {row.rotation_mcc:5.3f}")


def _loss(record: dict[str, Any]) -> str:
    """Of the encoder beside that of the latents themselves, and what that says."""
    from haptera.analyses.identify.identifiability import fit_verdict

    fit, latents = record["goodness_of_fit"], record.get("latents_fit")
    if latents is None or latents != latents:
        return f"{fit:.3f} nats"
    said = {"not reached": ": not trained to the end", "another embedding": ": it prefers another embedding to them"}
    return f"{fit:.3f} nats, of the latents themselves {latents:.3f}{said.get(fit_verdict(fit, latents), '')}"


def _text(part: dict[str, Any], score: str) -> str:
    low, high = part[f"{score}_interval"]
    return f"{part[score]:.3f} ({low:.3f} .. {high:.3f})"


def _content(record: dict[str, Any]) -> dict[str, Any]:
    """A row without its loss over steps, which is for the page."""
    from haptera.files.json import plain

    return {key: plain(value) for key, value in record.items() if key != "loss"}
