"""Settings of a guard; every one has a default that suits a service with batches of any size."""

import os
from dataclasses import dataclass

from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError


@dataclass(frozen=True, kw_only=True)
class GuardSettings:
    """What a guard is told, all by name.

    Args:
        log: folder of the log and the snapshots; None for neither.
        name: what people call the model.
        shadow: serve the unadapted model, adapt beside it, and report what would have changed.
        alpha: the chance of any false alarm about the stream, ever (`haptera.live.alarms`).
        warmup: images that serve as the reference where there is no profile.
        window: images that count as recent.
        compare: share of the images that the unadapted model answers too while nothing is suspicious.
        largest: how much more of one class than the unadapted model, on the same images, is a sign of collapse.
        lost: how many nats less of entropy of the mean prediction are one.
        look: images that decide about a sign; more for streams that show one class for long.
        worse: the probability of falling back, ever, though the adapted model is not worse on labels or anchors.
        anchor_every: steps between looks at anchor images.
        anchor_images: of each look, drawn at random.
        anchor_margin: how much worse the adapted model may be on anchors, which are not what the stream shows.
        quarantine: images after a fall-back in which the adapter rests; twice as many after each further one.
        probation: images, at least, that it then adapts beside the served model before it may serve again.
        range: lowest and highest value of an input; by default half a range beyond what was seen first.
        remember: images whose predictions are kept for labels that arrive late.
        every: steps between rows of the log.
        rotate: rows of a parquet part.
        snapshot_every: steps between snapshots; 0 for none.
        keep_snapshots: how many, the newest.
        restore: go on from the newest snapshot of the log, if there is one.
        thumbnails: images to keep of the batch of an alarm or fall-back.
        thumbnails_before: batches before it of which as many are kept; until then they are in memory alone.
        seed: of all random numbers.
    """

    log: str | os.PathLike[str] | None = None
    name: str = ""
    shadow: bool = False
    alpha: float = 0.05
    warmup: int = 1000
    window: int = 1000
    compare: float = 0.01
    largest: float = 0.1
    lost: float = 0.2
    look: int = 256
    worse: float = 0.01
    anchor_every: int = 100
    anchor_images: int = 64
    anchor_margin: float = 0.05
    quarantine: int = 2000
    probation: int = 2000
    range: tuple[float, float] | None = None
    remember: int = 10_000
    every: int = 1
    rotate: int = 20_000
    snapshot_every: int = 1000
    keep_snapshots: int = 3
    restore: bool = True
    thumbnails: int = 0
    thumbnails_before: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("compare", "largest", "anchor_margin"):
            check_number(name, getattr(self, name), least=0, most=1, what="a share")
        for name in ("alpha", "worse"):
            check_number(name, getattr(self, name), above=0, below=1, what="a probability")
        check_number("lost", self.lost, above=0, what="a number of nats")
        for name in ("warmup", "window", "look", "anchor_images", "probation", "every", "rotate", "keep_snapshots"):
            check_whole_number(name, getattr(self, name))
        counts = ("anchor_every", "quarantine", "remember", "snapshot_every", "thumbnails", "thumbnails_before", "seed")
        for name in counts:
            check_whole_number(name, getattr(self, name), 0)
        if self.range is not None:
            low, high = self.range
            check_number("range", low, below=float("inf"), what="a lowest value")
            if not low < high:
                raise HapteraError(f"range is {self.range!r}; a lowest and a higher highest value were expected")
