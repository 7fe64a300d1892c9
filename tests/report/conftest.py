"""Made-up studies: models x (clean, 3 shifts x 5 severities, a continual stream of 45 windows) x 2 adapters."""

from collections.abc import Callable, Iterator
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.report.browser import browser, visit

from haptera import catalog
from haptera.measures import mean_over_seeds
from haptera.measures.facts import fact, required_settings
from haptera.outputs import Outputs
from haptera.report.page import write_page
from haptera.report.study import complete
from haptera.run.report import StudyReport
from haptera.table import join, tidy
from haptera.table import measure_outputs as rows_of_cell

__all__ = ["browser", "visit"]

SHIFTS = ("contrast", "gaussian_noise", "motion_blur")
ADAPTERS = ("none", "batchnorm:prior=16")
MODELS = (
    "convnext-tiny", "deit-small", "densenet-121", "efficientnet-b0", "mobilenet-v3", "regnet-y-400mf",
    "resnet-18", "resnet-50", "resnet-50-augmix", "resnet-bn-16", "vgg-16-bn", "vit-small",
)  # fmt: skip
Row = dict[str, Any]


def write_report(table: pd.DataFrame, path: Path, **about: Any) -> str:
    """Write the page of a table alone; what it says in short."""
    report = StudyReport(table, **about)
    write_page(report.page(), path)
    return report.sentences()


def wilson(value: float, n: int) -> Row:
    """A 95 % interval, written out here so that the tests do not lean on the library's own."""
    z = 1.96
    middle = (value + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(value * (1 - value) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return {"low": middle - half, "high": middle + half}


def measured(measure: str, value: float, n: int) -> Row:
    value = float(np.clip(value, 0.02, 0.99))
    return {"measure": measure, "value": value, "n": n} | wilson(value, n)


def rows_of(model: str, adapter: str, seed: int, n: int) -> Iterator[Row]:
    kind = np.random.default_rng([*model.encode()])  # the same model is as good in every study
    noise = np.random.default_rng([*model.encode(), ADAPTERS.index(adapter), seed])
    top, *weak = kind.uniform([0.88, 0.01, 0.01, 0.01], [0.97, 0.12, 0.12, 0.12])
    adapted = adapter != "none"
    names = {"model": model, "adapter": adapter, "seed": seed}
    yield names | {"stream": "clean", "shift": "clean", "severity": 0} | measured("accuracy", top - 0.01 * adapted, n)
    for stream in ("corruptions", "continual"):
        for place, shift in enumerate(SHIFTS):
            for level in range(1, 6):
                cell = names | {"stream": stream, "shift": shift, "severity": level}
                lost = weak[place] * level**1.3 * (0.4 if adapted else 1.0)
                row = measured("accuracy", top - 0.01 * adapted - lost + noise.normal(0, 0.008), n)
                yield cell | row
                yield cell | {"measure": "error", "value": 1 - row["value"], "n": n}
                for window in range(3 if stream == "continual" else 0):
                    step = 5 * (15 * place + 3 * (level - 1) + window) + 4
                    drawn = row["value"] + noise.normal(0, 0.015)
                    yield cell | {"step": step} | measured("accuracy_over_steps", drawn, n // 3)
    seconds = kind.uniform(0.5, 4) / 1000 * (1.3 if adapted else 1.0)
    yield names | {"stream": "corruptions", "measure": "seconds_per_image", "value": seconds, "n": 15 * n}


def make_study(models: tuple[str, ...] = MODELS, seeds: tuple[int, ...] = (0,), n: int = 1000) -> pd.DataFrame:
    cells = [(model, adapter, seed) for model in models for adapter in ADAPTERS for seed in seeds]
    return complete(tidy(row for cell in cells for row in rows_of(*cell, n)))


@pytest.fixture(scope="session")
def study() -> pd.DataFrame:
    return make_study()


@pytest.fixture(scope="session")
def make() -> Callable[..., pd.DataFrame]:
    """To make others: fewer or other models, several seeds."""
    return make_study


LEARNERS = ("none", "batchnorm:prior=0", "rdumb", "tent")
"""Adapters of the made-up study below; only the last collapses, in the second half of the stream."""


def learning_outputs(adapter: str, seed: int) -> Outputs:
    """120 batches of 64 under two shifts; a class that takes over where an adapter collapses; records of learners."""
    generator = np.random.default_rng([seed, LEARNERS.index(adapter)])
    steps, batch, classes = 120, 64, 6
    n = steps * batch
    time = np.arange(n) / n
    accuracy = {"none": 0.5, "batchnorm:prior=0": 0.65, "rdumb": 0.7, "tent": 0.75 - np.maximum(time - 0.4, 0)}[adapter]
    targets = generator.integers(0, classes, n)
    wrong = np.where(time * (adapter == "tent") > 0.4, 3, generator.integers(0, classes, n))
    predicted = np.where(generator.random(n) < accuracy, targets, wrong)
    logits = generator.normal(size=(n, classes)).astype(np.float32)
    logits[np.arange(n), predicted] += 3
    records = {"seconds": np.full(steps, 0.01 if adapter == "none" else 0.02)}
    if adapter == "rdumb":
        records |= {"kept": generator.uniform(0.4, 0.6, steps), "resets": np.arange(steps) // 40}
    learns = adapter in ("rdumb", "tent")
    names = {"model": "resnet-50", "stream": "continual", "part": "continual", "adapter": adapter, "seed": seed}
    return Outputs(
        {"logits": logits},
        np.arange(n),
        targets,
        step=(np.arange(n) // batch).astype(np.int32),
        context={"shift": np.repeat(["fog", "contrast"], n // 2), "severity": np.full(n, 5.0)},
        steps=records,
        provenance=names | {"parent": "batchnorm:prior=0" if learns else "none"},
    )


@pytest.fixture(scope="session")
def learning() -> pd.DataFrame:
    """A made-up study of adapters that learn, with every measure of the catalog: 4 adapters, 2 seeds."""
    functions = [catalog.find("measures", name) for name in catalog.entries("measures")]
    functions = [function for function in functions if not required_settings(function)]
    own = [function for function in functions if fact(function, "of", "outputs") == "outputs"]
    cells = [learning_outputs(adapter, seed) for adapter in LEARNERS for seed in (0, 1)]
    rows = [row for cell in cells for row in rows_of_cell(cell, own)]
    table = tidy(rows)
    table = join(table, [row for each in functions if fact(each, "of") == "table" for row in each(table)])
    return join(table, mean_over_seeds(table))


SETTINGS = {
    "versions": {"haptera": "0.1.0", "torch": "2.13.0+cpu", "python": "3.11.2"},
    "machine": {"processor": "x86_64", "threads": 2},
    "seeds": [0],
    "data": {"path": "old/", "images": 1000, "classes": 10, "fingerprint": "3f9a2c1d77e0"},
    "adapters": {"none": {}, "batchnorm:prior=16": {"prior": 16, "momentum": None}},
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, study: pd.DataFrame) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    notes = ["2 cells failed: vgg-16-bn · continual · batchnorm:prior=16; the same command tries them again."]
    write_report(study, path, title="Audit of twelve classifiers", settings=SETTINGS, notes=notes)
    return path
