"""Plots of embeddings and of fits, for a notebook; each is a `Display`, with its figure and the numbers in it.

    plot_embedding(points, heading, kind="degrees", engine="plotly")
    compare_models({"time": one, "position": other}, X, position).frame

`fit.plot(X, label)`, `fit.plot_loss()`, `fit.plot_temperature()` and `fit.plot_overview(X, label)` are the same for one
estimator. `haptera.analyses.embedding.plots` has the plots of an analysis, and of consistency.
Cost: at most `samples` points are drawn, evenly over each session.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.errors import HapteraError, unknown
from haptera.recordings.label import Label
from haptera.report.display import Display
from haptera.report.figure import Figure

if TYPE_CHECKING:
    from haptera.contrastive.estimator import ContrastiveEmbedding

Points = np.ndarray | Sequence[np.ndarray] | Mapping[str, np.ndarray]
SAMPLES = 3000
UNITS = {
    "nats": "goodness of fit (nats, lower is better)",
    "bits": "goodness of fit (bits, higher is better)",
    "loss": "loss",
}
TURNS = {round(2 * np.pi, 3): "angle", 360.0: "degrees"}


def plot_embedding(
    points: Points,
    label: Any = None,
    *,
    kind: str | None = None,
    name: str = "label",
    dimensions: Sequence[int] | None = None,
    samples: int = SAMPLES,
    engine: str = "matplotlib",
    ax: Any = None,
) -> Display:
    """Draw an embedding of any number of dimensions, coloured by a label.

    Args:
        points: `(samples, dimensions)`; of several sessions a list of them, or name -> points.
        label: one value for each sample, of several sessions a list or mapping; without one, colours are sessions or
            time.
        kind: of the label: `continuous`, `discrete`, `angle` (radians) or `degrees`; None goes by type, range and name.
        name: of the label.
        dimensions: which, from 0 on; the first three if left out. One is drawn over time, two flat, three in space,
            more as a flat panel for every two.
        samples: drawn at most.
        engine: `matplotlib`, or `plotly`, which is interactive.
        ax: of matplotlib, to draw into.
    """
    sessions = _sessions(points)
    target = _label(label, sessions, kind, name)
    size = min(each.shape[1] for each in sessions.values())
    chosen = list(range(min(size, 3))) if dimensions is None else [int(one) for one in dimensions]
    if not chosen or not all(0 <= one < size for one in chosen):
        raise HapteraError(f"dimensions are {chosen}; some of 0 to {size - 1} were expected")
    frame = _frame(sessions, target, name, chosen, samples)
    drawn, count = len(frame), sum(map(len, sessions.values()))
    text = f"{drawn:,} of {count:,} samples." if drawn < count else f"{count:,} samples."
    text += f" {len(chosen)} of {size} dimensions." * (len(chosen) < size)
    text += f" Of {name}, the first column." * (target is not None and target.values.ndim > 1)
    style = _style(target, name, several=len(sessions) > 1)
    title = f"Embedding by {name}" if target is not None else "Embedding"
    axes = [f"dimension {one + 1}" for one in chosen]
    if len(axes) == 1:
        charts = [Figure(title, text, frame, "scatter", "sample", axes[0], **style)]
    elif len(axes) <= 3:
        depth = axes[2] if len(axes) == 3 else None
        charts = [Figure(title, text, frame, "cloud", axes[0], axes[1], depth=depth, **style)]
    else:
        pairs = [(place, place + 1) for place in range(0, len(axes) - 1, 2)]
        pairs += [(len(axes) - 2, len(axes) - 1)] if len(axes) % 2 else []
        charts = [Figure(title, text, frame, "cloud", axes[one], axes[two], **style) for one, two in pairs]
    return Display(charts, engine, ax)


def plot_loss(models: Any, *, unit: str = "nats", engine: str = "matplotlib", ax: Any = None) -> Display:
    """Draw the goodness of fit, or the loss, of every step; held-out samples dashed where there are some.

    Args:
        models: an estimator, a list of them, or name -> estimator.
        unit: `nats` and `bits` below and above a constant embedding, or `loss`.
        engine: `matplotlib`, or `plotly`, which is interactive.
        ax: of matplotlib, to draw into.
    """
    return Display([loss_chart(named(models), unit)], engine, ax)


def plot_temperature(models: Any, *, engine: str = "matplotlib", ax: Any = None) -> Display:
    """Draw the temperature after every step; the arguments are those of `plot_loss`."""
    return Display([temperature_chart(named(models))], engine, ax)


def plot_overview(
    model: "ContrastiveEmbedding", X: Any, label: Any = None, *, engine: str = "matplotlib", **options: Any
) -> Display:
    """Draw the embedding, the goodness of fit and the temperature beside one another.

    Args:
        model: fitted.
        X: a signal, or a list of all sessions.
        label: as in `plot_embedding`.
        engine: `matplotlib`, or `plotly`, which is interactive.
        **options: of `plot_embedding`.
    """
    cloud = plot_embedding(model.transform(X), label, engine=engine, **own_kind(model, options)).charts
    return Display([*cloud, loss_chart(named(model)), temperature_chart(named(model))], engine)


def compare_models(models: Any, X: Any = None, *y: Any, engine: str = "matplotlib", **options: Any) -> Display:
    """Draw the goodness of fit of several estimators over training and, with data, on that data.

    Numbers of steps, and of negatives in a batch, may differ between models, so that their losses are not comparable.
    On data that is given, all are measured with the same number of negatives.

    Args:
        models: a list of them, or name -> estimator.
        X: data to compare them on, such as a part that was held out.
        *y: its labels.
        engine: `matplotlib`, or `plotly`, which is interactive.
        **options: of `ContrastiveEmbedding.goodness_of_fit`, such as `trials`.
    """
    every = named(models)
    charts = [loss_chart(every, "bits")]
    if X is not None:
        bits = [model.goodness_of_fit(X, *y, **{"unit": "bits"} | options) for model in every.values()]
        frame = pd.DataFrame({"model": list(every), "data": "this data", "bits": bits})
        text = "More than a constant embedding knows; higher is better."
        style: dict[str, Any] = {"x": "data", "y": "model", "value": ("bits",), "labels": {"bits": UNITS["bits"]}}
        charts.append(Figure("On the data", text, frame, "heatmap", **style))
    return Display(charts, engine)


def named(models: Any) -> "dict[str, ContrastiveEmbedding]":
    """Return estimators by their names, after checking that they are fitted."""
    if isinstance(models, Mapping):
        found = {str(name): model for name, model in models.items()}
    elif isinstance(models, list | tuple):
        found = {f"model {place}": model for place, model in enumerate(models, start=1)}
    else:
        found = {"": models}
    if not found:
        raise HapteraError("no model was given; a fitted ContrastiveEmbedding, or several, were expected")
    for name, model in found.items():
        if not hasattr(model, "model_"):
            raise HapteraError(f"{name or 'the model'} is not a fitted ContrastiveEmbedding; call fit first")
    return found


def loss_chart(models: "Mapping[str, ContrastiveEmbedding]", unit: str = "nats") -> Figure:
    """Return the loss of every step of every model."""
    if unit not in UNITS:
        raise unknown("unit", unit, UNITS)
    frames, factor = [], -1 / np.log(2) if unit == "bits" else 1.0
    for name, model in models.items():
        values = model.loss_history_ if unit == "loss" else model.goodness_of_fit_history_ * factor
        frames.append(_steps(name, range(1, len(values) + 1), values, unit).assign(samples="training"))
        if unit != "loss" and (looks := model.validation_history_):
            held = np.array(list(looks.values())) * factor
            frames.append(_steps(name, list(looks), held, unit).assign(samples="held out"))
    frame = pd.concat(frames, ignore_index=True)
    dash = {"dash": "samples"} if frame["samples"].nunique() > 1 else {}
    text = "Of the pairs of each step; a constant embedding has 0." if unit != "loss" else "Of the pairs of each step."
    return _line_chart("Goodness of fit" if unit != "loss" else "Loss", text, frame, unit, UNITS[unit], **dash)


def temperature_chart(models: "Mapping[str, ContrastiveEmbedding]") -> Figure:
    """Return the temperature after every step of every model."""
    frames = [_steps(name, range(1, one.n_iter_ + 1), one.temperature_history_, "τ") for name, one in models.items()]
    learnt = ", ".join(name or "it" for name, one in models.items() if one.temperature_mode == "auto")
    text = f"Learnt by {learnt}." if learnt else "Constant; temperature_mode='auto' learns it."
    return _line_chart("Temperature", text, pd.concat(frames, ignore_index=True), "τ", "temperature")


def own_kind(model: "ContrastiveEmbedding", options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the kind of label that the period of an estimator says, where nobody says another."""
    period = model.period if isinstance(model.period, int | float) else None
    return {"kind": None if period is None else TURNS.get(round(period, 3))} | dict(options)


