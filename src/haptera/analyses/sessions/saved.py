"""What a saved model says about how a new recording is read, prepared and paired with it.

Its settings, its preparation and its way to draw pairs hold where nobody says otherwise; labels of other kinds than
those that it learnt from are refused. Cost: reading a header.
"""

from dataclasses import replace
from pathlib import Path

from haptera.analyses.embedding.fits import inputs_of
from haptera.analyses.embedding.plan import TIME, Parts, Plan
from haptera.analyses.sessions.agreement import doubt_of_ranges, with_codes
from haptera.contrastive.estimator import ContrastiveEmbedding
from haptera.contrastive.model_file import read_preparations
from haptera.errors import HapteraError, unknown
from haptera.recordings.prepared import NAMED, Preparation
from haptera.recordings.recording import Recording


def find_session(path: Path, model: ContrastiveEmbedding, session: str | None) -> tuple[int, str]:
    """Return the place and the name of a session of a model, by its name or number; the first where none is said."""
    try:
        names = [one.name for one in read_preparations(path)]
    except HapteraError:  # saved from Python, where nobody names sessions
        names = [f"session {place}" for place in range(model.n_sessions_)]
    if session is None:
        return 0, names[0]
    if session in names:
        return names.index(session), session
    if session.isdigit() and int(session) < len(names):
        return int(session), names[int(session)]
    raise unknown(f"session of {path}", session, names)


def preparation_of(path: Path, place: int) -> Preparation | None:
    """Return how a session of a model was prepared; None of a model that Python saved without it."""
    try:
        return read_preparations(path)[place]
    except HapteraError:
        return None


def plan_of(model: ContrastiveEmbedding, prepared: Preparation | None, plan: Plan) -> Plan:
    """Return the plan with what the model was made with where nobody says otherwise: pairs, parts, preparation."""
    mode, hybrid = model.mode_, model.get_params(deep=False)["hybrid"]
    if plan.mode is None and not plan.parts:
        if mode.conditional == "time":
            plan = replace(plan, mode="time")
        elif mode.parts:
            count = sum(part != TIME for part in mode.parts)
            if len(plan.labels) != count:
                raise HapteraError(f"the model learnt from {count} labels by parts, and {len(plan.labels)} are named")
            names = {str(number): name for number, name in enumerate(plan.labels)} | {TIME: TIME}
            plan = replace(plan, parts=tuple((names[part], tuple(some)) for part, some in hybrid.items()))
    if prepared is None or plan.smoothing or plan.causal or plan.zscore:
        return plan
    return replace(plan, smoothing=prepared.smoothing, causal=prepared.causal, zscore=prepared.scaling is not None)


def check_labels(prepared: Preparation | None, parts: Parts, plan: Plan) -> list[str]:
    """Refuse labels of other kinds than those that the model learnt from; return a note where names differ."""
    if prepared is None or not prepared.labels:
        return []
    now = [(name, parts.whole.label(name).kind) for name in plan.training_labels]
    said, found = (", ".join(f"{name} ({kind})" for name, kind in some) for some in (prepared.labels, now))
    if [kind for _, kind in now] != [kind for _, kind in prepared.labels]:
        raise HapteraError(
            f"the model learnt from {said}, and {found or 'no label'} was named; the same labels were expected"
        )
    if [name for name, _ in now] != [name for name, _ in prepared.labels]:
        return [f"the model learnt from {said}, here it is {found}; values that are equal are taken to mean the same"]
    return []


def with_codes_of(prepared: Preparation | None, recording: Recording, plan: Plan) -> Recording:
    """Return a recording whose classes have the codes that they had when the model learnt; notes say what is new."""
    if prepared is None:
        return recording
    labels, notes = dict(recording.labels), list(recording.notes)
    for name, classes in zip(plan.training_labels, prepared.classes, strict=False):
        label = recording.label(name)
        if label.kind != "discrete" or not classes:
            continue
        labels[name], new = with_codes(label, classes)
        if new:
            notes.append(
                f"{name} has {len(new)} of {len(label.classes)} classes that the model never saw: "
                + ", ".join(new[:NAMED])
            )
    return replace(recording, labels=labels, notes=tuple(notes))


def doubt_of_units(model: ContrastiveEmbedding, place: int, parts: Parts, plan: Plan) -> list[str]:
    """Return a note where numbers lie far from those that the model learnt from."""
    anchors = model.model_.anchors[place]
    _, labels, _ = inputs_of(parts.train, plan.training_labels)
    numbers = [label for label in labels if label.dtype.kind == "f"]
    if (
        anchors is None
        or anchors.continuous is None
        or not numbers
        or anchors.continuous.shape[1] != numbers[0].shape[1]
    ):
        return []
    names = [name for name in plan.training_labels if parts.whole.label(name).kind != "discrete"]
    return doubt_of_ranges(", ".join(names), numbers[0], anchors.continuous, "what the model learnt from")


def check_mode(model: ContrastiveEmbedding, parts: Parts, plan: Plan) -> None:
    """Refuse labels of other kinds than those that the model learnt from."""
    _, labels, _ = inputs_of(parts.train, plan.training_labels, apart=bool(plan.parts))
    discrete = any(label.dtype.kind != "f" for label in labels)
    numbers = any(label.dtype.kind == "f" for label in labels)
    conditional = model.mode_.conditional
    wanted = {"time": (False, False), "discrete": (True, False)}.get(
        conditional, (conditional.startswith("mixed"), True)
    )
    if (discrete, numbers) != wanted:
        raise HapteraError(
            f"the model drew pairs by {conditional!r}, which labels {', '.join(plan.labels) or '(none)'} do not fit; "
            "name labels of the same kinds as those it learnt from"
        )
