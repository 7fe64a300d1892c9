"""The numbers behind the sentences about an embedding, by the names that its JSON object has."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.embedding.comparison import (
    CONSTANT,
    EMBEDDING,
    SHUFFLED_DECODER,
    SHUFFLED_TRAINING,
    WINDOWS,
    value_of,
)

if TYPE_CHECKING:
    from haptera.analyses.embedding.analysis import Embedding

MAIN = {"angle": "median_error", "continuous": "r2", "discrete": "accuracy"}
"""The one score by which a label of each kind is spoken of."""


def beaten_by(embedding: "Embedding", label: str) -> dict[str, float]:
    """Return the baselines from which a label is read better than from the embedding, with their scores.

    Compared is the mean over seeds, read by nearest neighbours from both.
    """
    measure = MAIN[embedding.parts.whole.label(label).kind]
    names = [EMBEDDING, *embedding.baselines]
    scores = {
        name: value_of(embedding.decoding, what=name, label=label, decoder="knn", measure=measure) for name in names
    }
    own, sign = scores.pop(EMBEDDING), -1 if measure == "median_error" else 1
    return {
        name: value
        for name, value in scores.items()
        if own is not None and value is not None and sign * value > sign * own
    }


def recording_numbers(embedding: "Embedding") -> dict[str, Any]:
    """Return the size of the recording and of its parts, and how it was read."""
    whole, parts = embedding.parts.whole, embedding.parts.names
    recording = {
        "source": whole.source,
        "signal": next(iter(whole.signals)),
        "channels": whole.signal().shape[1],
        "samples": len(whole),
        "step": whole.step,
        "labels": {name: whole.label(name).kind for name in embedding.plan.labels},
        "parts": {name: int((parts == name).sum()) for name in ("train", "validation", "held out")},
    }
    offsets = np.atleast_1d(embedding.model.time_offsets).tolist()
    seeds = {
        "time_offsets": offsets,
        "seeds": [each.seed for each in embedding.fits],
        "shuffles": len(embedding.shuffled),
    }
    return {"recording": recording, "mode": embedding.mode} | seeds | embedding.asked


def fit_numbers(fits: pd.DataFrame) -> dict[str, Any]:
    """Return the goodness of fit of each part, true and shuffled, means over seeds."""
    return {
        "fit": {
            f"{str(part).replace(' ', '_')}{'_shuffled' if shuffled else ''}": rows[["nats", "bits"]].mean().to_dict()
            for (part, shuffled), rows in fits.groupby(["part", "shuffled"])
        }
    }


def label_numbers(embedding: "Embedding", label: str) -> dict[str, Any]:
    """Return every score of a label by what it was read from."""
    rows = embedding.decoding[embedding.decoding["label"] == label]
    measure = MAIN[embedding.parts.whole.label(label).kind]

    def scores(what: str, decoder: str) -> dict[str, Any]:
        some = rows[(rows["what"] == what) & (rows["decoder"] == decoder)]
        return {str(key): each["value"].mean() for key, each in some.groupby("measure")}

    own = rows[(rows["what"] == EMBEDDING) & (rows["decoder"] == "knn") & (rows["measure"] == measure)]
    folds = embedding.folds[(embedding.folds["label"] == label) & (embedding.folds["measure"] == measure)]
    values = folds.loc[(folds["what"] == EMBEDDING) & (folds["decoder"] == "knn"), "value"]
    numbers: dict[str, Any] = {
        "decoding": scores(EMBEDDING, "knn")
        | {
            "decoder": "knn",
            "neighbours": own["setting"].tolist(),
            "by_seed": {"measure": measure, "values": own["value"].tolist()},
            "ridge": scores(EMBEDDING, "ridge"),
        },
        "shuffled": scores(SHUFFLED_DECODER, "knn")
        | {
            "which": "labels of the decoder, in a random order",
            "training": scores(SHUFFLED_TRAINING, "knn") or None,
            "constant": scores(CONSTANT, "constant"),
        },
        "windows": {str(name): scores(WINDOWS, name) for name in rows[rows["what"] == WINDOWS]["decoder"].unique()},
        "baselines": {name: scores(name, "knn") for name in embedding.baselines},
        "beaten_by": list(beaten_by(embedding, label)),
        "folds": None,
    }
    if len(values):
        numbers["folds"] = {"measure": measure, "mean": values.mean(), "values": values.tolist()}
    return numbers
