"""Summary: what an analysis of a recording found, in a few sentences, as one JSON object, and as one table."""

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
from haptera.files.json import plain
from haptera.recordings.label import Label

if TYPE_CHECKING:
    from haptera.analyses.embedding.analysis import Analysis

MAIN = {"angle": "median_error", "continuous": "r2", "discrete": "accuracy"}
"""The one score by which a label of each kind is spoken of."""
UNITS = {"angle": " deg median", "continuous": " R²", "discrete": " right"}
SEE_EVERYTHING = ("tsne", "umap")
"""Baselines without a map for new samples."""
SHAPES: dict[tuple[int, ...], str] = {
    (1, 1, 0): "one ring",
    (1, 0, 1): "a sphere",
    (1, 2, 1): "a torus",
    (1, 0, 0): "no ring, no hollow",
}


def size(found: "Analysis") -> str:
    """What there is."""
    whole = found.parts.whole
    channels = whole.channel_noun()
    step = f" of {1000 * whole.step:g} ms" if whole.step else ""
    labels = [f"{name} is {_described(whole.label(name))}" for name in found.plan.labels]
    return "; ".join([f"{whole.signal().shape[1]} {channels}, {len(whole):,} samples{step}", *labels])


def sentences(found: "Analysis") -> list[tuple[str, str]]:
    """What is asked, in a word, and the answer."""
    lines = [("mode", found.mode), ("fit", _fit(found))]
    lines += [("" if place else "decoding", _decoding(found, label)) for place, label in enumerate(found.plan.labels)]
    folds = [_folds(found, label) for label in found.plan.labels] if len(found.folds) else []
    lines += [("" if place else "folds", text) for place, text in enumerate(folds)]
    better = [text for label in found.plan.labels if (text := _better(found, label))]
    lines += [("" if place else "baselines", text) for place, text in enumerate(better)]
    if found.betti is not None:
        lines.append(("topology", _topology(found)))
    return lines


def _described(label: Label) -> str:
    if label.kind == "discrete":
        return f"discrete, {len(label.classes)} classes"
    if label.kind == "angle":
        return "an angle"
    return "continuous" + (f", {label.values.shape[1]} dimensions" if label.values.ndim > 1 else "")


def _fit(found: "Analysis") -> str:
    held = found.goodness_of_fit[found.goodness_of_fit["part"] == "held out"]
    bits = held[~held["shuffled"]]["bits"].mean()
    text = f"{abs(bits):.2f} bits {'above' if bits >= 0 else 'below'} chance on held-out samples"
    if not np.isfinite(bits):
        text = "not known on held-out samples, where a label is always the same"
    elif found.shuffled:
        null = _zero(held[held["shuffled"]]["bits"].mean())
        what = "labels" if found.plan.by != "time" else "samples"
        overlap = ", whose windows overlap" * (what == "samples" and _overlap(found))
        text += f" (shuffled {what} {null:.2f}{overlap})"
    text += f"; {len(found.fits)} seed{'s' * (len(found.fits) > 1)}"
    if len(found.consistency):
        text += f", consistency {found.consistency['value'].mean():.2f}"
    return text


def _overlap(found: "Analysis") -> bool:
    """Whether the windows of a pair in time share samples, so that they are alike whatever is in them."""
    return int(np.min(found.model.time_offsets)) < len(found.model.offset_)


def _zero(value: float) -> float:
    """Not minus zero."""
    return 0.0 if abs(value) < 0.005 else value


def _decoding(found: "Analysis", label: str) -> str:
    kind = found.parts.whole.label(label).kind
    measure = MAIN[kind]

    def said(what: str, decoder: str) -> str | None:
        value = value_of(found.decoding, what=what, label=label, decoder=decoder, measure=measure)
        return None if value is None else _shown(value, kind)

    held = f"on the last {found.plan.held:.0%}"
    parts = [f"{said(EMBEDDING, 'knn')}{UNITS[kind]} {held}"]
    if len(found.plan.labels) > 1:
        parts[0] = f"{label} {parts[0]}"
    others = {
        "ridge on the same windows": (WINDOWS, "ridge"),
        "kNN": (WINDOWS, "knn"),
        "Bayesian": (WINDOWS, _bayesian(found, label)),
        "shuffled": (SHUFFLED_DECODER, "knn"),
        "shuffled in training": (SHUFFLED_TRAINING, "knn"),
        "constant": (CONSTANT, "constant"),
    }
    parts += [f"{name} {value}" for name, where in others.items() if (value := said(*where)) is not None]
    return "   ".join(parts)


