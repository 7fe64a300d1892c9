"""Guard: a deployed model, its adapter, and somebody who watches both; called as the model is.

    guard = Guard(model, partial(RDumb, lr=1e-3), reference="profile.safetensors", log="live")
    logits = guard(images, ids=ids)
    guard.label(ids, targets)          # minutes or days later, for as many as there are

Each call is one step: the adapter learns and predicts, or the unadapted model does where the adapter is not safe
(`haptera.live.safety`), or the batch is predicted and not learnt from (`haptera.live.understanding`). Every step is a
row and every decision an event of the log (`haptera.live.log`). The caller's model is never changed.
Calls from several threads are answered one after the other. Without an adapter the model is watched, no more.
Cost: `benchmarks/guard.py` measures it; 1.05 of the adapter at a batch of 64 is the aim.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import asdict, replace
from math import nan
from typing import Annotated, Any, Self

import numpy as np
import torch
from torch import nn

from haptera.adapters.base import Adapter, NoAdaptation
from haptera.adapters.passes import check_inputs
from haptera.adapters.sharing import model_fingerprint
from haptera.batch import Batch
from haptera.errors import HapteraError, check_keys
from haptera.live.anchors import Anchors
from haptera.live.answers import Answers, ids_of
from haptera.live.journal import Journal
from haptera.live.judge import Judge
from haptera.live.profile import Profile
from haptera.live.record import ADAPTED, UNADAPTED, Row, StepRecord, memory_in_use, window_of
from haptera.live.safety import Decision, Safety
from haptera.live.settings import GuardSettings
from haptera.live.snapshots import WAY_OUT, check_snapshot
from haptera.live.thumbnails import PICTURED
from haptera.live.turn import build_adapter, logits_of, record_of, serve, take_turn
from haptera.live.understanding import Understanding
from haptera.live.watching import Watching
from haptera.modules import unwrap

RECENT = 100  # steps of the window that `status` tells about
MEMORY = 10
"""Steps between looks at the memory."""


class Guard:
    """A model that is watched, adapted where that is safe, and recorded.

    Args:
        model: any `nn.Module` from images to logits, its input normalisation included; not changed.
        adapter: what makes an adapter around it, such as `partial(RDumb, lr=1e-3)`; None to watch only.
        reference: a `Profile` of the model, or the file of one; without it the first images serve.
        anchors: reference images, or a pair of images and targets, to compare both models on.
        settings: see `GuardSettings`; each of them can be given by name as well.

    Attributes:
        adapter: the adapter, or None.
        unadapted: the model as it is.
        safety: which of them answers.
        steps: batches so far, those before a restart included.
        listeners: called with every row of the log, in the thread of the call and after its answer is ready; they must
            be quick. One that raises is said once and counted.
    """

    def __init__(
        self,
        model: nn.Module,
        adapter: Callable[..., Adapter] | Adapter | None = None,
        reference: Profile | str | os.PathLike[str] | None = None,
        *,
        anchors: Any = None,
        settings: GuardSettings | None = None,
        **options: Annotated[Any, GuardSettings],
    ) -> None:
        settings = GuardSettings() if settings is None else settings
        check_keys("setting of a guard", options, asdict(settings))
        self.settings = replace(settings, **options)
        model = unwrap(model)
        self.unadapted = NoAdaptation(model)
        self.fingerprint = model_fingerprint(model)
        self.profile = Profile.read(reference) if isinstance(reference, str | os.PathLike) else reference
        if self.profile is not None:
            self.profile.check(model)
        self.adapter = build_adapter(adapter, model, self.fingerprint)
        models = {UNADAPTED: self.unadapted} | ({} if self.adapter is None else {ADAPTED: self.adapter})
        self._watching = Watching(models, self.profile, self.settings)
        self.safety = Safety(self.settings)
        witnesses = None if anchors is None or self.adapter is None else Anchors(anchors, self.unadapted)
        self._judge = Judge(self.adapter, self.safety, witnesses, self.settings)
        self._understanding = Understanding(self.settings.range)
        self._answers = Answers(self.settings.remember)
        self._lock, self._closed = threading.RLock(), False
        self.steps = self.images = 0
        self._tally = {"compared": 0, "changed": 0, "labels": 0}
        self._recent: deque[StepRecord] = deque(maxlen=RECENT)
        self._memory = memory_in_use()
        self.listeners: list[Callable[[Row], None]] = []
        self._watching.forget()
        self._journal = Journal(self.settings)
        try:
            self._start(model)
        except BaseException:
            self._watching.close()
            self._journal.close()
            raise

    def __call__(self, batch: torch.Tensor | Batch, ids: Any = None) -> torch.Tensor:
        """Answer a batch.

        Args:
            batch: `(batch, ...)`, as the model takes it; or a `Batch`, whose ids count.
            ids: one whole number or text for each image, if labels may arrive for them.
        """
        began = time.monotonic()
        inputs = batch.inputs if isinstance(batch, Batch) else batch
        ids = batch.ids if isinstance(batch, Batch) and ids is None else ids
        check_inputs(inputs, (), {})
        names = None if ids is None else ids_of(ids, len(inputs))
        with self._lock:
            if self._closed:
                raise HapteraError("this guard is closed; make another one")
            if not len(inputs):
                return self.unadapted(inputs)
            outputs = self._step(inputs, names, began)
            rows = self._journal.take_rows()
        self._journal.tell(rows, self.listeners)
        return outputs

    def label(self, ids: Any, targets: Any) -> int:
        """Tell the classes of images that were answered before; return how many of them are still remembered.

        Args:
            ids: as they were given with the images.
            targets: `(images,)`, their classes.
        """
        targets = np.asarray(targets)
        names = ids_of(ids, len(targets))
        with self._lock:
            found = self._answers.label(names, targets)
            known = len(found.targets)
            if known:
                self._watching.accuracy.label(found.logits[found.recent], found.targets[found.recent])
                self.safety.labels.update(found.differences)
                self._tally["labels"] += known
            sentence = f"labels of {known} images arrived, and of {found.unknown} that are not remembered"
            decision = Decision("label", sentence, found.numbers)
            for each in [decision, *(verdicts := self._judge.judge_labels())]:
                self._journal.event(self.steps, each)
            self._notice_turns(verdicts)
            rows = self._journal.take_rows()
        self._journal.tell(rows, self.listeners)
        return known

    def adopt(self, state: dict[str, Any]) -> None:
        """Take the state of another replica's adapter, or a merged one (`haptera.live.snapshots`)."""
        if self.adapter is None:
            raise HapteraError("this guard has no adapter to take a state for")
        with self._lock:
            self.adapter.load_state_dict(state)
            self._journal.event(self.steps, Decision("restored", "the adapter took the state of another replica"))
            rows = self._journal.take_rows()
        self._journal.tell(rows, self.listeners)

    def status(self) -> dict[str, Any]:
        """Return what is known now, as plain values: what serves, why, the recent window, and what cannot be told."""
        with self._lock:
            estimate, alarm = self._watching.accuracy.estimate(), self._watching.alarms.active
            return {
                "steps": self.steps,
                "images": self.images,
                "served": ADAPTED if self.adapter is not None and self.safety.serves else UNADAPTED,
                "phase": self.safety.phase if self.adapter is not None else "watching",
                "shadow": self.settings.shadow,
                "falls": self.safety.falls,
                "resets": self._judge.resets,
                "skipped": self._judge.skipped,
                "alarm": None if alarm is None else alarm.sentence,
                "accuracy": asdict(estimate),
                "window": window_of(self._recent),
                **self._tally,
                "labels_difference": self.safety.labels.difference,
                "log": self._journal.status(),
                "remarks": self._remarks(),
            }

    def close(self) -> None:
        """Take a last snapshot, write what waits, and remove the hooks; the model and the adapter stay usable."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._journal.flush()
                self._snapshot()
                self._journal.event(self.steps, Decision("stop", f"the guard was closed after {self.steps:,} steps"))
                self._journal.close()
                self._watching.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _step(self, inputs: torch.Tensor, ids: list[Hashable] | None, began: float) -> torch.Tensor:
        """Answer a batch and keep the record of it."""
        turn = take_turn(inputs, self._understanding.puzzle(inputs), self.adapter, self.unadapted, self.safety)
        self.steps += 1
        self.images += len(inputs)
        decisions = self._judge.judge(turn, self.steps)
        outputs = serve(turn, self.unadapted, self.safety.serves)
        served, logits = ADAPTED if outputs is turn.adapted else UNADAPTED, logits_of(outputs)
        now = self._journal.now(self.steps)
        first = UNADAPTED if turn.adapted is None else ADAPTED
        view = self._watching.look(first, logits, len(inputs), self.steps, now[0])
        if view.alarm is not None:
            self._answers.since = self.images - view.alarm.images
            names = ("signal", "since", "since_time", "evidence", "level")
            numbers = {name: getattr(view.alarm, name) for name in names}
            decisions.append(Decision(view.alarm.kind, view.alarm.sentence, numbers))
        for decision in [*decisions, *self._judge.notes(turn)]:
            self._journal.event(self.steps, decision)
        self._journal.keep_images(self.steps, inputs, any(decision.event in PICTURED for decision in decisions))
        self._notice_turns(decisions)
        adapted, unadapted = turn.classes
        if ids is not None and logits is not None:
            self._answers.add(ids, logits, adapted, unadapted, self.images - len(inputs))
        if self.steps % MEMORY == 1:
            self._memory = memory_in_use()
        facts: dict[str, Any] = {"served": served, "resets": self._judge.resets, "memory": self._memory}
        facts |= {"fallback": int(self.adapter is not None and self.safety.phase != ADAPTED)}
        facts |= {"changed": self._count_changes(adapted, unadapted), "latency": time.monotonic() - began}
        record = record_of(turn, view, logits, self.steps, now, events=self._journal.take_names(), **facts)
        self._recent.append(record)
        self._journal.step(record)
        if self.settings.snapshot_every and self.steps % self.settings.snapshot_every == 0:
            self._snapshot()
        return outputs

    def _notice_turns(self, decisions: Iterable[Decision]) -> None:
        """Forget labels where another model answers from now on than the one that they are about."""
        if any(decision.event in ("fallback", "return") for decision in decisions):
            self._watching.accuracy.forget_labels()

    def _count_changes(self, adapted: np.ndarray | None, unadapted: np.ndarray | None) -> float:
        """Return the share of images that both models answered, and differently."""
        if adapted is None or unadapted is None:
            return nan
        changed = int((adapted != unadapted).sum())
        self._tally["compared"] += len(adapted)
        self._tally["changed"] += changed
        return changed / len(adapted)

    def _start(self, model: nn.Module) -> None:
        """Go on from the newest snapshot, if there is one, and say what the log is about."""
        newest = self._journal.newest()
        if newest is not None:
            self._restore(*newest)
        kind = "" if self.adapter is None else type(self.adapter).__name__
        named = self.settings.name or type(model).__name__
        own = self.profile
        profile = None if own is None else {"name": own.name, "images": own.images, "accuracy": own.accuracy}
        about = {"model": named, "fingerprint": self.fingerprint, "adapter": kind, "profile": profile}
        self._journal.describe(about | {"remarks": self._remarks()})
        beside = " in the shadow" if self.settings.shadow else ""
        what = f"{named} is watched" + (f", {kind} adapts it{beside}" if kind else "")
        self._journal.event(self.steps, Decision("start", what, {"steps": self.steps}))

    def _snapshot(self) -> None:
        state = {name: part.state() for name, part in self._parts().items()} | {"tally": dict(self._tally)}
        state |= {"fingerprint": self.fingerprint, "steps": self.steps, "images": self.images}
        self._journal.snapshot(self.steps, None if self.adapter is None else self.adapter.state_dict(), state)

    def _restore(self, name: str, adapter: dict[str, Any] | None, state: Mapping[str, Any]) -> None:
        where = f"snapshot {name} in {self.settings.log}"
        check_snapshot(where, state, self.fingerprint, adapter is not None, self.adapter is not None)
        try:
            if self.adapter is not None and adapter is not None:
                self.adapter.load_state_dict(adapter)
            for part, own in self._parts().items():
                own.restore(state[part])
            self._tally, self.steps, self.images = dict(state["tally"]), state["steps"], state["images"]
        except (KeyError, TypeError, ValueError) as error:
            raise HapteraError(f"{where}: {error}; {WAY_OUT}") from error
        told = Decision("restored", f"goes on after step {self.steps:,}", {"step": self.steps})
        self._journal.event(self.steps, told)

    def _parts(self) -> dict[str, Any]:
        """What has a state, by name."""
        parts = (self._judge, self._watching, self._understanding, self._answers)
        return dict(zip(("judge", "watching", "understanding", "answers"), parts, strict=True))

    def _remarks(self) -> list[str]:
        """Return what cannot be told."""
        return list(self._watching.remarks)
