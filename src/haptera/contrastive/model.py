"""Model: encoders, losses and their optimiser; what a fitted estimator holds, without scikit-learn's conventions."""

import logging
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from haptera.contrastive import training
from haptera.contrastive.adapting import Anchors, begin_stem, take_over
from haptera.contrastive.architectures import UNIFIED, new_encoder, unify
from haptera.contrastive.constants import constant_channels, hold
from haptera.contrastive.inputs import Inputs
from haptera.contrastive.jacobian import JacobianTerm
from haptera.contrastive.loss import InfoNCE, similarity
from haptera.contrastive.modes import Context, Mode
from haptera.contrastive.neighbours import LabelSpace
from haptera.contrastive.parts import hybrid_dimensions
from haptera.contrastive.signals import Embedder, Signal, Timeline, embed
from haptera.errors import HapteraError, unknown
from haptera.models.source import choose_device
from haptera.recordings.windows import Offset

log = logging.getLogger("haptera")

TEMPERATURE_MODES = ("constant", "auto")
SIDES = ("reference", "paired")
LOOK_EVERY = 50
"""Steps between two looks at held-out samples."""
NEGATIVES = 4096
"""Negatives by which a goodness of fit is measured, enough for its bias to vanish."""


class Model:
    """Encoders for every session, and the losses that they learn by.

    Args:
        settings: the parameters of the estimator.
        channels: of each session.
        paired_channels: of each session's positives and negatives, if they are of another signal.
        seed: of everything that is drawn.

    Attributes:
        encoders: one for each session.
        paired_encoders: those of positives and negatives, if they are separate.
        losses: of behaviour or time; with `hybrid` that of time after it.
        offset: the window.
        history: what happened in each step.
        constants: side -> for each session the channels that never changed in training, and their value.
        anchors: for each session samples by which a new one begins, or None where there are no labels.
    """

    def __init__(
        self, settings: Mapping[str, Any], channels: list[int], paired_channels: list[int] | None, seed: int
    ) -> None:
        self.settings, self.channels, self.seed = dict(settings), channels, seed
        self.paired_channels = paired_channels or channels
        self._random = np.random.default_rng(seed)
        self.history = training.History()
        self.constants: dict[str, list[dict[int, float]]] = {side: [{} for _ in channels] for side in SIDES}
        self.anchors: list[Anchors | None] = [None] * len(channels)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.encoders = self._new_encoders(channels)
            self.paired_encoders: list[nn.Module] | None = None
            if settings["separate_encoders"]:
                self.paired_encoders = self._new_encoders(self.paired_channels)
            self.losses = [self._new_loss(chosen) for chosen in self._slices()]
        self.offset: Offset = self.encoders[0].offset  # type: ignore[assignment]
        self.modules.eval()
        self._optimiser: torch.optim.Optimizer | None = None

    def take_over(self, old: "Model", session: int, inputs: Inputs, mode: Mode, first_only: bool) -> None:
        """Begin from a session of another model; only new layers, which read the channels, learn if `first_only`."""
        if len(self.encoders) > 1:
            raise HapteraError(f"X has {len(self.encoders)} sessions; adapt takes one new session at a time")
        pairs = [(self.encoders[0], old.encoders[session])]
        if self.paired_encoders is not None and old.paired_encoders is not None:
            pairs.append((self.paired_encoders[0], old.paired_encoders[session]))
        for new, before in pairs:
            first = take_over(new, before)
            for name, parameter in new.named_parameters():
                parameter.requires_grad_(not first_only or name in first)
        anchors, continuous = old.anchors[session], inputs.context.continuous
        if anchors is not None:
            space = None if continuous is None else LabelSpace(continuous.shape[1], mode.period)
            begin_stem(self.encoders[0], inputs.signals[0], inputs.context, anchors, space, self.seed)
        for loss, known in zip(self.losses, old.losses, strict=True):
            loss.load_state_dict(known.state_dict())
            loss.requires_grad_(not first_only)

    def train(self, inputs: Inputs, mode: Mode, steps: int, watch: training.Watch | None = None) -> None:
        """Go on for so many steps, or until held-out samples no longer improve; what `watch` ends is kept."""
        held = self.settings["validation_fraction"]
        timeline = Timeline(inputs.lengths, self.offset, inputs.trials, (0.0, 1.0 - held))
        if timeline.left_out:
            count = timeline.left_out
            verb = "trials or stretches are" if count > 1 else "trial or stretch is"
            log.warning("%d %s shorter than the window of %d, left out", count, verb, len(self.offset))
        log.info("embedding by %s", mode.describe(inputs.context))
        if mode.conditional == "time" and timeline.sessions > 1:
            log.warning("by time alone nothing ties the sessions together; align their embeddings, or give a label")
        batch_size = self.settings["batch_size"]
        if batch_size is None and timeline.sessions > 1:
            batch_size = max(len(valid) for valid in timeline.valid)  # sessions weigh equally
        objectives = self._objectives(mode, inputs.context, timeline)
        rows = (batch_size or len(timeline.valid[0])) * 3 * len(objectives)
        self._note_constants(inputs)
        modules, done = self.modules.train(), len(self.history.loss)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed + done)  # for encoders that draw, such as those with dropout
            course = training.Course(
                steps,
                batch_size,
                samples=sum(inputs.lengths),
                held_out=self._held_out(inputs, mode) if held else None,
                jacobian=self._jacobian(steps),
                progress=self.settings["verbose"],
                watch=watch,
            )
            sides = self._sides(inputs, timeline, rows)
            best = None
            try:
                best = training.train(sides, objectives, self._adam(), modules, self._random, course, self.history)
            finally:  # an interrupt or a callback may end it, and then it goes on as it is
                modules.eval()
                parts = [inputs.context.part(start, stop) for start, stop in pairwise(timeline.starts.tolist())]
                each = zip(self.encoders, inputs.signals, parts, strict=True)
                self.anchors = [Anchors.of(*one, self.seed) for one in each]
        if best is not None and best < len(self.history.loss):
            log.info("back to step %d, where held-out samples fitted best", best)

    def goodness_of_fit(
        self, inputs: Inputs, mode: Mode, negatives: int, sessions: Sequence[int] | None = None, batches: int = 1
    ) -> float:
        """Return the mean fit of batches of this data, in nats; `sessions` says which sessions of the model it is."""
        self.check_channels(inputs, sessions)
        inputs = self._with_constants(inputs, sessions)
        timeline = Timeline(inputs.lengths, self.offset, inputs.trials)
        objectives = self._objectives(mode, inputs.context, timeline)
        random = np.random.default_rng(self.seed)
        sides = self._sides(inputs, timeline, 3 * negatives * len(objectives), sessions)
        drawn = ([one.sampler.draw(negatives, random) for one in objectives] for _ in range(batches))
        return float(np.mean([training.goodness_of_fit(sides, objectives, pairs) for pairs in drawn]))

    def pairs(self, inputs: Inputs, mode: Mode, count: int) -> list[tuple[list[int] | None, np.ndarray, np.ndarray]]:
        """Return for every objective its dimensions, and places of references and of their positives."""
        timeline = Timeline(inputs.lengths, self.offset, inputs.trials)
        random = np.random.default_rng(self.seed)
        samplers = mode.samplers(inputs.context, timeline)
        drawn = [sampler.draw(count, random) for sampler in samplers]
        slices = zip(self._slices(), drawn, strict=True)
        return [(chosen, one.reference.ravel(), one.positive.ravel()) for chosen, one in slices]

    def embed(
        self, session: int, signal: np.ndarray, trials: Any = None, *, side: str = "reference", pad: bool = True
    ) -> np.ndarray:
        """The embedding of a signal by the encoder of a session, piece by piece where there are trials."""
        if side not in ("reference", "paired") or (side == "paired" and self.paired_encoders is None):
            raise HapteraError(f"side is {side!r}; 'reference', or 'paired' with separate_encoders=True, was expected")
        encoders, channels = self.encoders, self.channels
        if side == "paired" and self.paired_encoders is not None:
            encoders, channels = self.paired_encoders, self.paired_channels
        if session >= len(encoders) or signal.shape[1] != channels[session]:
            raise HapteraError(f"X of session {session} has {signal.shape[1]} channels; the sessions have {channels}")
        signal = hold(signal, self.constants[side][session])
        edges = [0, len(signal)]
        if trials is not None:
            changes = np.asarray(trials)
            if changes.shape != (len(signal),):
                raise HapteraError(f"trials have shape {changes.shape}; ({len(signal)},) was expected")
            edges = [0, *(np.flatnonzero(changes[1:] != changes[:-1]) + 1), len(signal)]
        device = choose_device(self.settings["device"])
        pieces = [signal[start:stop] for start, stop in pairwise(edges)]
        if not pad and min(map(len, pieces)) < len(self.offset):
            raise HapteraError(f"X has {min(map(len, pieces))} samples in a row; a window needs {len(self.offset)}")
        return np.concatenate([embed(encoders[session], piece, self.offset, device, pad) for piece in pieces])

    def session(self, session_id: int | None) -> int:
        """A session that exists; None is the only one."""
        count = len(self.encoders)
        if session_id is None and count > 1:
            raise HapteraError(f"the model has {count} sessions; say which one X is by session_id")
        if not 0 <= (session_id or 0) < count:
            raise HapteraError(f"session_id is {session_id}; 0 to {count - 1} was expected")
        return session_id or 0

    def check_channels(self, inputs: Inputs, sessions: Sequence[int] | None = None) -> None:
        """Signals have the channels that the model knows."""
        expected = self.channels if sessions is None else [self.channels[one] for one in sessions]
        if inputs.channels != expected:
            raise HapteraError(f"X has {inputs.channels} channels in its sessions; the model knows {expected}")

    @property
    def modules(self) -> nn.ModuleList:
        """All that has weights."""
        return nn.ModuleList([*self.encoders, *(self.paired_encoders or []), *self.losses])

    def _new_encoders(self, channels: Sequence[int]) -> list[nn.Module]:
        names = ("model_architecture", "num_hidden_units", "output_dimension", "device")
        name, hidden, dimensions, device = (self.settings[each] for each in names)
        found = [new_encoder(name, count, hidden, dimensions).to(choose_device(device)) for count in channels]
        if isinstance(name, str) and name.endswith(UNIFIED):
            unify(found, name)
        return found

    def _note_constants(self, inputs: Inputs) -> None:
        """Learn which channels never change; one that changes in later data teaches like any other from then on."""
        for side, signals in zip(SIDES, (inputs.signals, inputs.paired or inputs.signals), strict=True):
            own = [constant_channels(signal) for signal in signals]
            if self.history.loss:
                pairs = zip(self.constants[side], own, strict=True)
                own = [dict(before.items() & now.items()) for before, now in pairs]
            self.constants[side] = own

    def _with_constants(self, inputs: Inputs, sessions: Sequence[int] | None) -> Inputs:
        """Return the data with channels that never changed in training at the value that they had there."""
        chosen = range(len(self.encoders)) if sessions is None else sessions

        def held(side: str, signals: list[np.ndarray]) -> list[np.ndarray]:
            return [hold(one, self.constants[side][at]) for one, at in zip(signals, chosen, strict=True)]

        paired = None if inputs.paired is None else held("paired", inputs.paired)
        return replace(inputs, signals=held("reference", inputs.signals), paired=paired)

    def _new_loss(self, chosen: list[int] | None) -> InfoNCE:
        """Return the loss of one objective, over some dimensions of the embedding or all of them."""
        names = ("distance", "temperature", "temperature_mode", "min_temperature", "positive_in_denominator")
        distance, temperature, mode, least, inside = (self.settings[name] for name in names)
        if mode not in TEMPERATURE_MODES:
            raise unknown("temperature_mode", mode, TEMPERATURE_MODES)
        if least is not None and mode == "constant":
            raise HapteraError(f"min_temperature is {least}, which a constant temperature does not use")
        size = self.settings["output_dimension"] if chosen is None else len(chosen)
        phi = similarity(distance, size) if isinstance(distance, str) else deepcopy(distance)
        loss = InfoNCE(phi, temperature, learnable=mode == "auto", min_temperature=least, positive_inside=inside)
        return loss.to(choose_device(self.settings["device"]))

    def _slices(self) -> list[list[int] | None]:
        hybrid = self.settings["hybrid"]
        return [None] if hybrid is False else hybrid_dimensions(hybrid, self.settings["output_dimension"])

    def _adam(self) -> torch.optim.Optimizer:
        """The optimiser as the last call left it, with the present learning rate."""
        if self._optimiser is None:
            learning = [parameter for parameter in self.modules.parameters() if parameter.requires_grad]
            fused = choose_device(self.settings["device"]).type in ("cpu", "cuda")
            self._optimiser = torch.optim.Adam(learning, fused=fused)
        for group in self._optimiser.param_groups:
            group["lr"] = self.settings["learning_rate"]
        return self._optimiser

    def _objectives(self, mode: Mode, context: Context, timeline: Timeline) -> list[training.Objective]:
        parts = zip(mode.samplers(context, timeline), self.losses, self._slices(), strict=True)
        return [training.Objective(sampler, loss, chosen) for sampler, loss, chosen in parts]

    def _jacobian(self, steps: int) -> JacobianTerm | None:
        weight = self.settings["jacobian_weight"]
        ramp, exact = self.settings["jacobian_ramp"], self.settings["jacobian_exact"]
        return JacobianTerm.of(weight, ramp, exact, steps) if weight else None

    def _held_out(self, inputs: Inputs, mode: Mode) -> training.HeldOut:
        timeline = Timeline(
            inputs.lengths, self.offset, inputs.trials, (1.0 - self.settings["validation_fraction"], 1.0)
        )
        count = min(NEGATIVES, 2 * max(len(valid) for valid in timeline.valid))
        random = np.random.default_rng(self.seed)
        pairs = [one.sampler.draw(count, random) for one in self._objectives(mode, inputs.context, timeline)]
        sides = self._sides(inputs, timeline, 3 * count)
        return training.HeldOut(sides, pairs, LOOK_EVERY, self.settings["patience"])

    def _sides(
        self, inputs: Inputs, timeline: Timeline, rows: int, sessions: Sequence[int] | None = None
    ) -> training.Sides:
        device = choose_device(self.settings["device"])
        chosen = range(len(self.encoders)) if sessions is None else sessions
        encoders = [self.encoders[one] for one in chosen]
        signals = [Signal(values, self.offset, device) for values in inputs.signals]
        if self.paired_encoders is None:
            both = Embedder(encoders, signals, timeline, rows)
            return training.Sides(both, both)
        others = signals if inputs.paired is None else [Signal(one, self.offset, device) for one in inputs.paired]
        paired = Embedder([self.paired_encoders[one] for one in chosen], others, timeline, rows * 2 / 3)
        return training.Sides(Embedder(encoders, signals, timeline, rows / 3), paired)
