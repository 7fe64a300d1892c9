"""Identify: does contrastive learning find latents that are known?"""

from pathlib import Path
from typing import TYPE_CHECKING

from haptera.analyses.identify.settings import Training
from haptera.errors import HapteraError

if TYPE_CHECKING:
    from haptera.analyses.identify.analysis import Identification

__all__ = ["identify"]

PROCESS, MODEL = "sphere/uniform/vmf=10", "sphere/vmf"
TRAINING = Training()


def identify(
    file: Path | None = None,
    /,
    *,
    process: str = PROCESS,
    model: str = MODEL,
    dimensions: int = 4,
    training: Training = TRAINING,
    seed: int = 0,
    out: Path | None = None,
    progress: bool | None = None,
) -> "Identification":
    """Mix known latents, learn from pairs alone, and say how far the latents were found.

    Args:
        file: rows of tables (TOML); or one row by the options.
        process: as space/marginal/conditional: sphere/uniform/vmf=10, box/uniform/laplace=0.05, ...
        model: as space/law: sphere/vmf, box/laplace, box/gennorm=3, unbounded/normal, ...
        dimensions: of the latents.
        training: of the encoder.
        seed: of mixing, pairs and weights.
        out: a folder for finished rows, which are not run again.
        progress: show a bar; None does on a terminal.
    """
    asked = {"process": process, "model": model, "dimensions": dimensions, **vars(training)}
    if file is not None:
        usual = {"process": PROCESS, "model": MODEL, "dimensions": 4, **vars(TRAINING), "seed": 0}
        if given := [name for name, value in {**asked, "seed": seed}.items() if value != usual[name]]:
            option = given[0].replace("_", "-")
            raise HapteraError(f"--{option} is for one row, and the rows of {file} have their own; write it there")
        if out is None:
            raise HapteraError(f"{file} has rows of tables, which need --out, a folder for what is finished")
    from haptera.analyses.identify.analysis import Row, identify_rows

    rows = Row(**asked, seeds=(seed,)) if file is None else file
    return identify_rows(rows, out=out, progress=progress)
