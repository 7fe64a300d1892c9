"""Cells: how the ledger of a study lists them, which of them a new run makes stale, and what is said about the others.

A cell is one model on one part of one stream with one adapter and one seed. Its key is the fingerprint of all of
these, so a folder outlives changes: when weights, data or settings change, the old cells leave the plan and nothing
reads them.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from haptera.errors import HapteraError
from haptera.files.schema import TABLE, TEXT, check, list_of, whole_number
from haptera.outputs import Outputs
from haptera.run.folder import PLAN
from haptera.run.ledger import Ledger, Piece
from haptera.run.locks import PATIENCE
from haptera.words import shorten

log = logging.getLogger("haptera")

FACTS = {
    "model": TEXT,
    "stream": TEXT,
    "part": TEXT,
    "adapter": TEXT,
    "seed": whole_number(-(2**53)),
    "model_print": TEXT,
    "stream_print": TEXT,
}
NAMES = ("model", "stream", "part", "adapter", "seed")
"""Facts that tell cells apart; of two that agree in all of them the later one counts."""
STUDY, CELL = "study", "cell"
ABOUT = {"name": TEXT, "settings": TABLE, "left_out": list_of(TEXT)}


@dataclass(frozen=True)
class CellEntry:
    """A cell as the plan of a study lists it.

    Attributes:
        key: fingerprint of everything that decides the outputs; the name of the file.
        part: which part of the stream.
        model_print: fingerprint of the model; empty for predictions made elsewhere.
        stream_print: fingerprint of the part of the stream; empty for predictions made elsewhere.
    """

    key: str
    model: str
    stream: str
    part: str
    adapter: str
    seed: int
    model_print: str = ""
    stream_print: str = ""

    @property
    def names(self) -> tuple[str, str, str, str, int]:
        """What people call the cell."""
        return self.model, self.stream, self.part, self.adapter, self.seed

    @property
    def title(self) -> str:
        """Return a text such as `resnet · contrast 4 · batchnorm`."""
        return f"{self.model} · {self.part} · {self.adapter}" + (f" · seed {self.seed}" if self.seed else "")

    @cached_property
    def piece(self) -> Piece:
        """The cell as a piece of the study's ledger."""
        facts = {name: getattr(self, name) for name in FACTS}
        return Piece(self.key, f"cells/{self.key}.npz", self.title, facts)


def study_ledger(folder: Path | str, wait: float | None = PATIENCE) -> Ledger:
    """Return the ledger of a study's folder, which need not be there yet; see `Ledger` for how to wait."""
    return Ledger(folder, STUDY, noun=CELL, wait=wait)


def open_study(folder: Path | str, wait: float | None = PATIENCE) -> Ledger:
    """Return the ledger of a folder that must hold a study; see `Ledger` for how to wait."""
    return Ledger.open(folder, STUDY, noun=CELL, wait=wait)


def cells_of(ledger: Ledger) -> list[CellEntry]:
    """Return the cells that the plan of a study lists."""
    kinds = list(FACTS.items())
    for key, piece in ledger.pieces.items():
        own = piece.facts
        if not all(name in own and kind.fits(own[name]) for name, kind in kinds):
            check(own, FACTS, f"{ledger.folder / PLAN}: cell {key}")
    return [CellEntry(key, *[piece.facts[name] for name in FACTS]) for key, piece in ledger.pieces.items()]


def about_of(ledger: Ledger) -> dict[str, Any]:
    """Return what the plan says about the study: `name`, `settings`, and sentences about what was `left_out`."""
    return check(ledger.about, ABOUT, str(ledger.folder / PLAN))


def start_of(folder: Path) -> dict[str, Any]:
    """Return what the plan of a new study says about it."""
    return {"name": folder.resolve().name, "settings": {}, "left_out": []}


def list_cells(ledger: Ledger, new: Sequence[CellEntry], **about: object) -> None:
    """Plan new cells beside the old ones that are still current; the study keeps the name it has."""
    known = about_of(ledger) if ledger.exists else start_of(ledger.folder)
    again = ledger.pieces.keys() <= {cell.key for cell in new}
    ledger.plan([cell.piece for cell in (new if again else merge(cells_of(ledger), new))], known | about)


def merge(old: Iterable[CellEntry], new: Sequence[CellEntry]) -> list[CellEntry]:
    """Return new cells after those of the old ones that no change of a model or a stream has made stale."""
    names = {cell.names for cell in new}
    models = {cell.model: cell.model_print for cell in new}
    parts = {(cell.stream, cell.part, cell.seed): cell.stream_print for cell in new}

    def current(cell: CellEntry) -> bool:
        model = models.get(cell.model, cell.model_print)
        part = parts.get((cell.stream, cell.part, cell.seed), cell.stream_print)
        same_model = not cell.model_print or not model or cell.model_print == model
        same_part = not cell.stream_print or not part or cell.stream_print == part
        return cell.names not in names and same_model and same_part

    return [cell for cell in old if current(cell)] + list(new)


def missing_cells(ledger: Ledger, cells: Iterable[CellEntry]) -> set[str]:
    """Return the keys of the cells that are still to be run.

    A whole file that the journal does not mention is noted as finished: the run that wrote it was killed before it
    could do so, or the cell was out of the plan for a while.
    """
    todo = ledger.missing((cell.piece for cell in cells), read=False)
    unnoted = [piece for piece in todo if not ledger.damage(piece) and _holds(ledger.path(piece), piece.key)]
    for piece in unnoted:
        ledger.done(piece)
    return {piece.key for piece in todo} - {piece.key for piece in unnoted}


def _holds(path: Path, key: str) -> bool:
    """Say whether a file holds the outputs of a cell, whole."""
    try:
        return path.is_file() and Outputs.load(path).provenance.get("key") == key
    except HapteraError:
        return False


def notes(ledger: Ledger, damage: Mapping[str, str]) -> list[str]:
    """Return what a reader of the results must know about what is not in them.

    Args:
        ledger: of a study.
        damage: what is wrong with each finished cell that cannot be used, by key.
    """
    total, failures = len(ledger.pieces), ledger.failures
    sentences = list(about_of(ledger)["left_out"])
    for why in dict.fromkeys(failures.values()):
        titles = [ledger.pieces[key].title for key in failures if failures[key] == why]
        sentences.append(f"{len(titles)} of {total} cells failed: {why} ({shorten(titles)})")
    if damage:
        titles = [ledger.pieces[key].title for key in damage]
        why = shorten(list(damage.values()), 1)
        sentences.append(
            f"{len(damage)} of {total} cells left out because their files are damaged: {shorten(titles)} ({why}); "
            "the command that made them makes them again"
        )
    known = {*failures, *damage, *(piece.key for piece in ledger.finished)}
    if waiting := total - len(known):
        sentences.append(f"{waiting} of {total} cells have not been run yet")
    return sentences
