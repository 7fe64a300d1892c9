"""`materialise`: a corrupted data set on disk, in a layout that other tools read."""

from pathlib import Path
from typing import Annotated

import typer

from haptera import catalog
from haptera.cli.options import Channels, Json, Quiet, Size
from haptera.cli.say import logging_to_stderr, resumable, say, say_json
from haptera.errors import HapteraError
from haptera.words import count


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
        from haptera.streams.sequence import all_shifts

        shifts = [catalog.find_or_import("shifts", name) for name in shift] if shift else all_shifts()
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
