"""Learner: an adapter that learns by gradient steps on a loss without labels. A method writes `loss`, and little else.

Source: thesis chapter 3 (what adapts, and how predictions and updates follow each other), chapter 4 (settings).
A prediction is the one made before the update of the same batch; `predictions="after"` makes a second pass.
Cost: a forward pass, and the part of the backward pass that the chosen parameters need; no second copy of the others.
"""

import inspect
import logging
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Annotated, Any, ClassVar, Self

import torch
from torch import nn

from haptera.adapters.base import Adapter, NoAdaptation
from haptera.adapters.batchnorm import BatchNorm
from haptera.adapters.learning import PRECISIONS, Learning
from haptera.adapters.norm import (
    SIZED,
    SMALL,
    add_blends,
    begin_small_step,
    blending,
    keep_statistics,
    once,
    refuse_second_pass,
)
from haptera.adapters.passes import check_logits, run
from haptera.adapters.select import Masters, Select, features
from haptera.adapters.sharing import share
from haptera.checks import check_number
from haptera.errors import NotApplicable, check_keys

log = logging.getLogger("haptera")

IDLE_STEPS = 50
"""Steps in a row of which nothing was kept, after which a learner says so."""
NO_GRADIENT = (
    "no gradient reaches the parameters that adapt: the model runs without gradients, as quantised layers do; adapt "
    "the model before it is quantised, or choose an adapter that does not learn"
)