def _folds(found: "Analysis", label: str) -> str:
    """Over folds of whole trials: the mean, and the range."""
    kind = found.parts.whole.label(label).kind
    rows = found.folds[(found.folds["label"] == label) & (found.folds["measure"] == MAIN[kind])]

    def values(what: str, decoder: str) -> pd.Series:
        return rows.loc[(rows["what"] == what) & (rows["decoder"] == decoder), "value"]

    own = values(EMBEDDING, "knn")
    text = f"{label} {_shown(own.mean(), kind)}{UNITS[kind]} over {len(own)} folds of whole trials"
    text += f" ({_shown(own.min(), kind)} to {_shown(own.max(), kind)})"
    others = {"ridge on the same windows": (WINDOWS, "ridge"), "constant": (CONSTANT, "constant")}
    return "   ".join([text, *(f"{name} {_shown(values(*where).mean(), kind)}" for name, where in others.items())])


def beaten_by(found: "Analysis", label: str) -> dict[str, float]:
    """The baselines from which a label is read better than from the embedding, with their scores.

    Compared is the mean over seeds, read by nearest neighbours from both.
    """
    measure = MAIN[found.parts.whole.label(label).kind]

    def score(what: str) -> float | None:
        return value_of(found.decoding, what=what, label=label, decoder="knn", measure=measure)

    own, sign = score(EMBEDDING), -1 if measure == "median_error" else 1
    others = {name: value for name in found.baselines if (value := score(name)) is not None}
    return {name: value for name, value in others.items() if own is not None and sign * value > sign * own}


def _better(found: "Analysis", label: str) -> str:
    """Which baselines beat the embedding; empty if none does."""
    better = beaten_by(found, label)
    if not better:
        return ""
    kind = found.parts.whole.label(label).kind
    names = ", ".join(f"{name} {_shown(value, kind)}" for name, value in better.items())
    own = value_of(found.decoding, what=EMBEDDING, label=label, decoder="knn", measure=MAIN[kind])
    assert own is not None
    text = f"{label} is read better from {names} than from the embedding, {_shown(own, kind)}{UNITS[kind]}"
    seen = [name for name in better if name in SEE_EVERYTHING]
    return text + f"; {' and '.join(seen)} saw the held-out samples" * bool(seen)


def _bayesian(found: "Analysis", label: str) -> str:
    """The Bayesian decoder with the widest window."""
    rows = found.decoding[found.decoding["label"] == label]
    names = [name for name in rows["decoder"].unique() if str(name).startswith("bayesian")]
    return str(names[-1]) if names else ""


def _shown(value: float, kind: str) -> str:
    if kind == "angle":
        return f"{value:.1f}" if value < 20 else f"{value:.0f}"
    return f"{value:.1%}" if kind == "discrete" else f"{value:.2f}"


def _topology(found: "Analysis") -> str:
    assert found.betti is not None
    count = len(found.shuffled)
    shape = SHAPES.get(found.betti, "parts, rings and hollows")
    text = f"{shape} ({', '.join(map(str, found.betti))})"
    if found.ring_ratio is not None and found.betti[1]:
        text += f", {found.ring_ratio:.1f} x the longest bar of {count} shuffled fit{'s' * (count > 1)}"
    return text


