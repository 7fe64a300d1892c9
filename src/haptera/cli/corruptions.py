"""`materialise` and `calibrate`: a corrupted data set on disk, and how hard every pair of corruptions is."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera import catalog
from haptera.cli.options import (
    Broken,
    Channels,
    Crop,
    Interpolation,
    Jobs,
    Json,
    MappingFile,
    ModelOptions,
    Quiet,
    Restrict,
    Size,
    Upright,
    expand_groups,
)
from haptera.cli.say import say, say_json, session
from haptera.errors import HapteraError
from haptera.run.parts import CALIBRATION
from haptera.words import count

if TYPE_CHECKING:
    from haptera.streams import Calibration


@dataclass(frozen=True)
class CopyOptions:
    """Which images are written, and how.

    Attributes:
        layout: of the folder: imagenet-c or cifar-10-c.
        shift: only this shift. `haptera list shifts`.
        severity: only this severity, 1 to 5.
        seed: of the shifts.
        table: constants: imagenet or cifar; by default those of the layout.
        quality: of JPEG files, 1 to 100; or png.
    """

    layout: str = "imagenet-c"
    shift: Sequence[str] = ()
    severity: Sequence[int] = ()
    seed: int = 0
    table: str | None = None
    quality: str = "95"
    size: Size = None
    crop: Crop = None
    interpolation: Interpolation = None
    channels: Channels = None
    upright: Upright = False
    broken: Broken = "stop"


@dataclass(frozen=True)
class ScaleOptions:
    """On what a model is measured.

    Attributes:
        shift: a name of `haptera list shifts`.
        samples: how many images.
        step: between severities: 0.25 as published, 1 for the impatient.
        flip: mirror images at random, as the stream will.
        crop: move them by up to this share of the side.
        seed: of the subset, of flips, crops and shifts.
        batch_size: samples per forward pass.
    """

    # Not ImageOptions, whose crop is another one.
    size: Size = None
    interpolation: Interpolation = None
    channels: Channels = None
    mapping: MappingFile = None
    restrict: Restrict = None
    upright: Upright = False
    broken: Broken = "stop"
    shift: Sequence[str] = ()
    samples: int = 1000
    step: float = 0.25
    flip: bool = True
    crop: float = 0.125
    seed: int = 0
    batch_size: int = 64


@expand_groups
def materialise(
    data: Annotated[str, typer.Option(help="A file, a folder or a pattern of images; or digits.")],
    out: Annotated[Path, typer.Option(help="The folder to write into.")],
    options: CopyOptions,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write a data set under every shift at every severity, whatever of it is missing or damaged in the folder."""
    with session(quiet, out):
        from haptera.data import CorruptedImages, open_data
        from haptera.files.toml import parse_value
        from haptera.run.materialise import SEVERITIES, materialise

        shifts = _shifts(options.shift)
        how = {key: getattr(options, key) for key in ("size", "interpolation", "channels", "upright", "broken")}
        source = open_data(data, crop=None if options.crop is None else parse_value(options.crop), **how)
        if isinstance(source, CorruptedImages):
            raise HapteraError(f"{data} is corrupted already; data without corruptions was expected")
        done = materialise(
            source,
            shifts,
            out,
            severities=options.severity or SEVERITIES,
            layout=options.layout,
            seed=options.seed,
            table=options.table,
            quality=int(options.quality) if options.quality.isdecimal() else options.quality,
            progress=False if quiet else None,
        )
    if as_json:
        say_json({"out": str(out), "written": done.written, "kept": done.kept, "images": done.images})
    else:
        images = count(done.images, "image")
        say(f"{count(len(done.written), 'part')} of {images} written into {out}, {len(done.kept)} found finished")


@expand_groups
def calibrate(
    model: ModelOptions,
    data: Annotated[str, typer.Option(help="A file, a folder or a pattern of labelled images; or digits.")],
    options: ScaleOptions,
    out: Annotated[Path, typer.Option(help="The folder of the calibration; one file per pair.")] = Path(CALIBRATION),
    jobs: Jobs = 1,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure the accuracy of a model under every ordered pair of shifts, whatever of it is missing or damaged."""
    with session(quiet, out):
        from haptera.data import Data, open_data
        from haptera.models.preprocessing import default_resize
        from haptera.run.calibrate import Scale
        from haptera.run.calibrate import calibrate as measure

        network = model.load()
        given = [key for key in ("size", "interpolation") if getattr(options, key) is not None]
        default = default_resize(model.preprocessing(network), given)
        keys = ("size", "interpolation", "channels", "mapping", "restrict", "upright", "broken")
        how = {key: getattr(options, key) for key in keys}
        opened = open_data(data, default=default, **how)
        if not isinstance(opened, Data):
            raise HapteraError(f"{data} is corrupted already; a calibration needs clean data")
        calibration = measure(
            network,
            opened,
            out,
            _shifts(options.shift),
            Scale(**{key: getattr(options, key) for key in Scale.__match_args__}),
            batch_size=options.batch_size,
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


def _shifts(names: Sequence[str]) -> list[Any]:
    """Return the classes of shifts by their names; those that streams take by default if there are none."""
    from haptera.streams.shift_stream import all_shifts

    return [catalog.find_or_import("shifts", name) for name in names] if names else list(all_shifts())
