"""Comparison: the same label read from embeddings, from windows of the signal, from baselines and from shuffled labels.

All decoders are fitted on the same samples, their settings chosen on the same block and scored on the same held-out
one, so that rows of the table differ in one thing each. Two shuffles are told apart: `shuffled decoder` has learnt true
pairs, and its nearest neighbour tells a label in a random order, which is chance (more neighbours would tell the mean
of all labels, and that is the row `constant`); `shuffled training` learns pairs of labels in a random order and is read
with the true ones, which tells how much a network that learnt nothing still passes on.
"""

from collections.abc import Iterable, Mapping

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
from haptera.recordings.label import Label
from haptera.recordings.recording import Recording
from haptera.recordings.windows import Offset

COLUMNS = ("what", "label", "decoder", "setting", "seed", "measure", "value", "n")
EMBEDDING, SHUFFLED_DECODER, SHUFFLED_TRAINING = "embedding", "shuffled decoder", "shuffled training"
WINDOWS, CONSTANT = "windows", "constant"


def decode_embedding(
    whole: np.ndarray, parts: Parts, label: str, *, what: str, seed: int, distance: Distance = "cosine"
) -> pd.DataFrame:
    """Return rows for both decoders of an embedding of the whole recording."""
    cut = _cut(whole, parts, label)
    found = [decode_knn(*cut, distance=distance), decode_ridge(*cut)]
    return _rows(found, what, label, seed, len(cut[2].label))


def decode_shuffled(
    whole: np.ndarray, parts: Parts, label: str, *, seed: int, distance: Distance = "cosine"
) -> pd.DataFrame:
    """Return rows of the nearest neighbour with labels in a random order: chance."""
    train, validation, test = _cut(whole, parts, label)
    train, validation = (Part(part.embedding, part.label.shuffled(seed)) for part in (train, validation))
    found = decode_knn(train, validation, test, neighbours=(1,), distance=distance)
    return _rows([found], SHUFFLED_DECODER, label, seed, len(test.label))


def decode_windows(parts: Parts, label: str, offset: Offset) -> pd.DataFrame:
    """Return rows of decoders that see the signal itself: the windows of an encoder, counts for the Bayesian one."""
    cut = _cut(block_windows(parts.whole, offset), parts, label)
    found = [decode_knn(*cut, distance="euclidean"), decode_ridge(*cut)]
    train, test = (part.signal() for part in (parts.train, parts.test))
    target: Label = parts.train.label(label)
    if target.values.ndim == 1 and _are_counts(train) and _are_counts(test):
        both = np.concatenate([train, parts.validation.signal()])
        joined = cut[0].joined(cut[1]).label
        bins = sorted({1, max(len(offset) // 2, 1)})
        found += [decode_bayesian(both, joined, test, parts.test.label(label), window=window) for window in bins]
    constant = _rows([decode_constant(cut[0].joined(cut[1]), cut[2])], CONSTANT, label, 0, len(parts.test))
    return pd.concat([_rows(found, WINDOWS, label, 0, len(parts.test)), constant], ignore_index=True)


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


def _cut(whole: np.ndarray, parts: Parts, label: str) -> tuple[Part, Part, Part]:
    sizes = np.cumsum([len(parts.train), len(parts.validation)])
    pieces = np.split(whole, sizes)
    train, validation, test = (
        Part(piece, part.label(label))
        for piece, part in zip(pieces, (parts.train, parts.validation, parts.test), strict=True)
    )
    return train, validation, test


def _rows(found: Iterable[Decoding], what: str, label: str, seed: int, n: int) -> pd.DataFrame:
    rows: list[Mapping[str, object]] = [
        {
            "what": what,
            "label": label,
            "decoder": _named(each),
            "setting": float(each.setting),
            "seed": seed,
            "measure": measure,
            "value": value,
            "n": n,
        }
        for each in found
        for measure, value in each.scores.items()
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _named(found: Decoding) -> str:
    if found.decoder != "bayesian":
        return found.decoder
    return f"bayesian, {found.setting:g} bin{'s' * (found.setting != 1)}"


def _are_counts(signal: np.ndarray) -> bool:
    return bool((signal >= 0).all() and (signal == np.round(signal)).all())
