"""Made-up studies: a small realistic one, and rows by hand."""

from collections.abc import Callable
from math import sqrt

import numpy as np
import pandas as pd
import pytest

from holdfast.table import tidy

SHIFTS = ("contrast", "gaussian_noise", "motion_blur")
MODELS = (
    "convnext-tiny", "deit-small", "densenet-121", "efficientnet-b0", "mobilenet-v3", "regnet-y-400mf",
    "resnet-18", "resnet-50", "resnet-50-augmix", "resnet-bn-16", "vgg-16-bn", "vit-small",
)  # fmt: skip


def wilson(value: float, n: int) -> dict[str, float]:
    """A 95 % interval, written out here so that the tests do not lean on the library's own."""
    z = 1.96
    middle = (value + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(value * (1 - value) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return {"low": middle - half, "high": middle + half}


def make_study(models: tuple[str, ...] = MODELS, seeds: tuple[int, ...] = (0,), n: int = 1000) -> pd.DataFrame:
    """Models x (clean, 3 shifts x 5 severities, a continual stream of 45 windows) x 2 adapters, always the same."""
    random = np.random.default_rng(7)
    rows = []
    for model in models:
        top = random.uniform(0.88, 0.97)
        weak = dict(zip(SHIFTS, random.uniform(0.02, 0.13, 3), strict=True))
        speed = random.uniform(0.5, 4) / 1000
        for adapter in ("none", "batchnorm:prior=16"):
            for seed in seeds:
                adapted = adapter != "none"
                names = {"model": model, "adapter": adapter, "seed": seed}

                def accuracy(shift: str, level: int, adapted: bool = adapted, top: float = top) -> float:
                    lost = weak[shift] * level**1.3 * (0.4 if adapted else 1.0)  # noqa: B023
                    return float(np.clip(top - 0.01 * adapted - lost + random.normal(0, 0.008), 0.02, 0.99))

                clean = top - 0.01 * adapted
                rows.append(
                    names | dict(stream="clean", shift="clean", severity=0, measure="accuracy", value=clean, n=n)
                )
                for stream in ("corruptions", "continual"):
                    for place, shift in enumerate(SHIFTS):
                        for level in range(1, 6):
                            value = accuracy(shift, level)
                            cell = names | dict(stream=stream, shift=shift, severity=level, n=n)
                            rows.append(cell | dict(measure="accuracy", value=value))
                            rows.append(cell | dict(measure="error", value=1 - value))
                            if stream == "continual":
                                for window in range(3):
                                    step = 5 * (15 * place + 3 * (level - 1) + window) + 4
                                    drawn = float(np.clip(value + random.normal(0, 0.015), 0, 1))
                                    over = dict(measure="accuracy_over_steps", step=step, value=drawn, n=n // 3)
                                    rows.append(cell | over)
                cost = speed * (1.3 if adapted else 1.0)
                rows.append(names | dict(stream="corruptions", measure="seconds_per_image", value=cost, n=15 * n))
    for row in rows:
        if row["measure"] in ("accuracy", "accuracy_over_steps"):
            row |= wilson(row["value"], row["n"])
    return tidy(rows)


@pytest.fixture(scope="session")
def study() -> pd.DataFrame:
    return make_study()


@pytest.fixture(scope="session")
def studies() -> Callable[..., pd.DataFrame]:
    """To make others: fewer or other models, several seeds."""
    return make_study
