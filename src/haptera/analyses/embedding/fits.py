"""Fits of a recording, of true labels and of shuffled ones, and baselines: what costs time, each a task by itself."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from haptera.analyses.embedding.baselines import baseline
from haptera.analyses.embedding.comparison import block_windows
from haptera.analyses.embedding.plan import Parts, Plan
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.model_file import known_settings, own_settings
from haptera.files.fingerprint import SCHEMA, fingerprint
from haptera.files.npz import read_npz
from haptera.recordings.label import stacked
from haptera.recordings.recording import Recording
from haptera.recordings.windows import Offset
from haptera.run.ledger import Piece
from haptera.run.tasks import Task

log = logging.getLogger("haptera")

MODEL, ARRAYS = "model.safetensors", "fit.npz"


@dataclass(frozen=True, eq=False)
class Fit:
    """One fitted estimator and its embedding of the whole recording.

    Attributes:
        seed: of the fit, and of the shuffle if there was one.
        shuffled: whether it was given labels (or samples) in a random order.
        model: the estimator.
        embedding: `(samples, dimensions)`.
        trained: goodness of fit on the training part, nats.
        held_out: the same on the held-out part; NaN where a label is the same in all of it.
    """

    seed: int
    shuffled: bool
    model: ContrastiveEmbedding
    embedding: np.ndarray
    trained: float
    held_out: float


class FitTask(Task[Fit]):
    """A fit to make, with true labels or with labels (by time alone, samples) in a random order.

    Args:
        parts: the recording.
        plan: what to fit.
        seed: of the fit and of the shuffle.
        shuffled: whether there is a shuffle.
        fold: the number of a fold, from 1; 0 is the fit of the recording as it is.
    """

    def __init__(self, parts: Parts, plan: Plan, seed: int, *, shuffled: bool = False, fold: int = 0) -> None:
        self.parts, self.plan, self.seed, self.shuffled, self.fold = parts, plan, seed, shuffled, fold
        self.settings = plan.estimator_settings(parts.whole, seed)
        key = fingerprint(SCHEMA, "fit", parts, plan.by, plan.labels, known_settings(self.settings), shuffled)
        title = f"fold {fold}" if fold else f"{'shuffle' if shuffled else 'seed'} {seed}"
        self.piece = Piece(key, f"fits/{title.replace(' ', '-')}-{key[:8]}", title)

    def make(self) -> Fit:
        """Fit an estimator, score it, and embed the recording."""
        model = ContrastiveEmbedding(**self.settings)
        parts = (self.parts.train, self.parts.test)
        data = [inputs_of(part, self.plan, self.seed if self.shuffled else None) for part in parts]
        level = log.level
        if self.seed != self.plan.seed or self.shuffled or self.fold:
            log.setLevel(max(level, logging.WARNING))  # what the first fit says about its mode is true of all
        try:
            signal, labels, blocks = data[0]
            model.fit(signal, *labels, trials=blocks)
        finally:
            log.setLevel(level)
        scores = [
            model.goodness_of_fit(signal, *labels, trials=blocks) if all(map(_changes, labels)) else np.nan
            for signal, labels, blocks in data
        ]
        every = (self.parts.train, self.parts.validation, self.parts.test)
        whole = np.concatenate([model.transform(part.signal(), trials=_blocks(part)) for part in every])
        return Fit(self.seed, self.shuffled, model, whole, *scores)

    def write(self, result: Fit, path: Path) -> None:
        """Write the model, and beside it embedding and scores."""
        result.model.save(path / MODEL)
        np.savez(path / ARRAYS, embedding=result.embedding, scores=[result.trained, result.held_out])

    def read(self, path: Path) -> Fit:
        """Read a fit again; what a user wrote is taken from the plan."""
        arrays = read_npz(path / ARRAYS)
        model = ContrastiveEmbedding.load(path / MODEL, **own_settings(self.settings))
        return Fit(self.seed, self.shuffled, model, arrays["embedding"], *(float(one) for one in arrays["scores"]))


class BaselineTask(Task[np.ndarray]):
    """An embedding that everybody knows, to be made of the windows that the encoder sees."""

    def __init__(self, parts: Parts, name: str, dimensions: int, offset: Offset, seed: int) -> None:
        self.parts, self.name, self.dimensions, self.offset, self.seed = parts, name, dimensions, offset, seed
        key = fingerprint(SCHEMA, "baseline", parts, name, dimensions, offset, seed)
        self.piece = Piece(key, f"baselines/{name}-{key[:8]}.npz", name)

    def make(self) -> np.ndarray:
        """Embed the whole recording."""
        signals = block_windows(self.parts.whole, self.offset)
        return baseline(self.name, signals[: len(self.parts.train)], signals, self.dimensions, self.seed)

    def write(self, result: np.ndarray, path: Path) -> None:
        """Write the embedding."""
        with path.open("wb") as file:
            np.savez(file, embedding=result)

    def read(self, path: Path) -> np.ndarray:
        """Read it again."""
        return read_npz(path)["embedding"]


def goodness_of_fit(fits: Sequence[Fit]) -> pd.DataFrame:
    """Return `seed`, `shuffled`, `part`, `nats`, `bits` of fits."""
    rows = [
        {"seed": fit.seed, "shuffled": fit.shuffled, "part": part, "nats": nats, "bits": -nats / np.log(2)}
        for fit in fits
        for part, nats in (("train", fit.trained), ("held out", fit.held_out))
    ]
    return pd.DataFrame(rows)


def training_history(fits: Sequence[Fit]) -> pd.DataFrame:
    """Return the goodness of fit over training: `step`, `seed`, `shuffled`, `nats`, each the mean of ten steps."""
    frames = []
    for fit in fits:
        nats = np.asarray(fit.model.goodness_of_fit_history_)
        block = np.arange(len(nats)) // 10
        means = np.bincount(block, nats) / np.bincount(block)
        steps = np.minimum((np.arange(len(means)) + 1) * 10, len(nats))
        frames.append(pd.DataFrame({"step": steps, "seed": fit.seed, "shuffled": fit.shuffled, "nats": means}))
    return pd.concat(frames, ignore_index=True)


def inputs_of(
    part: Recording, plan: Plan, shuffle: int | None = None
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray | None]:
    """Return signal, labels and blocks for an estimator.

    Args:
        part: of a recording.
        plan: whose labels are used.
        shuffle: the seed of a random order of labels, or of samples where there are no labels; None leaves them.
    """
    signal = part.signal()
    if plan.by == "time":
        if shuffle is not None:
            signal = signal[np.random.default_rng(shuffle).permutation(len(signal))]
        return signal, [], _blocks(part)
    labels = [part.label(name) for name in plan.labels]
    if shuffle is not None:  # all labels in the same new order: what they have to do with each other stays
        order = np.random.default_rng(shuffle).permutation(len(part))
        labels = [label[order] for label in labels]
    return signal, stacked(labels), _blocks(part)


def _changes(label: np.ndarray) -> bool:
    return bool((label != label[:1]).any())


def _blocks(part: Recording) -> np.ndarray | None:
    blocks = part.blocks
    return blocks if blocks.max() else None