class Learner(Adapter):
    """An adapter that learns.

    Args:
        model: any `nn.Module` from images to logits.
        lr: the learning rate; 0 makes it its parent.
        settings: those of `Learning`.

    Attributes:
        learning: the settings; of a class, the defaults of its method.
        fixed: settings that a method does not leave to the user.
        copies: the names of what holds single-precision copies of half-precision parameters.
        pieces: wrappers that take part in every step, each a `haptera.adapters.piece.Piece`, the innermost first.
    """

    learning = Learning()
    fixed: ClassVar[tuple[str, ...]] = ()
    copies: ClassVar[tuple[str, ...]] = ("masters",)

    def __init_subclass__(cls, **settings: Any) -> None:
        """Let the signature say the defaults of the method, and nothing of what is fixed."""
        super().__init_subclass__(**settings)
        own = [p for p in cls.__signature__.parameters.values() if p.name not in cls.fixed]
        defaults = vars(cls.learning)
        cls.__signature__ = inspect.Signature([p.replace(default=defaults.get(p.name, p.default)) for p in own])

    def __init__(self, model: nn.Module, *, lr: float, **settings: Annotated[Any, Learning]) -> None:
        known = {field.name for field in fields(Learning)} - set(self.fixed)
        own = set(type(self).__signature__.parameters) - {"model"}  # nearer to what was meant, if unknown
        check_keys(f"setting of {type(self).__name__}", settings, known | own)
        check_number("lr", lr, least=0)
        self.learning = learning = replace(self.learning, **settings)
        self._settings = {name: value for name, value in settings.items() if name != "frozen"}
        self._select = learning.parameters if isinstance(learning.parameters, Select) else Select(learning.parameters)
        self._sized = learning.prior == SIZED
        self._prior = 0.0 if self._sized else float(learning.prior)
        self._small, self._largest, self._after = False, 0, learning.predictions == "after"
        super().__init__(model, window=learning.window, frozen=learning.frozen, seed=learning.seed)
        if any("quantized" in type(layer).__module__ for layer in self.model.modules()):
            raise NotApplicable(NO_GRADIENT)
        self.norms = add_blends(self.model, self._prior)
        self.memory["pending"] = 0
        self._idle, self._said_idle = 0, False
        self.pieces: list[Any] = []
        self.adapted = self._select(self.model)
        for parameter in self.adapted.values():
            parameter.requires_grad_(True)
        self._source = [parameter.detach().clone() for parameter in self.adapted.values()]
        self.masters = Masters(self.adapted.values())
        self.optimiser = learning.make_optimiser(self.masters.values, lr)
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
        """Predict and learn, as often as there are steps, and predict again where that was asked for."""
        self.begin_step(inputs)
        for _ in range(self.learning.steps):
            with torch.enable_grad():
                outputs, loss = self.lesson(inputs)
            if loss is not None:
                self.learn(loss)
        self._count_idle(loss is None)
        if self._after:
            outputs = self.answer(inputs)
        self._note(outputs, loss)
        return outputs

    def lesson(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """What to predict for a batch, and the loss, a scalar, or None where there is none."""
        logits = self.logits(inputs)
        return logits.detach(), self.loss(logits, inputs)

    @torch.no_grad()
    def answer(self, inputs: torch.Tensor, use: str = "batch") -> torch.Tensor:
        """The logits of what predicts, with these statistics."""
        return self.logits(inputs, use)

    def begin_step(self, inputs: torch.Tensor) -> None:
        """Choose the statistics for a batch of this size."""
        self._small, self._largest = self._sized and len(inputs) < SMALL, max(self._largest, len(inputs))
        if self._small:
            begin_small_step(self, inputs)

    def predict(self, inputs: torch.Tensor) -> torch.Tensor:
        """Predict with the statistics found last."""
        return self.answer(inputs, "last")

    def logits(self, inputs: torch.Tensor, use: str = "batch", model: nn.Module | None = None) -> torch.Tensor:
        """A pass through the model, or another in its place, with these statistics; never less than float32."""
        model = self.model if model is None else model
        use = "moving" if use == "batch" and self._small else use
        dtype = PRECISIONS[self.learning.precision]
        with blending(model, use), torch.autocast(inputs.device.type, dtype, enabled=dtype is not None):
            logits = self.check_pass(run(model, inputs))
        if torch.is_grad_enabled() and model is self.model and not logits.requires_grad:
            raise NotApplicable(NO_GRADIENT)
        return logits

    def check_pass(self, outputs: Any) -> torch.Tensor:
        """What a pass gave, if this method can learn from it; here logits `(batch, classes)`."""
        return check_logits(outputs, type(self).__name__)

    def logits_aside(self, inputs: torch.Tensor) -> torch.Tensor:
        """Logits of a part of the batch, or of views of it, by their own statistics; those found last stay the batch's.

        A single input, which may have no variance, is normalised by the batch's.
        """
        if len(inputs) == 1:
            return self.logits(inputs, "last")
        with keep_statistics(self.model):
            return self.logits(inputs)

    def look(
        self, inputs: torch.Tensor, use: str = "batch", model: nn.Module | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Features `(batch, d)` that reach the last layer, and logits, of the model or another in its place."""
        with features(self.model if model is None else model) as seen:
            logits = self.logits(inputs, use, model)
        return seen[-1].to(logits.dtype), logits

    def another(self, model: nn.Module, changed: Iterable[torch.Tensor] = ()) -> nn.Module:
        """Return one more copy of the caller's model, of the same prior, with these parameters of its own."""
        made = share(model, changed).eval()
        add_blends(made, self._prior)
        return made

    def learn(self, loss: torch.Tensor) -> None:
        """One gradient step, or a part of one; none where loss or gradient are not finite."""
        self.backward(loss)
        self.memory["pending"] += 1
        if self.memory["pending"] < self.learning.accumulate:
            return
        self.memory["pending"] = 0
        self.masters.take_gradients()
        gradients = [value.grad for value in self.masters.values if value.grad is not None]
        if bool(torch.isfinite(nn.utils.get_total_norm(gradients))):
            self.update()
        else:
            self.record["skipped"] = 1.0
            log.warning("a gradient is not finite; this batch was not learnt from")
        self.optimiser.zero_grad()

    def update(self) -> None:
        """A step of the optimiser, with the part that each piece around this learner has in it."""
        for piece in self.pieces:
            piece.before_update()
        self.optimiser.step()
        for piece in self.pieces:
            piece.after_update()
        self.masters.give()

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradient of this batch to that which waits for an update."""
        with refuse_second_pass(self.model):
            (loss / self.learning.accumulate).backward()
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

    @torch.no_grad()
    def change(self) -> float:
        """How far the parameters are from where they began, in norm."""
        moved = torch._foreach_sub(self.masters.values, self._source)
        return float(nn.utils.get_total_norm(moved))

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """What torch calls for `.to(device)` and the like: the source goes with the parameters."""
        super()._apply(fn, recurse)
        self._source = [fn(tensor) for tensor in self._source]
        before = self.optimiser.state_dict()
        for name in self.copies:
            setattr(self, name, getattr(self, name).rebuild())
        self.optimiser = self.learning.make_optimiser(self.masters.values, 0.0)
        self.optimiser.load_state_dict(before)  # the rate too; moments take the type of what they belong to
        return self

    def get_extra_state(self) -> dict[str, Any]:
        """Return the state with the optimiser's, and the gradient that waits for an update."""
        state = super().get_extra_state() | {"optimiser": self.optimiser.state_dict()["state"]}
        for name in self.copies:
            if copies := getattr(self, name).state():
                state[name] = copies
        if self.memory["pending"]:
            state["gradients"] = [parameter.grad for parameter in self.adapted.values()]
        return state

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take the learner's part of a `state_dict`."""
        super().set_extra_state(state)
        groups = self.optimiser.state_dict()["param_groups"]  # settings stay those of this adapter
        self.optimiser.load_state_dict({"state": state["optimiser"], "param_groups": groups})
        for name in self.copies:
            getattr(self, name).load(state.get(name, []))
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
        for piece in self.pieces:
            piece.after_step(outputs)
