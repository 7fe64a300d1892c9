"""Learner: an adapter that learns by gradient steps on a loss without labels. A method writes `loss`, and little else.

Source: thesis chapter 3 (what adapts, and how predictions and updates follow each other), chapter 4 (settings).
A prediction is the one made before the update of the same batch; `predictions="after"` makes a second pass.
Cost: a forward pass, and the part of the backward pass that the chosen parameters need; no second copy of the others.
"""

import logging
from typing import Any, Self, TypedDict

import torch
from torch import nn

from haptera.adapters.base import Adapter, NoAdaptation
from haptera.adapters.batchnorm import BatchNorm
from haptera.adapters.masters import Masters
from haptera.adapters.norm import (
    SIZED,
    SMALL,
    begin_small_step,
    blended,
    blending,
    check_prior,
    second_pass_refused,
    unblended,
)
from haptera.adapters.notes import once
from haptera.adapters.passes import check_logits, run
from haptera.adapters.select import Select, selected
from haptera.checks import check_number, check_whole_number
from haptera.errors import NotApplicable, unknown

log = logging.getLogger("haptera")

OPTIMISERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16}
WHEN = ("before", "after")
IDLE_STEPS = 50
"""Steps in a row of which nothing was kept, after which a learner says so."""
NO_GRADIENT = (
    "no gradient reaches the parameters that adapt: the model runs without gradients, as quantised layers do; adapt "
    "the model before it is quantised, or choose an adapter that does not learn"
)


class Learning(TypedDict, total=False):
    """The settings that every learner has, for the annotation of `**settings`."""

    parameters: str | Select
    prior: float | str
    optimiser: str
    momentum: float
    predictions: str
    accumulate: int
    precision: str
    window: int
    frozen: bool


