"""What the tables about CIFAR-10 share: methods with chosen settings, studies, paired differences, and verdicts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

from cifar_data import FOLDER, HOLDOUT, SEVERITY, TEST, corrupted
from cifar_networks import source_of
from haptera import Study
from haptera.adapters import (
    CMF,
    CPL,
    EATA,
    ETA,
    ROID,
    RPL,
    SANTA,
    SAR,
    SHOT,
    SLR,
    BatchNorm,
    NoAdaptation,
    PseudoLabels,
    Tent,
)
from haptera.streams import Directory
from haptera.tune import Search, tune

STUDIES = FOLDER / "cifar-studies"
RESULTS = Path(__file__).parents[1] / "docs" / "evidence" / "results"
BATCH = 64
TUNE_IMAGES, FEW_IMAGES = 2_000, 1_000
RATES = (3e-4, 1e-3, 3e-3)
ADAM = {"optimiser": "adam"}
LEARNERS: dict[str, Callable[..., Any]] = {
    "tent": partial(Tent, **ADAM),
    "roid": partial(ROID, **ADAM),
    "slr": partial(SLR, **ADAM),
    "rpl": partial(RPL, **ADAM),
    "shot": partial(SHOT, **ADAM),
    "eta": partial(ETA, **ADAM),
    "santa": partial(SANTA, **ADAM),
    "pseudo_labels": partial(PseudoLabels, **ADAM),
    "cpl": partial(CPL, **ADAM),
    "sar": partial(SAR, **ADAM),
    "eata": partial(EATA, **ADAM),
    "cmf": partial(CMF, **ADAM),
}
FEWER = ("tent", "rpl", "eta")
"""Methods for networks without BatchNorm."""
BN, NONE = "batchnorm", "none"
BATCHNORM = ("batch", "smooth")
"""Networks with BatchNorm."""
AIM = 0.015
"""By how much the best three methods are to be below BatchNorm statistics, in mean error."""
ORDER = {
    "networks": "Networks",
    "main": "Self-learning, corruption by corruption",
    "seeds": "Five orders of the images",
    "main_smooth": "The same of a network trained with label smoothing",
    "offline": "Several epochs",
    "continual": "What lasts",
    "ccc": "What lasts on CCC",
    "margin": "Which entropy is kept",
    "resets": "How often to reset",
    "anchor": "How strong an anchor",
    "mixed": "Every image under another corruption",
    "calibration": "Calibration",
    "forgetting": "Forgetting",
    "threshold": "Thresholds",
    "teacher": "Teachers",
    "parameters": "What adapts",
    "epochs": "Epochs and rates",
    "prior": "Batch size and prior",
    "temperature": "Temperatures",
    "main_group": "GroupNorm",
    "main_vit": "A transformer",
    "continual_vit": "What lasts of a transformer",
}
"""Table -> its heading on the page."""


@dataclass(frozen=True)
class Run:
    """What the command line says: how many images of each corruption, and how many processes."""

    images: int
    jobs: int

    @property
    def few(self) -> "Run":
        """The same on fewer images, for tables with many cases."""
        return Run(min(self.images, FEW_IMAGES), self.jobs)

    def __str__(self) -> str:
        return f"{self.images:,} test images, severity {SEVERITY}, batches of {BATCH}, one network, one seed"


@cache
def tuned(name: str, net: str, jobs: int) -> Any:
    """Return a method with the learning rate that is best on the hold-out corruptions."""
    search = Search({"lr": RATES}, severities=(SEVERITY,), batch_size=BATCH)
    data, folder = corrupted(HOLDOUT, TUNE_IMAGES), STUDIES / "tune" / f"{net}-{name}"
    choice = tune({net: source_of(net)}, data, LEARNERS[name], search, out=folder, jobs=jobs, progress=False)
    return partial(LEARNERS[name], **choice.best)


def rate_of(make: Any) -> str:
    """Return the learning rate that was chosen."""
    while isinstance(make, partial):
        if "lr" in make.keywords:
            return f"{make.keywords['lr']:g}"
        make = make.keywords.get("method", make.func)
    return "–"


def faster(make: Any, times: float) -> Any:
    """Return a method with so many times its learning rate."""
    return partial(make, lr=times * make.keywords["lr"])


def unlearned(net: str) -> dict[str, Any]:
    """Return what does not learn: the network as it is, and with BatchNorm statistics of the batch if it has such."""
    return {NONE: NoAdaptation} | ({BN: partial(BatchNorm, prior=0)} if net in BATCHNORM else {})


def by_corruption(
    folder: str, net: str, adapters: Mapping[str, Any], run: Run, shifts: Sequence[str] = TEST
) -> pd.DataFrame:
    """Return the table of a study in which every corruption begins with a fresh adapter."""
    stream = Directory(corrupted(shifts, run.images), shifts=tuple(shifts), batch_size=BATCH)
    study = Study({net: source_of(net)}, [stream], adapters, out=STUDIES / f"{folder}-{run.images}")
    return study.run(jobs=run.jobs, progress=False)


def values(table: pd.DataFrame, adapter: str, measure: str = "error") -> pd.Series:
    """Return a value for each corruption."""
    rows = table[(table["measure"] == measure) & (table["adapter"] == adapter)]
    return rows.set_index("shift")["value"].astype(float)


def along(table: pd.DataFrame, adapters: Sequence[str], parts: int) -> pd.DataFrame:
    """Return the learning curve: the error in each part of the streams, a row for each adapter."""
    rows = table[(table["measure"] == "accuracy_over_steps") & table["adapter"].isin(list(adapters))]
    part = (rows["step"] * parts // (rows["step"].max() + 1)).astype(int)
    groups = [rows["adapter"].astype(str), part]
    right = (rows["value"] * rows["n"]).astype(float).groupby(groups).sum()
    errors = 1 - right / rows["n"].astype(float).groupby(groups).sum()
    frame = errors.unstack().reindex(list(adapters))
    frame.columns = [f"{place + 1} of {parts}" for place in frame.columns]
    return frame


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences, with the 95 % interval of Student over what they are paired by."""

    mean: float
    half: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.mean:+.4f} [{self.mean - self.half:+.4f}, {self.mean + self.half:+.4f}]"

    @property
    def verdict(self) -> str:
        """Whether the first is below the second: confirmed, not confirmed, or too small to say."""
        if abs(self.mean) <= self.half or np.isnan(self.half):
            return "too small to say"
        return "confirmed" if self.mean < 0 else "not confirmed"


