"""Embedding: what a recording encodes, with the controls that a reader will ask for, in one call.

    source = Source("mouse.nwb", "spikes", ["head_direction"], bin=0.1)
    embedding = haptera.embed(source, Plan(labels=("head_direction",)), out="hd")
    embedding.decoding, embedding.fits, embedding.consistency, embedding.betti

Encoders learn from the first part of a recording. Settings of decoders are chosen on a block that no encoder saw, and
everything is scored on the last part. Several seeds give the spread and the consistency of runs; fits of shuffled
labels give the zero of the goodness of fit and the null of the topology (the source has 500 of them, here they are few
and counted). By time alone there is no label to shuffle; there the samples themselves are.
With `folds`, labels are decoded a second time with whole trials held out, each once, as in the source.
With a folder, fits and baselines are kept there as they end, and a call that was stopped goes on.
Cost: `seeds + shuffles + folds` fits, then decoders, baselines and topology.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from haptera.analyses.embedding.comparison import (
    COLUMNS,
    EMBEDDING,
    MAIN,
    SHUFFLED_TRAINING,
    Reading,
    decode_embedding,
    decode_shuffled,
    decode_windows,
)
from haptera.analyses.embedding.consistency import consistency
from haptera.analyses.embedding.decoding import Distance
from haptera.analyses.embedding.findings import DEFINITIONS, findings, headline
from haptera.analyses.embedding.fits import BaselineTask, Fit, FitTask, goodness_of_fit, inputs_of, training_history
from haptera.analyses.embedding.page import sections
from haptera.analyses.embedding.plan import Parts, Plan, without_constant_labels
from haptera.analyses.embedding.recording_analysis import RecordingAnalysis
from haptera.analyses.embedding.topology import Persistence, betti_numbers, persistence
from haptera.analysis import numbers_table
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.modes import Context
from haptera.errors import HapteraError
from haptera.progress import Progress
from haptera.recordings.reading import Source
from haptera.recordings.recording import Recording
from haptera.run.tasks import finish

KIND = "embedding"
DRAWS = 3
"""Draws of points from each shuffled embedding, so that a few fits make a null with a tail."""
NO_RIPSER = "topology needs ripser: pip install 'haptera[topology]'; or leave it out (--no-topology, topology=False)"
PREPARED = ("smoothing", "causal", "zscore", "held")
PLANNED = ("chosen_on", "seeds", "shuffles", "folds", "topology", "seed")


@dataclass(frozen=True, eq=False)
class Embedding(RecordingAnalysis):
    """An embedding of a recording beside what chance, shuffles and others find.

    Attributes:
        plan: what was asked for.
        parts: the recording as it was used.
        fits: of true labels, one for each seed.
        shuffled: of shuffled ones.
        mode: how pairs were drawn, in words.
        decoding: `what`, `label`, `decoder`, `setting`, `seed`, `measure`, `value`, `n`.
        consistency: of runs on the held-out part: `source`, `target`, `value`, `n`.
        persistence: of the embedding of the first seed, or None.
        null: of the embeddings of shuffled fits, several draws of points each.
        betti: parts, rings, hollows; None without topology or without shuffled fits.
        baselines: name -> embedding of the whole recording.
        folds: like `decoding`, with the number of the `fold`, from 1, each with an encoder of its own; empty without
            folds.
        notes: what was decided and left out, in words.
        source: how to read the recording again; None where it was given as it is.
        folder: where fits are kept, if they are.
    """

    kind: ClassVar[str] = "embed"
    definitions: ClassVar[Mapping[str, str]] = DEFINITIONS
    headline = headline
    findings = findings
    sections = sections
    plan: Plan
    parts: Parts
    fits: tuple[Fit, ...]
    shuffled: tuple[Fit, ...]
    mode: str
    decoding: pd.DataFrame
    consistency: pd.DataFrame
    persistence: Persistence | None = None
    null: tuple[Persistence, ...] = ()
    betti: tuple[int, ...] | None = None
    baselines: dict[str, np.ndarray] = field(default_factory=dict)
    folds: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["fold", *COLUMNS]))
    notes: tuple[str, ...] = ()
    source: Source | None = None
    folder: Path | None = None

    @property
    def title(self) -> str:
        """Return the name of the file."""
        return f"Embedding of {Path(self.parts.whole.source).name}"

    @property
    def settings(self) -> dict[str, Any]:
        """Return what was asked, and the settings of the estimator."""
        names = (*PREPARED, *PLANNED)
        plan = {"mode": self.plan.by} | {name: getattr(self.plan, name) for name in names}
        return plan | self.plan.estimator_settings(self.parts.whole, self.plan.seed)

    @property
    def asked(self) -> dict[str, Any]:
        """Return how the recording was read and prepared, so that it can be read again; empty where it was given."""
        if self.source is None:
            return {}
        return {
            "read": self.source.plain(),
            "prepared": {name: self.settings[name] for name in ("mode", *PREPARED)} | self.plan.facts,
        }

    @property
    def spaces(self) -> dict[str, tuple[Parts, np.ndarray]]:
        """Return the recording and its embedding."""
        return {"": (self.parts, self.embedding)}

    @property
    def model(self) -> ContrastiveEmbedding:
        """Return the estimator of the first seed."""
        return self.fits[0].model

    @property
    def embedding(self) -> np.ndarray:
        """Return the embedding of the first seed, of all samples."""
        return self.fits[0].embedding

    def table(self) -> pd.DataFrame:
        """Return every number in one tidy frame with the columns of `decoding`, and that of folds.

        After the scores come the numbers of the findings, whose word is in the column `what`.
        """
        fits, pairs = self.goodness_of_fit, self.consistency
        sizes = np.where(fits["part"] == "train", len(self.parts.train), len(self.parts.test))
        rows = fits[["seed"]].assign(what=np.where(fits["shuffled"], SHUFFLED_TRAINING, EMBEDDING), n=sizes)
        rows = rows.assign(measure="goodness_of_fit_bits, " + fits["part"], value=fits["bits"])
        runs = pairs[["value", "n"]].assign(what=EMBEDDING, measure="consistency", seed=self.plan.seed)
        runs["decoder"] = pairs["source"] + " to " + pairs["target"]
        numbers = numbers_table(self.findings()).rename(columns={"finding": "what"})
        frames = [frame for frame in (self.decoding, rows, runs, self.folds, numbers) if len(frame)]
        table = pd.concat(frames, ignore_index=True).reindex(columns=[*COLUMNS, "fold"])
        return table.astype({"label": object, "decoder": object}).fillna({"label": "", "decoder": ""})

    def reading(self, label: str) -> Reading:
        """Return how a label was decoded."""
        kind, decoding, folds = self.parts.whole.label(label).kind, self.decoding, self.folds
        folds = folds[(folds["label"] == label) & (folds["measure"] == MAIN[kind])]
        return Reading(label, kind, decoding[decoding["label"] == label], folds, list(self.baselines))

    @property
    def goodness_of_fit(self) -> pd.DataFrame:
        """Return `seed`, `shuffled`, `part`, `nats`, `bits`."""
        return goodness_of_fit([*self.fits, *self.shuffled])

    @property
    def history(self) -> pd.DataFrame:
        """Return the goodness of fit over training: `step`, `seed`, `shuffled`, `nats`, each the mean of ten steps."""
        return training_history([*self.fits, *self.shuffled])

    @property
    def ring_ratio(self) -> float | None:
        """Return the longest ring over the longest one of any shuffled fit."""
        longest = max((each.longest(1) for each in self.null), default=0.0)
        return self.persistence.longest(1) / longest if self.persistence is not None and longest else None


def embed(
    recording: Recording | Source,
    plan: Plan | None = None,
    *,
    out: Path | str | None = None,
    progress: bool | None = None,
) -> Embedding:
    """Embed a recording, and say what is in the embedding beside what chance, shuffles and others find.

    Args:
        recording: with the signal and the labels of the plan; or where it is, so that `attribute` can read it again.
        plan: what to do; by default, to embed by time.
        out: a folder for fits and baselines, which are not made again.
        progress: show a bar; None does on a terminal.
    """
    plan = plan or Plan()
    source, read = (recording, recording.read()) if isinstance(recording, Source) else (None, recording)
    read, plan = without_constant_labels(read, plan)
    parts = Parts.of(read, plan)
    if plan.topology and find_spec("ripser") is None:
        raise HapteraError(NO_RIPSER)
    cuts = list(Parts.folds(read, plan)) if plan.folds and plan.labels else []
    made = iter(finish(_fits(parts, cuts, plan), out, KIND, progress=progress).finished)
    fits, null = tuple(islice(made, plan.seeds)), tuple(islice(made, plan.shuffles))
    model = fits[0].model
    size = int(model.output_dimension)
    others = [BaselineTask(parts, name, size, model.offset_, plan.seed) for name in plan.baselines]
    found = finish(others, out, KIND, noun="baseline", progress=progress).finished if others else []
    baselines = dict(zip(plan.baselines, found, strict=True))
    nothing = pd.DataFrame(columns=["fold", *COLUMNS])
    steps = len(plan.labels) * (1 + len(cuts)) + plan.topology
    with Progress("decode", steps, progress, unit="steps") as bar:
        tables = [_decoding(parts, label, fits, null, baselines, bar) for label in plan.labels]
        folds = [
            _decoding(cut, label, [fit], (), {}, bar).assign(fold=fold)
            for fold, (cut, fit) in enumerate(zip(cuts, made, strict=True), start=1)
            for label in plan.labels
        ]
        shape, nulls = _topology(fits[0], null, plan.seed, bar) if plan.topology else (None, ())
    runs = {f"seed {fit.seed}": fit.embedding[-len(parts.test) :] for fit in fits}
    _, labels, _ = inputs_of(parts.train, plan.training_labels, apart=bool(plan.parts))
    return Embedding(
        plan,
        parts,
        fits,
        null,
        model.mode_.describe(Context.of(labels, [len(parts.train)], several=False)),
        pd.concat(tables, ignore_index=True) if tables else nothing[[*COLUMNS]],
        consistency(runs) if len(runs) > 1 else pd.DataFrame(columns=["source", "target", "value", "n"]),
        shape,
        nulls,
        betti_numbers(shape, nulls) if shape is not None and nulls else None,
        baselines,
        pd.concat(folds, ignore_index=True)[["fold", *COLUMNS]] if folds else nothing,
        _notes(parts, cuts),
        source,
        None if out is None else Path(out),
    )


def _fits(parts: Parts, cuts: Sequence[Parts], plan: Plan) -> list[FitTask]:
    """Return the fits to make: for every seed, for every shuffle, for every fold."""
    seeds, shuffles = (range(plan.seed, plan.seed + count) for count in (plan.seeds, plan.shuffles))
    tasks = [FitTask(parts, plan, seed) for seed in seeds]
    tasks += [FitTask(parts, plan, seed, shuffled=True) for seed in shuffles]
    return [*tasks, *(FitTask(cut, plan, plan.seed, fold=fold) for fold, cut in enumerate(cuts, start=1))]


def _notes(parts: Parts, cuts: Sequence[Parts]) -> tuple[str, ...]:
    """Return the notes of the recording, then what is true of a fold alone."""
    own, numbers = parts.whole.notes, enumerate(cuts, start=1)
    return (*own, *(f"fold {fold}: {note}" for fold, cut in numbers for note in cut.whole.notes if note not in own))


def _topology(fit: Fit, null: Sequence[Fit], seed: int, bar: Progress) -> tuple[Persistence, tuple[Persistence, ...]]:
    """Return the classes of an embedding, and those of shuffled fits."""
    shape = persistence(fit.embedding, seed=seed)
    nulls = tuple(persistence(one.embedding, seed=seed + draw) for one in null for draw in range(DRAWS))
    bar.advance("topology")
    return shape, nulls


def _decoding(
    parts: Parts,
    label: str,
    fits: Sequence[Fit],
    null: Sequence[Fit],
    baselines: Mapping[str, np.ndarray],
    bar: Progress,
) -> pd.DataFrame:
    """Return everything that a label is read from, with its scores."""
    read = partial(decode_embedding, parts=parts, label=label)
    distance: Distance = "cosine" if fits[0].model.distance == "cosine" else "euclidean"
    tables = [read(fit.embedding, what=EMBEDDING, seed=fit.seed, distance=distance) for fit in fits]
    tables += [decode_shuffled(fit.embedding, parts, label, seed=fit.seed, distance=distance) for fit in fits]
    tables += [read(fit.embedding, what=SHUFFLED_TRAINING, seed=fit.seed, distance=distance) for fit in null]
    tables.append(decode_windows(parts, label, fits[0].model.offset_))
    tables += [read(one, what=name, seed=0, distance="euclidean") for name, one in baselines.items()]
    bar.advance(f"decoding {label}")
    return pd.concat(tables, ignore_index=True)
