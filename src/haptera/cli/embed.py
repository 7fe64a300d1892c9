"""`embed`: what a recorded population encodes, with the controls built in."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haptera.errors import HapteraError

if TYPE_CHECKING:
    from haptera.analyses.embedding.analysis import Embedding
    from haptera.analyses.embedding.plan import Plan
    from haptera.analyses.sessions.adaptation import Adaptation
    from haptera.analyses.sessions.analysis import JointEmbedding
    from haptera.recordings.reading import Source

log = logging.getLogger("haptera")


@dataclass(frozen=True)
class SourceOptions:
    """What is read of a recording.

    Attributes:
        signal: its name in the file; spikes for units of NWB; a pattern for columns.
        label: a label, or NAME:KIND (continuous, discrete, angle, degrees).
        bin: width of a bin, such as 100ms or 0.1s, for NWB files; 100ms for spikes.
        trials: the trial of each sample; for NWB files, the table of trials.
        epoch: only the epochs with this tag, for NWB files.
        units: only units whose COLUMN=VALUE, such as location=adn.
        behaviour: a second file, such as tracking, whose labels are joined by time; one for each recording, in order.
        behaviour_rate: its samples per second, if it has no times.
        behaviour_start: the time of its first sample in the recording's clock, if it has no times.
    """

    signal: str | None = None
    label: Sequence[str] = ()
    bin: str | None = None
    trials: str | None = None
    epoch: str | None = None
    units: Sequence[str] = ()
    behaviour: Sequence[Path] = ()
    behaviour_rate: float | None = None
    behaviour_start: float = 0.0

    def sources(self, paths: Sequence[Path]) -> "list[Source]":
        """Return how to read each file."""
        width, facts = None if self.bin is None else _seconds(self.bin), dict(map(_fact, self.units))
        if self.behaviour and len(self.behaviour) != len(paths):
            raise HapteraError(f"--behaviour is given {len(self.behaviour)} times for {len(paths)} recordings")
        from haptera.recordings.reading import Source

        read = (self.signal, list(self.label), self.trials, width, self.epoch, facts)
        seconds: list[Path | None] = [*self.behaviour] or [None] * len(paths)
        rate = (self.behaviour_rate, self.behaviour_start)
        return [Source(path, *read, second, *rate) for path, second in zip(paths, seconds, strict=True)]


@dataclass(frozen=True)
class EncoderOptions:
    """How an encoder is trained.

    Attributes:
        dimensions: of the embedding.
        steps: of training, for each fit.
        architecture: of the encoder; with -mse it learns Euclidean distances, with -unified recordings share it.
        hidden: units in each layer of the encoder.
        time_offset: samples between the two of a pair; 10, or 3 by time alone, if left out.
        delta: draw positives by a Gaussian of this width around the label.
        temperature: by which similarities are divided.
        learning_rate: of Adam.
        batch_size: pairs in a step.
        distance: cosine, euclidean, dot or learnable; cosine, or euclidean for -mse, if left out.
        jacobian_weight: of the term that keeps the encoder's Jacobian small (8.3), such as 0.1.
        device: cpu, cuda, ...; a GPU if there is one.
    """

    dimensions: int = 3
    steps: int = 300
    architecture: str = "offset10-model"
    hidden: int = 32
    time_offset: Sequence[int] = ()
    delta: float | None = None
    temperature: float = 1.0
    learning_rate: float = 1e-3
    batch_size: int = 512
    distance: str | None = None
    jacobian_weight: float = 0.0
    device: str | None = None

    def settings(self) -> dict[str, Any]:
        """Return the settings of the estimator."""
        names = {"dimensions": "output_dimension", "steps": "max_iterations", "architecture": "model_architecture"}
        names |= {"hidden": "num_hidden_units"}
        unset = {"time_offset", "delta"} | {name for name in ("distance", "device") if getattr(self, name) is None}
        own = {name: value for name, value in vars(self).items() if name not in unset}
        settings: dict[str, Any] = {names.get(name, name): value for name, value in own.items()}
        if self.time_offset:
            settings["time_offsets"] = list(self.time_offset) if len(self.time_offset) > 1 else self.time_offset[0]
        return settings if self.delta is None else settings | {"conditional": "delta", "delta": self.delta}


@dataclass(frozen=True)
class PlanOptions:
    """What is fitted, and what it is compared with.

    Attributes:
        mode: one of label, time (labels are only decoded) or hybrid; label if one is named.
        smooth: standard deviation of a Gaussian, in samples; 0 for none.
        causal: smoothing looks back only.
        zscore: scale channels by the training part.
        held: share of the samples, at the end, to score on.
        part: a label or time with the dimensions it shapes, such as position:0-2 or time:3-5 (8.3).
        folds: decode again over so many folds of whole trials (3 or more), or trial for each by itself; needs --trials.
        seeds: fits that differ in their seed alone.
        shuffles: fits of shuffled labels.
        baseline: one of pca, factors, vae, tsne or umap; all that are installed if left out.
        baseline_samples: evenly spaced samples that tsne and umap embed at most; 0 is all of them.
        jobs: processes for controls and baselines; one for each core where that pays, if left out.
        topology: count rings and hollows; needs ripser.
        controls: with --no-controls: one fit, no shuffles, baselines or topology.
        seed: the first one.
    """

    mode: str | None = None
    smooth: float = 0.0
    causal: bool = False
    zscore: bool = False
    held: float = 0.3
    part: Sequence[str] = ()
    folds: str = "0"
    seeds: int = 3
    shuffles: int = 3
    baseline: Sequence[str] = ()
    baseline_samples: int = 3000
    jobs: int | None = None
    topology: bool = True
    controls: bool = True
    seed: int = 0

    def check_several(self, what: str = "several recordings") -> None:
        """Refuse options that are for one recording alone."""
        own = (("--folds", self.folds != "0"), ("--baseline", bool(self.baseline)), ("--jobs", self.jobs is not None))
        for name, given in own:
            if given:
                raise HapteraError(f"{name} is for one recording, and not for {what}; leave it out")

    def plan(self, labels: Sequence[str], settings: dict[str, Any]) -> "Plan":
        """Return what to fit and to compare."""
        from haptera.analyses.embedding.plan import Plan
        from haptera.recordings.arrays import split_kind

        parts = tuple(map(_part, self.part))
        names = [split_kind(name)[0] for name in labels]
        given = vars(self) | {"smoothing": self.smooth, "settings": settings, "parts": parts, "labels": tuple(names)}
        given |= {"folds": int(self.folds) if self.folds.lstrip("-").isdigit() else self.folds}
        if parts:
            most = max(dimension for _, some in parts for dimension in some) + 1
            settings["output_dimension"] = max(most, settings["output_dimension"])
        if self.baseline:
            given["baselines"] = tuple(self.baseline)
        if not self.controls:
            given |= {"seeds": 1, "shuffles": 0, "baselines": (), "topology": False}
        others = ("smooth", "baseline", "controls", "part", "jobs")
        return Plan(**{name: given[name] for name in given if name not in others})


def embed(
    recordings: list[Path],
    read: SourceOptions,
    encoder: EncoderOptions,
    options: PlanOptions,
    adapt: Path | None = None,
    session: str | None = None,
    out: Path | None = None,
    progress: bool | None = None,
) -> "Embedding | JointEmbedding | Adaptation":
    """Embed recordings, and say what is in the embedding beside what chance, shuffles and others find.

    Args:
        recordings: files to embed; several share one embedding, with an encoder each.
        read: what is read of them.
        encoder: how encoders are trained.
        options: what is fitted and compared.
        adapt: a model.safetensors of an embedding that is there, to fit the recording to, in a fifth of its steps.
        session: of that model, the one to begin from; the first if left out.
        out: a folder for fits and results.
        progress: show a bar.
    """
    named = {label.rpartition(":")[0] or label for label in read.label}
    more = [name for name, _ in map(_part, options.part) if name != "time" and name not in named]
    read = replace(read, label=[*read.label, *more])  # the label of a part need not be named twice
    sources = read.sources(recordings)
    plan = options.plan(read.label, encoder.settings())
    if adapt is not None:
        return _adapt(adapt, sources, plan, encoder, options, {"session": session, "out": out, "progress": progress})
    if session is not None:
        raise HapteraError("--session is for --adapt, whose model may have several")
    if len(sources) == 1:
        from haptera.analyses.embedding.analysis import embed as embed_recording

        each = None if out is None else partial(_save_so_far, out)
        return embed_recording(sources[0], plan, out=out, jobs=options.jobs, each=each, progress=progress)
    options.check_several()
    from haptera.analyses.sessions.analysis import embed_sessions

    return embed_sessions(sources, plan, alone=options.controls, out=out, progress=progress)


def _save_so_far(out: Path, embedding: "Embedding") -> None:
    """Write a page to look at while the rest is made."""
    log.info("%s: a first look; %s", embedding.save(out)["report"], embedding.notes[0])


def _adapt(
    model: Path,
    sources: "Sequence[Source]",
    plan: "Plan",
    encoder: EncoderOptions,
    options: PlanOptions,
    more: dict[str, Any],
) -> "Adaptation":
    """Adapt a saved model, whose settings hold, to one recording."""
    if len(sources) > 1:
        raise HapteraError(f"--adapt takes one new recording at a time; {len(sources)} were given")
    usual = EncoderOptions()
    if own := [name for name in vars(usual) if name != "steps" and getattr(encoder, name) != getattr(usual, name)]:
        flag = f"--{own[0].replace('_', '-')}"
        raise HapteraError(f"{flag} is set, and with --adapt the settings of {model} hold; leave it out")
    options.check_several("--adapt")
    from haptera.analyses.sessions.adaptation import adapt_session

    steps = None if encoder.steps == usual.steps else encoder.steps
    return adapt_session(model, sources[0], plan, steps=steps, controls=options.controls, **more)


def _seconds(text: str) -> float:
    """Return a time with its unit in seconds.

    >>> _seconds("100ms"), _seconds("0.1s"), _seconds("0.1")
    (0.1, 0.1, 0.1)
    """
    value, scale = (text[:-2], 1000.0) if text.endswith("ms") else (text.removesuffix("s"), 1.0)
    try:
        return float(value) / scale
    except ValueError as error:
        raise HapteraError(f"--bin is {text!r}; a width such as 100ms or 0.1s was expected") from error


def _part(text: str) -> tuple[str, tuple[int, ...]]:
    """Return the label of a part, or time, and its dimensions.

    >>> _part("position:0-2"), _part("time:3,5")
    (('position', (0, 1, 2)), ('time', (3, 5)))
    """
    name, colon, places = text.rpartition(":")
    found: list[int] = []
    for piece in places.split(","):
        first, _, last = piece.partition("-")
        if not (colon and name and first.isdigit() and (last or first).isdigit()) or int(last or first) > 4096:
            raise HapteraError(f"--part is {text!r}; LABEL:FIRST-LAST was expected, such as position:0-2 or time:3-5")
        found += range(int(first), int(last or first) + 1)
    if not found:
        raise HapteraError(f"--part is {text!r}; the first dimension is after the last one")
    return name, tuple(found)


def _fact(text: str) -> tuple[str, str]:
    column, sign, value = text.partition("=")
    if not (column and sign and value):
        raise HapteraError(f"--units is {text!r}; COLUMN=VALUE was expected, such as location=adn")
    return column, value
