"""Row: one row of tables 6.1 and 6.2, as a file has it, and everything that is found about it, as plain values.

A file in TOML has `[[rows]]`, each with process and model; everything else, at the top of the file or in a row, which
then counts, is optional:

    steps = 2000
    seeds = [0, 1, 2]
    [[rows]]
    process = "box/uniform/laplace=0.05"
    model = "box/laplace"
    supervised = true

Source: thesis chapter 6. Beside the scores stand what the theorems promise (the tables' column M.) and how far the
marginal is from uniform (figure 6.2). Different: the text marks a model whose concentration is not the process's as a
mismatch; here the size of the space is learnt, and with it the concentration.
Cost: that of `invert`, for each seed.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from haptera.analyses.identify.identifiability import Identifiability, latents_fit
from haptera.analyses.identify.inversion import LatentModel, invert
from haptera.analyses.identify.laws import GeneralisedNormal, Uniform, VonMisesFisher
from haptera.analyses.identify.processes import Process
from haptera.analyses.identify.settings import Training
from haptera.errors import HapteraError, check_keys
from haptera.files.fingerprint import SCHEMA, fingerprint
from haptera.files.schema import LARGEST, Kind, check, kinds_of, list_of, read_as, whole_number
from haptera.run.settings import read_study

WHAT = ("contrastive", "identity", "supervised")
MEASURES = ("r2", "mcc", "mcc_spearman")
TRAINING = tuple(field.name for field in fields(Training))
OWN = ("process", "model", "title")
"""Settings of one row, which the top of a file cannot give for all."""
SEEDS = Kind("a list of whole numbers", list_of(whole_number(-LARGEST)).fits)
LAST = 100
"""Steps at the end, of which the goodness of fit is the mean."""
POINTS = 200
"""Points of the loss over steps that are kept."""


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Attributes:
        process: as `Process.read` takes it.
        model: as `LatentModel.read` takes it.
        title: what the row is called; empty is process and model.
        dimensions: of the latents.
        steps: of training.
        batch_size: pairs, and as many negatives, of a step.
        learning_rate: of Adam, at first.
        supervised: teach another encoder the latents, for comparison.
        start: where the radius or side begins; None is near the process's.
        fixed: it stays there.
        device: of torch.
        seeds: each makes another mixing, other pairs and other weights.
    """

    process: str
    model: str
    title: str = ""
    dimensions: int = 4
    steps: int = 1000
    batch_size: int = 512
    learning_rate: float = 3e-3
    supervised: bool = False
    start: float | None = None
    fixed: bool = False
    device: str = "cpu"
    seeds: Annotated[tuple[int, ...], SEEDS] = (0,)

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise HapteraError(f"seeds is {list(self.seeds)}; at least one, each once and none below 0, was expected")
        self.key(self.seeds[0])  # says so if a process, a model or a number cannot be used

    @property
    def name(self) -> str:
        """Return the title, or what there is instead."""
        return self.title or f"{self.process} → {self.model}"

    @property
    def training(self) -> Training:
        """Return how its encoders are trained."""
        return Training(**{name: getattr(self, name) for name in TRAINING})

    def key(self, seed: int) -> str:
        """Return a fingerprint of everything that decides the result; the device and the title do not."""
        made, assumed = Process.read(self.process, self.dimensions, seed), LatentModel.read(self.model)
        how = self.training
        training = [how.steps, how.batch_size, float(how.learning_rate), how.supervised]
        start = assumed.start(made) if how.start is None else float(how.start)
        return fingerprint(SCHEMA, "identify", made, assumed, training, start, how.fixed)


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file."""
    content = read_study(path)
    kinds = kinds_of(Row)
    check_keys(f"key in {path}", content, {"rows", *kinds} - set(OWN))
    shared = {key: value for key, value in content.items() if key != "rows"}
    check(shared, kinds, str(path), missing=tuple(kinds))
    tables = content.get("rows", [])
    if not isinstance(tables, list) or not tables or not all(isinstance(table, Mapping) for table in tables):
        raise HapteraError(f"{path}: rows is {tables!r}; tables, [[rows]], with process and model were expected")
    rows = []
    for number, table in enumerate(tables, 1):
        where, key = f"{path}, row {number}", f"key of row {number} in {path}"
        check_keys(key, table, kinds)
        if missing := [name for name in ("process", "model") if name not in table]:
            raise HapteraError(f"{where}: there is no {missing[0]}; process and model were expected")
        try:
            rows.append(read_as(Row, shared | table, where, key))
        except HapteraError as error:
            if where in str(error):
                raise
            raise HapteraError(f"{where}: {error}") from error
    return rows


def run_row(row: Row, seed: int, *, progress: bool | None = False) -> dict[str, Any]:
    """Run a row with one seed.

    Returns:
        Its settings; `size` (radius or side in the end), `goodness_of_fit`, `latents_fit` (the same of the latents
        themselves; NaN where they do not live in the model's space), `condition` of the mixing,
        `mass_from_uniform` (NaN where there is no uniform law, or no density), `promised`, `seconds`; the scores of
        `contrastive`, `identity` and, if asked for, `supervised`; and the `loss` over steps.
    """
    begin = time.perf_counter()
    made, assumed = Process.read(row.process, row.dimensions, seed), LatentModel.read(row.model)
    found = invert(made, assumed, row.training, seed=seed, progress=progress)
    settings = ("process", "model", "dimensions", "steps", "batch_size", "learning_rate", "start", "fixed")
    measured = {
        "size": found.encoder.output.size,
        "goodness_of_fit": float(found.loss[-LAST:].mean()),
        "latents_fit": _latents_fit(made, assumed, row.batch_size, seed),
        "condition": made.mixing.condition,
        "mass_from_uniform": _mass(made),
        "promised": promised(made, assumed),
        "seconds": time.perf_counter() - begin,
    }
    parts = {what: getattr(found, what) for what in WHAT if getattr(found, what) is not None}
    return (
        {"title": row.name, **{name: getattr(row, name) for name in settings}, "seed": seed}
        | measured
        | {what: _scores(part) for what, part in parts.items()}
        | {"loss": _thinned(found.loss)}
    )


def promised(process: Process, model: LatentModel) -> str:
    """What the theorems say of the best encoder: found up to an `affine map`, up to `order and sign`, or `nothing`.

    Both need a uniform marginal, the model's space to be the process's, and its law that of the pairs; of that law the
    scale need not be known, as the size of the space is learnt. On the sphere theorem 4, in a box theorem 7, and
    theorem 8 unless the law is normal.

    >>> promised(Process.read("box/uniform/laplace=0.05"), LatentModel.read("box/laplace"))
    'order and sign'
    >>> promised(Process.read("box/uniform/laplace=0.05"), LatentModel.read("box/normal"))
    'nothing'
    """
    law = process.conditional
    if process.space != model.space or not isinstance(process.marginal, Uniform):
        return "nothing"
    if process.space == "sphere":
        return "affine map" if isinstance(law, VonMisesFisher) and model.exponent is None else "nothing"
    if not isinstance(law, GeneralisedNormal) or law.beta != model.exponent or law.beta < 1:
        return "nothing"
    return "affine map" if law.beta == 2 else "order and sign"


def _latents_fit(process: Process, model: LatentModel, batch_size: int, seed: int) -> float:
    if model.space == "sphere" and process.space != "sphere":
        return float("nan")
    return latents_fit(process, model.loss(), batch_size, model.start(process), seed)


def _mass(process: Process) -> float:
    try:
        return process.mass_from_uniform()
    except HapteraError:  # unbounded space has no uniform law, noise on the sphere no density
        return float("nan")


def _scores(part: Identifiability) -> dict[str, Any]:
    scores = {measure: getattr(part, measure) for measure in MEASURES}
    content: dict[str, Any] = {name: score.value for name, score in scores.items()}
    content |= {f"{name}_interval": [score.low, score.high] for name, score in scores.items()}
    null = {"rotation_mcc": part.rotation_mcc, "rotation_high": part.rotation_high}
    return content | {"permutation": part.permutation.tolist(), **null, "n": part.n}


def _thinned(loss: np.ndarray) -> dict[str, list[float]]:
    """Means over neighbouring steps, and the last step of each."""
    parts = np.array_split(loss, min(POINTS, len(loss)))
    ends = np.cumsum([len(part) for part in parts])
    return {"step": ends.tolist(), "loss": [float(part.mean()) for part in parts]}
