"""Scores of several sessions: labels read in one session by decoders of the others, and how alike the embeddings are.

`other sessions` is the test of a shared space: neighbours and their labels come from all sessions but one, settings
are chosen on the validation parts of those, and the held-out part of the one that is left is read. No sample and no
label of that session reaches the decoder. Sessions weigh by their samples there.
Consistency of subjects is that of chapter 7: means in bins of the labels, R² of the best affine map between them, on
held-out parts. Where a class is missing in a session, only classes that all have are compared.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from haptera.analyses.embedding.comparison import (
    COLUMNS,
    cut_parts,
    decode_embedding,
    decode_windows,
    score_rows,
)
from haptera.analyses.embedding.consistency import consistency
from haptera.analyses.embedding.decoding import Distance, Part, decode_constant, decode_knn, decode_ridge
from haptera.analyses.sessions.session import Session, shared_classes
from haptera.recordings.label import Label
from haptera.recordings.windows import Offset

OTHERS, OTHERS_CHANCE, OTHERS_SHUFFLED = (
    "other sessions",
    "other sessions, shuffled decoder",
    "other sessions, shuffled",
)
OTHERS_CONSTANT, ALONE = "other sessions, constant", "alone"
ROWS = ("session", *COLUMNS)
PAIRS = ("what", "seed", "source", "target", "value", "n")


def decode_own(
    session: Session, embedding: np.ndarray, label: str, *, what: str, seed: int, distance: Distance
) -> pd.DataFrame:
    """Return rows of a session that is read by decoders of its own."""
    rows = decode_embedding(embedding, session.parts, label, what=what, seed=seed, distance=distance)
    return rows.assign(session=session.name)[[*ROWS]]


def decode_signal(session: Session, label: str, offset: Offset) -> pd.DataFrame:
    """Return rows of decoders that see the windows of a session's signal, and of none."""
    return decode_windows(session.parts, label, offset).assign(session=session.name)[[*ROWS]]


def decode_across(
    sessions: Sequence[Session],
    embeddings: Sequence[np.ndarray],
    label: str,
    *,
    what: str = OTHERS,
    seed: int,
    distance: Distance,
    shuffle: bool = False,
) -> pd.DataFrame:
    """Return rows of every session, read by decoders that know the others alone.

    Args:
        sessions: two or more.
        embeddings: of the whole of each, by encoders of one fit.
        label: its name.
        what: they are called.
        seed: of the fit.
        distance: of the embedding.
        shuffle: the labels of the decoder are in a random order, and the nearest neighbour is asked: chance.
    """
    cuts = [cut_parts(each, one.parts, label) for each, one in zip(embeddings, sessions, strict=True)]
    tables = []
    for place, session in enumerate(sessions):
        others = [cut for other, cut in enumerate(cuts) if other != place]
        train, validation = (_join([cut[side] for cut in others]) for side in (0, 1))
        test = cuts[place][2]
        if shuffle:
            train, validation = (Part(one.embedding, one.label.shuffle(seed)) for one in (train, validation))
            made = [decode_knn(train, validation, test, neighbours=(1,), distance=distance)]
        else:
            made = [decode_knn(train, validation, test, distance=distance), decode_ridge(train, validation, test)]
        tables.append(score_rows(made, what, label, seed, len(test.label)).assign(session=session.name))
        if what == OTHERS and not shuffle:
            guess = decode_constant(train.join_with(validation), test)
            rows = score_rows([guess], OTHERS_CONSTANT, label, seed, len(test.label))
            tables.append(rows.assign(session=session.name))
    return pd.concat(tables, ignore_index=True)[[*ROWS]]


def subject_consistency(
    sessions: Sequence[Session], embeddings: Sequence[np.ndarray], labels: Sequence[str], *, what: str, seed: int
) -> pd.DataFrame:
    """Return R² for every ordered pair of sessions, on held-out parts, in bins of the labels."""
    points: dict[str, np.ndarray] = {}
    own: dict[str, list[Label]] = {}
    for session, whole in zip(sessions, embeddings, strict=True):
        points[session.name] = whole[-len(session.parts.test) :]
        own[session.name] = [session.parts.test.label(name) for name in labels]
    for place in range(len(labels)):
        shared = shared_classes({name: each[place] for name, each in own.items()})
        if shared is not None:
            kept = {name: np.isin(each[place].values, shared) for name, each in own.items()}
            points = {name: each[kept[name]] for name, each in points.items()}
            own = {name: [one[kept[name]] for one in each] for name, each in own.items()}
    if not own or min(map(len, points.values())) == 0:
        return pd.DataFrame(columns=list(PAIRS))
    return _comparable(points, own).assign(what=what, seed=seed).reindex(columns=list(PAIRS))


def _comparable(points: Mapping[str, np.ndarray], labels: Mapping[str, Sequence[Label]]) -> pd.DataFrame:
    """Return the consistency; nothing where there are so few bins that an affine map would fit them all."""
    kinds = next(iter(labels.values()))
    if all(label.kind == "discrete" for label in kinds):
        cells = len(np.unique(np.column_stack([label.values for label in kinds]), axis=0))
        if cells <= next(iter(points.values())).shape[1] + 1:
            return pd.DataFrame(columns=list(PAIRS))
    return consistency(points, labels)


def _join(parts: Sequence[Part]) -> Part:
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.join_with(part)
    return joined
