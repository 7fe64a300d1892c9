"""Stability: how networks respond to smooth deformations, relative to noise of the same norm."""

from collections.abc import Sequence
from dataclasses import dataclass

SETTING = ["delta", "cutoff", "interpolation"]
"""What describes one kind of deformation."""
INIT = ", init"
"""What follows the name of a network for the same network before training."""


@dataclass(frozen=True)
class StabilitySettings:
    """Which deformations, on how many images, and against which noise.

    Attributes:
        delta: displacement of the centre in pixels; several give a curve.
        cutoff: of the waves of a deformation; several give a curve each.
        interpolation: of the pixels: bilinear or gaussian, or both.
        rule: of the cutoff: printed, or reference as the published code has it.
        resample: draw fields that fold again.
        samples: images, at most; drawn by the seed.
        batch_size: images per forward pass, of which a third are as they are; 32 suits a CPU.
        sphere: the norm of the noise: median or mean; what the other aggregate sees is scaled.
        draws: of images, for the intervals.
        seed: of images, deformations, noise and draws.
    """

    delta: Sequence[float] = (1.0,)
    cutoff: Sequence[float] = (3.0,)
    interpolation: Sequence[str] = ("bilinear",)
    rule: str = "printed"
    resample: bool = False
    samples: int = 500
    batch_size: int = 32
    sphere: str = "median"
    draws: int = 200
    seed: int = 0
