"""A contact sheet: one photograph under every corruption at every severity.

Run it as `python examples/contact_sheet.py [FOLDER]`; it writes `contact_sheet.jpg`. Another photograph, side of the
tiles or table of constants is a change of one line.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from sklearn.datasets import load_sample_image

from haptera.catalog import entries, find

SEVERITIES = (0, 1, 2, 3, 4, 5)
SIDE, LEFT, TOP, GAP = 96, 150, 60, 3  # pixels: a tile, room for names, room for numbers, between tiles
INK, FAINT = "#1f2328", "#6e7781"


def photograph() -> torch.Tensor:
    """`(1, 3, SIDE, SIDE)`, the middle of a photograph that comes with scikit-learn."""
    photo = Image.fromarray(load_sample_image("china.jpg"))
    start = (photo.width - photo.height) // 2
    square = photo.crop((start, 0, start + photo.height, photo.height)).resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    return torch.from_numpy(np.array(square)).permute(2, 0, 1)[None] / 255


def main(folder: Path) -> None:
    """Draw the sheet, a row for each corruption; white behind it, so that it reads on any page."""
    clean = photograph()
    shifts = [shift for shift in (find("shifts", name) for name in entries("shifts")) if shift.tables]
    shifts.sort(key=lambda shift: ("noise", "blur", "weather", "digital").index(shift.family))
    step = SIDE + GAP
    sheet = Image.new("RGB", (LEFT + len(SEVERITIES) * step + 9, TOP + len(shifts) * step + 9), "white")
    draw, large, small = ImageDraw.Draw(sheet), ImageFont.load_default(15), ImageFont.load_default(12)
    for column, severity in enumerate(SEVERITIES):
        middle = LEFT + column * step + SIDE // 2
        draw.text((middle, TOP - 9), f"{severity or '0, clean'}", INK, large, anchor="ms")
    draw.text((LEFT + len(SEVERITIES) * step // 2, 24), "severity", FAINT, small, anchor="ms")
    for row, shift in enumerate(shifts):
        top = TOP + row * step
        words = f"{shift.family}, hold-out" if shift.holdout else shift.family
        draw.text((12, top + SIDE // 2), shift.name.replace("_", " "), INK, large, anchor="ls")
        draw.text((12, top + SIDE // 2 + 18), words, FAINT, small, anchor="ls")
        for column, severity in enumerate(SEVERITIES):
            pixels = shift(severity)(clean)[0].mul(255).round().byte().permute(1, 2, 0).numpy()
            sheet.paste(Image.fromarray(pixels), (LEFT + column * step, top))
    path = folder / "contact_sheet.jpg"
    sheet.save(path, quality=80, optimize=True)
    print(f"{len(shifts)} corruptions at {len(SEVERITIES)} severities: {path}, {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="haptera-")))
