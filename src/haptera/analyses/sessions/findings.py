"""What an embedding of several recordings tells, in sentences with their numbers; errors of angles are in degrees."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.embedding.comparison import CONSTANT, EMBEDDING, MAIN, SHUFFLED_TRAINING, WINDOWS, value_of
from haptera.analyses.embedding.findings import DEFINITIONS as OF_ONE
from haptera.analyses.embedding.findings import UNITS, describe_label, fit_text, part_means, score_text
from haptera.analyses.sessions.readings import mean_scores, reading_lead, reading_sentence
from haptera.analyses.sessions.scores import ALONE, OTHERS, OTHERS_CHANCE, OTHERS_CONSTANT, OTHERS_SHUFFLED
from haptera.contrastive.architectures import UNIFIED
from haptera.report.section import Finding, answer, lead

if TYPE_CHECKING:
    from haptera.analyses.sessions.analysis import JointEmbedding

DEFINITIONS = {
    "goodness of fit": OF_ONE["goodness of fit"],
    "held out": "the last part of every recording; no encoder and no decoder has seen it",
    "consistency of sessions": "R² of the best affine map from the embedding of one session to that of another, of "
    "means in bins of the labels, on held-out parts",
    "other sessions": "a decoder that has seen the other sessions alone, and reads the held-out part of this one",
    "other sessions, shuffled": "the same, of encoders that learnt labels in a random order",
    "other sessions, shuffled decoder": "the same, with labels of the decoder in a random order: chance",
    "alone": "an encoder, with the same settings, that learnt from this session alone",
}
QUESTIONS = {
    "mode": "How were pairs drawn?",
    "fit": "Is there structure?",
    "consistency": "Do the sessions share one space?",
    "decoding": "What can be read, and by decoders of the other sessions?",
    "alone": "Is a fit of one session better?",
}
SHOWN = {
    "embedding": (EMBEDDING, "knn"),
    "other_sessions": (OTHERS, "knn"),
    "other_sessions_shuffled": (OTHERS_SHUFFLED, "knn"),
    "chance": (OTHERS_CHANCE, "knn"),
    "alone": (ALONE, "knn"),
    "ridge_on_windows": (WINDOWS, "ridge"),
    "constant": (CONSTANT, CONSTANT),
    "other_sessions_constant": (OTHERS_CONSTANT, CONSTANT),
}
BESIDE = {
    "other_sessions": "by decoders of the other sessions",
    "other_sessions_shuffled": "these with shuffled training",
    "alone": "from fits of one session",
    "ridge_on_windows": "ridge on the same windows",
    "constant": "constant",
}


def headline(joint: "JointEmbedding") -> str:
    """Return how large each session is, and what the labels are."""
    wholes = {session.name: session.parts.whole for session in joint.sessions}
    sizes = [
        f"{name} {one.signal().shape[1]} {one.channel_noun()}, {len(one):,} samples" for name, one in wholes.items()
    ]
    first = joint.sessions[0].parts.whole
    labels = [f"{name} is {describe_label(first.label(name))}" for name in joint.plan.labels]
    return "; ".join([f"{len(sizes)} sessions: {'; '.join(sizes)}", *labels])


def findings(joint: "JointEmbedding") -> list[Finding]:
    """Return how pairs were drawn, whether there is structure in one space, and what can be read from it."""
    labels = {name: label_numbers(joint, name) for name in joint.plan.labels}
    alike = consistency_numbers(joint)
    answers: dict[str, tuple[list[str], dict[str, Any]]] = {
        "mode": ([joint.mode], _session_numbers(joint)),
        "fit": ([_fit(joint)], {"fit": part_means(joint.goodness_of_fit)}),
        "consistency": ([_consistency(alike)] if alike else [], {"consistency": alike}),
        "decoding": ([_decoding(joint, name, numbers) for name, numbers in labels.items()], {"labels": labels}),
        "alone": ([text for name, numbers in labels.items() if (text := _better(joint, name, numbers))], {}),
    }
    every = [(word, sentences, numbers) for word, (sentences, numbers) in answers.items() if sentences]
    told = [each for word, sentences, numbers in every for each in answer(word, QUESTIONS[word], *sentences, **numbers)]
    bits = part_means(joint.goodness_of_fit)["held_out"]["bits"]
    leads = {"fit": (f"{bits:.2f} bits" if np.isfinite(bits) else "", "Goodness of fit over training")}
    if alike:
        leads["consistency"] = (f"R² {alike['mean']:.2f}", "Consistency of sessions")
    for name, numbers in list(labels.items())[:1]:
        kind = joint.sessions[0].parts.whole.label(name).kind
        leads["decoding"] = reading_lead(name, kind, numbers["embedding"])
        leads["alone"] = ("", leads["decoding"][1])
    return lead(told, leads)


def label_numbers(joint: "JointEmbedding", label: str) -> dict[str, Any]:
    """Return the measure that is spoken of, its mean over sessions and seeds for each reading, and by session."""
    measure = MAIN[joint.sessions[0].parts.whole.label(label).kind]
    rows = joint.decoding[(joint.decoding["label"] == label) & (joint.decoding["measure"] == measure)]
    means = mean_scores(rows, SHOWN)
    own = rows[(rows["decoder"] == "knn") & rows["what"].isin([EMBEDDING, OTHERS, ALONE])]
    by_session: pd.Series = own.groupby(["session", "what"], sort=False)["value"].mean()
    sessions = {session.name: by_session[session.name].to_dict() for session in joint.sessions}
    return {"measure": measure, **means, "sessions": sessions}


def consistency_numbers(joint: "JointEmbedding") -> dict[str, Any] | None:
    """Return mean, least and largest consistency over ordered pairs of sessions, and the means of the controls."""
    pairs = joint.consistency
    if pairs.empty:
        return None
    true = pairs[pairs["what"] == EMBEDDING]["value"]
    others = {"shuffled": SHUFFLED_TRAINING, "alone": ALONE}
    means = {name: value_of(pairs, what=what) for name, what in others.items()}
    bins = int(pairs["n"].iloc[0])
    return {"mean": true.mean(), "min": true.min(), "max": true.max(), "pairs": len(true), "bins": bins} | means


def _consistency(numbers: dict[str, Any]) -> str:
    text = f"{numbers['mean']:.2f} over ordered pairs of sessions and seeds ({numbers['min']:.2f} to "
    text += f"{numbers['max']:.2f}), in {numbers['bins']} bins of the labels"
    names = {"alone": "each session fitted alone", "shuffled": "shuffled labels"}
    known = [f"{text} {numbers[name]:.2f}" for name, text in names.items() if numbers[name] is not None]
    return "; ".join([text, *known])


def _decoding(joint: "JointEmbedding", label: str, numbers: dict[str, Any]) -> str:
    kind, where = joint.sessions[0].parts.whole.label(label).kind, f"the last {joint.plan.held:.0%} of each"
    return reading_sentence(label, kind, numbers, "embedding", BESIDE, where)


def _better(joint: "JointEmbedding", label: str, numbers: dict[str, Any]) -> str:
    """Return what is to be said where a fit of one session reads better; empty if it does not."""
    kind = joint.sessions[0].parts.whole.label(label).kind
    sign = -1 if kind == "angle" else 1
    if numbers["alone"] is None or sign * numbers["alone"] <= sign * numbers["embedding"]:
        return ""
    return (
        f"{label} is read better from fits of one session, {score_text(numbers['alone'], kind)}{UNITS[kind]}, than "
        f"from the joint one, {score_text(numbers['embedding'], kind)}"
    )


def _session_numbers(joint: "JointEmbedding") -> dict[str, Any]:
    sessions = {}
    for session in joint.sessions:
        whole, parts = session.parts.whole, session.parts.names
        sessions[session.name] = {
            "source": whole.source,
            "signal": next(iter(whole.signals)),
            "channels": whole.signal().shape[1],
            "samples": len(whole),
            "step": whole.step,
            "parts": {name: int((parts == name).sum()) for name in ("train", "validation", "held out")},
        }
    return {
        "recordings": sessions,
        "mode": joint.mode,
        "time_offsets": np.atleast_1d(joint.fits[0].model.time_offsets).tolist(),
        "seeds": [each.seed for each in joint.fits],
        "shuffles": len(joint.shuffled),
    }


def _fit(joint: "JointEmbedding") -> str:
    unified = str(joint.settings["model_architecture"]).endswith(UNIFIED)
    encoders = "one network for the units of all sessions" if unified else "an encoder for each session"
    return f"{fit_text(joint.goodness_of_fit, by_time=joint.plan.by == 'time')}, {encoders}"
