"""`calibrate`: the accuracy of a model under every pair of shifts, which the stream `ccc` walks through."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.say import logging_to_stderr, resumable, say, say_json


def calibrate(
    model: Annotated[str, typer.Option(help="A name of the catalog, module:function or file.py:function.")],
    data: Annotated[str, typer.Option(help="digits, an .npz file, or a folder of images; labelled.")],
    out: Annotated[Path, typer.Option(help="The folder of the calibration; one file per pair.")] = Path(
        "holdfast-calibration"
    ),
    weights: Annotated[Path | None, typer.Option(help="A .safetensors file.")] = None,
    size: Annotated[int | None, typer.Option(help="Resize and crop images of a folder to this side.")] = None,
    shift: Annotated[list[str] | None, typer.Option(help="A name of `holdfast list shifts`; repeatable.")] = None,
    samples: Annotated[int, typer.Option(help="How many images.")] = 1000,
    step: Annotated[float, typer.Option(help="Between severities: 0.25 as published, 1 for the impatient.")] = 0.25,
    flip: Annotated[bool, typer.Option(help="Mirror images at random, as the stream will.")] = True,
    crop: Annotated[float, typer.Option(help="Move them by up to this share of the side.")] = 0.125,
    seed: Annotated[int, typer.Option(help="Of the subset, of flips, crops and shifts.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no remarks.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Measure the accuracy of a model under every ordered pair of shifts, whatever of it is missing."""
    from holdfast.catalog import find
    from holdfast.settings import Spec
    from holdfast.streams.sequence import all_shifts

    with logging_to_stderr(quiet), resumable():
        from holdfast.data import Data, open_data
        from holdfast.errors import HoldfastError
        from holdfast.models import ModelSource
        from holdfast.streams.calibration import calibrate as measure

        spec = Spec.parse(model)
        opened = open_data(data, size=size)
        if not isinstance(opened, Data):
            raise HoldfastError(f"{data} is corrupted already; a calibration needs clean data")
        calibration = measure(
            ModelSource(spec.name, weights, dict(spec.arguments))(),
            opened,
            out,
            [find("shifts", name) for name in shift] if shift else all_shifts(),
            samples=samples,
            step=step,
            flip=flip,
            crop=crop,
            seed=seed,
            progress=False if quiet else None,
        )
    clean = calibration.clean / calibration.samples
    targets = {name: calibration.target(name) for name in ("easy", "medium", "hard")}
    if as_json:
        say_json({"out": str(out), "pairs": len(calibration.counts), "clean": clean, **targets})
    else:
        say(f"{len(calibration.counts)} pairs on {calibration.samples} images; clean accuracy {clean:.3f}")
        say("  ".join(f"{name} {target:.3f}" for name, target in targets.items()))
        say(f"use it with: holdfast run --stream ccc:calibration={out},difficulty=medium ...")
