"""Study: models x streams x adapters = cells; runs what is missing, measures, reports.

    study = Study({"net": net}, [Clean(data), Corruptions(data)], [NoAdaptation, BatchNorm], out="audit")
    table = study.run()

Each cell is one model on one part of one stream with one adapter and one seed. Its key is the fingerprint of all of
these; its outputs are one file; a run that was stopped goes on with the files that are missing.
"""

import copy
import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn

from haptera import catalog
from haptera.adapters import Adapter, NoAdaptation
from haptera.adapters.passes import check_outputs
from haptera.batch import Stream
from haptera.correctness import check_classes, check_targets, few_labels
from haptera.errors import HapteraError, NotApplicable, Unfinished, WriteError, first_line
from haptera.files.atomic import writable_folder
from haptera.files.fingerprint import SCHEMA, fingerprint, of_model
from haptera.models.device import choose_device
from haptera.models.source import ModelSource
from haptera.outputs import Outputs
from haptera.progress import Progress
from haptera.run import results
from haptera.run.cells import Listed, Manifest, locked
from haptera.run.execute import Ended, in_processes, in_this_process, on_cluster
from haptera.run.loop import check_keep, evaluate, versions
from haptera.words import shorten

log = logging.getLogger("haptera")

Model = nn.Module | Callable[[], nn.Module]
MakeAdapter = Callable[..., Adapter]


@dataclass(frozen=True)
class Cell:
    """One thing to run, and how the folder lists it."""

    listed: Listed
    model: Model
    stream: Stream
    adapter: MakeAdapter


