"""Images: what the models saw, clean and under each shift, and the mistakes of which they were most sure."""

from collections.abc import Sequence
from dataclasses import dataclass

from haptera.report.section import Gallery, Section, Tile
from haptera.report.study.cells import CLEAN

TEXT = "What the models saw, and where they were wrong and sure of it. Small copies, as kept when the study ran."
SHOWN = (
    "The same images, in the same order, {clean}under each shift at its smallest and its largest severity; as many "
    "shifts as fit."
)
UNKNOWN = " No stream of the study shows them clean."
WRONG = (
    "Of each model the mistakes of which it was most sure without an adapter, at most two under one shift: the label, "
    "what was predicted, and the probability that the model gave to it. A wrong label in the data shows here first."
)


@dataclass(frozen=True)
class Sample:
    """One picture and what is known about it.

    Attributes:
        kind: `sample` or `error`.
        model: who said what was predicted.
        adapter: with which adapter.
        shift: what the image is under; `clean` for nothing.
        severity: of the shift; None where it has none.
        label: the name of its class, or its number; empty without labels.
        image: the picture as a data URI.
        predicted: what the model said, of errors.
        confidence: the probability that the model gave to that.
    """

    kind: str
    model: str
    adapter: str
    shift: str
    severity: float | None
    label: str
    image: str
    predicted: str = ""
    confidence: float | None = None

    @property
    def condition(self) -> str:
        """Return a text such as `fog 5`."""
        return self.shift if not self.severity else f"{self.shift} {self.severity:g}"


def section(samples: Sequence[Sample]) -> Section | None:
    """Return the section, or None where no images were kept."""
    strips: dict[str, list[Sample]] = {}
    for sample in samples:
        if sample.kind == "sample":
            strips.setdefault(sample.condition, []).append(sample)
    shown = [Tile(name, tuple(each.image for each in strip), labels(strip)) for name, strip in strips.items()]
    errors = [error_tile(each) for each in samples if each.kind == "error"]
    clean = CLEAN in strips
    caption = SHOWN.format(clean="clean and " if clean else "") + ("" if clean else UNKNOWN)
    galleries = Gallery("Samples", caption, tuple(shown)), Gallery("Worst errors", WRONG, tuple(errors))
    known = tuple(gallery for gallery in galleries if gallery.tiles)
    return Section("Images", TEXT, galleries=known) if known else None


def labels(strip: Sequence[Sample]) -> str:
    """Return the labels of images beside one another."""
    return ", ".join(each.label for each in strip if each.label)


def error_tile(error: Sample) -> Tile:
    """Return a picture with label, prediction and confidence."""
    sure = "" if error.confidence is None else f"{_percent(error.confidence)} sure · "
    who = error.model if error.adapter in ("", "none") else f"{error.model} with {error.adapter}"
    return Tile(f"{error.label} → {error.predicted}", (error.image,), f"{sure}{error.condition} · {who}")


def _percent(share: float) -> str:
    """Return a probability in percent; what is not certain is never called so."""
    return "over 99.9 %" if share > 0.999 else f"{100 * share:.1f} %" if share > 0.99 else f"{100 * share:.0f} %"
