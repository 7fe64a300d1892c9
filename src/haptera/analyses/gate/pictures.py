"""Pictures: thumbnails of the worst images, under the first shift in which they got lost."""

from collections.abc import Iterable
from io import BytesIO

import numpy as np
import pandas as pd
import torch
from PIL import Image, ImageDraw

from haptera import catalog
from haptera.batch import Stream
from haptera.data import CorruptedImages, Data
from haptera.report.section import Picture

COLUMNS, SHOWN, SIDE = 8, 24, 96
CAPTION = "Each under the first of its shifts that is at hand, with its number; right before and wrong now."


def data_of(streams: Iterable[Stream]) -> Data | CorruptedImages | None:
    """Return the data that streams show; None where they do not say."""
    for stream in streams:
        base: object = stream
        while base is not None:
            if isinstance(found := getattr(base, "data", None), Data | CorruptedImages):
                return found
            base = getattr(base, "stream", None)
    return None


def thumbnails(worst: pd.DataFrame, data: Data | CorruptedImages) -> list[Picture]:
    """Return one picture with the worst images; none where the data has none of them.

    Args:
        worst: from `worst_images`.
        data: what the studies were run on.
    """
    made = []
    for row in worst.head(SHOWN).to_dict("records"):
        shifted = shifted_image(data, int(row["image"]), str(row["shifts"]).split(", ")[0])
        if shifted is not None:
            made.append((shifted, f"{row['image']}"))
    return [Picture("Right before, wrong now", CAPTION, _sheet(made))] if made else []


def shifted_image(data: Data | CorruptedImages, number: int, place: str) -> torch.Tensor | None:
    """Return an image of a data set under a shift such as `contrast 4`; as it is where the shift is not in the catalog.

    Args:
        data: clean, or corrupted already.
        number: of the image in its source.
        place: shift and severity.
    """
    name, _, severity = place.rpartition(" ")
    name, strength = (name, float(severity)) if name and severity.replace(".", "", 1).isdigit() else (place, 0.0)
    if isinstance(data, CorruptedImages):
        parts = [part.data for part in data.parts if part.shift == name and part.severity in (strength, None)]
        parts = parts or [part.data for part in data.parts]
        return _read(parts[0], number)
    image = _read(data, number)
    if image is None or name not in catalog.entries("shifts") or not strength:
        return image
    shifted: torch.Tensor = catalog.find("shifts", name)(strength)(image[None], ids=[number])[0]
    return shifted


def _read(data: Data, number: int) -> torch.Tensor | None:
    positions = np.flatnonzero(data.rows == number)
    return data.images(positions[:1])[0] if len(positions) else None


def _sheet(images: list[tuple[torch.Tensor, str]]) -> bytes:
    """Return a PNG with all images, eight in a row."""
    rows = -(-len(images) // COLUMNS)
    sheet = Image.new("RGB", (min(len(images), COLUMNS) * (SIDE + 8), rows * (SIDE + 24)), (24, 24, 28))
    for place, (image, caption) in enumerate(images):
        row, column = divmod(place, COLUMNS)
        left, top = column * (SIDE + 8) + 4, row * (SIDE + 24) + 4
        pixels = (255 * image.clamp(0, 1)).round().byte().permute(1, 2, 0).numpy()
        shown = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels[..., :3]).convert("RGB")
        method = Image.Resampling.NEAREST if shown.width < SIDE else Image.Resampling.BICUBIC
        sheet.paste(shown.resize((SIDE, SIDE), method), (left, top))
        ImageDraw.Draw(sheet).text((left + 2, top + SIDE + 3), caption, fill=(230, 230, 230))
    buffer = BytesIO()
    sheet.save(buffer, "PNG")
    return buffer.getvalue()