@dataclass(frozen=True)
class Ran:
    """What a run did: how many cells it ran, found finished, and could not run."""

    ran: int
    kept: int
    failed: int


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
    ) -> None:
        check_keep(keep)
        self.models = dict(models)
        self.streams = list(streams)
        self.adapters = _named(adapters)
        self.out = Path(out)
        self.seeds = None if seeds is None else list(dict.fromkeys(seeds))
        self.keep = keep
        self.device = str(choose_device(device))
        self.settings = dict(settings or {})
        self.last = Ran(0, 0, 0)
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

    def run(self, *, jobs: int = 1, cluster: str | None = None, progress: bool | None = None) -> pd.DataFrame:
        """Run what is missing and measure everything.

        Args:
            jobs: processes on this machine.
            cluster: the address of a Dask scheduler, instead.
            progress: show a bar; by default on a terminal or in a notebook.
        """
        if jobs < 1:
            raise HapteraError(f"jobs is {jobs}; at least 1 was expected")
        cells, missing, left_out = self._plan()
        writable_folder(self.out)
        with locked(self.out):
            manifest = Manifest.read_or_new(self.out)
            manifest.merge([cell.listed for cell in cells])
            manifest.left_out, manifest.settings = left_out, self._described(cells)
            manifest.tidy_up()
            manifest.name = manifest.name or self.out.resolve().name
            manifest.write()
            failures = self._execute(missing, manifest, jobs, cluster, progress)
            manifest.note_failures([cell.listed for cell in cells], failures)
            manifest.write()
        self.last = Ran(len(missing) - len(failures), len(cells) - len(missing), len(failures))
        return results.measure(self.out)

    def _plan(self) -> tuple[list[Cell], list[Cell], list[str]]:
        """Every cell, those of them that are missing, and sentences about combinations that make no sense."""
        parts = [(stream.name, part) for stream in self._seeded() for part in stream.parts()]
        prints = {id(part): part.fingerprint() for _, part in parts}
        cells: list[Cell] = []
        missing: list[Cell] = []
        senseless: dict[tuple[str, str], list[str]] = {}
        inputs: dict[str, torch.Tensor] = {}
        for model_name, source in self.models.items():
            model = _built(source)
            model_print = fingerprint(of_model(model), source.code() if isinstance(source, ModelSource) else "")
            own: list[Cell] = []
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
                for stream_name, part in parts:
                    names = (model_name, stream_name, part.label, adapter_name, part.seed)
                    key = fingerprint(SCHEMA, names, model_print, prints[id(part)], make, self.keep)
                    listed = Listed(key, *names, model_print=model_print, stream_print=prints[id(part)])
                    own.append(Cell(listed, source, part, make))
            to_run = [cell for cell in own if not Outputs.readable(Manifest(self.out).path(cell.listed))]
            _try_out(model, to_run, inputs)
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

    def _seeded(self) -> list[Stream]:
        """The streams, once for each seed of the study."""
        if self.seeds is None:
            return self.streams
        return [stream.with_seed(seed) for seed in self.seeds for stream in self.streams]

    def _execute(
        self, cells: Sequence[Cell], manifest: Manifest, jobs: int, cluster: str | None, progress: bool | None
    ) -> dict[str, str]:
        """Run cells; the failures by key."""
        work = functools.partial(run_cell, list(cells), self.out.resolve(), self.keep, self.device)
        indices = range(len(cells))
        ended: Ended
        if cluster:
            ended = on_cluster(work, indices, cluster)
        elif jobs > 1 and len(cells) > 1:
            ended = in_processes(work, indices, min(jobs, len(cells)))
        else:
            ended = in_this_process(work, indices)
        failures: dict[str, str] = {}
        with Progress(manifest.name, len(cells), progress) as bar:
            try:
                for index, failure in ended:
                    listed = cells[index].listed
                    if failure:
                        failures[listed.key] = failure
                        log.error("%s failed: %s", listed.title, failure)
                    bar.advance(listed.title)
            except WriteError as error:
                done = sum(manifest.finished(cell) for cell in manifest.cells)
                raise Unfinished(f"{error}; {done} finished cells are intact, the same command goes on") from error
        return failures

    def _described(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """What the report says about how the results came about."""
        return self.settings | {
            "models": list(self.models),
            "streams": [stream.name for stream in self.streams],
            "adapters": list(self.adapters),
            "seeds": self.seeds if self.seeds is not None else sorted({stream.seed for stream in self.streams}),
            "keep": self.keep,
            "device": self.device,
            "threads": torch.get_num_threads(),
            "versions": versions(),
            "fingerprints of models": {cell.listed.model: cell.listed.model_print for cell in cells},
            "fingerprints of streams": {
                f"{cell.listed.stream}, {cell.listed.part}, seed {cell.listed.seed}": cell.listed.stream_print
                for cell in cells
            },
        }

    def table(self) -> pd.DataFrame:
        """Measure what is finished."""
        return results.measure(self.out)

    def report(self) -> Path:
        """Write `report.html` from what is finished."""
        return results.report(self.out)[0]


def _try_out(model: nn.Module, cells: Sequence[Cell], inputs: dict[str, torch.Tensor]) -> None:
    """Two samples of each stream through a model, so that what cannot work is said before anything runs.

    Args:
        model: the model of all these cells.
        cells: that are missing.
        inputs: stream -> two samples; those that are not there yet are read.
    """
    tried: set[str] = set()
    for cell in cells:
        name, stream = cell.listed.model, cell.listed.stream
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


def run_cell(cells: Sequence[Cell], out: Path, keep: str, device: str, index: int) -> str:
    """Run one cell into its file, unless the file is there; why not, if it failed."""
    listed = cells[index].listed
    path = Manifest(out).path(listed)
    if Outputs.readable(path):
        return ""
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(listed.seed)
            adapter = cells[index].adapter(_on(device, _built(cells[index].model)))
            outputs = evaluate(adapter, cells[index].stream, keep)
    except HapteraError as error:
        return str(error)
    except Exception as error:
        log.debug("%s failed", listed.title, exc_info=True)
        return first_line(error)
    outputs.provenance |= asdict(listed) | {"schema": SCHEMA, "parent": adapter.parent_label}
    outputs.save(path)
    return ""


_last_built: tuple[Model, nn.Module] | None = None


def _built(source: Model) -> nn.Module:
    """The model; the last one built is kept, since cells come model by model."""
    global _last_built
    if isinstance(source, nn.Module):
        return source
    if _last_built is None or _last_built[0] is not source:
        _last_built = source, source()
    return _last_built[1]


def _on(device: str, model: nn.Module) -> nn.Module:
    """The model on a device; the caller's stays where it is."""
    return model if device == "cpu" else copy.deepcopy(model).to(device)


def _named(adapters: Mapping[str, MakeAdapter] | Iterable[MakeAdapter]) -> dict[str, MakeAdapter]:
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
