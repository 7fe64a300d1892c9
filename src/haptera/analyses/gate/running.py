"""Running: a candidate that has not been run yet, asked a few batches at a time.

With a folder, every sample of batches is kept there, so that a gate that was stopped goes on where it was.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np
import torch

from haptera.adapters import NoAdaptation
from haptera.analyses.gate.pairs import Scores, scores_by_place
from haptera.analyses.gate.quick import CHUNK
from haptera.batch import Batch, Stream, check_index
from haptera.data import Classes
from haptera.errors import HapteraError, first_line, unknown
from haptera.modules import copy_modules
from haptera.outputs import Outputs
from haptera.run.ledger import Ledger, Piece
from haptera.run.loop import evaluate
from haptera.run.matching import Names
from haptera.run.study import Study
from haptera.run.work import Cell, ModelCache

log = logging.getLogger("haptera")

KEEP = "top1"


@dataclass(frozen=True)
class Excerpt(Stream):
    """Some batches of a stream.

    Args:
        stream: any stream.
        positions: of the batches.
    """

    stream: Stream
    positions: tuple[int, ...]
    name: str = field(init=False, default="excerpt")
    seed: int = field(init=False, default=0)

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, index: int) -> Batch:
        check_index(index, self)
        return self.stream[self.positions[index]]

    @property
    def samples(self) -> int:
        """The number of samples."""
        return int(self.stream.sizes()[list(self.positions)].sum())

    @property
    def label(self) -> str:
        """Return the label of the stream within."""
        return self.stream.label

    @property
    def classes(self) -> Classes | None:
        """Return how targets relate to the model's classes."""
        return self.stream.classes


class RunningCandidate:
    """The model of a study that has not been run.

    Args:
        study: what there is to run.
        model: which of its models, if there are several.
        out: a folder where finished samples are kept; None keeps none.
    """

    def __init__(self, study: Study, model: str | None = None, out: Path | None = None) -> None:
        if model is not None and model not in study.models:
            raise unknown("model", model, study.models)
        self.study, self.device = study, study.device
        cells = [cell for cell in study.cells() if model in (None, cell.entry.model)]
        self._cells = {cell.entry.key: cell for cell in cells}
        self._turns = {key: iter(_turns(cell)) for key, cell in self._cells.items()}
        self._models = ModelCache()
        self._ledger = None if out is None else Ledger(out, "gate", noun="sample")
        self.failures: list[str] = []

    def __enter__(self) -> Self:
        if self._ledger is not None:
            self._ledger.__enter__()
            pieces = [_piece(cell, turn) for cell in self._cells.values() for turn in _turns(cell)]
            self._ledger.plan(
                pieces, {"models": {cell.entry.model: cell.entry.model_print for cell in self._cells.values()}}
            )
        return self

    def __exit__(self, *failure: object) -> None:
        if self._ledger is not None:
            self._ledger.__exit__(*failure)  # type: ignore[arg-type]

    def cells(self) -> dict[str, Names]:
        """Return key -> names of the cells."""
        return {key: cell.entry.names for key, cell in self._cells.items()}

    def draw(self, key: str, like: Scores) -> Scores | None:
        """Run the next batches of a cell; None when there are no more, or when they cannot be run."""
        turn = next(self._turns[key], None)
        if turn is None:
            return None
        cell = self._cells[key]
        try:
            return scores_by_place(self._outputs(cell, turn), "accuracy", cell.entry.title, like)
        except Exception as error:  # a model may do anything
            log.debug("%s failed", cell.entry.title, exc_info=True)
            why = str(error) if isinstance(error, HapteraError) else first_line(error)
            self.failures.append(f"{cell.entry.title} failed: {why}")
            self._turns[key] = iter(())
            return None

    def _outputs(self, cell: Cell, turn: Sequence[int]) -> Outputs:
        piece = _piece(cell, turn)
        if self._ledger is not None and not self._ledger.missing([piece]):
            return Outputs.load(self._ledger.path(piece))
        stream = cell.stream if _whole(cell) else Excerpt(_mixed(cell.stream), tuple(turn))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(cell.entry.seed)
            model = self._models(cell.model)
            adapter = cell.adapter(model if self.device == "cpu" else copy_modules(model).to(self.device))
            outputs = evaluate(adapter, stream, KEEP)
        if self._ledger is not None:
            outputs.save(self._ledger.path(piece))
            self._ledger.done(piece)
        return outputs


def _whole(cell: Cell) -> bool:
    """Say whether a cell is run at once, since what the model says depends on what it has seen."""
    return cell.adapter is not NoAdaptation


def _mixed(stream: Stream) -> Stream:
    """Return a stream in a random order, where it says that it is not."""
    return stream if getattr(stream, "shuffle", True) else replace(stream, shuffle=True)  # type: ignore[type-var]


def _turns(cell: Cell) -> list[tuple[int, ...]]:
    """Return the batches of every sample of a cell, in a random order that depends on the cell alone."""
    batches = len(cell.stream)
    if _whole(cell):
        return [tuple(range(batches))]
    each = max(1, round(CHUNK * batches / max(cell.stream.samples, 1)))
    order = np.random.default_rng(int(cell.entry.key[:8], 16)).permutation(batches)
    return [tuple(sorted(order[start : start + each].tolist())) for start in range(0, batches, each)]


def _piece(cell: Cell, turn: Sequence[int]) -> Piece:
    name = f"{cell.entry.key}-{turn[0]}-{len(turn)}"
    return Piece(name, f"samples/{name}.npz", f"{cell.entry.title}, batches from {turn[0]}")
