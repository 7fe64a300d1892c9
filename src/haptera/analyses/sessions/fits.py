"""Joint fits: one encoder for each session, one loss over all of them; true labels, shuffled ones, and each alone.

Source: thesis, chapter 7, "Multisession training": references of every session, queries permuted across sessions, each
answered by the nearest sample of the session that it came to. Sessions weigh equally, whatever their length.
Cost: a fit of as many encoders as there are sessions, with `batch_size` references of each in a step.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from haptera.analyses.embedding.fits import ARRAYS, MODEL, Fit, FitTask, embed_parts, inputs_of
from haptera.analyses.embedding.plan import Plan
from haptera.analyses.sessions.session import Session
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.model_file import known_settings, own_settings
from haptera.files.fingerprint import SCHEMA, fingerprint
from haptera.files.npz import read_npz
from haptera.run.ledger import Piece
from haptera.run.tasks import Task

log = logging.getLogger("haptera")


@dataclass(frozen=True, eq=False)
class JointFit:
    """One estimator of all sessions.

    Attributes:
        seed: of the fit, and of the shuffles if there were some.
        shuffled: whether labels (by time alone, samples) were in a random order, in every session by itself.
        model: the estimator.
        embeddings: for each session `(samples, dimensions)` of the whole recording.
        trained: goodness of fit of all training parts together, nats.
        held_out: the same of the held-out parts; NaN where a label is the same in all of them.
    """

    seed: int
    shuffled: bool
    model: ContrastiveEmbedding
    embeddings: tuple[np.ndarray, ...]
    trained: float
    held_out: float


class JointFitTask(Task[JointFit]):
    """A joint fit to make."""

    def __init__(self, sessions: Sequence[Session], plan: Plan, seed: int, *, shuffled: bool = False) -> None:
        self.sessions, self.plan, self.seed, self.shuffled = sessions, plan, seed, shuffled
        self.settings = plan.estimator_settings(sessions[0].parts.whole, seed)
        parts = [session.parts for session in sessions]
        key = fingerprint(SCHEMA, "joint fit", parts, plan.by, plan.labels, known_settings(self.settings), shuffled)
        title = f"{'shuffle' if shuffled else 'seed'} {seed}"
        self.piece = Piece(key, f"fits/{title.replace(' ', '-')}-{key[:8]}", title)
        self.work = float(len(sessions))

    def make(self) -> JointFit:
        """Fit one encoder for each session, and embed all of them."""
        shuffle = self.seed if self.shuffled else None
        sides = [
            [inputs_of(part, self.plan.training_labels, shuffle, apart=bool(self.plan.parts)) for part in parts]
            for parts in zip(*((session.parts.train, session.parts.test) for session in self.sessions), strict=True)
        ]
        model = ContrastiveEmbedding(**self.settings)
        level = log.level
        if self.seed != self.plan.seed or self.shuffled:
            log.setLevel(max(level, logging.WARNING))  # what the first fit says about its mode is true of all
        scores = []
        try:
            for side, inputs in enumerate(sides):
                signals, labels, blocks = (list(each) for each in zip(*inputs, strict=True))
                targets = [list(one) for one in zip(*labels, strict=True)]
                if not side:
                    model.fit(signals, *targets, trials=blocks)
                known = all(bool((every != every[:1]).any()) for every in map(np.concatenate, targets))
                scores.append(model.goodness_of_fit(signals, *targets, trials=blocks) if known else np.nan)
        finally:
            log.setLevel(level)
        whole = [embed_parts(model, session.parts, place) for place, session in enumerate(self.sessions)]
        return JointFit(self.seed, self.shuffled, model, tuple(whole), *scores)

    def write(self, result: JointFit, path: Path) -> None:
        """Write the model, and beside it embeddings and scores."""
        result.model.save(path / MODEL, [session.parts.preparation for session in self.sessions])
        arrays = {f"embedding_{place}": each for place, each in enumerate(result.embeddings)}
        np.savez(path / ARRAYS, scores=[result.trained, result.held_out], **arrays)  # type: ignore[arg-type]

    def read(self, path: Path) -> JointFit:
        """Read a fit again; what a user wrote is taken from the plan."""
        arrays = read_npz(path / ARRAYS)
        model = ContrastiveEmbedding.load(path / MODEL, **own_settings(self.settings))
        whole = tuple(arrays[f"embedding_{place}"] for place in range(len(self.sessions)))
        return JointFit(self.seed, self.shuffled, model, whole, *(float(one) for one in arrays["scores"]))


class AloneTask(FitTask):
    """A fit of one session by itself, with the same settings."""

    def __init__(self, session: Session, plan: Plan) -> None:
        super().__init__(session.parts, plan, plan.seed)
        self.piece = Piece(self.piece.key, f"alone/{session.name}-{self.piece.key[:8]}", f"{session.name} alone")

    def make(self) -> Fit:
        """Fit, without saying again how pairs are drawn."""
        level = log.level
        log.setLevel(max(level, logging.WARNING))
        try:
            return super().make()
        finally:
            log.setLevel(level)
