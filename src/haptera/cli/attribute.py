"""`attribute`: which channels of an embedded recording carry what it was embedded by."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from haptera.analyses.attribution.analysis import Attribution


def attribute(
    folder: Annotated[Path, typer.Argument(help="What `haptera embed --out` wrote.", show_default=False)],
    recording: Annotated[
        Path | None, typer.Option(help="The recording, if it is no longer where it was.", show_default=False)
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="inverted_jacobian, gradient, integrated_gradients, feature_ablation or shapley (the last are slow)."
        ),
    ] = "inverted_jacobian",
    jacobian_weight: Annotated[float, typer.Option(help="Of the term that keeps Jacobians small, in the fits.")] = 0.1,
    fits: Annotated[int, typer.Option(help="Fits beside decoys, each as long as that of embed.")] = 3,
    copies: Annotated[int, typer.Option(help="Decoys of each channel.")] = 8,
    level: Annotated[float, typer.Option(help="Rate of false discoveries.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Of decoys and fits.")] = 0,
    out: Path | None = None,
    progress: bool | None = None,
) -> "Attribution":
    """Name the channels that carry a label, by attribution maps and a test against shuffled copies of the channels.

    Without --out, everything is written into `attribution` inside FOLDER.
    """
    from haptera.analyses.attribution import DecoyTest
    from haptera.analyses.attribution import attribute as run

    test = DecoyTest(method, fits, copies, level, seed)
    return run(folder, recording, jacobian_weight=jacobian_weight, test=test, out=out, progress=progress)
