"""Preflight: is a model set up for its images as it was trained, so that its numbers can be trusted?"""

from dataclasses import dataclass


@dataclass(frozen=True)
class PreflightSettings:
    """How closely to look.

    Attributes:
        samples: images, spread over the classes, at most; fewer for a model that would take too long.
        batch_size: images per forward pass.
        seconds: the time that all checks together may take, about.
        seed: of the choice of images.
    """

    samples: int = 256
    batch_size: int = 64
    seconds: float = 60.0
    seed: int = 0
