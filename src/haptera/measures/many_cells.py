"""Many cells: their rows gathered into one table, small cells of one layout measured together.

The table is that of `measure_outputs` of every cell, one after the other. A cell waits until there are enough of its
layout; what waits is bounded. Where a stack fails, its cells are measured one by one, and only those that fail alone
have failed.
"""

import logging
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from haptera.errors import HapteraError, first_line
from haptera.measures.stacks import FEWEST, MOST, Form, form_of, layout_of, stack
from haptera.outputs import Outputs
from haptera.table import Measure, Rows, measure_outputs, names_of, tidy

log = logging.getLogger("haptera")

WAITING = 4 * MOST
"""Logits of all cells that wait, whatever their layouts."""
LEAST = 2**6
"""Logits for which a cell counts that has fewer, since what is around them takes memory, too."""


@dataclass(frozen=True, eq=False)
class Measured:
    """A cell, and what measures say of it that were not left for a stack.

    Attributes:
        outputs: of the cell.
        layout: of the stack that it is for; None if there is nothing left.
        rows: of the measures that were taken.
    """

    outputs: Outputs
    layout: Hashable | None
    rows: Rows


class CellRows:
    """Gathers the rows of cells into a table.

    Args:
        measures: of outputs.
    """

    def __init__(self, measures: Sequence[Measure]) -> None:
        self.measures = measures
        self._together = [(each, form) for each in measures if (form := form_of(each))]
        self._alone = [each for each in measures if not form_of(each)]
        self._waiting: dict[Hashable, list[tuple[int, Outputs]]] = {}
        self._cells, self._held = 0, 0
        self._rows: Rows = []
        self._cell_of_row: list[int] = []
        self._frames: list[tuple[np.ndarray, pd.DataFrame]] = []
        self._failures: dict[int, HapteraError] = {}

    def measure(self, outputs: Outputs) -> Measured:
        """Take all measures that no stack takes later, or raise what they raise; nothing is kept before `add`."""
        layout = layout_of(outputs) if self._together else None
        return Measured(outputs, layout, measure_outputs(outputs, self.measures if layout is None else self._alone))

    def add(self, cell: Measured) -> None:
        """Keep the next cell."""
        self._keep(self._cells, cell.rows)
        if cell.layout is not None:
            size = _size(cell.outputs)
            if (len(self._waiting.get(cell.layout, ())) + 1) * size > MOST:
                self._take(cell.layout)
            self._waiting.setdefault(cell.layout, []).append((self._cells, cell.outputs))
            self._held += size
            if self._held > WAITING:
                self._take_all()
        self._cells += 1

    def failures(self) -> dict[int, HapteraError]:
        """Return what went wrong after cells were added: the place of each such cell, counted from 0, and its error."""
        self._take_all()
        return self._failures

    def table(self, without: Collection[int] = ()) -> pd.DataFrame:
        """Return the rows of all cells that were added, tidy.

        Args:
            without: places of cells that are left out, beside those that failed.
        """
        left_out = {*without, *self.failures()}
        alone = [(np.array(self._cell_of_row), pd.DataFrame(self._rows))] if self._rows else []
        if not (every := alone + self._frames):
            return tidy([])
        cells = np.concatenate([own for own, _ in every])
        frame = pd.concat([own for _, own in every], ignore_index=True)
        if left_out:
            kept = ~np.isin(cells, list(left_out))
            cells, frame = cells[kept], frame[kept].reset_index(drop=True)
        in_order = bool((cells[1:] >= cells[:-1]).all())  # as in most studies, and text takes a while to move
        return tidy(frame if in_order else frame.take(np.argsort(cells, kind="stable")))

    def _keep(self, cell: int, rows: Rows) -> None:
        self._rows += rows
        self._cell_of_row += [cell] * len(rows)

    def _take_all(self) -> None:
        for layout in list(self._waiting):
            self._take(layout)

    def _take(self, layout: Hashable) -> None:
        """Measure the cells that wait for a stack."""
        waiting = self._waiting.pop(layout)
        self._held -= sum(_size(outputs) for _, outputs in waiting)
        if len(waiting) < FEWEST:
            return self._take_one_by_one(waiting)
        try:
            places, frame = _stack_rows([outputs for _, outputs in waiting], [form for _, form in self._together])
        except Exception as error:  # of which cell, a stack cannot say; alone, the one that is odd raises it again
            log.info("%d cells are measured one by one, since together they fail: %s", len(waiting), first_line(error))
            return self._take_one_by_one(waiting)
        if len(frame):
            self._frames.append((np.array([cell for cell, _ in waiting])[places], frame))

    def _take_one_by_one(self, waiting: Sequence[tuple[int, Outputs]]) -> None:
        for cell, outputs in waiting:
            try:
                self._keep(cell, measure_outputs(outputs, [each for each, _ in self._together]))
            except HapteraError as error:
                self._failures[cell] = error


def _size(outputs: Outputs) -> int:
    return max(outputs.logits.size, LEAST)


def _stack_rows(cells: Sequence[Outputs], forms: Sequence[Form]) -> tuple[np.ndarray, pd.DataFrame]:
    """Return the rows of cells of one layout, and of each row which cell it is about."""
    stacked = stack(cells)
    with stacked.flat.sharing(), stacked.first.sharing():
        found = [pd.DataFrame(columns) for form in forms if (columns := form(stacked)) is not None]
    if not found:
        return np.empty(0, np.int64), pd.DataFrame()
    rows = pd.concat(found, ignore_index=True).sort_values("cell", kind="stable", ignore_index=True)
    places = rows.pop("cell").to_numpy()
    about = pd.DataFrame([names_of(each) | each.groups[0][0] for each in cells]).take(places).reset_index(drop=True)
    return places, pd.concat([about, rows], axis=1)
