"""Adaptation: a new recording in an embedding that is there, in a fraction of the steps, beside a fit of its own.

    adapted = adapt_session("rats/model.safetensors", Source("new.nwb", labels=["position"]), plan, out="new")

Source: thesis, chapter 7, "adapt": all layers of a fitted encoder, and a new first layer that reads the new channels.
Here that layer begins by a regression (`haptera.contrastive.adapting`), and everything learns on from there.
Beside it stand a fit of the recording's own with all the steps that the model took, and one with as few steps.
Cost: for each seed one short fit and, with controls, one long fit and two short ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from haptera.analyses.embedding.comparison import COLUMNS, SHUFFLED_TRAINING, decode_embedding, decode_windows
from haptera.analyses.embedding.fits import Fit, FitTask, inputs_of
from haptera.analyses.embedding.plan import Parts, Plan, without_constant_labels
from haptera.analyses.embedding.recording_analysis import RecordingAnalysis
from haptera.analyses.sessions.adapted_page import ADAPTED, DEFINITIONS, OWN, OWN_SHORT, findings, headline, sections
from haptera.analyses.sessions.analysis import distance_of
from haptera.analyses.sessions.applying import read_as_before
from haptera.analyses.sessions.saved import (
    check_labels,
    check_mode,
    doubt_of_units,
    find_session,
    plan_of,
    preparation_of,
    with_codes_of,
)
from haptera.analysis import numbers_table
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.modes import Context
from haptera.files.fingerprint import SCHEMA, fingerprint, of_file
from haptera.recordings.reading import Source
from haptera.recordings.recording import Recording
from haptera.run.ledger import Piece
from haptera.run.tasks import finish

KIND = "adapted embedding"

FRACTION = 5
"""Of the steps that the model took, the part in which a new session is adapted where nobody says how many."""
NOT_OURS = ("max_iterations", "max_adapt_iterations", "random_state", "verbose", "device")


@dataclass(frozen=True)
class Start:
    """A saved model and the session of it from which a new one begins.

    Attributes:
        path: of the model.
        session: which of its sessions.
        steps: of adaptation.
    """

    path: Path
    session: int
    steps: int


class AdaptTask(FitTask):
    """A fit that begins from a saved model."""

    def __init__(self, parts: Parts, plan: Plan, seed: int, start: Start, *, shuffled: bool = False) -> None:
        super().__init__(parts, plan, seed, shuffled=shuffled)
        self.start = start
        self.settings["max_adapt_iterations"] = start.steps
        key = fingerprint(SCHEMA, "adaptation", self.piece.key, of_file(start.path), start.session, start.steps)
        title = f"{'shuffle' if shuffled else 'adapted'} {seed}"
        self.piece = Piece(key, f"fits/{title.replace(' ', '-')}-{key[:8]}", title)
        self.work = start.steps / max(int(self.settings["max_iterations"]), 1)

    def learn(
        self, signal: np.ndarray, labels: Sequence[np.ndarray], blocks: np.ndarray | None
    ) -> ContrastiveEmbedding:
        """Fit the saved model to the new session."""
        own = {"random_state": self.seed, "max_adapt_iterations": self.start.steps}
        model = ContrastiveEmbedding.load(self.start.path, **own)
        return model.fit(signal, *labels, trials=blocks, adapt="all", session_id=self.start.session)


@dataclass(frozen=True, eq=False)
class Adaptation(RecordingAnalysis):
    """A new recording in an embedding that was there.

    Attributes:
        start: the model and the session that it began from.
        session: the name of that session.
        plan: what was asked for, with the settings of the model.
        parts: the recording as it was used.
        fits: adapted, one for each seed.
        own: fits of its own, one for each seed; empty without controls.
        mode: how pairs were drawn, in words.
        decoding: the columns of an embedding's `decoding`.
        notes: what was decided and left out, in words.
        source: how to read the recording again; None where it was given as it is.
        folder: where fits are kept, if they are.
    """

    kind: ClassVar[str] = "embed"
    definitions: ClassVar[Mapping[str, str]] = DEFINITIONS
    headline = headline
    findings = findings
    sections = sections
    start: Start
    session: str
    plan: Plan
    parts: Parts
    fits: tuple[Fit, ...]
    own: tuple[Fit, ...]
    mode: str
    decoding: pd.DataFrame
    notes: tuple[str, ...] = ()
    source: Source | None = None
    folder: Path | None = None

    @property
    def title(self) -> str:
        """Return the name of the file and of the model."""
        return f"{Path(self.parts.whole.source).name} adapted to {self.start.path}"

    @property
    def settings(self) -> dict[str, Any]:
        """Return what was asked, and the settings of the model."""
        plan = {name: getattr(self.plan, name) for name in ("held", "seeds", "smoothing", "causal", "zscore", "seed")}
        read = {} if self.source is None else {"recording": self.source.plain()}
        began = {"adapt": str(self.start.path), "session": self.session, "adapt_steps": self.start.steps}
        return began | {"mode": self.plan.by} | plan | dict(self.plan.settings) | read

    @property
    def spaces(self) -> dict[str, tuple[Parts, np.ndarray]]:
        """Return the recording and its embedding."""
        return {"": (self.parts, self.fits[0].embedding)}

    def table(self) -> pd.DataFrame:
        """Return every number in one tidy frame: scores, then the numbers of the findings."""
        numbers = numbers_table(self.findings()).rename(columns={"finding": "what"})
        table = pd.concat([frame for frame in (self.decoding, numbers) if len(frame)], ignore_index=True)
        table = table.reindex(columns=list(COLUMNS))
        return table.astype({"label": object, "decoder": object}).fillna({"label": "", "decoder": ""})


def adapt_session(
    model: Path | str,
    recording: Recording | Source,
    plan: Plan,
    *,
    session: str | None = None,
    steps: int | None = None,
    controls: bool = True,
    out: Path | str | None = None,
    progress: bool | None = None,
) -> Adaptation:
    """Adapt a saved model to a new recording, and say how it compares with a fit of its own.

    Args:
        model: what `haptera embed` or `ContrastiveEmbedding.save` wrote.
        recording: the new one, with labels of the kinds that the model learnt from.
        plan: labels, preparation and seeds; the settings of the encoder are those of the model.
        session: the name or number of the session of the model to begin from; the first if left out.
        steps: of adaptation; a fifth of those that the model took if left out.
        controls: also fit the recording by itself, with all steps and with as few, and adapt to shuffled labels.
        out: a folder for fits, which are not made again.
        progress: show a bar; None does on a terminal.
    """
    path = Path(model)
    known = ContrastiveEmbedding.load(path)
    place, name = find_session(path, known, session)
    start = Start(path, place, steps or max(known.n_iter_ // FRACTION, 1))
    prepared = preparation_of(path, place)
    if isinstance(recording, Source):
        source, read = recording, recording.read() if prepared is None else read_as_before(recording, prepared)
    else:
        source, read = None, recording
    settings = {key: value for key, value in known.get_params(deep=False).items() if key not in NOT_OURS}
    plan = plan_of(known, prepared, replace(plan, settings=settings | {"max_iterations": known.n_iter_}))
    read, plan = without_constant_labels(read, plan)
    parts = Parts.of(with_codes_of(prepared, read, plan), plan)
    doubts = check_labels(prepared, parts, plan)
    check_mode(known, parts, plan)
    doubts += doubt_of_units(known, place, parts, plan)
    seeds = range(plan.seed, plan.seed + plan.seeds)
    tasks: list[FitTask] = [AdaptTask(parts, plan, seed, start) for seed in seeds]
    short = replace(plan, settings={**plan.settings, "max_iterations": start.steps})
    if controls:
        tasks += [FitTask(parts, plan, seed) for seed in seeds] + [FitTask(parts, short, seed) for seed in seeds]
        tasks += [AdaptTask(parts, plan, seed, start, shuffled=True) for seed in seeds]
    made = finish(tasks, out, KIND, progress=progress).finished
    groups = [tuple(made[first : first + plan.seeds]) for first in range(0, len(made), plan.seeds)]
    named = dict(zip((ADAPTED, OWN, OWN_SHORT, SHUFFLED_TRAINING), groups, strict=False))
    tables = [_decoding(parts, label, named) for label in plan.labels]
    _, labels, _ = inputs_of(parts.train, plan.training_labels, apart=bool(plan.parts))
    mode = named[ADAPTED][0].model.mode_.describe(Context.of(labels, [len(parts.train)], several=False))
    notes = (*parts.whole.notes, *doubts)
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(COLUMNS))
    folder = None if out is None else Path(out)
    return Adaptation(start, name, plan, parts, named[ADAPTED], named.get(OWN, ()), mode, table, notes, source, folder)


def _decoding(parts: Parts, label: str, fits: Mapping[str, Sequence[Fit]]) -> pd.DataFrame:
    distance = distance_of(fits[ADAPTED][0])
    tables = [
        decode_embedding(fit.embedding, parts, label, what=what, seed=fit.seed, distance=distance)
        for what, some in fits.items()
        for fit in some
    ]
    tables.append(decode_windows(parts, label, fits[ADAPTED][0].model.offset_))
    return pd.concat(tables, ignore_index=True)
