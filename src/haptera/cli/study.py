"""`run`, `import`, `measure`, `report`, `demo`: a study from the command line."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from haptera.cli.options import (
    AllowPickle,
    Device,
    ImageOptions,
    Jobs,
    Json,
    LogitsKeys,
    Normalisations,
    Quiet,
    Weights,
    expand_groups,
)
from haptera.cli.present import present
from haptera.cli.say import overview, say, say_json, session
from haptera.errors import HapteraError
from haptera.words import count

Models = Annotated[
    list[str] | None,
    typer.Option(help="file.py:function, timm:NAME, hf:FOLDER, net.onnx, ...; repeatable."),
]
DataPath = Annotated[
    str | None, typer.Option(help="digits, a folder, a file (.npz, .parquet, .tar, .csv) or file.py:function.")
]
Keep = Annotated[str | None, typer.Option(help="float32 or float16 logits, or top5 and the like.")]
Cluster = Annotated[str | None, typer.Option(help="Address of a Dask scheduler.")]
Folder = Annotated[Path, typer.Argument(help="The folder of a study.", show_default=False)]


@dataclass(frozen=True)
class StudyOptions(ImageOptions):
    """Models and data of a study."""

    model: Models = None
    weights: Weights = None
    data: DataPath = None
    allow_pickle: AllowPickle = False
    normalise: Normalisations = None
    logits: LogitsKeys = None

    def content(self, base: Path, streams: Sequence[str] = (), adapters: Sequence[str] = ()) -> dict[str, Any]:
        """Return what a study file would say, with paths relative to `base`."""
        from haptera.run.parts import data_from_flags, from_flags

        lists = (self.normalise or [], self.logits or [])
        content = from_flags(self.model or [], self.weights or [], streams, adapters, base, *lists)
        how = {key: getattr(self, key) for key in ("size", "crop", "interpolation", "channels", "mapping", "restrict")}
        how |= {"upright": self.upright or None, "broken": None if self.broken == "stop" else self.broken}
        source = data_from_flags(self.data, base, **how)
        return content | ({"data": source} if source else {})


@dataclass(frozen=True)
class RunOptions:
    """Where and how cells run, and what is said about it."""

    keep: Keep = None
    device: Device = None
    jobs: Jobs = 1
    cluster: Cluster = None
    quiet: Quiet = False
    as_json: Json = False

    @property
    def progress(self) -> bool | None:
        """Return whether to show a bar; None where that depends on who is looking."""
        return False if self.quiet else None


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
    check: Annotated[bool, typer.Option(help="Check every model before the first cell, as check-model does.")] = True,
    images: Annotated[bool, typer.Option(help="Keep a few dozen small images for the report.")] = True,
) -> None:
    """Run a study: models x streams x adapters, whatever of it is missing in the folder."""
    from haptera.analyses.preflight.study import StudyPreflight
    from haptera.run.settings import make_study, read_study

    content, folder = (read_study(file), file.parent) if file else ({}, Path())
    base = Path.cwd() if file else Path()  # paths in the file are relative to it, those of flags to where we are
    flags = named.content(base, stream or [], adapter or [])
    others = {"seeds": seed, "batch_size": batch_size, "keep": how.keep, "device": how.device}
    flags |= {key: value for key, value in others.items() if value is not None} | ({} if images else {"images": False})
    if both := [key for key in ("models", "streams", "adapters", "data") if key in flags and key in content]:
        raise HapteraError(f"the study file and a flag both give {both[0]}; use one of them")
    with session(how.quiet, out):
        study = make_study(content | flags, out, folder, named.allow_pickle, str(file or ""))
        preflight = StudyPreflight(study.streams, out) if check else None
        table = study.run(jobs=how.jobs, cluster=how.cluster, progress=how.progress, preflight=preflight)
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

    with session():
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

    with session():
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


def report(
    folder: Folder,
    images: Annotated[bool, typer.Option(help="Show the images that the study kept.")] = True,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write report.html and result.json from the table of a study, and print what they say."""
    from haptera.run.results import results_of

    with session(quiet):
        results = results_of(folder, as_codes=True)
        present(results.report(images), folder, quiet, as_json)
    if results.damage:
        raise typer.Exit(1)


def demo(
    out: Annotated[Path, typer.Option(help="The folder for networks, outputs, table and report.")] = Path(
        "haptera-demo"
    ),
    jobs: Annotated[int | None, typer.Option(help="Processes; one per core by default.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Two networks and fewer streams, in some seconds.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a dozen small networks on digits, shift the data, adapt, and write a report."""
    jobs, progress = jobs or os.cpu_count() or 1, False if quiet else None
    with session(quiet, out):
        from haptera.demo import demo_study
        from haptera.run.results import results_of

        study = demo_study(out, jobs=jobs, progress=progress, quick=quick)
        study.run(jobs=jobs, progress=progress)
        found = results_of(out, as_codes=True).report()
        if as_json:
            path, summary = found.save(out)["report"], found.sentences()
            say_json({"report": str(path), "summary": summary, **asdict(study.last)})
        else:
            say(str(study.last))
            present(found, out, quiet, as_json)
    if study.last.failed:
        raise typer.Exit(1)