def _line_chart(title: str, text: str, frame: pd.DataFrame, y: str, what: str, **style: Any) -> Figure:
    style |= {"color": ("model",)} if frame["model"].any() else {}
    return Figure(title, text, frame, "line", "step", y, labels={y: what}, **style)


def _steps(name: str, steps: Sequence[int], values: np.ndarray, unit: str) -> pd.DataFrame:
    return pd.DataFrame({"model": name, "step": steps, unit: values})


def _sessions(points: Points) -> dict[str, np.ndarray]:
    """Return points by the name of their session."""
    if isinstance(points, Mapping):
        found = {str(name): np.asarray(each) for name, each in points.items()}
    elif isinstance(points, list | tuple):
        found = {f"session {place}": np.asarray(each) for place, each in enumerate(points)}
    else:
        found = {"": np.asarray(points)}
    for name, each in found.items():
        if each.ndim != 2 or not len(each):
            raise HapteraError(f"{name or 'points'} have shape {each.shape}; (samples, dimensions) was expected")
    if not found:
        raise HapteraError("points are an empty list; one array for each session was expected")
    return found


def _label(label: Any, sessions: Mapping[str, np.ndarray], kind: str | None, name: str) -> Label | None:
    """Return the label of the samples of all sessions, one after the other."""
    if label is None or isinstance(label, Label):
        values = None if label is None else [label.values]
    else:
        several = len(sessions) > 1 or "" not in sessions
        given = list(label.values()) if isinstance(label, Mapping) else list(label) if several else [label]
        values = [np.asarray(each) for each in given]
        if several and [len(each) for each in values] != [len(each) for each in sessions.values()]:
            lengths = {name: len(each) for name, each in sessions.items()}
            raise HapteraError(f"label has {[np.size(each) for each in values][:10]} values; {lengths} were expected")
    if values is None:
        return None
    count, found = sum(map(len, sessions.values())), sum(map(len, values))
    if count != found:
        raise HapteraError(f"label has {found:,} values, the embedding {count:,} samples; one for each was expected")
    return label if isinstance(label, Label) else Label.of(np.concatenate(values), kind, name)


