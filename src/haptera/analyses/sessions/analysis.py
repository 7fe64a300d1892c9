"""Several recordings in one embedding: is it one space, and what of one animal can be read by decoders of the others?

    rats = [Source(name, labels=["position"]) for name in ("rat0.nwb", "rat1.nwb", "rat2.npz")]
    joint = embed_sessions(rats, Plan(labels=("position",)), out="rats")
    joint.consistency, joint.decoding

One fit learns an encoder for every session. Beside it stand fits of shuffled labels, and each session fitted alone.
With a folder, fits are kept there as they end, and a call that was stopped goes on.
Cost: `seeds + shuffles` joint fits, and one more for each session.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from haptera.analyses.embedding.comparison import EMBEDDING, SHUFFLED_TRAINING
from haptera.analyses.embedding.decoding import Distance
from haptera.analyses.embedding.fits import Fit, inputs_of
from haptera.analyses.embedding.plan import Parts, Plan
from haptera.analyses.embedding.recording_analysis import RecordingAnalysis
from haptera.analyses.sessions.agreement import doubt_of_samples
from haptera.analyses.sessions.findings import DEFINITIONS, findings, headline
from haptera.analyses.sessions.fits import AloneTask, JointFit, JointFitTask
from haptera.analyses.sessions.page import sections
from haptera.analyses.sessions.scores import (
    ALONE,
    OTHERS_CHANCE,
    OTHERS_SHUFFLED,
    PAIRS,
    ROWS,
    decode_across,
    decode_own,
    decode_signal,
    subject_consistency,
)
from haptera.analyses.sessions.session import Session, prepare_sessions
from haptera.analysis import numbers_table
from haptera.contrastive.modes import Context
from haptera.errors import HapteraError
from haptera.progress import Progress
from haptera.recordings.reading import Source
from haptera.recordings.recording import Recording
from haptera.run.tasks import finish

KIND = "joint embedding"
PLANNED = ("held", "chosen_on", "seeds", "shuffles", "smoothing", "causal", "zscore", "seed")
BY_TIME = "by time alone nothing ties the sessions together: their embeddings need not lie in one space"


@dataclass(frozen=True, eq=False)
class JointEmbedding(RecordingAnalysis):
    """Several recordings in one embedding, beside what chance and fits of one session find.

    Attributes:
        plan: what was asked for.
        sessions: the recordings as they were used.
        fits: of true labels, one for each seed.
        shuffled: of shuffled ones.
        alone: a fit of each session by itself; empty without controls.
        mode: how pairs were drawn, in words.
        decoding: `session` and the columns of an embedding's `decoding`.
        consistency: of sessions on held-out parts: `what`, `seed`, `source`, `target`, `value`, `n`.
        notes: what was decided and left out, in words.
        sources: how to read the recordings again; None for one that was given as it is.
        folder: where fits are kept, if they are.
    """

    kind: ClassVar[str] = "embed"
    definitions: ClassVar[Mapping[str, str]] = DEFINITIONS
    headline = headline
    findings = findings
    sections = sections
    plan: Plan
    sessions: tuple[Session, ...]
    fits: tuple[JointFit, ...]
    shuffled: tuple[JointFit, ...]
    alone: tuple[Fit, ...]
    mode: str
    decoding: pd.DataFrame
    consistency: pd.DataFrame
    notes: tuple[str, ...] = ()
    sources: tuple[Source | None, ...] = ()
    folder: Path | None = None

    @property
    def title(self) -> str:
        """Return the names of the sessions."""
        return f"Embedding of {', '.join(session.name for session in self.sessions)} together"

    @property
    def settings(self) -> dict[str, Any]:
        """Return what was asked, and the settings of the estimator."""
        plan = {"mode": self.plan.by} | {name: getattr(self.plan, name) for name in PLANNED}
        read = [None if one is None else one.plain() for one in self.sources]
        return plan | self.plan.estimator_settings(self.sessions[0].parts.whole, self.plan.seed) | {"recordings": read}

    @property
    def spaces(self) -> dict[str, tuple[Parts, np.ndarray]]:
        """Return every session and its embedding."""
        pairs = zip(self.sessions, self.fits[0].embeddings, strict=True)
        return {session.name: (session.parts, points) for session, points in pairs}

    @property
    def goodness_of_fit(self) -> pd.DataFrame:
        """Return `seed`, `shuffled`, `part`, `nats`, `bits` of the joint fits."""
        rows = [
            (fit.seed, fit.shuffled, part, nats, -nats / np.log(2))
            for fit in (*self.fits, *self.shuffled)
            for part, nats in (("train", fit.trained), ("held out", fit.held_out))
        ]
        return pd.DataFrame(rows, columns=["seed", "shuffled", "part", "nats", "bits"])

    def table(self) -> pd.DataFrame:
        """Return every number in one tidy frame: scores, goodness of fit, consistency, numbers of the findings."""
        fits, pairs = self.goodness_of_fit, self.consistency
        rows = fits[["seed"]].assign(what=np.where(fits["shuffled"], SHUFFLED_TRAINING, EMBEDDING), value=fits["bits"])
        rows = rows.assign(measure="goodness_of_fit_bits, " + fits["part"])
        alike = pairs[["what", "seed", "value", "n"]].assign(measure="consistency")
        alike["session"] = pairs["source"].astype(str) + " to " + pairs["target"].astype(str)
        numbers = numbers_table(self.findings()).rename(columns={"finding": "what"})
        frames = [frame for frame in (self.decoding, rows, alike, numbers) if len(frame)]
        table = pd.concat(frames, ignore_index=True).reindex(columns=list(ROWS))
        texts = ("session", "label", "decoder")
        return table.astype(dict.fromkeys(texts, object)).fillna(dict.fromkeys(texts, ""))


def embed_sessions(
    recordings: Sequence[Recording | Source],
    plan: Plan | None = None,
    *,
    alone: bool = True,
    out: Path | str | None = None,
    progress: bool | None = None,
) -> JointEmbedding:
    """Embed several recordings together, with an encoder for each, and say whether they share a space.

    Args:
        recordings: two or more, with the labels of the plan; or where they are.
        plan: what to do; its baselines, folds and topology are for one recording and are not used.
        alone: fit each session by itself as well.
        out: a folder for fits, which are not made again.
        progress: show a bar; None does on a terminal.
    """
    plan = plan or Plan()
    if len(recordings) < 2:
        raise HapteraError(f"{len(recordings)} recordings were given; two or more were expected, or `embed` for one")
    sources = tuple(one if isinstance(one, Source) else None for one in recordings)
    read = [one.read() if isinstance(one, Source) else one for one in recordings]
    sessions = tuple(prepare_sessions(read, plan))
    seeds, shuffles = (range(plan.seed, plan.seed + count) for count in (plan.seeds, plan.shuffles))
    tasks = [JointFitTask(sessions, plan, seed) for seed in seeds]
    tasks += [JointFitTask(sessions, plan, seed, shuffled=True) for seed in shuffles]
    made = finish(tasks, out, KIND, progress=progress).finished
    fits, null = tuple(made[: plan.seeds]), tuple(made[plan.seeds :])
    own = [AloneTask(session, plan) for session in sessions] if alone else []
    single = tuple(finish(own, out, KIND, progress=progress).finished) if own else ()
    with Progress("decode", len(plan.labels), progress, unit="labels") as bar:
        tables = [_decoding(sessions, label, fits, null, single, bar) for label in plan.labels]
    pairs = [_consistency(sessions, plan.labels, fits, null, single)] if plan.labels else []
    inputs = [inputs_of(session.parts.train, plan.training_labels, apart=bool(plan.parts))[1] for session in sessions]
    targets = [list(each) for each in zip(*inputs, strict=True)]
    context = Context.of(targets, [len(session.parts.train) for session in sessions], several=True)
    notes = [f"{session.name}: {note}" for session in sessions for note in session.parts.whole.notes]
    notes += doubt_of_samples({session.name: session.parts.whole.step for session in sessions})
    return JointEmbedding(
        plan,
        sessions,
        fits,
        null,
        single,
        fits[0].model.mode_.describe(context),
        pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(ROWS)),
        pd.concat(pairs, ignore_index=True) if pairs else pd.DataFrame(columns=list(PAIRS)),
        (*notes, *([BY_TIME] if plan.by == "time" else [])),
        sources,
        None if out is None else Path(out),
    )


def distance_of(fit: JointFit | Fit) -> Distance:
    """Return the distance by which neighbours in an embedding are found."""
    return "cosine" if fit.model.distance == "cosine" else "euclidean"


def _decoding(
    sessions: Sequence[Session],
    label: str,
    fits: Sequence[JointFit],
    null: Sequence[JointFit],
    single: Sequence[Fit],
    bar: Progress,
) -> pd.DataFrame:
    """Return everything that a label is read from, with its scores."""
    distance = distance_of(fits[0])
    across = partial(decode_across, sessions, label=label, distance=distance)
    tables = []
    for fit in fits:
        for session, points in zip(sessions, fit.embeddings, strict=True):
            tables.append(decode_own(session, points, label, what=EMBEDDING, seed=fit.seed, distance=distance))
        tables += [across(embeddings=fit.embeddings, seed=fit.seed)]
        tables += [across(embeddings=fit.embeddings, what=OTHERS_CHANCE, seed=fit.seed, shuffle=True)]
    tables += [across(embeddings=fit.embeddings, what=OTHERS_SHUFFLED, seed=fit.seed) for fit in null]
    for session, one in zip(sessions, single, strict=False):
        tables.append(decode_own(session, one.embedding, label, what=ALONE, seed=one.seed, distance=distance))
    tables += [decode_signal(session, label, fits[0].model.offset_) for session in sessions]
    bar.advance(label)
    return pd.concat(tables, ignore_index=True)


def _consistency(
    sessions: Sequence[Session],
    labels: Sequence[str],
    fits: Sequence[JointFit],
    null: Sequence[JointFit],
    single: Sequence[Fit],
) -> pd.DataFrame:
    kinds = [(EMBEDDING, fits), (SHUFFLED_TRAINING, null)]
    frames = [
        subject_consistency(sessions, fit.embeddings, labels, what=what, seed=fit.seed)
        for what, some in kinds
        for fit in some
    ]
    if single:
        points = [fit.embedding for fit in single]
        frames.append(subject_consistency(sessions, points, labels, what=ALONE, seed=single[0].seed))
    frames = [frame for frame in frames if len(frame)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(PAIRS))
