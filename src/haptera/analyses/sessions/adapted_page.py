"""What an adapted session tells, in sentences with their numbers, and its page."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.embedding.comparison import CONSTANT, MAIN, SHUFFLED_TRAINING, WINDOWS, summarise
from haptera.analyses.embedding.fits import training_history
from haptera.analyses.embedding.page import POINTS, cloud_points, cloud_style, decoders_figure
from haptera.analyses.sessions.readings import mean_scores, reading_lead, reading_sentence
from haptera.report.figure import Figure
from haptera.report.section import Finding, Listing, Section, answer, lead
from haptera.words import count

if TYPE_CHECKING:
    from haptera.analyses.sessions.adaptation import Adaptation

ADAPTED, OWN, OWN_SHORT = "adapted", "fit of its own", "fit of its own, as few steps"
DEFINITIONS = {
    "adapted": "the encoder of a session that the model knows, with a new first layer; all of it learns on",
    "fit of its own": "an encoder that knows nothing of the model, with its settings and in all of its steps",
    "error": "median error of a number or an angle, share of wrong classes; on held-out samples, by nearest neighbours",
    "shuffled training": "adapted to labels in a random order, and read with true ones",
}
SHOWN = {
    "adapted": (ADAPTED, "knn"),
    "own": (OWN, "knn"),
    "own_short": (OWN_SHORT, "knn"),
    "shuffled": (SHUFFLED_TRAINING, "knn"),
    "ridge_on_windows": (WINDOWS, "ridge"),
    "constant": (CONSTANT, CONSTANT),
}
BESIDE = {
    "own": "a fit of its own",
    "own_short": "one of as few steps",
    "shuffled": "adapted to shuffled labels",
    "ridge_on_windows": "ridge on the same windows",
    "constant": "constant",
}


def headline(adapted: "Adaptation") -> str:
    """Return how large the recording is."""
    one = adapted.parts.whole
    return f"{one.signal().shape[1]} {one.channel_noun()}, {len(one):,} samples"


def findings(adapted: "Adaptation") -> list[Finding]:
    """Return how it was adapted, and how the result compares with a fit of its own."""
    start, full = adapted.start, int(adapted.plan.settings["max_iterations"])
    text = f"{start.steps:,} steps from session {adapted.session} of {start.path.name}, which took {full:,}"
    parts = adapted.parts.names
    numbers = {
        "adapt_steps": start.steps,
        "model_steps": full,
        "mode": adapted.mode,
        "recording": {
            "source": adapted.parts.whole.source,
            "channels": adapted.parts.whole.signal().shape[1],
            "samples": len(parts),
            "parts": {name: int((parts == name).sum()) for name in ("train", "validation", "held out")},
        },
    }
    labels = {name: label_numbers(adapted, name) for name in adapted.plan.labels}
    sentences = [_decoding(adapted, name, each) for name, each in labels.items()]
    ratios = [_ratio(name, each) for name, each in labels.items() if each["error_ratio"] is not None]
    told = [
        *answer("adapted", "From what, and in how many steps?", text, **numbers),
        *answer("mode", "How were pairs drawn?", adapted.mode),
        *answer("decoding", "What can be read?", *sentences, labels=labels),
        *answer("error", "Is it as good as a fit of its own?", *ratios),
    ]
    leads = {"adapted": (count(start.steps, "step"), "Goodness of fit over training")}
    for name, each in list(labels.items())[:1]:
        leads["decoding"] = reading_lead(name, adapted.parts.whole.label(name).kind, each["adapted"])
        ratio = each["error_ratio"]
        leads["error"] = ("" if ratio is None else f"{ratio:.2f} times", leads["decoding"][1])
    return lead(told, leads)


def label_numbers(adapted: "Adaptation", label: str) -> dict[str, Any]:
    """Return scores of every reading by the measure that is spoken of, and errors beside that of a fit of its own."""
    kind = adapted.parts.whole.label(label).kind
    rows = adapted.decoding[adapted.decoding["label"] == label]
    means = mean_scores(rows[rows["measure"] == MAIN[kind]], SHOWN)
    errors = mean_scores(rows[rows["measure"] == ("accuracy" if kind == "discrete" else "median_error")], SHOWN)
    if kind == "discrete":
        errors = {name: None if value is None else 1 - value for name, value in errors.items()}
    own, mine = errors["own"], errors["adapted"]
    ratio = None if own is None or mine is None or not own > 0 else mine / own
    return {"measure": MAIN[kind], **means, "errors": errors, "error_ratio": ratio}


def _decoding(adapted: "Adaptation", label: str, numbers: dict[str, Any]) -> str:
    kind, where = adapted.parts.whole.label(label).kind, f"the last {adapted.plan.held:.0%}"
    return reading_sentence(label, kind, numbers, "adapted", BESIDE, where)


def _ratio(label: str, numbers: dict[str, Any]) -> str:
    return f"{label}: {numbers['error_ratio']:.2f} times the error of a fit of its own"


def sections(adapted: "Adaptation") -> list[Section]:
    """Return the cloud, the loss, the decoders, and all numbers."""
    figures = tuple(_cloud(adapted, label) for label in adapted.plan.labels or ("sample",))
    text = "In the axes of the model. Drag to turn it, or use the arrow keys; scroll to come nearer."
    made = [Section("Embedding", text, figures), _loss(adapted)]
    if len(adapted.decoding):
        table = summarise(adapted.decoding)
        text = "What can be read from the adapted embedding, from fits of its own, from the signal, and by chance."
        bars = tuple(_decoders(adapted, table, label) for label in adapted.plan.labels)
        listing = Listing("All scores", "Low and high are the range over seeds.", table)
        made.append(Section("Decoding", text, bars, (listing,)))
    listing = Listing("All numbers", "One row each.", adapted.table())
    return [*made, Section("Numbers", "Everything that was measured.", (), (listing,))]


def _cloud(adapted: "Adaptation", label: str) -> Figure:
    recording, points = adapted.parts.whole, adapted.fits[0].embedding
    rows = np.unique(np.linspace(0, len(points) - 1, POINTS).astype(int))
    known = recording.labels.get(label)
    values = np.arange(len(points)) if known is None else known.readable
    frame = cloud_points("adapted", points[rows, :3]).assign(**{label: values[rows], "part": adapted.parts.names[rows]})
    style = cloud_style(label, "continuous" if known is None else known.kind)
    return Figure(f"Embedding by {label}", f"Seed {adapted.fits[0].seed}.", frame, kind="cloud", **style)


def _loss(adapted: "Adaptation") -> Section:
    frames = [training_history(adapted.fits).assign(fit=ADAPTED)]
    frames += [training_history(adapted.own).assign(fit=OWN)] if adapted.own else []
    frame = pd.concat(frames, ignore_index=True)
    frame = frame[["step", "nats", "fit"]].assign(seed="seed " + frame["seed"].astype(str))
    style: dict[str, Any] = {"x": "step", "y": "nats", "color": ("fit",), "dash": "seed"}
    style |= {"labels": {"nats": "goodness of fit (nats, lower is better)"}}
    text = "Means of ten steps. A constant embedding has 0."
    figure = Figure("Goodness of fit over training", text, frame, kind="line", **style)
    return Section("Fit", "How much sooner the adapted encoder is there.", (figure,))


def _decoders(adapted: "Adaptation", table: pd.DataFrame, label: str) -> Figure:
    text = f"On the last {adapted.plan.held:.0%} of the recording. Low and high are the range over seeds."
    return decoders_figure(table, label, adapted.parts.whole.label(label).kind, text)
