"""Turn: one batch on its way through the adapted and the unadapted model, and which answer is served.

The adapter answers first. The unadapted model answers too where it serves, where both are compared, and where the
adapter failed: an error of the adapter, or answers that are not finite, never reach the caller while the unadapted
model can answer. An error that both have is the batch's, and is raised as it is.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np
import torch
from torch import nn

from haptera.adapters.base import Adapter, all_finite
from haptera.errors import HapteraError, first_line
from haptera.live.record import StepRecord
from haptera.live.safety import Safety
from haptera.live.signs import entropy, probabilities
from haptera.live.watching import View


@dataclass
class Turn:
    """What became of a batch.

    Attributes:
        inputs: the batch.
        puzzle: what is odd about it; empty if it is understood.
        adapted: the adapter's answer; None where it was not asked, or failed.
        unadapted: the unadapted model's answer; None where it was not asked.
        report: the adapter's record.
        learnt: whether the adapter learnt from it.
        failure: what the adapter did wrong; empty if nothing.
    """

    inputs: torch.Tensor
    puzzle: str = ""
    adapted: torch.Tensor | None = None
    unadapted: torch.Tensor | None = None
    report: dict[str, float] = field(default_factory=dict)
    learnt: bool = False
    failure: str = ""

    @property
    def skipped(self) -> bool:
        """Whether the batch was predicted and not learnt from because something is odd about it."""
        return bool(self.puzzle or self.report.get("skipped"))

    @property
    def classes(self) -> tuple[np.ndarray | None, np.ndarray | None]:
        """`(images,)` of the adapted and of the unadapted model; None where one was not asked, or gave no logits."""
        return _classes(self.adapted), _classes(self.unadapted)


def take_turn(inputs: torch.Tensor, puzzle: str, adapter: Adapter | None, unadapted: Adapter, safety: Safety) -> Turn:
    """Ask the models that should answer a batch.

    Args:
        inputs: the batch.
        puzzle: what is odd about it; then it is not learnt from.
        adapter: or None.
        unadapted: the model as it is.
        safety: says who is asked.
    """
    turn = Turn(inputs, puzzle)
    if adapter is not None and safety.adapts:
        _ask(turn, adapter)
    due = turn.adapted is None or safety.compares
    if isinstance(turn.adapted, torch.Tensor) and not puzzle and not all_finite(turn.adapted):
        turn.failure, due = "its answers are not finite", True
    if due:
        turn.unadapted = unadapted(inputs)
    return turn


def serve(turn: Turn, unadapted: Adapter, serves: bool) -> torch.Tensor:
    """Return the adapter's answer where it serves, else the unadapted model's, of all images."""
    if serves and turn.adapted is not None:
        return turn.adapted
    if turn.unadapted is None:
        turn.unadapted = unadapted(turn.inputs)
    return turn.unadapted


def logits_of(outputs: object) -> np.ndarray | None:
    """Return `(images, classes)` in single precision; None for what is not such logits, or not finite."""
    if not isinstance(outputs, torch.Tensor) or outputs.ndim != 2 or outputs.shape[1] < 2:
        return None
    logits = outputs.detach().float().cpu().numpy()
    return logits if np.isfinite(logits).all() else None


def record_of(
    turn: Turn, view: View, logits: np.ndarray | None, step: int, clocks: tuple[float, float], **facts: Any
) -> StepRecord:
    """Return the record of a step.

    Args:
        turn: what became of the batch.
        view: what is known about the stream.
        logits: that were served; None where outputs are something else.
        step: its number.
        clocks: wall and monotonic.
        facts: what else the record says.
    """
    mean = None if logits is None else probabilities(logits).mean(0)
    return StepRecord(
        step=step,
        time=clocks[0],
        monotonic=clocks[1],
        images=len(turn.inputs),
        shift_size=view.size,
        where=view.where,
        nearest=view.nearest,
        accuracy=view.accuracy.value,
        low=view.accuracy.low,
        high=view.accuracy.high,
        entropy=nan if mean is None else entropy(mean),
        largest=nan if mean is None else float(mean.max()),
        kept=turn.report.get("kept", nan),
        change=turn.report.get("change", nan),
        skipped=int(turn.skipped),
        **facts,
    )


def build_adapter(
    adapter: Callable[..., Adapter] | Adapter | None, model: nn.Module, fingerprint: str
) -> Adapter | None:
    """Make the adapter around a model; refuse what does not make one.

    Args:
        adapter: a class, a partial of one, an adapter that was made before, or None.
        model: to adapt.
        fingerprint: of the model.
    """
    if adapter is None:
        return None
    made = adapter if isinstance(adapter, Adapter) else adapter(model) if callable(adapter) else adapter
    if not isinstance(made, Adapter):
        raise HapteraError(
            f"adapter is {adapter!r:.100}; an adapter class, a partial of one such as partial(RDumb, lr=1e-3), or None "
            "was expected"
        )
    if made._fingerprint != fingerprint:
        raise HapteraError("adapter is built around another model than the one that is guarded")
    return made


def _classes(outputs: object) -> np.ndarray | None:
    whole = isinstance(outputs, torch.Tensor) and outputs.ndim == 2
    return outputs.argmax(1).cpu().numpy() if whole else None  # type: ignore[attr-defined]


def _ask(turn: Turn, adapter: Adapter) -> None:
    """Have the adapter learn, if the batch is understood, and predict."""
    frozen = adapter.frozen
    try:
        adapter.frozen = frozen or bool(turn.puzzle)
        turn.adapted = adapter(turn.inputs)
        turn.report = dict(adapter.record)
    except Exception as error:  # whatever an adapter does wrong, the unadapted model is at hand
        turn.failure = f"it failed ({first_line(error)})"
    finally:
        adapter.frozen = frozen
    turn.learnt = not (frozen or turn.puzzle or turn.failure or turn.report.get("skipped"))
