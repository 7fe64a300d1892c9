"""Study: models x streams x adapters = cells; runs what is missing, measures, reports.

    study = Study({"net": net}, [Clean(data), Corruptions(data)], [NoAdaptation, BatchNorm], out="audit")
    table = study.run()

Each cell is one model on one part of one stream with one adapter and one seed. Its key is the fingerprint of all of
these; its outputs are one file; a run that was stopped goes on with the cells that are missing or damaged.
"""

import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn

from haptera import catalog
from haptera.adapters import NoAdaptation
from haptera.batch import Stream
from haptera.errors import HapteraError, NotApplicable, first_line
from haptera.files.fingerprint import SCHEMA, encode, encode_sequence, fingerprint, join_fingerprint, of_model
from haptera.models.source import ModelSource, choose_device
from haptera.progress import Progress
from haptera.run import results
from haptera.run.cells import CellEntry, about_of, list_cells, missing_cells, study_ledger
from haptera.run.collection import uncollected
from haptera.run.execute import Outcomes, in_processes, in_this_process, on_cluster
from haptera.run.ledger import Ledger
from haptera.run.loop import check_keep, versions
from haptera.run.machine import RUN_ON, describe_machine
from haptera.run.protocol import describe_protocol
from haptera.run.samples import keep_samples
from haptera.run.work import Cell, CellWork, MakeAdapter, Model, ModelCache, try_out
from haptera.words import count, shorten

log = logging.getLogger("haptera")

NOWHERE = ".nowhere"
"""A folder that is never made, in which no cell is finished."""


@dataclass(frozen=True)
class RunSummary:
    """What a run did: how many cells it ran, found finished, and could not run."""

    ran: int
    kept: int
    failed: int

    def __str__(self) -> str:
        return f"{count(self.ran, 'cell')} run, {self.kept} found finished, {self.failed} failed"


