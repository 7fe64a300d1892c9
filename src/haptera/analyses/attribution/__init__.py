"""Attribution: which inputs of an encoder carry which of its latents, as a map and with a test."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from haptera.analyses.attribution.analysis import Attribution

__all__ = ["attribute"]


def attribute(
    folder: Path,
    *,
    recording: Path | None = None,
    method: str = "inverted_jacobian",
    jacobian_weight: float = 0.1,
    fits: int = 3,
    copies: int = 8,
    level: float = 0.05,
    seed: int = 0,
    out: Path | None = None,
    progress: bool | None = None,
) -> "Attribution":
    """Name the channels that carry a label, by attribution maps and a test against shuffled copies of the channels.

    Args:
        folder: what `haptera embed --out` wrote.
        recording: the recording, if it is no longer where it was.
        method: of attribution: inverted_jacobian, gradient, integrated_gradients, feature_ablation or shapley; the last
            are slow.
        jacobian_weight: of the term that keeps Jacobians small, in the fits.
        fits: with decoys beside the channels, each as long as that of embed.
        copies: decoys of each channel.
        level: rate of false discoveries.
        seed: of decoys and fits.
        out: a folder for the fits, which are not made again; by default `attribution` in the folder of the embedding.
        progress: show a bar; None does on a terminal.
    """
    from haptera.analyses.attribution.analysis import attribute_embedding
    from haptera.analyses.attribution.carriers import DecoyTest

    test = DecoyTest(method, fits, copies, level, seed)
    return attribute_embedding(folder, recording, test, jacobian_weight=jacobian_weight, out=out, progress=progress)
