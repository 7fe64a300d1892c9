"""Embedding: what a recording encodes, with the controls that a reader will ask for, in one call.

    source = Source("mouse.nwb", "spikes", ["head_direction"], bin=0.1)
    embedding = haptera.embed(source, Plan(labels=("head_direction",)), out="hd")
    embedding.decoding, embedding.fits, embedding.consistency, embedding.betti

Encoders learn from the first part of a recording. Settings of decoders are chosen on a block that no encoder saw, and
everything is scored on the last part. Several seeds give the spread and the consistency of runs; fits of shuffled
labels give the zero of the goodness of fit and the null of the topology (the source has 500 of them, here they are few
and counted). By time alone there is no label to shuffle; there the samples themselves are.
With `folds`, labels are decoded a second time with whole trials held out, each once, as in the source.
With a folder, fits and baselines are kept there as they end, and a call that was stopped goes on. `each` is called with
what is known after the first fit (`stages`), so that there is something to look at while the rest is made.
Cost: `seeds + shuffles + folds` fits, then decoders, baselines and topology.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
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
)
from haptera.analyses.embedding.findings import DEFINITIONS, findings, headline
from haptera.analyses.embedding.fits import Fit, goodness_of_fit, inputs_of, training_history
from haptera.analyses.embedding.page import sections
from haptera.analyses.embedding.plan import Parts, Plan, without_constant_labels
from haptera.analyses.embedding.recording_analysis import RecordingAnalysis
from haptera.analyses.embedding.stages import Known, run_stages
from haptera.analyses.embedding.topology import Persistence
from haptera.analysis import numbers_table
from haptera.checks import check_whole_number
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.modes import Context
from haptera.errors import HapteraError
from haptera.recordings.reading import Source
from haptera.recordings.recording import Recording

TO_COME = "still to come, and this page is written again when it is there: {}"
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
    jobs: int | None = None,
    each: Callable[[Embedding], object] | None = None,
    progress: bool | None = None,
) -> Embedding:
    """Embed a recording, and say what is in the embedding beside what chance, shuffles and others find.

    Args:
        recording: with the signal and the labels of the plan; or where it is, so that `attribute` can read it again.
        plan: what to do; by default, to embed by time.
        out: a folder for fits and baselines, which are not made again.
        jobs: processes for controls and baselines; None is one for each core where that pays.
        each: called with what is known after the first fit, and again when controls are there, if the rest takes long.
        progress: show a bar; None does on a terminal.
    """
    plan = plan or Plan()
    source, read = (recording, recording.read()) if isinstance(recording, Source) else (None, recording)
    read, plan = without_constant_labels(read, plan)
    parts = Parts.of(read, plan)
    if plan.topology and find_spec("ripser") is None:
        raise HapteraError(NO_RIPSER)
    if jobs is not None:
        check_whole_number("jobs", jobs)
    cuts = list(Parts.folds(read, plan)) if plan.folds and plan.labels else []
    folder = None if out is None else Path(out)
    known = Known(parts, cuts, plan)

    def so_far(known: Known) -> Embedding:
        return _embedding(known, source, folder)

    show = None if each is None else lambda known: each(so_far(known))
    run_stages(known, out, jobs=jobs, each=show, progress=progress)
    return so_far(known)


def _embedding(known: Known, source: Source | None, folder: Path | None) -> Embedding:
    """Return what is known as an analysis."""
    parts, plan, results = known.parts, known.plan, known.results()
    _, labels, _ = inputs_of(parts.train, plan.training_labels, apart=bool(plan.parts))
    mode = results["fits"][0].model.mode_.describe(Context.of(labels, [len(parts.train)], several=False))
    pending = [TO_COME.format("; ".join(known.pending))] if known.pending else []
    notes = (*pending, *_notes(parts, known.cuts), *_thinned(plan, parts, results["baselines"]))
    return Embedding(plan=plan, parts=parts, mode=mode, notes=notes, source=source, folder=folder, **results)


def _thinned(plan: Plan, parts: Parts, baselines: Mapping[str, np.ndarray]) -> list[str]:
    """Return what is to be said of baselines that embed some samples only."""
    samples = len(parts.whole)
    few = {name: len(rows) for name in baselines if len(rows := plan.baseline_rows(name, samples)) < samples}
    if not few:
        return []
    text = f"{' and '.join(few)} embed {max(few.values()):,} evenly spaced samples of {samples:,}"
    return [f"{text}, and labels are read from them there (--baseline-samples 0 for all)"]


def _notes(parts: Parts, cuts: Sequence[Parts]) -> tuple[str, ...]:
    """Return the notes of the recording, then what is true of a fold alone."""
    own, numbers = parts.whole.notes, enumerate(cuts, start=1)
    return (*own, *(f"fold {fold}: {note}" for fold, cut in numbers for note in cut.whole.notes if note not in own))