def _frame(
    sessions: Mapping[str, np.ndarray], label: Label | None, name: str, chosen: Sequence[int], samples: int
) -> pd.DataFrame:
    """Return a row for each sample that is drawn."""
    frames, start, most = [], 0, max(samples // len(sessions), 1)
    readable = None if label is None else label.readable
    for session, points in sessions.items():
        rows = np.unique(np.linspace(0, len(points) - 1, min(most, len(points))).astype(int))
        columns: dict[str, Any] = {"session": session, "sample": rows}
        columns |= {f"dimension {one + 1}": points[rows, one] for one in chosen}
        columns |= {} if readable is None else {name: readable[start + rows]}
        frames.append(pd.DataFrame(columns))
        start += len(points)
    return pd.concat(frames, ignore_index=True)


def _style(label: Label | None, name: str, several: bool) -> dict[str, Any]:
    """Return how points are coloured and marked."""
    if label is None:
        return {"color": ("session",)} if several else {"value": ("sample",)}
    style: dict[str, Any] = {"dash": "session"} if several else {}
    if label.kind == "discrete":
        return style | {"color": (name,)}
    style |= {"value": (name,)}
    angle = {"cyclic": True, "limits": (0.0, 360.0), "labels": {name: f"{name} (degrees)"}}
    return style | (angle if label.kind == "angle" else {})