def as_json(found: "Analysis") -> dict[str, Any]:
    """Every figure of the summary, unrounded; errors of angles are in degrees."""
    whole = found.parts.whole
    held = found.goodness_of_fit
    fit = {
        f"{str(part).replace(' ', '_')}{'_shuffled' if shuffled else ''}": {
            "nats": rows["nats"].mean(),
            "bits": rows["bits"].mean(),
        }
        for (part, shuffled), rows in held.groupby(["part", "shuffled"])
    }
    labels = {name: _label_json(found, name) for name in found.plan.labels}
    nothing = dict.fromkeys(("decoding", "shuffled", "windows", "baselines", "beaten_by", "folds"))
    first = next(iter(labels.values()), nothing)
    agreement = found.consistency["value"]
    return plain(
        {
            "recording": {
                "source": whole.source,
                "signal": next(iter(whole.signals)),
                "channels": whole.signal().shape[1],
                "samples": len(whole),
                "step": whole.step,
                "labels": {name: whole.label(name).kind for name in found.plan.labels},
                "parts": {name: int((found.parts.names == name).sum()) for name in ("train", "validation", "held out")},
                "notes": list(found.notes),
            },
            "mode": found.mode,
            "seeds": [each.seed for each in found.fits],
            "shuffles": len(found.shuffled),
            "settings": found.plan.estimator_settings(whole, found.plan.seed),
            "fit": fit,
            **first,
            "consistency": None if agreement.empty else {"mean": agreement.mean(), "min": agreement.min()},
            "topology": None
            if found.betti is None
            else {"betti": list(found.betti), "ring_over_shuffled": found.ring_ratio},
            "labels": labels,
        }
    )


def _label_json(found: "Analysis", label: str) -> dict[str, Any]:
    rows = found.decoding[found.decoding["label"] == label]

    def scores(what: str, decoder: str) -> dict[str, Any] | None:
        some = rows[(rows["what"] == what) & (rows["decoder"] == decoder)]
        return None if some.empty else {str(key): each["value"].mean() for key, each in some.groupby("measure")}

    own = rows[(rows["what"] == EMBEDDING) & (rows["decoder"] == "knn")]
    measure = MAIN[found.parts.whole.label(label).kind]
    seeds = own[own["measure"] == measure]
    decoding = (scores(EMBEDDING, "knn") or {}) | {
        "decoder": "knn",
        "neighbours": seeds["setting"].tolist(),
        "by_seed": {"measure": measure, "values": seeds["value"].tolist()},
        "ridge": scores(EMBEDDING, "ridge"),
    }
    shuffled = (scores(SHUFFLED_DECODER, "knn") or {}) | {
        "which": "labels of the decoder, in a random order",
        "training": scores(SHUFFLED_TRAINING, "knn"),
        "constant": scores(CONSTANT, "constant"),
    }
    return {
        "decoding": decoding,
        "shuffled": shuffled,
        "windows": {
            str(decoder): scores(WINDOWS, str(decoder)) for decoder in rows[rows["what"] == WINDOWS]["decoder"].unique()
        },
        "baselines": {name: scores(name, "knn") for name in found.baselines},
        "beaten_by": list(beaten_by(found, label)),
        "folds": _folds_json(found, label),
    }


def _folds_json(found: "Analysis", label: str) -> dict[str, Any] | None:
    measure = MAIN[found.parts.whole.label(label).kind]
    rows = found.folds[(found.folds["label"] == label) & (found.folds["measure"] == measure)]
    own = rows[(rows["what"] == EMBEDDING) & (rows["decoder"] == "knn")]["value"]
    return None if own.empty else {"measure": measure, "mean": own.mean(), "values": own.tolist()}


def as_table(found: "Analysis") -> pd.DataFrame:
    """Everything that is a number, in one tidy frame with the columns of `Analysis.decoding`, and those of folds."""
    fits = found.goodness_of_fit
    rows = pd.DataFrame(
        {
            "what": np.where(fits["shuffled"], SHUFFLED_TRAINING, EMBEDDING),
            "label": "",
            "decoder": "",
            "setting": np.nan,
            "seed": fits["seed"],
            "measure": "goodness_of_fit_bits, " + fits["part"],
            "value": fits["bits"],
            "n": np.where(fits["part"] == "train", len(found.parts.train), len(found.parts.test)),
        }
    )
    pairs = found.consistency
    runs = pd.DataFrame(
        {
            "what": EMBEDDING,
            "label": "",
            "decoder": pairs["source"] + " to " + pairs["target"],
            "setting": np.nan,
            "seed": found.plan.seed,
            "measure": "consistency",
            "value": pairs["value"],
            "n": pairs["n"],
        }
    )
    frames = [frame for frame in (found.decoding, rows, runs, found.folds) if len(frame)]
    return pd.concat(frames, ignore_index=True)
