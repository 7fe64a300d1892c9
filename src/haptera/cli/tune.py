"""`tune`: settings of an adapter, chosen on hold-out corruptions."""

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.cli.options import (
    AllowPickle,
    Channels,
    Cluster,
    DataPath,
    Device,
    Jobs,
    Json,
    Keep,
    MappingFile,
    Models,
    Quiet,
    Restrict,
    Size,
    Weights,
)
from haptera.cli.say import logging_to_stderr, resumable, say, say_json
from haptera.errors import HapteraError

if TYPE_CHECKING:
    import pandas as pd

    from haptera.tune import Choice


def tune(
    out: Annotated[Path, typer.Option(help="The folder for cells, tables and chosen.toml.")] = Path("haptera-tuned"),
    model: Models = None,
    weights: Weights = None,
    data: DataPath = None,
    size: Size = None,
    channels: Channels = None,
    mapping: MappingFile = None,
    restrict: Restrict = False,
    adapter: Annotated[
        str | None, typer.Option(help="name:key=value; these settings stay. `haptera list adapters`.")
    ] = None,
    grid: Annotated[
        list[str] | None, typer.Option(help="Values to try, lr=1e-4,1e-3; the simpler first; repeatable.")
    ] = None,
    random: Annotated[int | None, typer.Option(help="Draw so many points instead of trying them all.")] = None,
    range_: Annotated[
        list[str] | None, typer.Option("--range", help="What to draw from, lr=1e-5..1e-1; repeatable.")
    ] = None,
    search_seed: Annotated[int, typer.Option(help="Of the draws.")] = 0,
    recipe: Annotated[str | None, typer.Option(help="prior, reset, lr or leave-one-out.")] = None,
    shift: Annotated[
        list[str] | None, typer.Option(help="Only this hold-out corruption; all by default; repeatable.")
    ] = None,
    severities: Annotated[
        list[str] | None, typer.Option("--severities", "--severity", help="Such as 3,5; 1 to 5 by default.")
    ] = None,
    seeds: Annotated[list[str] | None, typer.Option("--seeds", "--seed", help="Such as 0,1,2; 0 by default.")] = None,
    batch_size: Annotated[
        list[str] | None, typer.Option(help="64 by default; several, such as 16,64, with the recipe lr.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Length of each stream with the recipe reset; six times the longest interval.")
    ] = None,
    keep: Keep = None,
    device: Device = None,
    jobs: Jobs = 1,
    cluster: Cluster = None,
    allow_pickle: AllowPickle = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Choose settings of an adapter by the mean error on hold-out corruptions; runs what is missing in the folder."""
    from haptera.run.build import make_study
    from haptera.run.flags import data_from_flags, from_flags
    from haptera.run.ledger import how_far

    def described(base: Path) -> dict[str, Any]:
        """What the flags say, as a study file would, with paths relative to `base`."""
        content = from_flags(model or [], weights or [], [], [adapter] if adapter else [], base)
        models = [each | ({"allow_pickle": True} if allow_pickle else {}) for each in content.pop("models", [])]
        source = data_from_flags(data, size, channels, mapping, restrict, base)
        return content | ({"models": models} if models else {}) | ({"data": source} if source else {})

    with logging_to_stderr(quiet), resumable(lambda: how_far(out)):
        from haptera import catalog
        from haptera.tune import Search
        from haptera.tune import tune as search
        from haptera.tune.search import read_grid, read_ranges

        study = make_study(described(Path()), out)  # opens models, data and adapter as `run` does
        settings = Search(
            grid=read_grid(grid or []),
            random=random,
            ranges=read_ranges(range_ or []),
            search_seed=search_seed,
            recipe=recipe,
            shifts=[catalog.find_or_import("shifts", name) for name in shift] if shift else None,
            severities=_numbers("--severities", severities, float),
            seeds=_numbers("--seeds", seeds, int) or [0],
            batch_size=_numbers("--batch-size", batch_size, int),
            steps=steps,
            keep=keep or "top5",
        )
        tuned = search(
            study.models,
            study.streams[0].data,
            next(iter(study.adapters.values())) if adapter else None,
            settings,
            out=out,
            device=device,
            jobs=jobs,
            cluster=cluster,
            progress=False if quiet else None,
            study=described(Path(os.path.relpath(Path.cwd(), out.resolve()))),
        )
    if as_json:
        say_json(_content(tuned))
    else:
        say(tuned.summary(control=recipe == "leave-one-out"))
        say(f"{tuned.cells}; see them with: haptera report {out}")
        say(f"test it with: haptera run {tuned.study_file} --out DIR")
    if tuned.cells.failed:
        raise typer.Exit(1)


def _numbers(flag: str, texts: list[str] | None, kind: Callable[[str], Any]) -> list[Any] | None:
    """Numbers from a flag that is repeated, or has commas, or both."""
    if not texts:
        return None
    words = [word for text in texts for word in text.split(",")]
    try:
        return list(dict.fromkeys(kind(word) for word in words))
    except ValueError as error:
        what = "whole numbers" if kind is int else "numbers"
        raise HapteraError(f"{flag} is {','.join(words)!r}; {what} with commas between them were expected") from error


def _content(tuned: "Choice") -> dict[str, Any]:
    """Return the object of `--json`; what is not known is null."""
    found = tuned.margin and dict(zip(("mean", "low", "high"), (tuned.margin.value, *tuned.margin.ends), strict=True))
    margin = {key: _known(value) for key, value in (found or {}).items()}
    first = _rows(tuned.table)[0]
    return {
        "out": str(tuned.out),
        "study": str(tuned.study_file),
        "best": tuned.best,
        **{key: first[key] for key in ("error", "low", "high")},
        "margin": margin,
        "remarks": tuned.remarks,
        "tried": _rows(tuned.table),
        "leave_one_out": _rows(tuned.control),
        **asdict(tuned.cells),
    }


def _rows(frame: "pd.DataFrame") -> list[dict[str, Any]]:
    return [{str(key): _known(value) for key, value in row.items()} for row in frame.to_dict("records")]


def _known(value: Any) -> Any:
    """The value; None for NaN and the like."""
    return value if isinstance(value, str | bool) or value == value else None
