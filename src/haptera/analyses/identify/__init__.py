"""Identify: does contrastive learning find latents that are known?"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from haptera.errors import HapteraError

if TYPE_CHECKING:
    from haptera.analyses.identify.analysis import Identification

__all__ = ["Training", "identify"]

PROCESS, MODEL = "sphere/uniform/vmf=10", "sphere/vmf"


@dataclass(frozen=True, kw_only=True)
class Training:
    """How an encoder is trained on pairs of a process.

    Attributes:
        steps: of training.
        batch_size: pairs, and as many negatives, in a step.
        learning_rate: of Adam, at first; it falls to 0.
        supervised: teach another encoder the latents as well, for comparison.
        start: where radius or side begins; by default near the process's.
        fixed: radius or side stay where they begin, instead of being learnt.
        device: of torch, cpu or cuda.
    """

    steps: int = 1000
    batch_size: int = 512
    learning_rate: float = 3e-3
    supervised: bool = False
    start: float | None = None
    fixed: bool = False
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "learning_rate", "start"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise HapteraError(f"{name} is {value}; more than 0 was expected")


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
        process: as space/marginal/conditional: sphere/uniform/vmf=10, ...; box/uniform/laplace=0.05/pictures (or
            /masks) draws what the latents are factors of.
        model: as space/law: sphere/vmf, box/laplace, box/gennorm=3, unbounded/normal, ...; or slowvae, for pictures.
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