class Study:
    """Models x streams x adapters x seeds.

    Args:
        models: name -> `nn.Module`, or a function that builds one.
        streams: streams; each of their parts is run with a fresh adapter.
        adapters: classes of adapters, partials of them, or name -> either; the unadapted model by default.
        out: the folder of the study; what is finished there is not run again.
        seeds: every stream once per seed; None keeps the streams' own.
        keep: `float32`, `float16`, or `top5` and the like.
        device: where models run; a GPU if there is one, by default.
        settings: what else to write down about the study, JSON-like.
        images: keep a few dozen small pictures for the report.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        streams: Iterable[Stream],
        adapters: Mapping[str, MakeAdapter] | Iterable[MakeAdapter] = (NoAdaptation,),
        *,
        out: str | Path,
        seeds: Sequence[int] | None = None,
        keep: str = "float32",
        device: str | None = None,
        settings: Mapping[str, Any] | None = None,
        images: bool = True,
    ) -> None:
        check_keep(keep)
        self.models = dict(models)
        self.streams = list(streams)
        self.adapters = _name_adapters(adapters)
        self.out = Path(out)
        self.seeds = None if seeds is None else list(dict.fromkeys(seeds))
        self.keep = keep
        self.device = str(choose_device(device))
        self.settings = dict(settings or {})
        self.images = images
        self.last = RunSummary(0, 0, 0)
        self.notes: list[str] = []
        self._models = ModelCache()
        for kind, things in (
            ("models", self.models),
            ("streams", self.streams),
            ("adapters", self.adapters),
            ("seeds", self.seeds),
        ):
            if things is not None and not things:
                raise HapteraError(f"a study needs {kind}, found none")
        names = [stream.name for stream in self.streams]
        if len(set(names)) < len(names):
            raise HapteraError(
                f"two streams have the name {next(n for n in names if names.count(n) > 1)!r}; give one another name"
            )

    def run(
        self,
        *,
        jobs: int = 1,
        cluster: str | None = None,
        progress: bool | None = None,
        preflight: Callable[[str, nn.Module], None] | None = None,
    ) -> pd.DataFrame:
        """Run what is missing and measure everything.

        Args:
            jobs: processes on this machine.
            cluster: the address of a Dask scheduler, instead.
            progress: show a bar; by default on a terminal or in a notebook.
            preflight: is called with the name of every model that is to be run, and the model, before the first cell.
        """
        if jobs < 1:
            raise HapteraError(f"jobs is {jobs}; at least 1 was expected")
        with uncollected():
            unlocked = study_ledger(self.out)
        with unlocked as ledger:
            with uncollected():
                cells, missing, left_out = self._plan(ledger)
                before = about_of(ledger)["settings"].get(RUN_ON, {}) if ledger.exists and not missing else {}
                settings = {RUN_ON: before or describe_machine(self._gpu())} | self._describe(cells)
                list_cells(ledger, [cell.entry for cell in cells], left_out=left_out, settings=settings)
            for name in dict.fromkeys(cell.entry.model for cell in missing) if preflight else ():
                preflight(name, self._models(self.models[name]))  # type: ignore[misc]
            failed = self._execute(missing, ledger, self._start(missing, jobs, cluster), progress)
            self.last = RunSummary(len(missing) - failed, len(cells) - len(missing), failed)
            if self.images:
                keep_samples(ledger, cells)
            measured = results.current_results(ledger, ledger.intact) or results.write_table(ledger)
            self.notes = measured.notes
            return measured.table

    def cells(self) -> list[Cell]:
        """Return every cell, finished or not, after two samples of each stream went through each model."""
        return self._plan(study_ledger(self.out / NOWHERE))[0]

    def _plan(self, ledger: Ledger) -> tuple[list[Cell], list[Cell], list[str]]:
        """Return every cell, those that are missing, and sentences about combinations that make no sense."""
        parts = [(stream.name, part) for stream in self._streams_by_seed() for part in stream.parts()]
        prints = {id(part): part.fingerprint() for _, part in parts}
        schema = encode(SCHEMA)
        encoded_parts = [
            (encode(name), encode(part.label), encode(part.seed), encode(prints[id(part)])) for name, part in parts
        ]
        cells: list[Cell] = []
        missing: list[Cell] = []
        senseless: dict[tuple[str, str], list[str]] = {}
        inputs: dict[str, torch.Tensor] = {}
        for model_name, source in self.models.items():
            model = self._models(source)
            model_print = fingerprint(of_model(model), source.code() if isinstance(source, ModelSource) else "")
            own: list[Cell] = []
            encoded_model = encode(model_name), encode(model_print)
            for adapter_name, make in self.adapters.items():
                try:
                    make(model)
                except NotApplicable as reason:
                    senseless.setdefault((adapter_name, str(reason)), []).append(model_name)
                    continue
                except HapteraError:
                    raise
                except Exception as error:
                    raise HapteraError(f"adapter {adapter_name} on model {model_name}: {first_line(error)}") from error
                encoded_adapter, rest = encode(adapter_name), encode(make) + encode(self.keep)
                for (stream_name, part), (stream, label, seed, stream_print) in zip(parts, encoded_parts, strict=True):
                    called = encode_sequence([encoded_model[0], stream, label, encoded_adapter, seed])
                    # the same as fingerprint(SCHEMA, names, model_print, stream_print, make, self.keep)
                    key = join_fingerprint([schema, called, encoded_model[1], stream_print, rest])
                    names = (model_name, stream_name, part.label, adapter_name, part.seed)
                    entry = CellEntry(key, *names, model_print=model_print, stream_print=prints[id(part)])
                    own.append(Cell(entry, source, part, make))
            todo = missing_cells(ledger, [cell.entry for cell in own])
            to_run = [cell for cell in own if cell.entry.key in todo]
            try_out(model, to_run, inputs)
            cells += own
            missing += to_run
        left_out = [
            f"{adapter} is left out for {shorten(models)}: {why}" for (adapter, why), models in senseless.items()
        ]
        if not cells:
            raise HapteraError(f"nothing to run: {left_out[0]}")
        for sentence in left_out:
            log.info(sentence)
        return cells, missing, left_out

    def _streams_by_seed(self) -> list[Stream]:
        """Return the streams, once for each seed of the study."""
        if self.seeds is None:
            return self.streams
        return [stream.with_seed(seed) for seed in self.seeds for stream in self.streams]

    def _start(self, cells: Sequence[Cell], jobs: int, cluster: str | None) -> Outcomes:
        """Run cells where they are to run; yield each as it ends."""
        if not cells:
            return iter(())
        work = CellWork(cells, self.out.resolve(), self.keep, self.device, self._models)
        if cluster:
            return on_cluster(work, range(len(cells)), cluster)
        if jobs > 1 and len(cells) > 1:
            return in_processes(work, range(len(cells)), min(jobs, len(cells)))
        return in_this_process(work, range(len(cells)))

    def _execute(self, cells: Sequence[Cell], ledger: Ledger, outcomes: Outcomes, progress: bool | None) -> int:
        """Note each cell as it ends; return how many failed."""
        failed = 0
        with Progress(ledger.about["name"], len(cells), progress) as bar:
            try:
                for index, failure in outcomes:
                    piece = cells[index].entry.piece
                    if not failure and not ledger.path(piece).is_file():
                        failure = f"its worker wrote {piece.path}, which is not in {self.out} as seen from here"
                    if failure:
                        failed += 1
                        ledger.fail(piece, failure)
                        log.error("%s failed: %s", piece.title, failure)
                    else:
                        ledger.done(piece)
                    bar.advance(piece.title)
            except KeyboardInterrupt:
                missing_cells(ledger, [cell.entry for cell in cells])  # notes those that other processes finished
                raise
        return failed

    def _gpu(self) -> str:
        """Return the name of the GPU that models run on, if they do."""
        return torch.cuda.get_device_name(self.device) if self.device.startswith("cuda") else ""

    def _describe(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """Return what the report says about how the results came about."""
        return self.settings | {
            "models": list(self.models),
            "streams": [stream.name for stream in self.streams],
            "adapters": list(self.adapters),
            "seeds": self.seeds if self.seeds is not None else sorted({stream.seed for stream in self.streams}),
            "keep": self.keep,
            "images": self.images,
            "device": self.device,
            "threads": torch.get_num_threads(),
            "versions": versions(),
            "protocol": describe_protocol(self._streams_by_seed(), self.adapters),
            "fingerprints of models": {cell.entry.model: cell.entry.model_print for cell in cells},
            "fingerprints of streams": {
                f"{cell.entry.stream}, {cell.entry.part}, seed {cell.entry.seed}": cell.entry.stream_print
                for cell in cells
            },
        }

    def table(self) -> pd.DataFrame:
        """Measure what is finished."""
        return results.measure(self.out)

    def report(self) -> Path:
        """Write `report.html` from what is finished."""
        return results.report(self.out)[0]


def _name_adapters(adapters: Mapping[str, MakeAdapter] | Iterable[MakeAdapter]) -> dict[str, MakeAdapter]:
    if isinstance(adapters, Mapping):
        return dict(adapters)
    named: dict[str, MakeAdapter] = {}
    for make in adapters:
        inner, settings = (make.func, make.keywords) if isinstance(make, functools.partial) else (make, {})
        plain = catalog.name_of("adapters", inner) or getattr(inner, "__name__", type(inner).__name__)
        name = catalog.label(str(plain), settings)
        if name in named:
            raise HapteraError(f"two adapters are called {name!r}; give them names: {{'a': ..., 'b': ...}}")
        named[name] = make
    return named
