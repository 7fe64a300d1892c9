"""The laws of measures, whether of outputs or of the table; `of` in `@measure` says which."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from haptera.errors import HapteraError, NotApplicable
from haptera.measures.corruptions import ALEXNET, ALEXNET_DOMAINS, SEVERITIES
from haptera.measures.facts import fact, required_settings
from haptera.measures.relative_stability import PARTS as STABILITY
from haptera.outputs import Outputs
from haptera.statistics.intervals import wilson
from haptera.table import Rows, tidy
from haptera.testing.law import demand, run_laws

Source = Outputs | pd.DataFrame
Function = Callable[[Any], Rows]
LAST_EPOCH, SEED = 2, 0
ADAPTERS = ("none", "batchnorm:prior=0", "tent")


def order_of_rows_does_not_matter(function: Function, source: Source) -> None:
    """Samples, or rows of the table, in another order give the same rows."""
    one, two = _in_order(tidy(function(source))), _in_order(tidy(function(_shuffled(source))))
    demand(len(one) == len(two), f"{len(one)} rows became {len(two)}")
    for column in ("value", "low", "high"):
        same = np.allclose(one[column].astype(float), two[column].astype(float), rtol=1e-12, equal_nan=True)
        demand(same, f"{column} depends on the order of samples")


def _in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows by everything that they are about, further columns such as `visit` included."""
    about = [str(name) for name in rows if name not in ("value", "low", "high")]
    return rows.sort_values(about, key=lambda column: column.astype(str))


def values_keep_the_bounds(function: Function, source: Source) -> None:
    """Values and intervals lie within the declared bounds, and a value within its interval."""
    bounds = fact(function, "bounds")
    if bounds is None:
        raise NotApplicable("it declares no bounds")
    for row in function(source):
        ends = [row.get("low", row["value"]), row["value"], row.get("high", row["value"])]
        demand(bounds[0] <= min(ends) and max(ends) <= bounds[1], f"{ends} is outside {bounds}")
        demand(ends == sorted(ends), f"the interval {ends[0]} to {ends[2]} does not hold {ends[1]}")


def rows_are_named_and_counted(function: Function, source: Source) -> None:
    """Every row has a measure, a value and an n."""
    for row in function(source):
        missing = [key for key in ("measure", "value", "n") if key not in row]
        demand(not missing, f"a row has no {', '.join(missing)}")


def outputs_are_not_written_to(function: Function, source: Source) -> None:
    """Measuring leaves the outputs, or the table, as they were."""
    if isinstance(source, pd.DataFrame):
        table = source.copy()
        function(source)
        demand(table.equals(source), "the table was written to")
        return
    before = {key: array.tobytes() for key, array in source.arrays.items()}
    function(source)
    demand(before == {key: array.tobytes() for key, array in source.arrays.items()}, "the outputs were written to")


def repetitions_are_not_averaged(function: Function, source: Source) -> None:
    """An earlier epoch leaves what is said about the last as it was, and another seed what is said about the first.

    A row about an earlier epoch says so in `epoch`; one about several seeds says how many in `seeds`.
    """
    if not len(source):
        return
    alone = _table_of(function(source))
    again = _table_of(function(_with_an_earlier_epoch(source)))
    if "epoch" in again:
        again = again[again["epoch"].isna() | (again["epoch"] == LAST_EPOCH)]
    _demand_same(alone, again, "an earlier epoch")
    if isinstance(source, pd.DataFrame):
        both = _table_of(function(with_another_seed(source)))
        pooled = both["seed"].isna() & (both["seeds"].isna() if "seeds" in both else True)
        demand(not pooled.any(), "a row of two seeds has neither a seed nor the number of `seeds`")
        _demand_same(alone[alone["seed"].notna()], both[both["seed"] == SEED], "another seed")


MEASURE_LAWS = (
    order_of_rows_does_not_matter,
    values_keep_the_bounds,
    rows_are_named_and_counted,
    outputs_are_not_written_to,
    repetitions_are_not_averaged,
)


def _shuffled(source: Source) -> Source:
    order = np.random.default_rng(0).permutation(len(source))
    if isinstance(source, pd.DataFrame):
        return source.iloc[order].reset_index(drop=True)
    return replace(
        source,
        arrays={key: array[order] for key, array in source.arrays.items()},
        ids=source.ids[order],
        targets=None if source.targets is None else source.targets[order],
        step=None if source.step is None else source.step[order],
        context={key: column[order] for key, column in source.context.items()},
    )


