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
Figure 6.2 shows how R² falls when the marginal is concentrated, beside the mass that must move to make it uniform. Rows
belong to one family that differ in nothing but the concentration of their marginal: κ of a von Mises-Fisher law on the
sphere, 1/σ² of a normal law in a box; a uniform marginal has 0.
Cost: that of `invert`, for each seed.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from haptera.analyses.identify import Training
from haptera.analyses.identify.identifiability import Identifiability, latents_fit
from haptera.analyses.identify.inversion import LatentModel, invert
from haptera.analyses.identify.laws import GeneralisedNormal, Uniform, VonMisesFisher
from haptera.analyses.identify.processes import MIXED, Process
from haptera.errors import HapteraError, check_keys
from haptera.files.fingerprint import SCHEMA, fingerprint
from haptera.files.schema import LARGEST, Kind, check, kinds_of, list_of, read_as, whole_number
from haptera.run.settings import read_study

WHAT = ("contrastive", "identity", "supervised")
MEASURES = ("r2", "mcc", "mcc_spearman")
SCORES = {"r2": "R²", "mcc": "MCC"}
"""Measures that are spoken of."""
FITS = ["goodness_of_fit", "latents_fit"]
LAWS = {"sphere": "vmf", "box": "normal"}
SAME = ["family", "dimensions", "steps", "batch_size", "learning_rate", "start"]
OWN = ("process", "model", "title")
"""Settings of one row, which the top of a file cannot give for all."""
SEEDS = Kind("a list of whole numbers", list_of(whole_number(-LARGEST)).fits)
LAST = 100
"""Steps at the end, of which the goodness of fit is the mean."""
POINTS = 200
"""Points of the loss over steps that are kept."""


@dataclass(frozen=True)
class Row(Training):
    """One row of a table, and how its encoders are trained.

    Attributes:
        process: as `Process.read` takes it.
        model: as `LatentModel.read` takes it.
        title: what the row is called; empty is process and model.
        dimensions: of the latents.
        seeds: each makes another mixing, other pairs and other weights.
    """

    process: str
    model: str
    title: str = ""
    dimensions: int = 4
    seeds: Annotated[tuple[int, ...], SEEDS] = (0,)

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise HapteraError(f"seeds is {list(self.seeds)}; at least one, each once and none below 0, was expected")
        super().__post_init__()
        self.key(self.seeds[0])  # says so if a process or a model cannot be used

    @property
    def name(self) -> str:
        """Return the title, or what there is instead."""
        return self.title or f"{self.process} → {self.model}"

    def key(self, seed: int) -> str:
        """Return a fingerprint of everything that decides the result; the device and the title do not."""
        made, assumed = Process.read(self.process, self.dimensions, seed), LatentModel.read(self.model)
        training = [self.steps, self.batch_size, float(self.learning_rate), self.supervised]
        start = assumed.start(made) if self.start is None else float(self.start)
        return fingerprint(SCHEMA, "identify", made, assumed, training, start, self.fixed)


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
    found = invert(made, assumed, row, seed=seed, progress=progress)
    settings = ("process", "model", "dimensions", "steps", "batch_size", "learning_rate", "start", "fixed")
    measured = {
        "size": found.encoder.output.size,
        "goodness_of_fit": float(found.loss[-LAST:].mean()),
        "latents_fit": _latents_fit(made, assumed, row.batch_size, seed),
        "condition": made.mixing.condition if made.seen == MIXED else float("nan"),
        "mass_from_uniform": _mass(made),
        "promised": promise_of(made, assumed),
        "seconds": time.perf_counter() - begin,
    }
    parts = {what: getattr(found, what) for what in WHAT if getattr(found, what) is not None}
    return (
        {"title": row.name, **{name: getattr(row, name) for name in settings}, "seed": seed}
        | measured
        | {what: _scores(part) for what, part in parts.items()}
        | {"loss": _thin(found.loss)}
    )


