"""Blended statistics: BatchNorm layers that use a blend of the statistics from training and those of the data at hand.

Source: thesis chapter 2, (2.2): mean = N/(N+n) source + n/(N+n) batch, the same for the variance, n counts images. The
batch variance is the biased one, so that N = 0 is exactly train-mode normalisation and N = ∞ the unadapted layer.
The gradient flows through the batch's share of the statistics, as it does in train mode.

The layer stays where it is and its own `forward` runs: within `blending`, calls of `batch_norm` with the running
statistics of a layer get the blend in their place. So whatever a subclass adds, such as the activation in timm's
`BatchNormAct2d`, is kept, and it makes no difference whether a layer is called, shared between two places, or only its
statistics are handed to `torch.nn.functional.batch_norm`. A layer that normalises without `batch_norm` stays as it
is, and that is logged.
Compiled parts of a model run as they were written. Activation checkpoints, which run parts of a model again during the
backward pass, must be off for learners: by then the statistics have moved on.
Batches of fewer than 16 images have statistics that are mostly chance, and N = 0 fails on them; a large N is the
unadapted model. Unless a prior is given, their share moves the statistics found at earlier steps, which count as 32
images: `moving`. `experiments/small_batches.py` has the figures behind both numbers.
Cost: N = 0 is torch's own fused pass; otherwise one more pass over the input. Holds four vectors per layer.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import inf
from threading import Lock
from typing import Any, Self

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm
from torch.overrides import TorchFunctionMode

from haptera.adapters.normalise import BlendedFunction, statistics, train_mode, unite
from haptera.checks import check_number
from haptera.errors import HapteraError, NotApplicable

CALLS = {
    F.batch_norm: ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps"),
    torch.batch_norm: ("input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps"),
}
"""The functions that normalise by given statistics, and the order of their arguments."""

log = logging.getLogger("haptera")

SMALL = 16
"""Batches of fewer images are small."""
REACH = 32.0
"""How many images the statistics of earlier steps count for, where batches are small."""
SIZED = "sized"
"""The prior that is 0 but for small batches."""
NAME = "_blend"
"""Under which a layer has its blend as a child."""
_SAID: set[str] = set()
Watch = Callable[["Blend", torch.Tensor], None]


class Blend(nn.Module):
    """The statistics that one BatchNorm layer uses; it is a child of that layer.

    Attributes:
        prior: N, how many images the training statistics count for.
        momentum: the batch's share in the running statistics; None weighs all images seen so far, and N, alike.
        mean: found last.
        var: found last.
        held_mean: what the step began with, or what is pooled.
        held_var: the same.
    """

    def __init__(self, layer: _BatchNorm, prior: float, momentum: float | None = None) -> None:
        super().__init__()
        self.prior, self.momentum, self.said_unmet = prior, momentum, False
        self._layer = [layer]  # in a list, so that it is not a module of this one
        self.mean: torch.Tensor
        self.var: torch.Tensor
        self.held_mean: torch.Tensor
        self.held_var: torch.Tensor
        self.seen: torch.Tensor
        for name, tensor in (("mean", self.source_mean), ("var", self.source_var)):
            self.register_buffer(name, tensor.detach().clone())
            self.register_buffer(f"held_{name}", torch.zeros_like(tensor))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64, device=self.mean.device))

    @property
    def source_mean(self) -> torch.Tensor:
        """The layer's own, from training."""
        assert self._layer[0].running_mean is not None
        return self._layer[0].running_mean

    @property
    def source_var(self) -> torch.Tensor:
        """The layer's own, from training."""
        assert self._layer[0].running_var is not None
        return self._layer[0].running_var

    def normalise(
        self,
        inputs: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        eps: float,
        use: str,
        earlier: int = 0,
    ) -> torch.Tensor:
        """Normalise and scale, channels in dimension 1; `earlier` calls of this pass had the same layer."""
        if use == "last" or (self.prior == inf and use == "batch"):
            return F.batch_norm(inputs, self.mean, self.var, weight, bias, False, 0.0, eps)
        values = inputs.numel() // inputs.shape[1]
        if self.prior == 0 and values == 1 and use == "batch":
            raise HapteraError(
                f"one value per channel has no variance: a batch of {len(inputs)} of shape {tuple(inputs.shape)} "
                "needs a prior above 0, a window, or more samples"
            )
        if self.prior == 0 and use == "batch":
            out, mean, var = train_mode(inputs, weight, bias, eps, self.mean.dtype)
            self._keep(mean, var, earlier)
            return out
        with torch.no_grad():
            own, var = statistics(inputs, eps, self.mean.dtype)
            mean, var, share = self._take(own, var, len(inputs), use, earlier)
        return BlendedFunction.apply(inputs, weight, bias, own, mean, var, share, eps)

    def _take(
        self, mean: torch.Tensor, var: torch.Tensor, n: int, use: str, earlier: int
    ) -> tuple[torch.Tensor, torch.Tensor, float]:
        """Bring the statistics found last up to date; those to use, and the share of this batch in them."""
        if use == "running":
            share = n / (self.prior + int(self.seen) + n) if self.momentum is None else self.momentum
            self.seen += n
            self.mean.lerp_(mean, share)
            self.var.lerp_(var, share)
            return self.mean.clone(), self.var.clone(), share
        if use == "moving":
            share = n / (REACH + n)
            mean, var = self.held_mean.lerp(mean, share), self.held_var.lerp(var, share)
        else:
            share = n / (self.prior + n)
            mean, var = self.source_mean.lerp(mean, share), self.source_var.lerp(var, share)
        self._keep(mean, var, earlier)
        return mean, var, share

    def _keep(self, mean: torch.Tensor, var: torch.Tensor, earlier: int) -> None:
        """Take statistics as those found last; of several calls in one pass, those of the union."""
        unite(self.mean, self.var, mean, var, 1 / (earlier + 1))

    def pool(self, inputs: torch.Tensor) -> None:
        """Add a batch to the pooled statistics."""
        mean, var = statistics(inputs, 1e-5, self.mean.dtype)
        unite(self.held_mean, self.held_var, mean, var, len(inputs) / (int(self.seen) + len(inputs)))
        self.seen += len(inputs)

    def settle(self) -> None:
        """Use what was pooled from now on, and begin to pool anew."""
        if int(self.seen):
            share = int(self.seen) / (self.prior + int(self.seen))
            torch.lerp(self.source_mean, self.held_mean, share, out=self.mean)
            torch.lerp(self.source_var, self.held_var, share, out=self.var)
        for buffer in (self.seen, self.held_mean, self.held_var):
            buffer.zero_()

    def begin_step(self) -> None:
        """From here on, `moving` statistics start from those found last."""
        self.held_mean.copy_(self.mean)
        self.held_var.copy_(self.var)

    def forget(self) -> None:
        """Return to the statistics of training."""
        self.mean.copy_(self.source_mean)
        self.var.copy_(self.source_var)


