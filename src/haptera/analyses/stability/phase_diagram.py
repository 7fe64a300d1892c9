"""Phase diagram: for which temperatures and cutoffs deformations are visible, and are bijections.

Source: "Relative stability toward diffeomorphisms indicates performance in deep nets", section 2.2 and figure 1.
Visible from δ = ½ pixel on, by the exact sum. Bijections by measurement: each field drawn folds from some factor on,
its largest positive eigenvalue of ∇τ having grown to 1, so one set of fields tells the share for every temperature.
Differs: figure 1 has δ = ½ in the text and δ = 1 in the caption; both lines are here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from math import pi

import numpy as np
import pandas as pd
import torch
from PIL import Image, ImageDraw, ImageFont

from haptera.errors import HapteraError
from haptera.shifts import Diffeo
from haptera.shifts.diffeo import displacement, gradient_norm, mode_temperature

CUTOFFS = (2, 3, 5, 10, 15, 30)
SMALLEST = CUTOFFS[0] + 2
"""Pixels on a side."""
ROWS = 6
DRAWS = 200
VISIBLE = 0.5
TILE, LEFT, TOP, GAP = 96, 96, 44, 6
INK, GOOD = "#1f2328", "#1a7f37"


@dataclass(frozen=True, eq=False)
class PhaseDiagram:
    """What deformations of one image look like, and where they are diffeomorphisms.

    Attributes:
        cells: `cutoff`, `temperature`, `delta`, `gradient_norm`, `bijective` (share of fields), `good`: at least half
            of the fields are bijections, and δ is at least ½.
        lines: `line`, `cutoff`, `temperature`: δ = ½, δ = 1, half of the fields fold, and (8/π³)/c².
        image: `(channels, height, width)`, in [0, 1].
        rule: of the cutoff.
        seed: of the fields.
    """

    cells: pd.DataFrame
    lines: pd.DataFrame
    image: torch.Tensor
    rule: str
    seed: int

    @cached_property
    def png(self) -> bytes:
        """The image at every temperature and cutoff, hot at the top, framed in green where that is a good place."""
        cutoffs, heats = (self.cells[name].drop_duplicates().sort_values() for name in ("cutoff", "temperature"))
        step = TILE + 2 * GAP
        sheet = Image.new("RGB", (LEFT + len(cutoffs) * step + GAP, TOP + len(heats) * step + GAP), "white")
        draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
        places = self.cells.set_index(["cutoff", "temperature"])["good"]
        for column, cutoff in enumerate(cutoffs):
            draw.text((LEFT + column * step + step // 2, TOP - 12), f"c = {cutoff:g}", INK, font, anchor="ms")
        for row, heat in enumerate(reversed(list(heats))):
            top = TOP + row * step
            draw.text((LEFT - 10, top + step // 2), f"T = {heat:.0e}", INK, font, anchor="rm")
            for column, cutoff in enumerate(cutoffs):
                left = LEFT + column * step
                if places[cutoff, heat]:
                    draw.rectangle((left, top, left + step - 1, top + step - 1), fill=GOOD)
                sheet.paste(self._tile(cutoff, heat), (left + GAP, top + GAP))
        file = BytesIO()
        sheet.save(file, "PNG", optimize=True)
        return file.getvalue()

    def _tile(self, cutoff: float, heat: float) -> Image.Image:
        moved = Diffeo(cutoff=cutoff, temperature=heat, rule=self.rule).fields([0], self.seed, *self.image.shape[-2:])
        pixels = moved.move(self.image[None])[0].clamp(0, 1).mul(255).round().byte().permute(1, 2, 0).numpy()
        if pixels.shape[2] not in (1, 3):
            pixels = pixels[..., :1]
        picture = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).convert("RGB")
        return picture.resize(
            (TILE, TILE), Image.Resampling.LANCZOS if min(pixels.shape[:2]) > TILE else Image.Resampling.NEAREST
        )


def phase_diagram(
    image: torch.Tensor,
    cutoffs: Sequence[float] | None = None,
    temperatures: Sequence[float] | None = None,
    *,
    rule: str = "printed",
    draws: int = DRAWS,
    seed: int = 0,
) -> PhaseDiagram:
    """Figure 1 of the source for an image.

    Args:
        image: `(channels, height, width)`, in [0, 1].
        cutoffs: by default 2, 3, 5, 10, 15 and 30, as far as the image has pixels for them.
        temperatures: by default from where δ is a quarter of a pixel to where half of the smoothest fields fold.
        rule: of the cutoff, `printed` or `reference`.
        draws: fields for each cutoff.
        seed: of the fields.
    """
    if image.ndim != 3:
        raise HapteraError(f"the image is {tuple(image.shape)}; (channels, height, width) was expected")
    height, width = image.shape[-2:]
    known = [cutoff for cutoff in cutoffs or CUTOFFS if cutoffs or cutoff <= min(height, width) - 2]
    if not known:
        raise HapteraError(f"images of {height} x {width} pixels are too small for a phase diagram")
    scales = {cutoff: _folding_heat(cutoff, height, width, rule, draws, seed) for cutoff in known}
    if temperatures is None:
        ends = mode_temperature(0.25, height, width, known[-1], rule), float(np.median(scales[known[0]]))
        temperatures = np.geomspace(*ends, ROWS).tolist()
    cells, lines = [], []
    for cutoff in known:
        for heat in temperatures:
            delta = displacement(heat, height, width, cutoff, rule)
            bijective = float((scales[cutoff] > heat).mean())
            row = {
                "cutoff": cutoff,
                "temperature": heat,
                "delta": delta,
                "gradient_norm": gradient_norm(heat, cutoff, rule),
            }
            cells.append(row | {"bijective": bijective, "good": bijective >= 0.5 and delta >= VISIBLE})
        marks = {
            "δ = ½": mode_temperature(0.5, height, width, cutoff, rule),
            "δ = 1": mode_temperature(1, height, width, cutoff, rule),
        }
        marks |= {"half of the fields fold": float(np.median(scales[cutoff])), "(8/π³)/c²": 8 / pi**3 / cutoff**2}
        lines += [{"line": line, "cutoff": cutoff, "temperature": heat} for line, heat in marks.items()]
    frame = pd.DataFrame(lines).sort_values(["line", "cutoff"], kind="stable", ignore_index=True)
    return PhaseDiagram(pd.DataFrame(cells), frame, image, rule, seed)


def _folding_heat(cutoff: float, height: int, width: int, rule: str, draws: int, seed: int) -> np.ndarray:
    """`(draws,)`: the temperature from which each field folds; fields grow with its square root."""
    fields = Diffeo(cutoff=cutoff, temperature=1e-6, rule=rule).fields(range(draws), seed, height, width)
    return (fields.folding_scales().double().numpy() ** 2) * 1e-6
