"""The page of several sessions: the shared cloud, loss, consistency of sessions, decoding across them, methods."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera import __version__
from haptera.analyses.embedding.comparison import EMBEDDING, MAIN
from haptera.analyses.embedding.fits import training_history
from haptera.analyses.embedding.page import cloud_points, cloud_style, loss_figure
from haptera.report.figure import Figure
from haptera.report.section import Listing, Section

if TYPE_CHECKING:
    from haptera.analyses.sessions.analysis import JointEmbedding

POINTS = 1500
"""Samples of a session that are drawn at most."""


def sections(joint: "JointEmbedding") -> list[Section]:
    """Return every section for which something is known."""
    makers = (cloud_section, fit_section, consistency_section, decoding_section, methods_section)
    return [section for make in makers if (section := make(joint)) is not None]


def cloud_section(joint: "JointEmbedding") -> Section:
    """Show all sessions in one space, coloured by each label and by the session."""
    figures = tuple(_cloud(joint, label) for label in (*joint.plan.labels, None))
    text = "Drag to turn it, or use the arrow keys; scroll to come nearer. All sessions lie in the same axes."
    return Section("Embedding", text, figures)


def _cloud(joint: "JointEmbedding", label: str | None) -> Figure:
    """Return a cloud of all sessions; without a label, coloured by session."""
    frames = []
    for session, points in zip(joint.sessions, joint.fits[0].embeddings, strict=True):
        rows = np.unique(np.linspace(0, len(points) - 1, POINTS).astype(int))
        frame = cloud_points(session.name, points[rows, :3], "session").assign(part=session.parts.names[rows])
        frames.append(
            frame if label is None else frame.assign(**{label: session.parts.whole.label(label).readable[rows]})
        )
    frame = pd.concat(frames, ignore_index=True)
    text = f"Seed {joint.fits[0].seed}, at most {POINTS:,} samples of each session."
    text += f" The first three of {points.shape[1]} dimensions." * (points.shape[1] > 3)
    if label is None:
        style: dict[str, Any] = {"x": "dimension 1", "y": "dimension 2", "depth": "dimension 3", "color": ("session",)}
        return Figure("Embedding by session", text, frame, kind="cloud", **style)
    both = pd.concat([frame.assign(session="all sessions"), frame], ignore_index=True)
    style = cloud_style(label, joint.sessions[0].parts.whole.label(label).kind) | {"select": ("session",)}
    return Figure(f"Embedding by {label}", text, both, kind="cloud", **style)


def fit_section(joint: "JointEmbedding") -> Section:
    """Show the goodness of fit over training."""
    model = joint.fits[0].model
    batch = model.batch_size or max(len(each.parts.train) for each in joint.sessions)
    batch *= 1 if joint.plan.by == "time" else len(joint.sessions)  # by labels, all sessions are negatives
    history = training_history([*joint.fits, *joint.shuffled])
    figure = loss_figure(history, batch, by_time=joint.plan.by == "time")
    text = "With 4,096 negatives of each session, so that parts and fits can be compared."
    listing = Listing("Goodness of fit", text, joint.goodness_of_fit)
    return Section("Fit", "Whether there is anything to learn, and whether it holds.", (figure,), (listing,))


def consistency_section(joint: "JointEmbedding") -> Section | None:
    """Show how well the embedding of one session predicts that of another."""
    if joint.consistency.empty:
        return None
    names = [session.name for session in joint.sessions]
    mean = joint.consistency.groupby(["what", "source", "target"], sort=False)["value"].mean().reset_index()
    same = [
        pd.DataFrame({"what": what, "source": names, "target": names, "value": 1.0}) for what in mean["what"].unique()
    ]
    frame = pd.concat([mean, *same], ignore_index=True)
    frame = frame.replace({"what": {EMBEDDING: "joint"}}).rename(columns={"what": "fit"})
    order = {name: place for place, name in enumerate(names)}
    frame = frame.sort_values(["source", "target"], key=lambda column: column.map(order), kind="stable")
    frame = frame.sort_values("fit", key=lambda column: column != "joint", kind="stable")
    text = (
        "R² of the best affine map from the session of a row to that of a column, of means in bins of the labels on "
        "held-out parts; to itself, 1. Means over seeds."
    )
    style: dict[str, Any] = {"value": ("value",), "limits": (0.0, 1.0), "labels": {"value": "R²"}, "select": ("fit",)}
    figure = Figure("Consistency of sessions", text, frame, kind="heatmap", x="target", y="source", **style)
    return Section("Consistency", "Whether the sessions share one space.", (figure,))


def decoding_section(joint: "JointEmbedding") -> Section | None:
    """Show every decoder of every session."""
    if joint.decoding.empty:
        return None
    by = ["session", "what", "label", "decoder", "measure"]
    table = joint.decoding.groupby(by, sort=False)["value"].agg(["mean", "min", "max", "count"]).reset_index()
    table = table.rename(columns={"mean": "value", "min": "low", "max": "high", "count": "seeds"})
    figures = tuple(_decoders(joint, table, label) for label in joint.plan.labels)
    listing = Listing("All scores", "Low and high are the range over seeds.", table)
    text = "What can be read in each session: by its own decoders, by those of the other sessions, and by chance."
    return Section("Decoding", text, figures, (listing,))


def _decoders(joint: "JointEmbedding", table: pd.DataFrame, label: str) -> Figure:
    kind = joint.sessions[0].parts.whole.label(label).kind
    unit = {"angle": "median error (degrees, lower is better)", "continuous": "R²", "discrete": "accuracy"}[kind]
    rows = table[(table["label"] == label) & (table["measure"] == MAIN[kind])]
    names = rows["what"] + np.where(rows["what"].str.endswith("constant"), "", ", " + rows["decoder"])
    frame = rows[["session", "value", "low", "high", "seeds"]].assign(**{"decoded from": names})
    limits = (0.0, float(rows["value"].max())) if kind == "angle" else None
    style: dict[str, Any] = {"x": "session", "y": "decoded from", "value": ("value",), "low": "low", "high": "high"}
    style |= {"labels": {"value": unit}, "limits": limits}
    text = f"On the last {joint.plan.held:.0%} of each session. Means over seeds; low and high are their range."
    return Figure(f"Decoding of {label}", text, frame, kind="heatmap", **style)


def methods_section(joint: "JointEmbedding") -> Section:
    """Write a paragraph for a methods section, with every setting."""
    return Section("Methods", methods(joint), (), (Listing("All numbers", "One row each.", joint.table()),))


def methods(joint: "JointEmbedding") -> str:
    """Return what was done, in words that can stand in a paper."""
    plan, model = joint.plan, joint.fits[0].model
    recordings = ", ".join(
        f"{Path(one.parts.whole.source).name} ({one.parts.whole.signal().shape[1]} channels, "
        f"{len(one.parts.whole):,} samples)"
        for one in joint.sessions
    )
    what = "samples" if plan.by == "time" else "labels"
    controls = f", {plan.shuffles} joint fits with {what} of every session in a random order" * bool(plan.shuffles)
    controls += ", and a fit of each session alone" * bool(joint.alone)
    return (
        f"{recordings} were embedded together with haptera {__version__} (ContrastiveEmbedding with an encoder for "
        f"each session, {model.model_architecture}, {model.output_dimension} dimensions, {model.num_hidden_units} "
        f"hidden units, {model.distance} similarity, temperature {model.temperature:g}, Adam with a learning rate of "
        f"{model.learning_rate:g}, {model.n_iter_:,} steps of {model.batch_size} pairs of each session; {joint.mode}). "
        f"Encoders learnt from the first part of each recording; decoders (k nearest neighbours, k from 1, 4, 9, 16, "
        f"25, and ridge regression) were chosen on the next {plan.chosen_on:.0%} of the rest and scored on the last "
        f"{plan.held:.0%}. Decoders of other sessions saw no sample of the session that they read. There were "
        f"{len(joint.fits)} seeds{controls}. The method is that of Schneider, Lee and Mathis (2023), which is patented "
        "(US 12,499,131 B2)."
    )
