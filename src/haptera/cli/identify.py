"""`identify`: whether contrastive learning inverts a process that is known; one row of tables 6.1 and 6.2, or many."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.errors import HapteraError

if TYPE_CHECKING:
    from haptera.analyses.identify.analysis import Identification

FIRST = {"process": "sphere/uniform/vmf=10", "model": "sphere/vmf"}


def identify(
    file: Annotated[
        Path | None, typer.Argument(help="Rows of tables (TOML); or one row by the options.", show_default=False)
    ] = None,
    process: Annotated[
        str | None,
        typer.Option(
            help="space/marginal/conditional: sphere/uniform/vmf=10, box/uniform/laplace=0.05, ...",
            show_default=FIRST["process"],
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="space/law: sphere/vmf, box/laplace, box/gennorm=3, unbounded/normal, ...", show_default=FIRST["model"]
        ),
    ] = None,
    dimensions: Annotated[int | None, typer.Option(help="Of the latents.", show_default="4")] = None,
    steps: Annotated[int | None, typer.Option(help="Of training.", show_default="1000")] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Pairs, and as many negatives, in a step.", show_default="512")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Of Adam, at first; it falls to 0.", show_default="0.003")
    ] = None,
    start: Annotated[
        float | None, typer.Option(help="Where radius or side begins; by default near the process's.")
    ] = None,
    fixed: Annotated[bool, typer.Option("--fixed", help="Radius or side stay where they begin.")] = False,
    supervised: Annotated[bool, typer.Option("--supervised", help="Teach an encoder the latents as well.")] = False,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.", show_default="cpu")] = None,
    seed: Annotated[int | None, typer.Option(help="Of mixing, pairs and weights.", show_default="0")] = None,
    out: Path | None = None,
    progress: bool | None = None,
) -> "Identification":
    """Mix known latents, learn from pairs alone, and say how far the latents were found."""
    options: dict[str, Any] = {
        "process": process, "model": model, "dimensions": dimensions, "steps": steps, "batch_size": batch_size,
        "learning_rate": learning_rate, "start": start, "fixed": fixed or None, "supervised": supervised or None,
        "device": device, "seed": seed,
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None}
    if file is not None and given:
        option = next(iter(given)).replace("_", "-")
        raise HapteraError(f"--{option} is for one row, and the rows of {file} have their own; write it there")
    if file is not None and out is None:
        raise HapteraError(f"{file} has rows of tables, which need --out, a folder for what is finished")
    from haptera.analyses.identify import analysis

    if file is not None:
        return analysis.identify(file, out=out, progress=progress)
    seeds = (given.pop("seed", 0),)
    return analysis.identify(analysis.Row(**FIRST | given, seeds=seeds), out=out, progress=progress)
