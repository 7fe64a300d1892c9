"""Fits of a recording, of true labels and of shuffled ones, and baselines: what costs time, each a task by itself.

`compare_hypotheses` asks which labels, and how many dimensions, a recording is best explained by (thesis chapter 7,
figure 7.7): a fit for every combination of labels and dimensions, beside the same labels in a random order; what fits
best, and far better than shuffled, has structure in the signal. The goodness of fit is measured on held-out samples
too, where more dimensions and more labels do not fit better by themselves.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch

from haptera.analyses.embedding.baselines import BASELINES, baseline
from haptera.analyses.embedding.comparison import block_windows
from haptera.analyses.embedding.plan import Parts, Plan
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.model_file import known_settings, own_settings
from haptera.errors import HapteraError
from haptera.files.fingerprint import SCHEMA, fingerprint
from haptera.files.npz import read_npz
from haptera.progress import Progress
from haptera.recordings.label import estimator_targets
from haptera.recordings.preparation import varies
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
    """A fit to make.

    Args:
        parts: of the recording.
        plan: what to fit.
        seed: of the fit.
        shuffled: whether labels (by time alone, samples) are in a random order.
        fold: from 1; 0 is none.
        threads: of torch; None leaves them. One for each where several are made at once.
    """

    def __init__(
        self,
        parts: Parts,
        plan: Plan,
        seed: int,
        *,
        shuffled: bool = False,
        fold: int = 0,
        threads: int | None = None,
    ) -> None:
        self.parts, self.plan, self.seed, self.shuffled, self.fold = parts, plan, seed, shuffled, fold
        self.threads = threads
        self.settings = plan.estimator_settings(parts.whole, seed)
        key = fingerprint(SCHEMA, "fit", parts, plan.by, plan.labels, known_settings(self.settings), shuffled)
        title = f"fold {fold}" if fold else f"{'shuffle' if shuffled else 'seed'} {seed}"
        self.piece = Piece(key, f"fits/{title.replace(' ', '-')}-{key[:8]}", title)

    def make(self) -> Fit:
        """Fit an estimator, score it, and embed the recording."""
        parts = (self.parts.train, self.parts.test)
        shuffle = self.seed if self.shuffled else None
        data = [inputs_of(part, self.plan.training_labels, shuffle, apart=bool(self.plan.parts)) for part in parts]
        level = log.level
        if self.seed != self.plan.seed or self.shuffled or self.fold:
            log.setLevel(max(level, logging.WARNING))  # what the first fit says about its mode is true of all
        threads = torch.get_num_threads()
        torch.set_num_threads(self.threads or threads)
        try:
            model = self.learn(*data[0])
        finally:
            log.setLevel(level)
            torch.set_num_threads(threads)
        scores = [
            model.goodness_of_fit(signal, *labels, trials=blocks) if all(map(_changes, labels)) else np.nan
            for signal, labels, blocks in data
        ]
        return Fit(self.seed, self.shuffled, model, embed_parts(model, self.parts), *scores)

    def learn(
        self, signal: np.ndarray, labels: Sequence[np.ndarray], blocks: np.ndarray | None
    ) -> ContrastiveEmbedding:
        """Return an estimator that has learnt from the training part."""
        return ContrastiveEmbedding(**self.settings).fit(signal, *labels, trials=blocks)

    def write(self, result: Fit, path: Path) -> None:
        """Write the model, and beside it embedding and scores."""
        result.model.save(path / MODEL)
        np.savez(path / ARRAYS, embedding=result.embedding, scores=[result.trained, result.held_out])

    def read(self, path: Path) -> Fit:
        """Read a fit again; what a user wrote is taken from the plan."""
        arrays = read_npz(path / ARRAYS)
        model = ContrastiveEmbedding.load(path / MODEL, **own_settings(self.settings))
        return Fit(self.seed, self.shuffled, model, arrays["embedding"], *(float(one) for one in arrays["scores"]))


def embed_parts(model: ContrastiveEmbedding, parts: Parts, session: int | None = None) -> np.ndarray:
    """Return the embedding of a whole recording, each part and block by itself."""
    every = (parts.train, parts.validation, parts.test)
    return np.concatenate([model.transform(part.signal(), session, trials=_blocks(part)) for part in every])


class BaselineTask(Task[np.ndarray]):
    """An embedding that everybody knows, to be made of the windows that the encoder sees.

    Args:
        parts: of the recording.
        name: of the baseline.
        dimensions: of the embedding.
        offset: the window of the encoder.
        plan: has the seed, and how many samples are embedded where the method has no map for new ones.
    """

    def __init__(self, parts: Parts, name: str, dimensions: int, offset: Offset, plan: Plan) -> None:
        self.parts, self.name, self.dimensions, self.offset, self.seed = parts, name, dimensions, offset, plan.seed
        self.rows = plan.baseline_rows(name, len(parts.whole))
        key = fingerprint(SCHEMA, "baseline", parts, name, dimensions, offset, plan.seed, self.rows)
        self.piece = Piece(key, f"baselines/{name}-{key[:8]}.npz", name)
        self.work = BASELINES[name].seconds * len(self.rows) / 3000

    def make(self) -> np.ndarray:
        """Embed the whole recording, or samples of it; the others are NaN."""
        signals = block_windows(self.parts.whole, self.offset)
        train = signals[: len(self.parts.train)]
        found = baseline(self.name, train, signals[self.rows], self.dimensions, self.seed)
        made = np.full((len(signals), found.shape[1]), np.nan)
        made[self.rows] = found
        return made

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


class Trained(Protocol):
    """Anything that was fitted with a seed."""

    @property
    def seed(self) -> int:
        """Return the seed."""

    @property
    def shuffled(self) -> bool:
        """Say whether labels were in a random order."""

    @property
    def model(self) -> ContrastiveEmbedding:
        """Return the estimator."""


def training_history(fits: Sequence[Trained]) -> pd.DataFrame:
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
    part: Recording, labels: Sequence[str], shuffle: int | None = None, *, apart: bool = False
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray | None]:
    """Return signal, labels and blocks for an estimator.

    Args:
        part: of a recording.
        labels: names; none is by time.
        shuffle: the seed of a random order of labels, or of samples where there are no labels; None leaves them.
        apart: every label by itself, for parts of the embedding; else continuous ones stand side by side.
    """
    signal, targets = part.signal(), [part.label(name) for name in labels]
    if shuffle is not None:  # all labels in the same new order: what they have to do with each other stays
        order = np.random.default_rng(shuffle).permutation(len(part))
        signal, targets = signal if labels else signal[order], [label[order] for label in targets]
    made = [label.features for label in targets] if apart else estimator_targets(targets)
    return signal, made, _blocks(part)


def _changes(label: np.ndarray) -> bool:
    return bool((label != label[:1]).any())


def _blocks(part: Recording) -> np.ndarray | None:
    blocks = part.blocks
    return blocks if blocks.max() else None


def label_combinations(labels: Sequence[str], most: int = 2) -> dict[str, tuple[str, ...]]:
    """Return every label, and every combination of up to `most`, by a name.

    >>> list(label_combinations(["position", "speed"]))
    ['position', 'speed', 'position + speed']
    """
    return {" + ".join(some): some for count in range(1, most + 1) for some in combinations(labels, count)}


def compare_hypotheses(
    recording: Recording,
    hypotheses: Mapping[str, Sequence[str]],
    *,
    dimensions: Sequence[int] = (3,),
    seeds: int = 1,
    held: float = 0.3,
    seed: int = 0,
    progress: bool | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """Fit every hypothesis, with true labels and with shuffled ones.

    Args:
        recording: with one signal.
        hypotheses: name -> labels; as `label_combinations` makes them.
        dimensions: of the embedding.
        seeds: fits of each; shuffles differ too.
        held: the share of samples, at the end, on which the fit is measured as well.
        seed: the first one.
        progress: show a bar; by default on a terminal.
        **settings: of the estimator.

    Returns:
        `hypothesis`, `dimensions`, `shuffled`, `seed`, and `trained` and `held_out`: goodness of fit in bits, more is
        better and 0 is nothing. The best on held-out samples comes first, shuffled ones last.
    """
    if not hypotheses:
        raise HapteraError("there is no hypothesis to compare; name labels for at least one")
    train, test = recording.split(held)
    signal = next(iter(recording.signals))
    kept = varies(train.signal())
    if not kept.all():
        log.warning("%d of %d channels left out, which never change in the training part", (~kept).sum(), len(kept))
        train, test = train.with_channels(signal, kept), test.with_channels(signal, kept)
    grid = list(product(hypotheses.items(), dimensions, (False, True), range(seed, seed + seeds)))
    rows = []
    with Progress("hypotheses", len(grid), progress, unit="fits") as bar:
        for (name, labels), count, shuffled, number in grid:
            model = ContrastiveEmbedding(**{**settings, "output_dimension": count, "random_state": number})
            data = [inputs_of(part, labels, number if shuffled else None) for part in (train, test)]
            values, targets, blocks = data[0]
            model.fit(values, *targets, trials=blocks)
            trained, held_out = (model.goodness_of_fit(x, *y, trials=trials, unit="bits") for x, y, trials in data)
            rows.append((name, count, shuffled, number, trained, held_out))
            bar.advance(f"{name}, {count} dimensions{', shuffled' if shuffled else ''}")
    frame = pd.DataFrame(rows, columns=["hypothesis", "dimensions", "shuffled", "seed", "trained", "held_out"])
    return frame.sort_values(["shuffled", "held_out"], ascending=[True, False], ignore_index=True)
