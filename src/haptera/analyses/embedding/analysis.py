"""Analysis: an embedding of a recording with the controls that a reader will ask for, in one call.

    recording = read_recording("mouse.nwb", "spikes", ["head_direction"], bin=0.1)
    found = analyse(recording, Plan(labels=("head_direction",)))
    found.decoding, found.fits, found.consistency, found.betti

Encoders learn from the first part of a recording. Settings of decoders are chosen on a block that no encoder saw, and
everything is scored on the last part. Several seeds give the spread and the consistency of runs; fits of shuffled
labels give the zero of the goodness of fit and the null of the topology (the source has 500 of them, here they are few
and counted). By time alone there is no label to shuffle; there the samples themselves are.
With `folds`, labels are decoded a second time with whole trials held out, each once, as in the source.
Cost: `seeds + shuffles + folds` fits, then decoders, baselines and topology.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from haptera.analyses.embedding.baselines import baseline
from haptera.analyses.embedding.comparison import (
    COLUMNS,
    EMBEDDING,
    SHUFFLED_TRAINING,
    block_windows,
    decoded,
    decoded_from_windows,
    shuffled_decoding,
)
from haptera.analyses.embedding.consistency import consistency
from haptera.analyses.embedding.decoding import Distance
from haptera.analyses.embedding.plan import Parts, Plan
from haptera.analyses.embedding.topology import Persistence, betti_numbers, persistence
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.errors import HapteraError
from haptera.progress import Progress
from haptera.recordings.label import stacked
from haptera.recordings.recording import Recording

log = logging.getLogger("haptera")

DRAWS = 3
"""Of points from each shuffled embedding, so that a few fits make a null with a tail."""


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


@dataclass(frozen=True, eq=False)
class Analysis:
    """All that was found.

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
    """

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

    @property
    def model(self) -> ContrastiveEmbedding:
        """Of the first seed."""
        return self.fits[0].model

    @property
    def embedding(self) -> np.ndarray:
        """Of the first seed, of all samples."""
        return self.fits[0].embedding

    @property
    def goodness_of_fit(self) -> pd.DataFrame:
        """`seed`, `shuffled`, `part`, `nats`, `bits`."""
        rows = [
            {"seed": fit.seed, "shuffled": fit.shuffled, "part": part, "nats": nats, "bits": -nats / np.log(2)}
            for fit in (*self.fits, *self.shuffled)
            for part, nats in (("train", fit.trained), ("held out", fit.held_out))
        ]
        return pd.DataFrame(rows)

    @property
    def history(self) -> pd.DataFrame:
        """Goodness of fit over training: `step`, `seed`, `shuffled`, `nats`, each the mean of ten steps."""
        frames = []
        for fit in (*self.fits, *self.shuffled):
            nats = np.asarray(fit.model.goodness_of_fit_history_)
            block = np.arange(len(nats)) // 10
            means = np.bincount(block, nats) / np.bincount(block)
            steps = np.minimum((np.arange(len(means)) + 1) * 10, len(nats))
            frames.append(pd.DataFrame({"step": steps, "seed": fit.seed, "shuffled": fit.shuffled, "nats": means}))
        return pd.concat(frames, ignore_index=True)

    @property
    def ring_ratio(self) -> float | None:
        """The longest ring over the longest one of any shuffled fit."""
        longest = max((each.longest(1) for each in self.null), default=0.0)
        return self.persistence.longest(1) / longest if self.persistence is not None and longest else None


def analyse(recording: Recording, plan: Plan, *, progress: bool | None = None) -> Analysis:
    """Fit, control, decode and compare.

    Args:
        recording: with the signal and the labels of the plan.
        plan: what to do.
        progress: show a bar; by default on a terminal.
    """
    parts = Parts.of(recording, plan)
    if plan.topology:
        _check_ripser()
    cuts = list(Parts.folds(recording, plan)) if plan.folds and plan.labels else []
    total = plan.seeds + plan.shuffles + len(plan.baselines) + len(plan.labels) + plan.topology + len(cuts)
    with Progress("embed", total, progress, unit="steps") as bar:
        fits = []
        for place in range(plan.seeds):
            fits.append(_fit(parts, plan, plan.seed + place, shuffled=False))
            bar.advance(f"fit {place}")
        null = []
        for place in range(plan.shuffles):
            null.append(_fit(parts, plan, plan.seed + place, shuffled=True))
            bar.advance(f"shuffled fit {place}")
        model = fits[0].model
        signals = block_windows(parts.whole, model.offset_)
        others = {}
        for name in plan.baselines:
            dimensions = int(model.output_dimension)
            others[name] = baseline(name, signals[: len(parts.train)], signals, dimensions, plan.seed)
            bar.advance(name)
        tables = []
        for label in plan.labels:
            tables.append(_decoding(parts, label, fits, null, others))
            bar.advance(f"decoding {label}")
        folds = []
        for place, cut in enumerate(cuts, start=1):
            fit = [_fit(cut, plan, plan.seed, shuffled=False, quiet=True)]
            folds += [_decoding(cut, label, fit, (), {}).assign(fold=place) for label in plan.labels]
            bar.advance(f"fold {place}")
        shape, nulls, betti = None, [], None
        if plan.topology:
            shape = persistence(fits[0].embedding, seed=plan.seed)
            nulls = [persistence(fit.embedding, seed=plan.seed + draw) for fit in null for draw in range(DRAWS)]
            betti = betti_numbers(shape, nulls) if nulls else None
            bar.advance("topology")
    test = slice(len(parts.whole) - len(parts.test), None)
    runs = {f"seed {fit.seed}": fit.embedding[test] for fit in fits}
    return Analysis(
        plan,
        parts,
        tuple(fits),
        tuple(null),
        model.mode_.describe(_context(model, parts, plan)),
        pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(COLUMNS)),
        consistency(runs) if len(runs) > 1 else pd.DataFrame(columns=["source", "target", "value", "n"]),
        shape,
        tuple(nulls),
        betti,
        others,
        pd.concat(folds, ignore_index=True)[["fold", *COLUMNS]] if folds else pd.DataFrame(columns=["fold", *COLUMNS]),
        _notes(parts, cuts),
    )


def _notes(parts: Parts, cuts: Sequence[Parts]) -> tuple[str, ...]:
    """Those of the recording, then what is true of a fold alone."""
    notes = list(parts.whole.notes)
    for place, cut in enumerate(cuts, start=1):
        notes += [f"fold {place}: {note}" for note in cut.whole.notes if note not in parts.whole.notes]
    return tuple(notes)


def _fit(parts: Parts, plan: Plan, seed: int, *, shuffled: bool, quiet: bool = False) -> Fit:
    """One estimator, with true labels or with labels (by time alone, samples) in a random order."""
    model = ContrastiveEmbedding(**plan.estimator_settings(parts.whole, seed))
    data = {name: _inputs(part, plan, seed if shuffled else None) for name, part in
            (("train", parts.train), ("held out", parts.test))}  # fmt: skip
    level = log.level
    if seed != plan.seed or shuffled or quiet:
        log.setLevel(max(level, logging.WARNING))  # what the first fit says about its mode is true of all
    try:
        signal, labels, blocks = data["train"]
        model.fit(signal, *labels, trials=blocks)
    finally:
        log.setLevel(level)
    scores = [
        model.goodness_of_fit(signal, *labels, trials=blocks) if all(map(_changes, labels)) else np.nan
        for signal, labels, blocks in data.values()
    ]
    whole = [
        model.transform(part.signal(), trials=_blocks(part)) for part in (parts.train, parts.validation, parts.test)
    ]
    return Fit(seed, shuffled, model, np.concatenate(whole), *scores)


def _inputs(part: Recording, plan: Plan, shuffle: int | None) -> tuple[np.ndarray, list[np.ndarray], np.ndarray | None]:
    """Signal, labels and blocks for an estimator."""
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


def _decoding(
    parts: Parts, label: str, fits: Sequence[Fit], null: Sequence[Fit], baselines: dict[str, np.ndarray]
) -> pd.DataFrame:
    distance: Distance = "cosine" if fits[0].model.distance == "cosine" else "euclidean"
    tables = [decoded(f.embedding, parts, label, what=EMBEDDING, seed=f.seed, distance=distance) for f in fits]
    tables += [shuffled_decoding(f.embedding, parts, label, seed=f.seed, distance=distance) for f in fits]
    tables += [decoded(f.embedding, parts, label, what=SHUFFLED_TRAINING, seed=f.seed, distance=distance) for f in null]
    tables.append(decoded_from_windows(parts, label, fits[0].model.offset_))
    tables += [decoded(e, parts, label, what=name, seed=0, distance="euclidean") for name, e in baselines.items()]
    return pd.concat(tables, ignore_index=True)


def _context(model: ContrastiveEmbedding, parts: Parts, plan: Plan) -> Any:
    from haptera.contrastive.modes import Context

    _, labels, _ = _inputs(parts.train, plan, None)
    return Context.of(labels, [len(parts.train)], several=False)


def _check_ripser() -> None:
    from importlib.util import find_spec

    if find_spec("ripser") is None:
        raise HapteraError(
            "topology needs ripser: pip install 'haptera[topology]'; or leave it out (--no-topology, topology=False)"
        )
