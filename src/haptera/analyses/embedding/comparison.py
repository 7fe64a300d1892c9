"""Comparison: the same label read from embeddings, from windows of the signal, from baselines and from shuffled labels.

All decoders are fitted on the same samples, their settings chosen on the same block and scored on the same held-out
one, so that rows of the table differ in one thing each. Two shuffles are told apart: `shuffled decoder` has learnt true
pairs, and its nearest neighbour tells a label in a random order, which is chance (more neighbours would tell the mean
of all labels, and that is the row `constant`); `shuffled training` learns pairs of labels in a random order and is read
with the true ones, which tells how much a network that learnt nothing still passes on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from haptera.analyses.embedding.decoding import (
    Decoding,
    Distance,
    Part,
    decode_bayesian,
    decode_constant,
    decode_knn,
    decode_ridge,
    windows,
)
from haptera.analyses.embedding.plan import Parts
from haptera.analyses.embedding.tuning import decode_glm
from haptera.errors import HapteraError
from haptera.recordings.label import Label
from haptera.recordings.recording import Recording
from haptera.recordings.windows import Offset

COLUMNS = ("what", "label", "decoder", "setting", "seed", "measure", "value", "n")
EMBEDDING, SHUFFLED_DECODER, SHUFFLED_TRAINING = "embedding", "shuffled decoder", "shuffled training"
WINDOWS, CONSTANT = "windows", "constant"
OF_SIGNAL = {
    "knn": "neighbours of the windows",
    "ridge": "ridge on the windows",
    "bayesian": "a Bayesian decoder",
    "glm": "Poisson tuning (GLM)",
}
"""What sentences call decoders that see the signal itself."""
MAIN = {"angle": "median_error", "continuous": "r2", "discrete": "accuracy"}
"""The one score by which a label of each kind is spoken of."""


@dataclass(frozen=True, eq=False)
class Reading:
    """One label as it was decoded, from the embedding and from everything else.

    Attributes:
        name: of the label.
        kind: of the label.
        rows: its scores, with `COLUMNS`.
        folds: those over folds of whole trials, by the measure that is spoken of.
        baselines: names of the embeddings beside the contrastive one.
    """

    name: str
    kind: str
    rows: pd.DataFrame
    folds: pd.DataFrame
    baselines: Sequence[str]

    def scores(self, what: str, decoder: str = "knn") -> dict[str, float]:
        """Return measure -> the mean over seeds."""
        rows = self.rows[(self.rows["what"] == what) & (self.rows["decoder"] == decoder)]
        return {str(measure): value for measure, value in rows.groupby("measure")["value"].mean().items()}

    def value(self, what: str, decoder: str = "knn") -> float | None:
        """Return the mean over seeds of the measure that is spoken of."""
        return self.scores(what, decoder).get(MAIN[self.kind])

    @property
    def signal_decoders(self) -> dict[str, str]:
        """Return decoders that see the signal itself, with what sentences call them."""
        names = self.rows.loc[self.rows["what"] == WINDOWS, "decoder"].unique()
        return {str(name): OF_SIGNAL.get(str(name).partition(",")[0], str(name)) for name in names}

    @property
    def better(self) -> dict[str, float]:
        """Return what reads the label better than nearest neighbours in the embedding, with its score.

        Baselines are read by nearest neighbours too; decoders of the signal speak for themselves. What is no better
        than a constant guess reads nothing, and so nothing better.
        """
        own, values = self.value(EMBEDDING), {name: self.value(name) for name in self.baselines}
        every = {name: value for name, value in (values | self.of_signal).items() if value is not None}
        limits = [limit for limit in (own, self.value(CONSTANT, CONSTANT)) if limit is not None]
        if own is None:
            return {}
        return {name: value for name, value in every.items() if all(self.sign * (value - one) > 0 for one in limits)}

    @property
    def is_a_guess(self) -> bool:
        """Say whether the embedding is read no better than by a constant guess."""
        own, guess = self.value(EMBEDDING), self.value(CONSTANT, CONSTANT)
        return own is not None and guess is not None and self.sign * (own - guess) <= 0

    @property
    def sign(self) -> int:
        """Return -1 where less is better, as of errors of an angle."""
        return -1 if self.kind == "angle" else 1

    @property
    def of_signal(self) -> dict[str, float]:
        """Return the score of each kind of decoder of the signal; of several windows, the best."""
        found: dict[str, float] = {}
        for decoder, name in self.signal_decoders.items():
            if (score := self.value(WINDOWS, decoder)) is not None:
                found[name] = max(found.get(name, score), score, key=lambda one: self.sign * one)
        return found

    @property
    def fold_values(self) -> pd.Series:
        """Return what nearest neighbours read from the embedding in each fold."""
        return self.folds.loc[(self.folds["what"] == EMBEDDING) & (self.folds["decoder"] == "knn"), "value"]

    def numbers(self) -> dict[str, Any]:
        """Return every score by what the label was read from."""
        measure, folds = MAIN[self.kind], self.fold_values
        own = self.rows[(self.rows["what"] == EMBEDDING) & (self.rows["decoder"] == "knn")]
        own = own[own["measure"] == measure]
        knn: dict[str, Any] = {"decoder": "knn", "neighbours": own["setting"].tolist()}
        knn |= {"by_seed": {"measure": measure, "values": own["value"].tolist()}}
        shuffled: dict[str, Any] = {"which": "labels of the decoder, in a random order"}
        shuffled |= {"training": self.scores(SHUFFLED_TRAINING) or None, "constant": self.scores(CONSTANT, CONSTANT)}
        windows = self.rows[self.rows["what"] == WINDOWS]["decoder"].unique()
        held = {"measure": measure, "mean": folds.mean(), "values": folds.tolist()}
        return {
            "decoding": self.scores(EMBEDDING) | knn | {"ridge": self.scores(EMBEDDING, "ridge")},
            "shuffled": self.scores(SHUFFLED_DECODER) | shuffled,
            "windows": {str(name): self.scores(WINDOWS, name) for name in windows},
            "baselines": {name: self.scores(name) for name in self.baselines},
            "beaten_by": list(self.better),
            "folds": held if len(folds) else None,
        }


def decode_embedding(
    whole: np.ndarray, parts: Parts, label: str, *, what: str, seed: int, distance: Distance = "cosine"
) -> pd.DataFrame:
    """Return rows for both decoders of an embedding of the whole recording."""
    cut = cut_parts(whole, parts, label)
    found = [decode_knn(*cut, distance=distance), decode_ridge(*cut)]
    return score_rows(found, what, label, seed, len(cut[2].label))


def decode_baseline(whole: np.ndarray, parts: Parts, label: str, *, what: str) -> pd.DataFrame:
    """Return rows for both decoders of a baseline; samples that it did not embed, NaN, are left out."""
    cut = []
    for part, (piece, target) in zip(("training", "validation", "held-out"), _pieces(whole, parts, label), strict=True):
        known = np.isfinite(piece).all(1)
        if not known.any():
            raise HapteraError(f"{what} embeds no sample of the {part} part; raise baseline_samples")
        cut.append(Part(piece[known], target[known]))
    return score_rows([decode_knn(*cut, distance="euclidean"), decode_ridge(*cut)], what, label, 0, len(cut[2].label))


def decode_shuffled(
    whole: np.ndarray, parts: Parts, label: str, *, seed: int, distance: Distance = "cosine"
) -> pd.DataFrame:
    """Return rows of the nearest neighbour with labels in a random order: chance."""
    train, validation, test = cut_parts(whole, parts, label)
    train, validation = (Part(part.embedding, part.label.shuffle(seed)) for part in (train, validation))
    found = decode_knn(train, validation, test, neighbours=(1,), distance=distance)
    return score_rows([found], SHUFFLED_DECODER, label, seed, len(test.label))


def decode_windows(parts: Parts, label: str, offset: Offset) -> pd.DataFrame:
    """Return rows of decoders that see the signal itself: the windows of an encoder, counts for the Bayesian one."""
    cut = cut_parts(block_windows(parts.whole, offset), parts, label)
    found = [decode_knn(*cut, distance="euclidean"), decode_ridge(*cut)]
    train, test = (part.signal() for part in (parts.train, parts.test))
    if _are_counts(train) and _are_counts(test):
        bins = sorted({1, max(len(offset) // 2, 1)})
        validation, joined = parts.validation.signal(), cut[0].join_with(cut[1]).label
        if joined.values.ndim == 1:
            both, truth = np.concatenate([train, validation]), parts.test.label(label)
            found += [decode_bayesian(both, joined, test, truth, window=window) for window in bins]
        signals = zip((train, validation, test), (part.label for part in cut), strict=True)
        found.append(decode_glm(*signals, windows=bins))
    constant = score_rows([decode_constant(cut[0].join_with(cut[1]), cut[2])], CONSTANT, label, 0, len(parts.test))
    return pd.concat([score_rows(found, WINDOWS, label, 0, len(parts.test)), constant], ignore_index=True)


def block_windows(recording: Recording, offset: Offset) -> np.ndarray:
    """Return windows of all samples as rows; none goes across the end of a block."""
    ends = np.flatnonzero(np.diff(recording.blocks)) + 1
    return np.concatenate([windows(block, offset) for block in np.split(recording.signal(), ends)])


def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """Return mean, least and largest value over seeds of every combination."""
    by = ["what", "label", "decoder", "measure"]
    found = table.groupby(by, sort=False)["value"].agg(["mean", "min", "max", "count"]).reset_index()
    return found.rename(columns={"mean": "value", "min": "low", "max": "high", "count": "seeds"})


def value_of(table: pd.DataFrame, **where: object) -> float | None:
    """Return the mean over seeds of the only combination that fits, or None."""
    rows = table
    for column, wanted in where.items():
        rows = rows[rows[column] == wanted]
    return None if rows.empty else float(rows["value"].mean())


def cut_parts(whole: np.ndarray, parts: Parts, label: str) -> list[Part]:
    """Return training, validation and held-out part of an embedding of the whole recording, with a label."""
    return [Part(piece, target) for piece, target in _pieces(whole, parts, label)]


def _pieces(whole: np.ndarray, parts: Parts, label: str) -> list[tuple[np.ndarray, Label]]:
    pieces = np.split(whole, np.cumsum([len(parts.train), len(parts.validation)]))
    every = zip(pieces, (parts.train, parts.validation, parts.test), strict=True)
    return [(piece, part.label(label)) for piece, part in every]


def score_rows(found: Iterable[Decoding], what: str, label: str, seed: int, n: int) -> pd.DataFrame:
    """Return a row for every score of decoders."""
    rows = [
        (what, label, _decoder_name(each), float(each.setting), seed, measure, value, n)
        for each in found
        for measure, value in each.scores.items()
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _decoder_name(found: Decoding) -> str:
    if found.decoder != "bayesian":
        return found.decoder
    return f"bayesian, {found.setting:g} bin{'s' * (found.setting != 1)}"


def _are_counts(signal: np.ndarray) -> bool:
    return bool((signal >= 0).all() and (signal == np.round(signal)).all())
