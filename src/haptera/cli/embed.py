"""`embed`: what a recorded population encodes, with the controls built in."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.errors import HapteraError

if TYPE_CHECKING:
    from haptera.analyses.embedding.analysis import Embedding


def embed(
    recording: Annotated[Path, typer.Argument(help="An .nwb, .npz, .npy, .csv, .mat or .h5 file.", show_default=False)],
    signal: Annotated[
        str | None, typer.Option(help="Its name in the file; spikes for units of NWB; a pattern for columns.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="A label, or NAME:KIND (continuous, discrete, angle, degrees); repeatable."),
    ] = None,
    bin: Annotated[
        str | None, typer.Option(help="Width of a bin, such as 100ms or 0.1s, for NWB files; 100ms for spikes.")
    ] = None,
    trials: Annotated[str | None, typer.Option(help="The trial of each sample; of NWB, the table of trials.")] = None,
    epoch: Annotated[str | None, typer.Option(help="Only the epochs with this tag, for NWB files.")] = None,
    units: Annotated[
        list[str] | None, typer.Option(help="Only units whose COLUMN=VALUE, such as location=adn; repeatable.")
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="label, time (labels are only decoded) or hybrid; label if one is named.")
    ] = None,
    dimensions: Annotated[int, typer.Option(help="Of the embedding.")] = 3,
    steps: Annotated[int, typer.Option(help="Of training, for each fit.")] = 300,
    architecture: Annotated[
        str, typer.Option(help="Of the encoder; with -mse it learns Euclidean distances.")
    ] = "offset10-model",
    time_offset: Annotated[
        list[int] | None, typer.Option(help="Samples between the two of a pair; repeatable. 10, or 3 by time alone.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Draw positives by a Gaussian of this width around the label.")
    ] = None,
    temperature: Annotated[float, typer.Option(help="By which similarities are divided.")] = 1.0,
    learning_rate: Annotated[float, typer.Option(help="Of Adam.")] = 1e-3,
    batch_size: Annotated[int, typer.Option(help="Pairs in a step.")] = 512,
    smooth: Annotated[float, typer.Option(help="Standard deviation of a Gaussian, in samples; 0 for none.")] = 0.0,
    causal: Annotated[bool, typer.Option("--causal", help="Smoothing looks back only.")] = False,
    zscore: Annotated[bool, typer.Option("--zscore", help="Scale channels by the training part.")] = False,
    held: Annotated[float, typer.Option(help="Share of the samples, at the end, to score on.")] = 0.3,
    folds: Annotated[
        int, typer.Option(help="Decode again over so many folds of whole trials (3 or more); needs --trials.")
    ] = 0,
    seeds: Annotated[int, typer.Option(help="Fits that differ in their seed alone.")] = 3,
    shuffles: Annotated[int, typer.Option(help="Fits of shuffled labels.")] = 3,
    baseline: Annotated[
        list[str] | None, typer.Option(help="pca, tsne or umap; repeatable. All that are installed if left out.")
    ] = None,
    topology: Annotated[bool, typer.Option(help="Count rings and hollows; needs ripser.")] = True,
    controls: Annotated[bool, typer.Option(help="--no-controls: one fit, no shuffles, baselines or topology.")] = True,
    seed: Annotated[int, typer.Option(help="The first one.")] = 0,
    out: Path | None = None,
    progress: bool | None = None,
) -> "Embedding":
    """Embed a recording, and say what is in the embedding beside what chance, shuffles and others find."""
    width = None if bin is None else _seconds(bin)
    facts = dict(_fact(text) for text in units or [])
    from haptera.analyses.embedding import analysis
    from haptera.analyses.embedding.baselines import installed
    from haptera.recordings.arrays import split_kind
    from haptera.recordings.reading import Source

    settings: dict[str, Any] = {
        "model_architecture": architecture,
        "output_dimension": dimensions,
        "max_iterations": steps,
        "temperature": temperature,
        "learning_rate": learning_rate,
        "batch_size": batch_size,
    }
    if time_offset:
        settings["time_offsets"] = time_offset if len(time_offset) > 1 else time_offset[0]
    if delta is not None:
        settings |= {"conditional": "delta", "delta": delta}
    plan = analysis.Plan(
        labels=tuple(split_kind(name)[0] for name in label or []),
        mode=mode,
        held=held,
        seeds=seeds if controls else 1,
        shuffles=shuffles if controls else 0,
        baselines=(tuple(baseline) if baseline else installed()) if controls else (),
        topology=topology and controls,
        smoothing=smooth,
        causal=causal,
        zscore=zscore,
        folds=folds,
        seed=seed,
        settings=settings,
    )
    source = Source(recording, signal, label or [], trials=trials, bin=width, epoch=epoch, units=facts)
    return analysis.embed(source, plan, out=out, progress=progress)


def _seconds(text: str) -> float:
    """Return a time with its unit in seconds.

    >>> _seconds("100ms"), _seconds("0.1s"), _seconds("0.1")
    (0.1, 0.1, 0.1)
    """
    value, scale = (text[:-2], 1000.0) if text.endswith("ms") else (text.removesuffix("s"), 1.0)
    try:
        return float(value) / scale
    except ValueError as error:
        raise HapteraError(f"--bin is {text!r}; a width such as 100ms or 0.1s was expected") from error


def _fact(text: str) -> tuple[str, str]:
    column, sign, value = text.partition("=")
    if not (column and sign and value):
        raise HapteraError(f"--units is {text!r}; COLUMN=VALUE was expected, such as location=adn")
    return column, value
