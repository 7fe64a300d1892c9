"""`tune`: settings of an adapter, chosen on hold-out corruptions."""

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.cli.options import expand_groups
from haptera.cli.say import say, say_json, session
from haptera.cli.study import RunOptions, StudyOptions
from haptera.errors import HapteraError

if TYPE_CHECKING:
    import pandas as pd

    from haptera.tune import Choice, Search


@dataclass(frozen=True)
class SearchOptions:
    """What is tried, and on what."""

    grid: Annotated[
        list[str] | None, typer.Option(help="Values to try, lr=1e-4,1e-3; the simpler first; repeatable.")
    ] = None
    random: Annotated[int | None, typer.Option(help="Draw so many points instead of trying them all.")] = None
    range_: Annotated[
        list[str] | None, typer.Option("--range", help="What to draw from, lr=1e-5..1e-1; repeatable.")
    ] = None
    search_seed: Annotated[int, typer.Option(help="Of the draws.")] = 0
    recipe: Annotated[str | None, typer.Option(help="prior, reset, lr or leave-one-out.")] = None
    shift: Annotated[
        list[str] | None, typer.Option(help="Only this hold-out corruption; all by default; repeatable.")
    ] = None
    severities: Annotated[
        list[str] | None, typer.Option("--severities", "--severity", help="Such as 3,5; 1 to 5 by default.")
    ] = None
    seeds: Annotated[list[str] | None, typer.Option("--seeds", "--seed", help="Such as 0,1,2; 0 by default.")] = None
    batch_size: Annotated[
        list[str] | None, typer.Option(help="64 by default; several, such as 16,64, with the recipe lr.")
    ] = None
    steps: Annotated[
        int | None, typer.Option(help="Length of each stream with the recipe reset; six times the longest interval.")
    ] = None

    def search(self, keep: str) -> "Search":
        """Return the search that the options describe."""
        from haptera import catalog
        from haptera.tune import Search
        from haptera.tune.search import read_grid, read_ranges

        return Search(
            grid=read_grid(self.grid or []),
            random=self.random,
            ranges=read_ranges(self.range_ or []),
            search_seed=self.search_seed,
            recipe=self.recipe,
            shifts=[catalog.find_or_import("shifts", name) for name in self.shift] if self.shift else None,
            severities=_numbers("--severities", self.severities, float),
            seeds=_numbers("--seeds", self.seeds, int) or [0],
            batch_size=_numbers("--batch-size", self.batch_size, int),
            steps=self.steps,
            keep=keep,
        )


@expand_groups
def tune(
    named: StudyOptions,
    tried: SearchOptions,
    how: RunOptions,
    out: Annotated[Path, typer.Option(help="The folder for cells, tables and chosen.toml.")] = Path("haptera-tuned"),
    adapter: Annotated[
        str | None, typer.Option(help="name:key=value; these settings stay. `haptera list adapters`.")
    ] = None,
) -> None:
    """Choose settings of an adapter by the mean error on hold-out corruptions; runs what is missing in the folder."""
    from haptera.run.settings import make_study

    def described(base: Path) -> dict[str, Any]:
        """Return what the flags say, as a study file would, with paths relative to `base`."""
        content = named.content(base, adapters=[adapter] if adapter else [])
        models = [each | ({"allow_pickle": True} if named.allow_pickle else {}) for each in content.pop("models", [])]
        return content | ({"models": models} if models else {})

    with session(how.quiet, out):
        from haptera.tune import tune as search

        study = make_study(described(Path()), out)  # opens models, data and adapter as `run` does
        tuned = search(
            study.models,
            study.streams[0].data,
            next(iter(study.adapters.values())) if adapter else None,
            tried.search(how.keep or "top5"),
            out=out,
            device=how.device,
            jobs=how.jobs,
            cluster=how.cluster,
            progress=how.progress,
            study=described(Path(os.path.relpath(Path.cwd(), out.resolve()))),
        )
    if how.as_json:
        say_json(_content(tuned))
    else:
        say(tuned.summary(control=tried.recipe == "leave-one-out"))
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
