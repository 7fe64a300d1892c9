"""`calibrate`: the accuracy of a model under every pair of shifts, which the stream `ccc` walks through."""

from pathlib import Path
from typing import Annotated

import typer

from haptera.cli.options import (
    AllowPickle,
    Channels,
    Device,
    Jobs,
    Json,
    MappingFile,
    Model,
    OwnWeights,
    Quiet,
    Restrict,
    Size,
)
from haptera.cli.say import logging_to_stderr, resumable, say, say_json
from haptera.run.settings import CALIBRATION
from haptera.words import count


def calibrate(
    model: Model,
    data: Annotated[str, typer.Option(help="digits, an .npz file, or a folder of images; labelled.")],
    out: Annotated[Path, typer.Option(help="The folder of the calibration; one file per pair.")] = Path(CALIBRATION),
    weights: OwnWeights = None,
    size: Size = None,
    channels: Channels = None,
    mapping: MappingFile = None,
    restrict: Restrict = False,
    shift: Annotated[list[str] | None, typer.Option(help="A name of `haptera list shifts`; repeatable.")] = None,
    samples: Annotated[int, typer.Option(help="How many images.")] = 1000,
    step: Annotated[float, typer.Option(help="Between severities: 0.25 as published, 1 for the impatient.")] = 0.25,
    flip: Annotated[bool, typer.Option(help="Mirror images at random, as the stream will.")] = True,
    crop: Annotated[float, typer.Option(help="Move them by up to this share of the side.")] = 0.125,
    seed: Annotated[int, typer.Option(help="Of the subset, of flips, crops and shifts.")] = 0,
    batch_size: Annotated[int, typer.Option(help="Samples per forward pass.")] = 64,
    device: Device = None,
    jobs: Jobs = 1,
    allow_pickle: AllowPickle = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure the accuracy of a model under every ordered pair of shifts, whatever of it is missing or damaged."""
    from haptera.catalog import find_or_import
    from haptera.run.flags import Spec
    from haptera.run.ledger import how_far

    with logging_to_stderr(quiet), resumable(lambda: how_far(out)):
        from haptera.data import Data, open_data
        from haptera.errors import HapteraError
        from haptera.models import ModelSource
        from haptera.models.device import choose_device
        from haptera.run.calibrate import calibrate as measure
        from haptera.run.yardstick import Scale
        from haptera.streams.calibration import DIFFICULTIES
        from haptera.streams.sequence import all_shifts

        spec = Spec.parse(model)
        opened = open_data(data, size=size, channels=channels, mapping=mapping, restrict=restrict)
        if not isinstance(opened, Data):
            raise HapteraError(f"{data} is corrupted already; a calibration needs clean data")
        calibration = measure(
            ModelSource(spec.name, weights, dict(spec.arguments), allow_pickle)().to(choose_device(device)),
            opened,
            out,
            [find_or_import("shifts", name) for name in shift] if shift else all_shifts(),
            Scale(samples, step, flip, crop, seed),
            batch_size=batch_size,
            jobs=jobs,
            progress=False if quiet else None,
        )
    clean = calibration.clean / calibration.samples
    targets = {name: calibration.target(name) for name in DIFFICULTIES}
    easier = {name: calibration.out_of_reach(name) for name in DIFFICULTIES}
    if as_json:
        say_json({"out": str(out), "pairs": len(calibration.counts), "clean": clean, **targets, "out_of_reach": easier})
    else:
        say(f"{count(len(calibration.counts), 'pair')} on {count(calibration.samples, 'image')}; accuracy {clean:.3f}")
        for name, target in targets.items():
            say(f"{name:<6}  {target:.3f}" + (f"  out of reach of {', '.join(easier[name])}" if easier[name] else ""))
        where = "" if str(out) == CALIBRATION else f",calibration={out}"
        say(f"use it with: haptera run --stream ccc:medium{where} ...")
