"""Stability as a stream: every image as it is, then deformed, then with noise of the same norm.

Source: "Relative stability toward diffeomorphisms indicates performance in deep nets", equation (4). The outputs of one
cell then hold all that the measures `relative_stability`, `diffeo_stability` and `noise_stability` need, so a study has
them for every network and adapter, and a stopped one goes on. No labels: images with noise leave [0, 1], and the
images as they are would count twice as clean data.
Cost: three passes over `first` images, and one more deformation of them to know the norm of the noise.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch

from haptera.batch import Batch
from haptera.checks import check_whole_number
from haptera.errors import HapteraError
from haptera.measures.relative_stability import PARTS
from haptera.shifts import Diffeo, sphere_noise, squared_changes
from haptera.streams.base import Reader, Turns


@dataclass(frozen=True)
class Stability(Turns, Reader):
    """Images as they are, deformed, and with noise, in three passes; `context["shift"]` says which.

    Ids are positions; `context["sample"]` is the sample's number in the data set. The noise has the median norm of the
    deformations.

    Args:
        data: what is read; labels are not.
        delta: by how many pixels the centre moves, root mean square.
        cutoff: of the deformations' modes.
        first: how many images, at most; drawn by the seed if the stream is shuffled.
    """

    delta: float = 1.0
    cutoff: float = 3.0
    first: int = 500
    name: str = field(default="stability", kw_only=True)

    labelled: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole_number(f"first of the stream {self.name!r}", self.first)
        _ = self._shift

    @property
    def turn_sizes(self) -> list[int]:
        """Three times as many as there are images: as they are, deformed, with noise."""
        return [self.turn_size] * len(PARTS)

    @property
    def turn_size(self) -> int:
        """How many images there are."""
        return min(self.first, len(self.data))

    def __getitem__(self, index: int) -> Batch:
        turn, inside = self.locate(index)
        part, places = PARTS[turn], self.arrange(len(self.data))[inside]
        rows = torch.from_numpy(self.data.rows[places])
        images = self.data.images(places)
        if part == "diffeo":
            images = self._shift(images, rows, self.seed)
        elif part == "sphere_noise":
            images = images + sphere_noise(images, self.radius, rows, self.seed)
        severity = 0.0 if part == "clean" else float(self.delta)
        context = {"shift": part, "severity": severity, "sample": self.data.rows[places]}
        return Batch(images, None, torch.from_numpy(inside + turn * self.turn_size), context)

    @property
    def radius(self) -> float:
        """The median norm of what the deformations change."""
        return self._radius

    @cached_property
    def _radius(self) -> float:  # without the underscore it would be part of the fingerprint
        norms = []
        for batch in range(self.batches(self.turn_size)):
            places = self.arrange(len(self.data))[self.places(batch, self.turn_size)]
            images = self.data.images(places)
            moved = self._shift(images, torch.from_numpy(self.data.rows[places]), self.seed)
            norms.append(squared_changes(images, moved).sqrt())
        radius = float(np.median(torch.cat(norms).numpy()))
        if not radius:
            raise HapteraError(
                f"stability is undefined: deformations leave most of {self.turn_size} images as they are, but for "
                "rounding, as they do with images of one colour"
            )
        return radius

    @cached_property
    def _shift(self) -> Diffeo:
        return Diffeo(self.delta, self.cutoff)
