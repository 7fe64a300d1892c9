"""Matching: which cells of two studies are about the same thing."""

from dataclasses import replace

from haptera.errors import HapteraError
from haptera.outputs import Outputs
from haptera.run.cells import CellEntry, cells_of
from haptera.run.ledger import Ledger

Names = tuple[str, str, str, str, int]


def match_cells(one: Ledger, other: Ledger) -> tuple[dict[Names, CellEntry], dict[Names, CellEntry]]:
    """Return the finished cells of both by the names that both share: a model each is the same under any name."""
    first, second = finished_cells(one), finished_cells(other)
    if len({cell.model for cell in first.values()}) == len({cell.model for cell in second.values()}) == 1:
        model = next(iter(first.values())).model
        second = {replace(cell, model=model).names: cell for cell in second.values()}
    return first, second


def finished_cells(ledger: Ledger) -> dict[Names, CellEntry]:
    """Return the cells that are there, by their names."""
    done = {piece.key for piece in ledger.finished}
    return {cell.names: cell for cell in cells_of(ledger) if cell.key in done}


def load_cell(ledger: Ledger, cell: CellEntry) -> Outputs | None:
    """Return the outputs of a cell; None where they are damaged, which the report of that study says."""
    try:
        return Outputs.load(ledger.path(cell.piece))
    except HapteraError:
        return None
