"""The laws of measures."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from holdfast.errors import NotApplicable
from holdfast.outputs import Outputs
from holdfast.table import Rows, tidy
from holdfast.testing.law import demand, run_laws

Function = Callable[[Outputs], Rows]


def order_of_rows_does_not_matter(function: Function, outputs: Outputs) -> None:
    """Samples in another order give the same rows."""
    order = np.random.default_rng(0).permutation(len(outputs))
    shuffled = replace(
        outputs,
        arrays={key: array[order] for key, array in outputs.arrays.items()},
        ids=outputs.ids[order],
        targets=None if outputs.targets is None else outputs.targets[order],
        step=None if outputs.step is None else outputs.step[order],
        context={key: column[order] for key, column in outputs.context.items()},
    )
    one, two = tidy(function(outputs)), tidy(function(shuffled))
    demand(len(one) == len(two), f"{len(one)} rows became {len(two)}")
    for column in ("value", "low", "high"):
        same = np.allclose(one[column].astype(float), two[column].astype(float), rtol=1e-12, equal_nan=True)
        demand(same, f"{column} depends on the order of samples")


def values_keep_the_bounds(function: Function, outputs: Outputs) -> None:
    """Values and intervals lie within the declared bounds, and a value within its interval."""
    bounds = getattr(function, "bounds", None)
    if bounds is None:
        raise NotApplicable("it declares no bounds")
    for row in function(outputs):
        ends = [row.get("low", row["value"]), row["value"], row.get("high", row["value"])]
        demand(bounds[0] <= min(ends) and max(ends) <= bounds[1], f"{ends} is outside {bounds}")
        demand(ends == sorted(ends), f"the interval {ends[0]} to {ends[2]} does not hold {ends[1]}")


def rows_are_named_and_counted(function: Function, outputs: Outputs) -> None:
    """Every row has a measure, a value and an n."""
    for row in function(outputs):
        missing = [key for key in ("measure", "value", "n") if key not in row]
        demand(not missing, f"a row has no {', '.join(missing)}")


def outputs_are_not_written_to(function: Function, outputs: Outputs) -> None:
    """Measuring leaves the outputs as they were."""
    before = {key: array.tobytes() for key, array in outputs.arrays.items()}
    function(outputs)
    demand(before == {key: array.tobytes() for key, array in outputs.arrays.items()}, "the outputs were written to")


MEASURE_LAWS = (
    order_of_rows_does_not_matter,
    values_keep_the_bounds,
    rows_are_named_and_counted,
    outputs_are_not_written_to,
)


def example_outputs(labelled: bool = True) -> Outputs:
    """Logits of seven classes on two shifts, in batches of eight."""
    generator = np.random.default_rng(0)
    n = 100
    return Outputs(
        arrays={"logits": generator.normal(size=(n, 7)).astype(np.float32)},
        ids=np.arange(n),
        targets=generator.integers(0, 7, n) if labelled else None,
        step=np.arange(n) // 8,
        context={"shift": np.repeat(["contrast", "gaussian_noise"], n // 2), "severity": np.full(n, 3.0)},
        steps={"seconds": generator.uniform(0.1, 0.2, -(-n // 8))},
    )


def check_measure(function: Function) -> dict[str, str]:
    """Every law on a measure of outputs."""
    verdicts: dict[str, str] = {}
    for law in MEASURE_LAWS:  # each on outputs of its own, which another law may have seen written to
        verdicts |= run_laws([law], [(function, example_outputs()), (function, example_outputs(labelled=False))])
    return verdicts
