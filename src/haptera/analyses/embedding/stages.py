"""Stages: a first look after one fit, then controls, baselines and folds as they end, in processes of their own.

The first fit has all idle cores to itself. Everything else waits for nothing but it, so the rest is one list of tasks:
other seeds, shuffled labels, folds, baselines. Labels are decoded, and rings counted, in this process while others fit.
Every fit takes as many steps as the first, so that a control differs from it in one thing alone; controls have one
thread each, whether they are made here or elsewhere, so that results do not depend on the number of processes.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from haptera.analyses.embedding.comparison import (
    COLUMNS,
    EMBEDDING,
    SHUFFLED_TRAINING,
    decode_baseline,
    decode_embedding,
    decode_shuffled,
    decode_windows,
)
from haptera.analyses.embedding.consistency import consistency
from haptera.analyses.embedding.decoding import Distance
from haptera.analyses.embedding.fits import BaselineTask, Fit, FitTask
from haptera.analyses.embedding.plan import Parts, Plan
from haptera.analyses.embedding.topology import Persistence, betti_numbers, persistence
from haptera.run.tasks import Task, finish
from haptera.words import count

KIND = "embedding"
DRAWS, MANY = 3, 20
"""Draws of points from each shuffled embedding, so that a few fits make a null with a tail; of this many, one each."""
STEP = 0.02
"""Seconds of a step, about."""
PAYS = 15.0
"""Seconds of work from which processes pay, which take some to start, and somebody wants to look meanwhile."""


@dataclass(eq=False)
class Known:
    """What is known so far.

    Attributes:
        parts: the recording as it was used.
        cuts: the same for each fold.
        plan: what was asked for.
        fits: of true labels, by their seed.
        shuffled: of shuffled ones, by their seed.
        baselines: by their names.
        tables: decoding, by what was decoded and its seed or fold.
        shape: classes of the first embedding, if there is time for topology.
        null: those of shuffled fits, by their seed.
    """

    parts: Parts
    cuts: Sequence[Parts]
    plan: Plan
    fits: dict[int, Fit] = field(default_factory=dict)
    shuffled: dict[int, Fit] = field(default_factory=dict)
    baselines: dict[str, np.ndarray] = field(default_factory=dict)
    tables: dict[tuple[str, object], pd.DataFrame] = field(default_factory=dict)
    shape: Persistence | None = None
    null: dict[int, tuple[Persistence, ...]] = field(default_factory=dict)

    def add(self, task: Task[Any], result: Any) -> None:
        """Take in a fit or a baseline, and decode what there is to decode."""
        if isinstance(task, BaselineTask):
            self.baselines[task.name] = result
            self._decode(("baseline", task.name), partial(decode_baseline, result, self.parts, what=task.name))
        elif isinstance(task, FitTask):
            self._add_fit(task, result)

    def _add_fit(self, task: FitTask, fit: Fit) -> None:
        distance: Distance = "cosine" if fit.model.distance == "cosine" else "euclidean"
        settings: dict[str, Any] = {"seed": fit.seed, "distance": distance}
        read = partial(decode_embedding, fit.embedding, task.parts, **settings)
        if task.fold:
            fold = partial(self._fold, task.parts, fit, settings)
            self._decode(("fold", task.fold), fold)
        elif task.shuffled:
            self.shuffled[fit.seed] = fit
            self._decode((SHUFFLED_TRAINING, fit.seed), partial(read, what=SHUFFLED_TRAINING))
            if self.plan.topology:
                draws = range(1 if self.plan.shuffles >= MANY else DRAWS)
                self.null[fit.seed] = tuple(persistence(fit.embedding, seed=self.plan.seed + draw) for draw in draws)
        else:
            first = not self.fits
            self.fits[fit.seed] = fit
            self._decode((EMBEDDING, fit.seed), partial(read, what=EMBEDDING))
            shuffled = partial(decode_shuffled, fit.embedding, self.parts, **settings)
            self._decode(("shuffled decoder", fit.seed), shuffled)
            if first:
                windows = partial(decode_windows, self.parts, offset=fit.model.offset_)
                self._decode(("windows", 0), windows)
                self.shape = persistence(fit.embedding, seed=self.plan.seed) if self.plan.topology else None

    def _fold(self, parts: Parts, fit: Fit, settings: Mapping[str, Any], label: str) -> pd.DataFrame:
        tables = [
            decode_embedding(fit.embedding, parts, label, what=EMBEDDING, **settings),
            decode_shuffled(fit.embedding, parts, label, **settings),
            decode_windows(parts, label, fit.model.offset_),
        ]
        return pd.concat(tables, ignore_index=True)

    def _decode(self, key: tuple[str, object], decode: Callable[..., pd.DataFrame]) -> None:
        if tables := [decode(label=label) for label in self.plan.labels]:
            self.tables[key] = pd.concat(tables, ignore_index=True)

    @property
    def pending(self) -> tuple[str, ...]:
        """Return what is still to come, in words."""
        plan = self.plan
        what = "samples" if plan.by == "time" else "labels"
        seeds, shuffles = plan.seeds - len(self.fits), plan.shuffles - len(self.shuffled)
        folds = len(self.cuts) - sum(kind == "fold" for kind, _ in self.tables)
        others = [name for name in plan.baselines if name not in self.baselines]
        texts = [
            f"{count(seeds, 'more seed')}, which say how far results are those of one seed" if seeds else "",
            f"{count(shuffles, 'fit')} of shuffled {what}, the zero of the goodness of fit" if shuffles else "",
            "rings and hollows, which need those" if shuffles and plan.topology else "",
            count(folds, "fold") + " of whole trials" if folds else "",
            f"{', '.join(others)} for comparison" if others else "",
        ]
        return tuple(text for text in texts if text)

    @property
    def decoding(self) -> pd.DataFrame:
        """Return the scores of everything but folds, always in the same order."""
        order = [EMBEDDING, "shuffled decoder", SHUFFLED_TRAINING, "windows", "baseline"]
        places = {name: place for place, name in enumerate(self.plan.baselines)}
        known = [key for key in self.tables if key[0] != "fold"]
        known.sort(key=lambda key: (order.index(key[0]), places.get(str(key[1]), 0) or _number(key[1])))
        tables = [self.tables[key] for key in known]
        if not tables:
            return pd.DataFrame(columns=list(COLUMNS))
        whole = pd.concat(tables, ignore_index=True)
        return pd.concat([whole[whole["label"] == label] for label in self.plan.labels], ignore_index=True)

    @property
    def folds(self) -> pd.DataFrame:
        """Return the scores of folds."""
        keys = sorted((key for key in self.tables if key[0] == "fold"), key=lambda key: _number(key[1]))
        tables = [self.tables[key].assign(fold=_number(key[1])) for key in keys]
        columns = ["fold", *COLUMNS]
        return pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)

    def results(self) -> dict[str, Any]:
        """Return the fields of an `Embedding` that grow."""
        fits = [self.fits[seed] for seed in sorted(self.fits)]
        runs = {f"seed {fit.seed}": fit.embedding[-len(self.parts.test) :] for fit in fits}
        nulls = tuple(one for seed in sorted(self.null) for one in self.null[seed])
        complete = self.shape is not None and nulls and len(self.null) == self.plan.shuffles
        return {
            "fits": tuple(fits),
            "shuffled": tuple(self.shuffled[seed] for seed in sorted(self.shuffled)),
            "decoding": self.decoding,
            "consistency": consistency(runs)
            if len(runs) > 1
            else pd.DataFrame(columns=["source", "target", "value", "n"]),
            "persistence": self.shape,
            "null": nulls,
            "betti": betti_numbers(self.shape, nulls) if complete and self.shape is not None else None,
            "baselines": {name: self.baselines[name] for name in self.plan.baselines if name in self.baselines},
            "folds": self.folds,
        }


def _number(key: object) -> int:
    return key if isinstance(key, int) else 0


def run_stages(
    known: Known,
    out: Path | str | None,
    *,
    jobs: int | None = None,
    each: Callable[[Known], object] | None = None,
    progress: bool | None = None,
) -> None:
    """Fit and decode everything that the plan asks for.

    Args:
        known: is filled.
        out: a folder for fits and baselines.
        jobs: processes for controls and baselines; None is one for each core where that pays.
        each: called after the first fit, and when the controls are there, unless all is done soon.
        progress: show a bar.
    """
    plan, parts = known.plan, known.parts
    began = time.monotonic()
    first = FitTask(parts, plan, plan.seed, threads=_idle_threads())
    finish([first], out, KIND, each=known.add, progress=progress)
    model = known.fits[plan.seed].model
    seconds = max(time.monotonic() - began, model.n_iter_ * STEP)  # it may have been found finished
    rest = _controls(parts, known.cuts, plan)
    for task in rest:
        task.work = seconds
    size = int(model.output_dimension)
    others = [BaselineTask(parts, name, size, model.offset_, plan) for name in plan.baselines]
    tasks: list[Task[Any]] = [*rest, *others]
    slow = sum(task.work for task in tasks) > PAYS
    controls = plan.seeds + plan.shuffles

    def add(task: Task[Any], result: Any) -> None:
        known.add(task, result)
        ended = len(known.fits) + len(known.shuffled) == controls and isinstance(task, FitTask) and not task.fold
        if each is not None and slow and ended and known.pending:
            each(known)

    if each is not None and slow:
        each(known)
    if tasks:
        jobs = (_cores() if slow else 1) if jobs is None else jobs
        every = tasks if out is None else [first, *tasks]  # messages count the first fit, which is found finished
        held = {first.piece.key: known.fits[plan.seed]}
        jobs = 1 if _on_gpu(model.device) else jobs
        finish(every, out, KIND, jobs=jobs, each=add, held=held, progress=progress)


def _controls(parts: Parts, cuts: Sequence[Parts], plan: Plan) -> list[FitTask]:
    """Return the fits beside the first: for every other seed, for every shuffle, for every fold."""
    seeds, shuffles = (range(plan.seed, plan.seed + number) for number in (plan.seeds, plan.shuffles))
    tasks = [FitTask(parts, plan, seed, threads=1) for seed in seeds[1:]]
    tasks += [FitTask(parts, plan, seed, shuffled=True, threads=1) for seed in shuffles]
    numbers = enumerate(cuts, start=1)
    return [*tasks, *(FitTask(cut, plan, plan.seed, fold=fold, threads=1) for fold, cut in numbers)]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _idle_threads() -> int:
    """Return torch's threads, less the cores that others use: all wait for the slowest, which may wait for a core."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(min(torch.get_num_threads(), _cores() - round(load)), 1)


def _on_gpu(device: str) -> bool:
    return device != "cpu" and torch.cuda.is_available()
