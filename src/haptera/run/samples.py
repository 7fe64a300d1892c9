"""Samples: small pictures of what a study showed its models, kept beside its cells so that the report can show them.

The same few images clean and under each shift at two severities, and the mistakes of which the models were most sure.
They are chosen from finished cells (`haptera.run.spots`); then the batches that hold them are read once more. No model
is needed, now or later. Predictions made elsewhere have no stream to read, and so no pictures.

The pictures are one piece of a ledger of their own, in the folder `samples` of the study, under a key of the cells that
they were chosen from. Cost: a look at the outputs of at most two models, and at most 60 batches.
"""

import io
import json
import logging
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from haptera.errors import HapteraError
from haptera.files.fingerprint import fingerprint
from haptera.files.json import read_json
from haptera.files.schema import read_as
from haptera.outputs import Outputs
from haptera.report.study.images import Sample
from haptera.run.ledger import Ledger, Piece
from haptera.run.spots import (
    EACH,
    MOST_SAMPLES,
    Condition,
    Spot,
    conditions,
    most_sure,
    same_images,
    unadapted,
    worst_errors,
    worth_showing,
)

if TYPE_CHECKING:
    from haptera.run.work import Cell

log = logging.getLogger("haptera")

SAMPLES, FILE, KIND = "samples", "images.json", "set of sample images"
LAYOUT = 1
MODELS = 2
"""Models whose errors are shown."""
SIDE, SMALL = 96, 48
"""Pixels of a picture's longer side at most, and up to which it is a PNG; JPEG would add a shift of its own there."""
QUALITY = 88
PREFIX = "data:image/"
UNREADABLE = (HapteraError, OSError, ValueError, IndexError, RuntimeError)


def keep_samples(study: Ledger, cells: Sequence["Cell"]) -> None:
    """Write the pictures of a study into its folder, unless they are there.

    Args:
        study: its ledger.
        cells: of the study, with streams that can be read.
    """
    there = {piece.key for piece in study.finished}
    chosen = unadapted(cell for cell in cells if cell.entry.key in there)
    models = list(dict.fromkeys(cell.entry.model for cell in chosen))[:MODELS]
    chosen = [cell for cell in chosen if cell.entry.model in models]
    if not chosen:
        return
    keys = sorted(cell.entry.key for cell in chosen)
    piece = Piece(fingerprint(LAYOUT, keys), FILE, "sample images")
    with Ledger(study.folder / SAMPLES, KIND, noun="file") as ledger:
        if piece.key in ledger.pieces and not ledger.missing():
            return
        try:
            samples = [asdict(sample) for spot in _spots(study, chosen) for sample in _pictures(*spot)]
        except UNREADABLE as error:
            log.warning("the report will show no images: %s", error)
            return
        ledger.plan([piece], {"cells": keys})
        with ledger.writing(piece) as file:
            file.write(json.dumps(samples, separators=(",", ":")).encode())


def read_samples(study: Ledger) -> list[Sample]:
    """Return the pictures that a study kept; none where the cells that they were chosen from are no longer its own."""
    if not (study.folder / SAMPLES).is_dir():
        return []
    try:
        ledger = Ledger(study.folder / SAMPLES, KIND)
        known = ledger.about.get("cells", [])
        if not known or not ledger.pieces or not set(known) <= study.pieces.keys():
            return []
        path = ledger.checked(next(iter(ledger.pieces.values())))
        content = read_json(path)
        if not isinstance(content, list):
            raise HapteraError(f"{path} holds {type(content).__name__}; a list of images was expected")
        samples = [read_as(Sample, each, str(path), f"key in {path}") for each in content]
        return [sample for sample in samples if sample.image.startswith(PREFIX)]
    except HapteraError as error:
        log.warning("the images of the study are left out: %s", error)
        return []


def _spots(study: Ledger, cells: Sequence["Cell"]) -> Iterator[tuple[str, Spot]]:
    """Yield the samples of the first model, then the errors of each."""
    first, errors = cells[0].entry.model, dict[str, list[Spot]]()
    shown, wanted = dict[Condition, list[Spot]](), list[int]()
    places: dict[Condition, tuple[Cell, np.ndarray]] = {}
    for cell in (each for each in cells if each.entry.model == first):
        for condition, rows in conditions(Outputs.load(study.path(cell.entry.piece))).items():
            places.setdefault(condition, (cell, rows))
    chosen = worth_showing(places)
    parts = {(places[each][0].entry.stream, places[each][0].entry.part) for each in chosen}
    for cell in (each for each in cells if (each.entry.stream, each.entry.part) in parts):
        outputs = Outputs.load(study.path(cell.entry.piece))
        groups = {each: rows for each, rows in conditions(outputs).items() if each in chosen}
        errors.setdefault(cell.entry.model, []).extend(worst_errors(cell, outputs, groups))
        for condition, rows in groups.items():
            if places[condition][0] is cell:
                shown[condition] = same_images(cell, outputs, condition, rows, wanted)
    each = max(1, min(EACH, MOST_SAMPLES // max(len(chosen), 1)))
    yield from (("sample", spot) for condition in chosen for spot in shown[condition][:each])
    yield from (("error", spot) for own in errors.values() for spot in most_sure(own))


def _pictures(kind: str, spot: Spot) -> Iterator[Sample]:
    """Read a spot's image; nothing where the stream now has another image there, or something that is not a picture."""
    stream, entry = spot.cell.stream, spot.cell.entry
    batch = stream[spot.step % len(stream)]
    if spot.place >= len(batch) or int(batch.ids[spot.place]) != spot.id:
        return
    pixels = np.asarray(batch.inputs[spot.place])
    if pixels.ndim != 3 or pixels.shape[0] not in (1, 3):
        return
    names = stream.class_names
    wrong: dict[str, Any] = {}
    if kind == "error":
        told = _name(names if stream.classes is None else None, spot.predicted)
        wrong = {"predicted": told, "confidence": spot.confidence}
    shift, severity = spot.condition
    label = _name(names, spot.target)
    yield Sample(kind, entry.model, entry.adapter, shift, severity, label, picture(pixels), **wrong)


def _name(names: Sequence[str] | None, index: int | None) -> str:
    """Return the name of a class, or its number where it has none."""
    if index is None:
        return ""
    return names[index] if names is not None and 0 <= index < len(names) else str(index)


def picture(pixels: np.ndarray) -> str:
    """Return `(channels, height, width)` in [0, 1], or bytes, as a small picture in a data URI."""
    if pixels.dtype != np.uint8:
        pixels = (255 * np.nan_to_num(pixels).clip(0, 1)).round().astype(np.uint8)
    image = Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))
    image.thumbnail((SIDE, SIDE), Image.Resampling.BOX)
    kind = "PNG" if max(image.size) <= SMALL else "JPEG"
    settings: dict[str, Any] = {"optimize": True} if kind == "PNG" else {"quality": QUALITY}
    content = io.BytesIO()
    image.save(content, kind, **settings)
    return f"{PREFIX}{kind.lower()};base64,{b64encode(content.getvalue()).decode()}"