class Learner(Adapter):
    """An adapter that learns.

    Args:
        model: any `nn.Module` from images to logits.
        lr: the learning rate; 0 makes it its parent.
        parameters: which of them adapt: `norm`, `last`, `all`, a pattern of names, or `!` and one of these.
        prior: N of the BatchNorm statistics, if there are any: 0 takes those of the batch, infinity those of training;
            `sized` is 0 but for batches of fewer than 16 images, which move the statistics along the stream.
        optimiser: `sgd` or `adam`.
        momentum: of SGD.
        predictions: made `before` or `after` the update of the same batch.
        accumulate: batches per update.
        precision: `float32` or `bfloat16` (mixed).
        window: learn from the last inputs together, up to this many; for batches of one or a few.
        frozen: predict without learning, with the statistics found last.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float,
        parameters: str | Select = "norm",
        prior: float | str = SIZED,
        optimiser: str = "sgd",
        momentum: float = 0.9,
        predictions: str = "before",
        accumulate: int = 1,
        precision: str = "float32",
        window: int = 0,
        frozen: bool = False,
    ) -> None:
        for name, value, known in (
            ("optimiser", optimiser, OPTIMISERS),
            ("predictions", predictions, WHEN),
            ("precision", precision, PRECISIONS),
        ):
            if value not in known:
                raise unknown(name, str(value), list(known))
        check_number("lr", lr, least=0)
        check_whole_number("accumulate", accumulate, what="a number of batches")
        self._select, self._sized = selected(parameters), prior == SIZED
        self._prior, self._small, self._largest = 0.0 if self._sized else check_prior(prior), False, 0
        self._after, self._accumulate, self._dtype = predictions == "after", accumulate, PRECISIONS[precision]
        super().__init__(model, window=window, frozen=frozen)
        if any("quantized" in type(layer).__module__ for layer in self.model.modules()):
            raise NotApplicable(NO_GRADIENT)
        self.norms = blended(self.model, self._prior)
        self.memory["pending"] = 0
        self._idle, self._said_idle = 0, False
        self.adapted = self._select(self.model)
        for parameter in self.adapted.values():
            parameter.requires_grad_(True)
        self._source = [parameter.detach().clone() for parameter in self.adapted.values()]
        self.masters = Masters(self.adapted.values())
        settings = {"momentum": momentum} if optimiser == "sgd" else {}
        self.optimiser = OPTIMISERS[optimiser](self.masters.values, lr=lr, **settings)
        once().info(self.choice())

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor | None:
        """What to minimise, a scalar; None where this batch has nothing to learn from."""
        raise NotImplementedError

    def changes(self, model: nn.Module) -> list[torch.Tensor]:
        """The chosen parameters."""
        return list(self._select(model).values())

    def choice(self) -> str:
        """Which parameters adapt, in words."""
        chosen = sum(parameter.numel() for parameter in self.adapted.values())
        whole = sum(parameter.numel() for parameter in self.model.parameters())
        names = list(self.adapted)
        some = ", ".join(names[:2]) + (f", ..., {names[-1]}" if len(names) > 2 else "")
        return f"{type(self).__name__} adapts {chosen:,} of {whole:,} parameters, in {len(names)} tensors: {some}"

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict, learn, and predict again where that was asked for."""
        self.begin_step(inputs)
        with torch.enable_grad():
            logits = self.logits(inputs)
            loss = self.loss(logits, inputs)
        outputs = logits.detach()
        if loss is not None:
            self.learn(loss)
        self._count_idle(loss is None)
        if self._after:
            with torch.no_grad():
                outputs = self.logits(inputs)
        self._note(outputs, loss)
        return outputs

    def begin_step(self, inputs: torch.Tensor) -> None:
        """Choose the statistics for a batch of this size."""
        self._small, self._largest = self._sized and len(inputs) < SMALL, max(self._largest, len(inputs))
        if self._small:
            begin_small_step(self, inputs)

    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict with the statistics found last."""
        with torch.no_grad():
            return self.logits(inputs, "last")

    def logits(self, inputs: torch.Tensor, use: str = "batch", model: nn.Module | None = None) -> torch.Tensor:
        """A pass through the model, or another in its place, with these statistics; never less than float32."""
        model = self.model if model is None else model
        use = "moving" if use == "batch" and self._small else use
        with blending(model, use), torch.autocast(inputs.device.type, self._dtype, enabled=self._dtype is not None):
            logits = check_logits(run(model, inputs), type(self).__name__)
        if torch.is_grad_enabled() and model is self.model and not logits.requires_grad:
            raise NotApplicable(NO_GRADIENT)
        return logits

    def learn(self, loss: torch.Tensor) -> None:
        """One gradient step, or a part of one; none where loss or gradient are not finite."""
        self.backward(loss)
        self.memory["pending"] += 1
        if self.memory["pending"] < self._accumulate:
            return
        self.memory["pending"] = 0
        self.masters.take_gradients()
        gradients = [value.grad for value in self.masters.values if value.grad is not None]
        if bool(torch.isfinite(nn.utils.get_total_norm(gradients))):
            self.optimiser.step()
            self.masters.give()
        else:
            self.record["skipped"] = 1.0
            log.warning("a gradient is not finite; this batch was not learnt from")
        self.optimiser.zero_grad()

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradient of this batch to that which waits for an update."""
        with second_pass_refused(self.model):
            (loss / self._accumulate).backward()
        if all(parameter.grad is None for parameter in self.adapted.values()):
            raise NotApplicable(NO_GRADIENT)

    def parent(self, model: nn.Module) -> Adapter:
        """BatchNorm with the same prior, or the unadapted model where there is no such layer."""
        if self.parent_label == "none":
            return NoAdaptation(model)
        return BatchNorm(model, SIZED if self._sized else self._prior, window=self.window)

    def predictor(self) -> Adapter:
        """The parent around the weights that were learnt: with BatchNorm, statistics are those of the batch at hand."""
        return self.parent(self.release(source_statistics=True))

    @property
    def parent_label(self) -> str:
        """Return a label such as `batchnorm:prior=0`; where all batches were small, `batchnorm:prior=sized`."""
        if not self.norms or self._prior == float("inf"):
            return "none"
        return f"batchnorm:prior={SIZED if self._sized and 0 < self._largest < SMALL else f'{self._prior:g}'}"

    def release(self, source_statistics: bool = False) -> nn.Module:
        """A plain model with the adapted weights, and the BatchNorm statistics found last or those of the source."""
        released = super().release()
        unblended(released, source_statistics)
        return released

    @torch.no_grad()
    def change(self) -> float:
        """How far the parameters are from where they began, in norm."""
        moved = torch._foreach_sub(self.masters.values, self._source)
        return float(nn.utils.get_total_norm(moved))

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """What torch calls for `.to(device)` and the like: the source goes with the parameters."""
        super()._apply(fn, recurse)
        self._source = [fn(tensor) for tensor in self._source]
        self.masters, before = self.masters.moved(), self.optimiser.state_dict()
        self.optimiser = type(self.optimiser)(self.masters.values)
        self.optimiser.load_state_dict(before)  # moments take the type of what they belong to
        return self

    def get_extra_state(self) -> dict[str, Any]:
        """Return the state with the optimiser's, and the gradient that waits for an update."""
        state = super().get_extra_state() | {"optimiser": self.optimiser.state_dict()["state"]}
        if self.masters.separate():
            state["masters"] = self.masters.state()
        if self.memory["pending"]:
            state["gradients"] = [parameter.grad for parameter in self.adapted.values()]
        return state

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take the learner's part of a `state_dict`."""
        super().set_extra_state(state)
        groups = self.optimiser.state_dict()["param_groups"]  # settings stay those of this adapter
        self.optimiser.load_state_dict({"state": state["optimiser"], "param_groups": groups})
        self.masters.load(state.get("masters", []))
        self.optimiser.zero_grad()
        for parameter, gradient in zip(self.adapted.values(), state.get("gradients", ()), strict=False):
            parameter.grad = None if gradient is None else gradient.clone()

    def _identity(self) -> dict[str, str]:
        """A state of SGD means nothing to Adam."""
        return super()._identity() | {"optimiser": type(self.optimiser).__name__.lower()}

    def _count_idle(self, idle: bool) -> None:
        """Say once that nothing was kept for many steps in a row; a reset does not begin to count anew."""
        self._idle = self._idle + 1 if idle else 0
        if self._idle == IDLE_STEPS and not self._said_idle:
            self._said_idle = True
            log.warning(
                "%s kept no sample of the last %d batches: it does not learn, and predicts as %s does; settings such "
                "as margin, redundancy or threshold decide what is kept",
                type(self).__name__,
                IDLE_STEPS,
                "the unadapted model" if self.parent_label == "none" else self.parent_label,
            )

    def _note(self, outputs: torch.Tensor, loss: torch.Tensor | None) -> None:
        """What this step reports."""
        mean = outputs.softmax(1).mean(0)
        self.record["entropy"] = float(torch.special.entr(mean).sum())
        self.record["largest"] = float(mean.max())
        self.record["change"] = self.change()
        if loss is not None:
            self.record["loss"] = float(loss.detach())