def _table_of(rows: Rows) -> pd.DataFrame:
    """The rows as a table; steps are left out, for a second pass goes on counting."""
    return tidy([{key: value for key, value in row.items() if key != "step"} for row in rows])


def _demand_same(alone: pd.DataFrame, again: pd.DataFrame, what: str) -> None:
    demand(len(alone) == len(again), f"{what} makes {len(again)} rows of {len(alone)}")
    for column in ("value", "low", "high", "n"):
        one, two = (frame[column].to_numpy(float, na_value=np.nan) for frame in (alone, again))
        demand(np.allclose(one, two, rtol=1e-9, equal_nan=True), f"{what} changes {column}")


def _with_an_earlier_epoch(source: Source) -> Source:
    """The same, after a first epoch with other results; of a table, for its last adapter."""
    if isinstance(source, pd.DataFrame):
        own = source[source["adapter"] == source["adapter"].max()]
        return tidy(pd.concat([source.drop(own.index), own.assign(epoch=LAST_EPOCH), _other(own).assign(epoch=1)]))
    n = len(source)
    first = replace(source, arrays={key: np.roll(array, 1, 0) for key, array in source.arrays.items()})
    steps = 0 if source.step is None else int(source.step.max()) + 1
    epochs = {"epoch": np.repeat([1, LAST_EPOCH], n)}
    return replace(
        source,
        arrays={key: np.concatenate([first.arrays[key], array]) for key, array in source.arrays.items()},
        ids=np.tile(source.ids, 2),
        targets=None if source.targets is None else np.concatenate([source.targets] * 2),
        step=None if source.step is None else np.concatenate([source.step, source.step + steps]),
        context={key: np.tile(column, 2) for key, column in source.context.items()} | epochs,
        steps={key: np.concatenate([2 * values, values]) for key, values in source.steps.items()},
    )


def with_another_seed(table: pd.DataFrame) -> pd.DataFrame:
    """The same, and beside it other results with another seed."""
    return tidy(pd.concat([table.assign(seed=SEED), _other(table).assign(seed=SEED + 1)]))


def _other(table: pd.DataFrame) -> pd.DataFrame:
    """The same rows with the numbers of others of the same measure."""
    numbers = ["value", "low", "high"]
    moved = table.groupby("measure")[numbers].transform(lambda column: np.roll(column.to_numpy(), 7))
    return table.assign(**{name: moved[name] for name in numbers})


