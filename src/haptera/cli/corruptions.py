"""`materialise` and `calibrate`: a corrupted data set on disk, and how hard every pair of corruptions is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera import catalog
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
from haptera.errors import HapteraError
from haptera.run.settings import CALIBRATION
from haptera.words import count

if TYPE_CHECKING:
    from haptera.streams import Calibration


def materialise(
    data: Annotated[str, typer.Option(help="digits, an .npz file, or a folder of images.")],
    out: Annotated[Path, typer.Option(help="The folder to write into.")],
    layout: Annotated[str, typer.Option(help="imagenet-c or cifar-10-c.")] = "imagenet-c",
    shift: Annotated[list[str] | None, typer.Option(help="Only this shift; repeatable. `haptera list shifts`.")] = None,
    severity: Annotated[list[int] | None, typer.Option(help="Only this severity, 1 to 5; repeatable.")] = None,
    seed: Annotated[int, typer.Option(help="Of the shifts.")] = 0,
    table: Annotated[
        str | None, typer.Option(help="Constants: imagenet or cifar; by default those of the layout.")
    ] = None,
    quality: Annotated[str, typer.Option(help="Of JPEG files, 1 to 100; or png.")] = "95",
    size: Size = None,
    channels: Channels = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write a data set under every shift at every severity, whatever of it is missing or damaged in the folder."""
    from haptera.run.ledger import how_far

    with logging_to_stderr(quiet), resumable(lambda: how_far(out)):
        from haptera.data import CorruptedImages, open_data
        from haptera.run.materialise import SEVERITIES, materialise

        shifts = _shifts(shift)
        source = open_data(data, size=size, channels=channels)
        if isinstance(source, CorruptedImages):
            raise HapteraError(f"{data} is corrupted already; data without corruptions was expected")
        done = materialise(
            source,
            shifts,
            out,
            severities=severity or SEVERITIES,
            layout=layout,
            seed=seed,
            table=table,
            quality=int(quality) if quality.isdecimal() else quality,
            progress=False if quiet else None,
        )
    if as_json:
        say_json({"out": str(out), "written": done.written, "kept": done.kept, "images": done.images})
    else:
        images = count(done.images, "image")
        say(f"{count(len(done.written), 'part')} of {images} written into {out}, {len(done.kept)} found finished")


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
    from haptera.run.flags import Spec
    from haptera.run.ledger import how_far

    with logging_to_stderr(quiet), resumable(lambda: how_far(out)):
        from haptera.data import Data, open_data
        from haptera.models import ModelSource
        from haptera.models.device import choose_device
        from haptera.run.calibrate import calibrate as measure
        from haptera.run.yardstick import Scale

        spec = Spec.parse(model)
        opened = open_data(data, size=size, channels=channels, mapping=mapping, restrict=restrict)
        if not isinstance(opened, Data):
            raise HapteraError(f"{data} is corrupted already; a calibration needs clean data")
        calibration = measure(
            ModelSource(spec.name, weights, dict(spec.arguments), allow_pickle)().to(choose_device(device)),
            opened,
            out,
            _shifts(shift),
            Scale(samples, step, flip, crop, seed),
            batch_size=batch_size,
            jobs=jobs,
            progress=False if quiet else None,
        )
    _say_calibration(calibration, out, as_json)


def _say_calibration(calibration: "Calibration", out: Path, as_json: bool) -> None:
    from haptera.streams.calibration import DIFFICULTIES

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


def _shifts(names: list[str] | None) -> list[Any]:
    """Return the classes of shifts by their names; those that streams take by default if there are none."""
    from haptera.streams.sequence import all_shifts

    return [catalog.find_or_import("shifts", name) for name in names] if names else list(all_shifts())
