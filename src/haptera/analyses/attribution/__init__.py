"""Attribution: which inputs of an encoder carry which of its latents, as a map and with a test."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from haptera.checks import check_number
from haptera.errors import HapteraError, check_keys, unknown

if TYPE_CHECKING:
    from haptera.analyses.attribution.analysis import Attribution

__all__ = ["DecoyTest", "attribute"]

METHODS = ("inverted_jacobian", "gradient", "integrated_gradients", "feature_ablation", "shapley")


@dataclass(frozen=True)
class DecoyTest:
    """How channels are compared with their decoys.

    Attributes:
        method: of attribution: inverted_jacobian, gradient, integrated_gradients, feature_ablation or shapley; the last
            are slow.
        fits: with decoys beside the channels, each as long as that of embed; their maps are averaged. 0 leaves out the
            test: only the map of the model in the folder, in seconds.
        copies: decoys of each channel.
        level: rate of false discoveries among the channels that are named.
        seed: of decoys and fits.
    """

    method: str = "inverted_jacobian"
    fits: int = 3
    copies: int = 8
    level: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise unknown("method", self.method, METHODS)
        if self.fits < 0 or self.copies < 2:
            raise HapteraError(
                f"fits is {self.fits}, copies {self.copies}; at least 1 fit, or 0 for the map alone, and 2 decoys of a "
                "channel, expected"
            )
        check_number("level", self.level, above=0, below=1, what="a rate")


def attribute(
    folder: Path,
    *,
    recording: Path | None = None,
    jacobian_weight: float | None = None,
    part: str | None = None,
    truth: Path | None = None,
    out: Path | None = None,
    progress: bool | None = None,
    **settings: Annotated[Any, DecoyTest],
) -> "Attribution":
    """Name the channels that carry a label, by attribution maps and a test against shuffled copies of the channels.

    Args:
        folder: what `haptera embed --out` wrote.
        recording: the recording, if it is no longer where it was.
        jacobian_weight: of the term that keeps Jacobians small, in the fits; that of the embedding, or 0.1.
        part: of an embedding by parts, the label whose dimensions are attributed; the first if left out.
        truth: where it is known which channels carry the label, a .npy or text file with 1 or 0 for each, to score by.
        out: a folder for the fits, which are not made again; by default `attribution` in the folder of the embedding.
        progress: show a bar; None does on a terminal.
        **settings: those of `DecoyTest`: `method`, `fits`, `copies`, `level`, `seed`.
    """
    check_keys("setting of attribute", settings, DecoyTest.__match_args__)
    test = DecoyTest(**settings)
    from haptera.analyses.attribution.analysis import attribute_embedding

    of: dict[str, Any] = {"jacobian_weight": jacobian_weight, "part": part, "truth": truth}
    return attribute_embedding(folder, recording, test, **of, out=out, progress=progress)