def compare(first: pd.Series, second: pd.Series) -> Difference:
    """Return first minus second, over the labels that both have."""
    differences = (first - second).dropna()
    size = len(differences)
    half = t.ppf(0.975, size - 1) * differences.std(ddof=1) / np.sqrt(size) if size > 1 else np.nan
    return Difference(float(differences.mean()), float(half), size)


def markdown(rows: pd.DataFrame, digits: int = 3, bold: bool = True) -> list[str]:
    """Return a frame as lines of a table; the smallest number of each column is bold."""
    head = [str(rows.index.name or ""), *map(str, rows.columns)]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    best = rows.min(numeric_only=True) if bold else {}
    for name, row in rows.iterrows():
        cells = [_cell(value, digits, best.get(column)) for column, value in row.items()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _cell(value: object, digits: int, best: float | None) -> str:
    if not isinstance(value, float):
        return str(value)
    if np.isnan(value):
        return "–"
    text = f"{value:.{digits}f}"
    return f"**{text}**" if best is not None and round(value, digits) == round(float(best), digits) else text


def write(name: str, lines: Sequence[str]) -> None:
    """Write a table, put all that are finished together for the page of the evidence, and print it."""
    (RESULTS / f"cifar_{name}.md").write_text("\n".join([f"### {ORDER[name]}", "", *lines]) + "\n")
    finished = [RESULTS / f"cifar_{each}.md" for each in ORDER]
    pages = [path.read_text() for path in finished if path.is_file()]
    (RESULTS / "cifar.md").write_text("\n".join(pages))
    print("\n".join(lines), flush=True)


def say(what: str, difference: Difference, printed: str) -> str:
    """Return a sentence about a claim, with its interval and what the thesis prints."""
    return f"- {what}: {difference} over {difference.pairs} corruptions: **{difference.verdict}**. Printed: {printed}."


def say_aim(gains: Sequence[float], methods: int) -> str:
    """Return a sentence about how many of the best three reach the aim."""
    best = sorted(gains, reverse=True)[:3]
    reached = sum(gain >= AIM for gain in best)
    told = ", ".join(f"{gain:.4f}" for gain in best)
    return f"- The best {len(best)} of {methods} methods gain {told}; {reached} of them reach {AIM}."


def read_well(name: object) -> str:
    """Return the name of a column in words."""
    return str(name).replace("_", " ")
