"""Stacks: small cells that are laid out alike and are measured together, with the same rows as one by one.

A study of small cells spends its time in calls of functions, not in counting. A measure may declare a second form,
`@together(measure)`, which takes many cells in one call and returns columns of rows. Cells of a stack have finite
logits of one shape, the same batches, one context each and no mapping of classes; all others are measured one by one,
and so is every cell by measures without such a form.
Cost: at most `MOST` logits are held at a time, so that every form can take the softmax of a stack in one go.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from haptera.measures.windows import EPOCH, Windows, windows
from haptera.outputs import Outputs
from haptera.table import Measure

MOST = 2**18
"""Logits of a stack."""
FEWEST = 8
"""Cells of a stack; fewer are quicker one by one."""
COLUMNS = {
    *("measure", "value", "low", "high", "n", "step"),
    *("confidence", "class", "class_name", "predicted", "actual"),
}
"""What rows of a stack have beside names and context; a cell whose context has one of these is measured alone."""

Columns = dict[str, Any]
"""Column -> a value for each row, or one for all; `cell` is the place in the stack of the cell that a row is about."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Cells that are laid out alike.

    Attributes:
        cells: how many.
        samples: how many each of them has.
        flat: logits and targets of all of them, one cell after the other.
        first: the first cell, for what is the same in all of them.
        steps: name -> `(cells, steps)`.
    """

    cells: int
    samples: int
    flat: Outputs
    first: Outputs
    steps: dict[str, np.ndarray]

    @cached_property
    def every(self) -> np.ndarray:
        """`(cells,)`, the place of each cell."""
        return np.arange(self.cells)

    @cached_property
    def cell(self) -> np.ndarray:
        """`(cells * samples,)`, the place of the cell of each sample."""
        return np.repeat(self.every, self.samples)

    def windows(self, samples: int = 1) -> Windows:
        """Return the windows of each cell, which are those of the first; see `haptera.measures.windows`."""
        return windows(self.first, by_context=False, samples=samples)

    def windows_of_samples(self, found: Windows) -> np.ndarray:
        """`(cells * samples,)`, the window of each sample, counted through all cells."""
        result: np.ndarray = (self.every[:, None] * len(found) + found.sample).ravel()
        return result

    def about_windows(self, found: Windows) -> Columns:
        """Return the columns that say of each window in which cell and at which step it is."""
        return {"cell": np.repeat(self.every, len(found)), "step": np.tile(found.last.astype(np.int64), self.cells)}


Form = Callable[[Stack], Columns | None]
"""Makes the rows of a measure for all cells of a stack; None where it does not apply."""
Declared = TypeVar("Declared", bound=Form)
_FORMS: dict[Measure, Form] = {}


def together(measure: Measure) -> Callable[[Declared], Declared]:
    """Declare how a measure of outputs takes a stack; its rows must be those of the measure, in the same order."""

    def declare(form: Declared) -> Declared:
        _FORMS[measure] = form
        return form

    return declare


def form_of(measure: Measure) -> Form | None:
    """Return how a measure takes a stack; None for one that has no such form, and for one with settings."""
    return _FORMS.get(measure) if isinstance(measure, FunctionType) else None


def layout_of(outputs: Outputs) -> Hashable | None:
    """Return what cells of one stack have in common; None for a cell that is measured alone."""
    logits = outputs.arrays.get("logits")
    if logits is None or len(outputs.arrays) > 1 or not 0 < logits.size <= MOST // FEWEST:
        return None
    if outputs.accepted is not None or outputs.columns is not None:
        return None
    if EPOCH in outputs.context or not COLUMNS.isdisjoint(outputs.context):
        return None
    if len(outputs.groups[0]) > 1 or not np.isfinite(logits).all():
        return None
    step, classes, targets = outputs.step, outputs.classes, outputs.targets
    return (
        (logits.shape, logits.dtype.str, None if targets is None else targets.dtype.str),
        None if step is None else (step.dtype.str, step.tobytes()),
        None if classes is None else (classes.dtype.str, classes.tobytes()),
        tuple([(key, values.dtype.str, values.shape) for key, values in outputs.steps.items()]),
        tuple([(key, values.dtype.kind) for key, values in outputs.context.items()]),
    )


def stack(cells: Sequence[Outputs]) -> Stack:
    """Return cells of one layout as a stack."""
    first, count, samples = cells[0], len(cells), len(cells[0])
    logits = np.concatenate([each.arrays["logits"] for each in cells])
    targets = None if first.targets is None else np.concatenate([each.targets for each in cells])
    flat = Outputs({"logits": logits}, np.arange(count * samples), targets)
    steps = {key: np.stack([each.steps[key] for each in cells]) for key in first.steps}
    return Stack(count, samples, flat, first, steps)


def each_once(function: Callable[..., Any], *columns: np.ndarray) -> np.ndarray:
    """Return what a function says of each row of some columns; small counts repeat, so it is called once for each.

    >>> each_once(lambda a, b: (a + b, a - b), np.array([1, 3, 1]), np.array([2, 2, 2])).tolist()
    [[3, -1], [5, 1], [3, -1]]
    """
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    known = {row: function(*row) for row in set(rows)}
    return np.array([known[row] for row in rows])