def promise_of(process: Process, model: LatentModel) -> str:
    """What the theorems say of the best encoder: found up to an `affine map`, up to `order and sign`, or `nothing`.

    Both need a uniform marginal, the model's space to be the process's, and its law that of the pairs; of that law the
    scale need not be known, as the size of the space is learnt. On the sphere theorem 4, in a box theorem 7, and
    theorem 8 unless the law is normal.

    >>> promise_of(Process.read("box/uniform/laplace=0.05"), LatentModel.read("box/laplace"))
    'order and sign'
    >>> promise_of(Process.read("box/uniform/laplace=0.05"), LatentModel.read("box/normal"))
    'nothing'
    """
    law = process.conditional
    if process.space != model.space or not isinstance(process.marginal, Uniform) or model.generative:
        return "nothing"
    if process.space == "sphere":
        return "affine map" if isinstance(law, VonMisesFisher) and model.exponent is None else "nothing"
    if not isinstance(law, GeneralisedNormal) or law.beta != model.exponent or law.beta < 1:
        return "nothing"
    return "affine map" if law.beta == 2 else "order and sign"


def _latents_fit(process: Process, model: LatentModel, batch_size: int, seed: int) -> float:
    if (model.space == "sphere" and process.space != "sphere") or model.generative:
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


def _thin(loss: np.ndarray) -> dict[str, list[float]]:
    """Means over neighbouring steps, and the last step of each."""
    parts = np.array_split(loss, min(POINTS, len(loss)))
    ends = np.cumsum([len(part) for part in parts])
    return {"step": ends.tolist(), "loss": [float(part.mean()) for part in parts]}


def per_row(scores: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each row: `r2`, `mcc`, `rotation_mcc` and `rotation_high` of the encoder, means over seeds."""
    own = scores[(scores["what"] == "contrastive") & scores["measure"].isin(list(SCORES))]
    means = own.pivot_table(index="title", columns="measure", values="value", sort=False)
    null = own.groupby("title", sort=False)[["rotation_mcc", "rotation_high"]].mean()
    return means.join(null).reset_index()[["title", "r2", "mcc", "rotation_mcc", "rotation_high"]]


def families(scores: pd.DataFrame) -> pd.DataFrame:
    """Return `family`, `concentration`, `pairs` (that of the conditional), `mass`, `r2`, `low`, `high`, `seeds`.

    One line for each concentration, those of a family in order: the mean over seeds, the least and the largest. Empty
    where no rows differ in the concentration alone. The name of a family has the settings in which others of that name
    differ.
    """
    own = scores[(scores["what"] == "contrastive") & (scores["measure"] == "r2")]
    parts = (own["process"] + "/").str.split("/", expand=True).iloc[:, :4]  # the fourth, how it is seen, may be empty
    parts = parts.set_axis(["space", "marginal", "conditional", "seen"], axis=1)
    space = parts["space"].where(parts["seen"] == "", parts["space"] + ", " + parts["seen"])
    own = own.assign(
        family=space + ", pairs by " + parts["conditional"] + " → " + own["model"],
        concentration=[concentration(space, law) for space, law in parts[["space", "marginal"]].to_numpy()],
        pairs=[concentration(space, law) for space, law in parts[["space", "conditional"]].to_numpy()],
    )
    alike = own.groupby(SAME, sort=False, dropna=False)
    own = own.assign(group=alike.ngroup())[alike["concentration"].transform("nunique") > 1]
    name = own["family"]
    for key in SAME[1:]:
        differs = own.groupby("family")[key].transform("nunique", dropna=False) > 1
        value = own[key].map("{:g}".format).astype(str)
        name = name.mask(differs, name + f", {key.replace('_', ' ')} " + value)
    lines = own.assign(family=name, mass=own["mass_from_uniform"]).groupby(["group", "concentration"])
    ends = {"r2": ("value", "mean"), "low": ("value", "min"), "high": ("value", "max"), "seeds": ("value", "size")}
    found = lines[["family", "pairs", "mass"]].first().join(lines.agg(**ends)).reset_index()
    return found[["family", "concentration", "pairs", "mass", "r2", "low", "high", "seeds"]]


def concentration(space: str, law: str) -> float:
    """Return the concentration of a law as rows have it; NaN if it has none.

    >>> concentration("sphere", "vmf=10"), concentration("box", "normal=0.5"), concentration("box", "uniform")
    (10.0, 4.0, 0.0)
    """
    name, _, number = law.partition("=")
    if name == "uniform":
        return 0.0
    if name != LAWS.get(space):
        return float("nan")
    return float(number) if name == "vmf" else float(number) ** -2
