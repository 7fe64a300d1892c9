"""`stability`: how networks take smooth deformations, relative to noise of the same norm."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.analyses.stability import StabilitySettings
from haptera.cli.options import AllowPickle, LogitsKeys, Normalisations, SizeOptions, Weights
from haptera.errors import HapteraError, unknown

if TYPE_CHECKING:
    from haptera.analyses.stability.analysis import Stability


def stability(
    model: Annotated[
        list[str],
        typer.Option(help="file.py:function, timm:NAME, hf:FOLDER, net.onnx, ...; repeatable."),
    ],
    data: Annotated[str, typer.Option(help="digits, an .npz file, or a folder of images; labels give errors.")],
    images: SizeOptions,
    settings: StabilitySettings,
    weights: Weights = None,
    layers: bool = False,
    baseline: str | None = None,
    allow_pickle: AllowPickle = False,
    normalise: Normalisations = None,
    logits: LogitsKeys = None,
    out: Path | None = None,
    progress: bool | None = None,
) -> "Stability":
    """Measure R, D and G of networks: deformations against noise of the same norm.

    Args:
        model: the networks.
        data: the images.
        images: how they are read.
        settings: of the deformations.
        weights: of each network.
        layers: every layer as well, in the same pass.
        baseline: with init, each model without its weights as well.
        allow_pickle: read pickled weights.
        normalise: what the networks expect.
        logits: which of their outputs.
        out: a folder where every finished measurement is kept.
        progress: show a bar.
    """
    from haptera.analyses.stability import analysis
    from haptera.run.settings import models_from_flags

    models = models_from_flags(model, weights or [], allow_pickle, normalise or [], logits or [])
    configured = {name: each.preprocessing() for name, each in models.items()}
    source = images.open(configured, data=data)["data"]
    initial = {} if baseline is None else _initial(models, baseline)
    more: dict[str, Any] = {"initial": initial, "layers": layers, "out": out, "progress": progress}
    return analysis.stability(models, source, **more, **vars(settings))


def _initial(models: dict[str, Any], baseline: str) -> dict[str, Any]:
    """Return the same models without weights; BatchNorm then has mean 0 and variance 1."""
    from haptera.analyses.stability import INIT

    if baseline != "init":
        raise unknown("baseline", baseline, ["init"])
    if missing := [name for name, source in models.items() if source.weights is None]:
        raise HapteraError(f"--baseline init needs --weights: without them {missing[0]} is what it is compared with")
    return {f"{name}{INIT}": replace(source, weights=None) for name, source in models.items()}