def example_outputs(labelled: bool = True, mapped: bool = False) -> Outputs:
    """Logits of seven classes on two shifts, in batches of eight; mapped, for data with three classes of its own.

    The context says where a walk is, too: five steps of 20 samples.
    """
    generator = np.random.default_rng(0)
    n = 100
    walk = {"severity_1": 4 - np.arange(n) // 20, "severity_2": np.arange(n) // 20, "expected": np.full(n, 0.4)}
    steps = -(-n // 8)
    accepted = np.eye(3, 7, dtype=bool) | np.eye(3, 7, 3, dtype=bool)
    return Outputs(
        arrays={"logits": generator.normal(size=(n, 7)).astype(np.float32)},
        ids=np.arange(n),
        targets=generator.integers(0, 3 if mapped else 7, n) if labelled else None,
        step=np.arange(n) // 8,
        context={
            "shift": np.repeat(["contrast", "gaussian_noise"], n // 2),
            "severity": np.full(n, 3.0),
            "difficulty": np.full(n, 0.5),
            **walk,
        },
        steps={key: generator.uniform(0.1, 0.2, steps) for key in ("seconds", "peak_bytes", "loss", "kept")},
        accepted=accepted if mapped else None,
    )


def example_stability() -> Outputs:
    """Logits of seven classes on 30 images as they are, deformed, and with noise, without labels."""
    generator = np.random.default_rng(0)
    plain = generator.normal(size=(30, 7))
    moved = [plain + spread * generator.normal(size=(30, 7)) for spread in (0.0, 0.2, 0.4)]
    return Outputs(
        arrays={"logits": np.concatenate(moved).astype(np.float32)},
        ids=np.arange(90),
        targets=None,
        context={
            "shift": np.repeat(STABILITY, 30),
            "severity": np.repeat([0.0, 1.0, 1.0], 30),
            "sample": np.tile(generator.permutation(30), 3),
        },
    )


def example_poses(labelled: bool = True) -> Outputs:
    """Keypoints of three parts, some without labels, of four individuals under two shifts."""
    generator = np.random.default_rng(0)
    labels = generator.uniform(0, 50, (40, 3, 2))
    labels[generator.random((40, 3)) < 0.2] = np.nan
    return Outputs(
        arrays={"keypoints": generator.uniform(0, 50, (40, 3, 2)), "confidence": generator.random((40, 3))},
        ids=np.arange(40),
        targets=labels if labelled else None,
        context={
            "individual": np.repeat(["a", "b", "c", "d"], 10),
            "shift": np.tile(["clean", "fog"], 20),
            "severity": np.tile([0.0, 3.0], 20),
        },
        provenance={"parts": ["nose", "eye", "tail"]},
    )


def example_table() -> pd.DataFrame:
    """Four models, unadapted and with two adapters, on clean data, corruptions, domains, and a stream that changes."""
    return _example_table().copy()


@cache
def _example_table() -> pd.DataFrame:
    return tidy([row for model in range(4) for adapter in ADAPTERS for row in _example_rows(model, adapter)])


def _example_rows(model: int, adapter: str) -> Iterator[dict[str, Any]]:
    generator = np.random.default_rng([model, ADAPTERS.index(adapter)])
    names = {"model": f"model {model}", "adapter": adapter, "seed": 0}
    names |= {"parent": ADAPTERS[1]} if adapter == "tent" else {}

    def shares(stream: str, shift: str, severity: float, measure: str = "", step: int | None = None) -> Rows:
        n = 200
        right = int(generator.integers(50 - 5 * model, 150 + 10 * model - int(5 * severity)))
        low, high = wilson(right, n)
        row = names | {"stream": stream, "shift": shift, "severity": severity, "step": step, "n": n}
        if measure:
            return [row | {"measure": measure, "value": right / n, "low": low, "high": high}]
        wrong = {"measure": "error", "value": 1 - right / n, "low": 1 - high, "high": 1 - low}
        return [row | {"measure": "accuracy", "value": right / n, "low": low, "high": high}, row | wrong]

    yield from shares("clean", "clean", 0.0)
    for shift in ALEXNET:
        for severity in SEVERITIES:
            yield from shares("corruptions", shift, severity)
    for domain in ALEXNET_DOMAINS:
        yield from shares("domains", domain, 0.0)
    for window in range(40):
        shift, severity = ("clean", 0.0) if window % 4 == 3 else ("fog", 3.0)
        yield from shares("changing", shift, severity, "accuracy_over_steps", 2 * window + 1)
    for walk, difficulty in itertools.product((1, 2), (0.2, 0.4)):
        [row] = shares("walks", "", 0.0, "walk_accuracy")
        yield {key: row[key] for key in row if key not in ("shift", "severity")} | {
            "part": f"{difficulty}, walk {walk}",
            "difficulty": difficulty,
            "speed": 100,
            "walk": walk,
        }
    for measure in ("seconds_per_image", "peak_bytes"):
        yield names | {"stream": "clean", "measure": measure, "value": float(generator.uniform(1, 2)), "n": 200}


def example_visits() -> pd.DataFrame:
    """The corruptions of `example_table`, each met twice in one stream, with other results the second time."""
    table = example_table()
    once = table[table["stream"] == "corruptions"]
    return tidy(pd.concat([once.assign(visit=1), _other(once).assign(visit=2)]))


def examples(function: Function) -> list[Source]:
    """What a measure is tried on: outputs with labels, without, of other classes, of deformed images; tables; poses."""
    if fact(function, "of", "outputs") != "outputs":
        return [example_table(), example_visits(), tidy([])]
    if fact(function, "reads") == "keypoints":
        return [example_poses(), example_poses(labelled=False), example_outputs()]
    return [example_outputs(), example_outputs(labelled=False), example_outputs(mapped=True), example_stability()]


def check_measure(function: Function) -> dict[str, str]:
    """Every law on a measure of outputs or of the table."""
    if missing := required_settings(function):
        name = getattr(function, "__name__", "this measure")
        raise HapteraError(f"{name} needs {missing[0]}; check functools.partial({name}, {missing[0]}=...)")
    verdicts: dict[str, str] = {}
    for law in MEASURE_LAWS:  # each on sources of its own, which another law may have seen written to
        verdicts |= run_laws([law], [(function, source) for source in examples(function)])
    return verdicts
