"""`stability`: how networks take smooth deformations, relative to noise of the same norm."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.cli.options import AllowPickle, Channels, Json, Quiet, Size, Weights
from haptera.cli.say import logging_to_stderr, say, say_json
from haptera.errors import HapteraError, unknown

INIT = ", init"

if TYPE_CHECKING:
    from haptera.analyses.stability.analysis import Stability


def stability(
    model: Annotated[
        list[str], typer.Option(help="A name of the catalog, module:function or file.py:function; repeatable.")
    ],
    data: Annotated[str, typer.Option(help="digits, an .npz file, or a folder of images; labels give errors.")],
    weights: Weights = None,
    delta: Annotated[
        list[float] | None, typer.Option(help="Displacement of the centre in pixels; 1; repeatable.")
    ] = None,
    cutoff: Annotated[list[float] | None, typer.Option(help="Of the waves of a deformation; 3; repeatable.")] = None,
    interpolation: Annotated[list[str] | None, typer.Option(help="bilinear or gaussian; repeatable.")] = None,
    rule: Annotated[
        str, typer.Option(help="Of the cutoff: printed, or reference as the published code has it.")
    ] = "printed",
    resample: Annotated[bool, typer.Option("--resample", help="Draw fields that fold again.")] = False,
    layers: Annotated[bool, typer.Option("--layers", help="Every layer as well, in the same pass.")] = False,
    baseline: Annotated[str | None, typer.Option(help="init: each model without its weights as well.")] = None,
    samples: Annotated[int, typer.Option(help="Images, at most.")] = 500,
    batch_size: Annotated[int, typer.Option(help="Images per forward pass; 32 suits a CPU.")] = 32,
    sphere: Annotated[str, typer.Option(help="The norm of the noise: median or mean; the other is scaled.")] = "median",
    size: Size = None,
    channels: Channels = None,
    seed: Annotated[int, typer.Option(help="Of images, deformations and noise.")] = 0,
    allow_pickle: AllowPickle = False,
    quiet: Quiet = False,
    as_json: Json = False,
    report: Annotated[Path | None, typer.Option(help="Also write a page with figures to this file.")] = None,
) -> None:
    """Measure R, D and G of networks: deformations against noise of the same norm."""
    from haptera.run.build import models_from_flags

    with logging_to_stderr(quiet):
        from haptera.analyses.stability.analysis import stability as measure
        from haptera.data import Data, open_data

        models = models_from_flags(model, weights or [], allow_pickle)
        source = open_data(data, size=size, channels=channels)
        if not isinstance(source, Data):
            raise HapteraError(f"--data {data} has several parts; give one of its folders")
        found = measure(
            models,
            source,
            initial={} if baseline is None else _initial(models, baseline),
            delta=delta or 1.0,
            cutoff=cutoff or 3.0,
            interpolation=interpolation or "bilinear",
            rule=rule,
            resample=resample,
            layers=layers,
            samples=samples,
            batch_size=batch_size,
            sphere=sphere,
            seed=seed,
            progress=False if quiet else None,
        )
        if report is not None:
            import numpy as np

            from haptera.analyses.stability.page import write_stability
            from haptera.analyses.stability.phase_diagram import phase_diagram

            phases = phase_diagram(source.images(np.array([0]))[0], rule=rule, seed=seed)
            given: dict[str, object] = {
                "models": model,
                "weights": [str(path) for path in weights or []],
                "rule of the cutoff": rule,
            }
            given |= {"resample": resample, "norm of the noise": sphere, "seed": seed}
            write_stability(found, report, data, phases, given)
    if as_json:
        say_json(content(found) | ({"report": str(report)} if report else {}))
        return
    from haptera.analyses.stability.page import sentences

    width = max(len(word) for word, _ in sentences(found)) + 2
    for word, text in sentences(found):
        say(f"{word:<{width}}{text}")
    if report is not None:
        say(str(report))


def _initial(models: dict[str, Any], baseline: str) -> dict[str, Any]:
    """The same models without weights; BatchNorm then has mean 0 and variance 1."""
    from dataclasses import replace

    if baseline != "init":
        raise unknown("baseline", baseline, ["init"])
    if missing := [name for name, source in models.items() if source.weights is None]:
        raise HapteraError(f"--baseline init needs --weights: without them {missing[0]} is what it is compared with")
    return {f"{name}{INIT}": replace(source, weights=None) for name, source in models.items()}


def content(found: "Stability") -> dict[str, Any]:
    """The JSON object: the first network at the first setting, then all of them where there are more."""
    from haptera.files.json import plain

    settings = [{str(key): value for key, value in row.items()} for row in found.deformations.to_dict("records")]
    every = [_one(found, name, setting) for setting in settings for name in found.models]
    laws = {index: vars(law) for index, law in found.laws.items()}
    more: dict[str, Any] = {"measurements": every} if len(every) > 1 else {}
    notes: dict[str, Any] = {"notes": list(found.notes)} if found.notes else {}
    return plain(every[0] | {"images": found.images} | notes | more | ({"laws": laws} if laws else {}))


def _one(found: "Stability", model: str, setting: dict[str, Any]) -> dict[str, Any]:
    keys = ("delta", "cutoff", "interpolation")
    rows = found.indices[found.indices["model"] == model]
    for key in keys:
        rows = rows[rows[key] == setting[key]]
    layers = list(rows["layer"].unique())
    init = _one(found, f"{model}{INIT}", setting) if f"{model}{INIT}" in found.initial else None
    error = found.errors[found.errors["model"] == model] if len(found.errors) else found.errors
    return {
        "model": model,
        **{key: setting[key] for key in (*keys, "delta_used", "temperature", "folded")},
        **_indices(rows[rows["layer"] == "output"]),
        "error": float(error["error"].iloc[0]) if len(error) else None,
        "layers": [{"layer": layer} | _indices(rows[rows["layer"] == layer]) for layer in layers if layer != "output"],
        **({"init": {key: init[key] for key in ("R", "D", "G", "layers")}} if init else {}),
    }


def _indices(rows: Any) -> dict[str, Any]:
    """`{"R": {"mean": ..., "mean_interval": [...], "median": ..., ...}, ...}`."""
    found: dict[str, Any] = {}
    for row in rows.to_dict("records"):
        here = found.setdefault(row["index"], {})
        here[row["aggregate"]] = row["value"]
        here[f"{row['aggregate']}_interval"] = [row["low"], row["high"]]
    return found
