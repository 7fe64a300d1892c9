"""Work: what it takes to run one cell, in this process or in another."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn

from haptera.adapters import Adapter, NoAdaptation
from haptera.adapters.passes import check_outputs
from haptera.batch import Stream
from haptera.correctness import check_classes, check_targets, few_labels
from haptera.errors import HapteraError, first_line
from haptera.files.fingerprint import SCHEMA
from haptera.models.classifier import classifier
from haptera.modules import copy_modules
from haptera.run.cells import CellEntry
from haptera.run.loop import evaluate

log = logging.getLogger("haptera")

Model = nn.Module | Callable[[], nn.Module]
MakeAdapter = Callable[..., Adapter]


@dataclass(frozen=True)
class Cell:
    """One thing to run, and how the folder lists it."""

    entry: CellEntry
    model: Model
    stream: Stream
    adapter: MakeAdapter


class ModelCache:
    """Builds models from their sources and keeps the last one, since cells come model by model."""

    def __init__(self) -> None:
        self._last: tuple[Model, nn.Module] | None = None

    def __call__(self, source: Model) -> nn.Module:
        """Return the model, which is built unless it is the last one."""
        if isinstance(source, nn.Module):
            return classifier(source)
        if self._last is None or self._last[0] is not source:
            self._last = source, source()
        return self._last[1]

    def __reduce__(self) -> tuple[type["ModelCache"], tuple[()]]:
        return ModelCache, ()  # another process builds its own


@dataclass(frozen=True)
class CellWork:
    """Runs cells into their files; it is sent to a worker once, and called with the index of each cell."""

    cells: Sequence[Cell]
    folder: Path
    keep: str
    device: str
    models: ModelCache

    def __call__(self, index: int) -> str:
        """Run one cell into its file; return why not, if it failed."""
        cell, entry = self.cells[index], self.cells[index].entry
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(entry.seed)
                adapter = cell.adapter(_on(self.device, self.models(cell.model)))
                outputs = evaluate(adapter, cell.stream, self.keep)
        except HapteraError as error:
            return str(error)
        except Exception as error:
            log.debug("%s failed", entry.title, exc_info=True)
            return first_line(error)
        outputs.provenance |= asdict(entry) | {"schema": SCHEMA, "parent": adapter.parent_label}
        outputs.save(self.folder / entry.piece.path)
        return ""


def try_out(model: nn.Module, cells: Sequence[Cell], inputs: dict[str, torch.Tensor]) -> None:
    """Pass two samples of each stream through a model, so that what cannot work is said before anything runs.

    Args:
        model: the model of all these cells.
        cells: that are missing.
        inputs: stream -> two samples; those that are not there yet are read.
    """
    tried: set[str] = set()
    for cell in cells:
        name, stream = cell.entry.model, cell.entry.stream
        if stream in tried:
            continue
        tried.add(stream)
        if stream not in inputs:
            try:
                inputs[stream] = cell.stream[0].inputs[:2]
            except HapteraError:
                raise
            except Exception as error:
                raise HapteraError(f"stream {stream} cannot be read: {first_line(error)}") from error
        try:
            logits = check_outputs(NoAdaptation(model)(inputs[stream]), len(inputs[stream]))
            targets = getattr(getattr(cell.stream, "data", None), "targets", None)
            names = None if targets is None else cell.stream.class_names
            check_classes(cell.stream.classes, logits.shape[1], names)
            if targets is not None:
                check_targets(targets, logits.shape[1], cell.stream.classes)
                if remark := few_labels(targets, logits.shape[1], cell.stream.classes, names):
                    log.warning("model %s on stream %s: %s", name, stream, remark)
        except HapteraError as error:
            raise HapteraError(f"model {name} on stream {stream}: {error}") from error
        except Exception as error:
            shape = tuple(inputs[stream].shape[1:])
            raise HapteraError(f"model {name} fails on images of shape {shape}: {first_line(error)}") from error


def _on(device: str, model: nn.Module) -> nn.Module:
    """Return the model on a device; the caller's stays where it is."""
    return model if device == "cpu" else copy_modules(model).to(device)