class _Eagerly:
    """Within it, compiled parts of a model run as they were written: the compiler does not follow such modes.

    The compiler has one stance for all threads, so the first one in sets it and the last one out puts it back.
    """

    def __init__(self) -> None:
        self._lock, self._within = Lock(), 0
        self._stance: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._within and "torch._dynamo" in sys.modules:  # else nothing was compiled yet
                self._stance = torch.compiler.set_stance("force_eager")
            self._within += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._within -= 1
            if not self._within and self._stance is not None:
                self._stance.__exit__(None, None, None)
                self._stance = None


_EAGERLY = _Eagerly()


class _Blending(TorchFunctionMode):
    """Answers `batch_norm` where it is called with the statistics of a layer that has a blend."""

    def __init__(self, blends: Sequence[Blend], use: str, watch: Watch | None) -> None:
        super().__init__()
        self._blends = {id(blend.source_mean): blend for blend in reversed(blends)}
        self._calls: dict[int, int] = {}
        self._use, self._watch = use, watch

    def __enter__(self) -> Self:
        """From here on."""
        _EAGERLY.__enter__()
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        """Until here."""
        super().__exit__(*exception)
        _EAGERLY.__exit__()
        if exception[0] is None:  # a pass that was cut short says nothing about the layers after it
            self._say_unmet()

    def _say_unmet(self) -> None:
        """Say once which layers went without their blend, so that nobody takes them for adapted."""
        unmet = [blend for blend in self._blends.values() if id(blend) not in self._calls and not blend.said_unmet]
        if unmet:
            log.warning(
                "%d of %d BatchNorm layers did not call batch_norm in this pass: unused, or written in another way; "
                "they keep the statistics of training",
                len(unmet),
                len(self._blends),
            )
        for blend in unmet:
            blend.said_unmet = True

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Any other function does what it does."""
        kwargs = kwargs or {}
        if func not in CALLS:
            return func(*args, **kwargs)
        given = dict(zip(CALLS[func], args, strict=False)) | kwargs
        blend = self._blends.get(id(given.get("running_mean")))
        if blend is None or given.get("training"):
            return func(*args, **kwargs)
        inputs, eps = given["input"], given.get("eps", 1e-5)
        if self._watch is not None:
            self._watch(blend, inputs)
        earlier = self._calls.get(id(blend), 0)
        self._calls[id(blend)] = earlier + 1
        return blend.normalise(inputs, given.get("weight"), given.get("bias"), eps, self._use, earlier)


def blending(model: nn.Module, use: str, watch: Watch | None = None) -> AbstractContextManager[Any]:
    """Within it, every layer of the model that has a blend normalises by it.

    Args:
        model: after `blended`.
        use: `batch`, blend the statistics of the batch with the training's; `moving`, with those of earlier steps;
            `running`, move those found last towards the batch's; `last`, take those found last as they are.
        watch: called with each blend and its inputs `(batch, channels, ...)`.
    """
    blends = list(blends_of(model))
    if not blends or (watch is None and use == "batch" and all(blend.prior == inf for blend in blends)):
        return nullcontext()  # nothing to answer
    return _Blending(blends, use, watch)


@contextmanager
def second_pass_refused(model: nn.Module) -> Iterator[None]:
    """Within it, a layer whose statistics are blended must not run: for the backward pass, in which nothing answers."""
    layers = [blend._layer[0] for blend in blends_of(model) if blend.prior < inf]
    hooks = [layer.register_forward_pre_hook(_refuse) for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _refuse(layer: nn.Module, inputs: Any) -> None:
    raise NotApplicable(
        "the model runs parts of itself again during the backward pass (activation checkpoints), where the statistics "
        "of the batch are not known; turn that off, or keep the training statistics with prior=inf"
    )


def per_image(values: torch.Tensor) -> torch.Tensor:
    """`(batch, channels, ...)` to `(batch, 2, channels)`: mean and mean square over positions, per image."""
    if values.ndim == 2:
        return torch.stack([values, values**2], 1)
    dims = list(range(2, values.ndim))
    positions = values[0, 0].numel()
    if not values.is_contiguous() and values.ndim == 4:  # channels last, where a norm over positions is slow
        flat = values.permute(0, 2, 3, 1).flatten(1, 2)
        return torch.stack([flat.mean(1), flat.square().mean(1)], 1)
    norm = torch.linalg.vector_norm(values, dim=dims)
    return torch.stack([values.mean(dims), norm**2 / positions], 1)


def blended(model: nn.Module, prior: float, momentum: float | None = None) -> list[Blend]:
    """Give a blend to every BatchNorm layer that has statistics; in order, shared ones once."""
    for layer in list(model.modules()):
        if isinstance(layer, _BatchNorm) and layer.running_mean is not None:
            layer.add_module(NAME, Blend(layer, prior, momentum))
    return list(blends_of(model))


def blends_of(model: nn.Module) -> Iterator[Blend]:
    """The blends of a model, in order."""
    return (layer for layer in model.modules() if isinstance(layer, Blend))


@contextmanager
def statistics_kept(model: nn.Module) -> Iterator[None]:
    """After it, the statistics found last are those from before it."""
    blends = list(blends_of(model))
    before = [(blend.mean.clone(), blend.var.clone()) for blend in blends]
    yield
    for blend, (mean, var) in zip(blends, before, strict=True):
        blend.mean.copy_(mean)
        blend.var.copy_(var)


def unblended(model: nn.Module, source: bool) -> None:
    """Leave plain layers, with the statistics found last or with the source's."""
    for layer in list(model.modules()):
        blend = getattr(layer, NAME, None)
        if isinstance(blend, Blend):
            if not source:
                layer._buffers |= {"running_mean": blend.mean, "running_var": blend.var}
            del layer._modules[NAME]


def begin_small_step(adapter: nn.Module, inputs: torch.Tensor) -> None:
    """Make ready for a small batch, and say once what happens to such batches."""
    for blend in blends_of(adapter):
        blend.begin_step()
    if "small" not in _SAID and any(blends_of(adapter)):
        _SAID.add("small")
        log.warning(
            "a batch of %d has too few images for BatchNorm statistics of its own: below %d, statistics move along the "
            "stream, where earlier ones count as %d images; a prior of your own choice turns this off",
            len(inputs),
            SMALL,
            REACH,
        )


def check_prior(prior: float | str) -> float:
    """Refuse anything but a number of images."""
    check_number("prior", prior, least=0, what="a number of images")
    return float(prior)
