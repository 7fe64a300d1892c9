"""Blended statistics: BatchNorm layers that use a blend of the statistics from training and those of the data at hand.

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
"""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from math import inf
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from haptera.adapters import fused
from haptera.adapters.blend import REACH, Blend
from haptera.adapters.deferred import first_guess
from haptera.adapters.following import Following
from haptera.checks import check_number
from haptera.errors import NotApplicable

CALLS = {
    F.batch_norm: ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps"),
    torch.batch_norm: ("input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps"),
}
"""The functions that normalise by given statistics, and the order of their arguments."""

log = logging.getLogger("haptera")

SMALL = 16
"""Batches of fewer images are small."""
SIZED = "sized"
"""The prior that is 0 but for small batches."""
NAME = "_blend"
"""The name under which a layer has its blend as a child."""
Look = Callable[[Blend, torch.Tensor], None]


class _Blending(Following):
    """Answers `batch_norm` where it is called with the statistics of a layer that has a blend."""

    def __init__(self, blends: Sequence[Blend], use: str, watch: Look | None) -> None:
        super().__init__()
        self._blends = {id(blend.source_mean): blend for blend in reversed(blends)}
        self._calls: dict[int, int] = {}
        self._use, self._watch = use, watch

    def layers(self) -> Collection[Blend]:
        """Return the blends."""
        return self._blends.values()

    def __exit__(self, *exception: Any) -> None:
        """Answer no more."""
        super().__exit__(*exception)
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
            return self._room.call(func, args, kwargs)
        self._room.settle()
        given = dict(zip(CALLS[func], args, strict=False)) | kwargs
        blend = self._blends.get(id(given.get("running_mean")))
        if blend is None or given.get("training"):
            return func(*args, **kwargs)
        inputs, eps = given["input"], given.get("eps", 1e-5)
        if self._watch is not None:
            self._watch(blend, inputs)
        earlier = self._calls.get(id(blend), 0)
        self._calls[id(blend)] = earlier + 1
        run = partial(blend.normalise, inputs, given.get("weight"), given.get("bias"), eps, self._use, earlier)
        return self._room.normalise(blend, run) if type(blend).normalise is Blend.normalise else run()


def blending(model: nn.Module, use: str, watch: Look | None = None) -> AbstractContextManager[Any]:
    """Return a context in which every layer of the model that has a blend normalises by it.

    Args:
        model: after `add_blends`.
        use: `batch`, blend the statistics of the batch with the training's; `moving`, with those of earlier steps;
            `running`, move those found last towards the batch's; `train`, move them too, and normalise by the batch's
            own; `last`, take those found last as they are.
        watch: called with each blend and its inputs `(batch, channels, ...)`.
    """
    blends = list(blends_of(model))
    if not blends or (watch is None and use == "batch" and all(blend.prior == inf for blend in blends)):
        return nullcontext()  # nothing to answer
    return _Blending(blends, use, watch)


@contextmanager
def refuse_second_pass(model: nn.Module) -> Iterator[None]:
    """Refuse to run a layer whose statistics are blended: for the backward pass, in which nothing answers."""
    with ExitStack() as hooks:
        for blend in blends_of(model):
            if blend.prior < inf:
                hooks.enter_context(blend._layer[0].register_forward_pre_hook(_refuse))
        yield


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
    if fused.suits(values):
        mean, var = fused.image_moments(values)
        return torch.stack([mean, mean.square().add_(var)], 1).to(values.dtype)
    if not values.is_contiguous() and values.ndim == 4:  # channels last, where a norm over positions is slow
        flat = values.permute(0, 2, 3, 1).flatten(1, 2)
        return torch.stack([flat.mean(1), flat.square().mean(1)], 1)
    norm = torch.linalg.vector_norm(values, dim=dims)
    return torch.stack([values.mean(dims), norm**2 / positions], 1)


def add_blends(model: nn.Module, prior: float, momentum: float | None = None) -> list[Blend]:
    """Give a blend to every BatchNorm layer that has statistics; in order, shared ones once."""
    return put_blends(model, lambda layer: Blend(layer, prior, momentum))


def put_blends(model: nn.Module, make: Callable[[_BatchNorm], Blend]) -> list[Blend]:
    """Give every BatchNorm layer that has statistics a blend that is made for it, in the place of any before."""
    for layer in list(model.modules()):
        if isinstance(layer, _BatchNorm) and layer.running_mean is not None:
            layer.add_module(NAME, make(layer))
    blends, followed = list(blends_of(model)), first_guess(model)
    for blend in blends:
        blend.followed = followed
    return blends


def blends_of(model: nn.Module) -> Iterator[Blend]:
    """The blends of a model, in order."""
    return (layer for layer in model.modules() if isinstance(layer, Blend))


@contextmanager
def keep_statistics(model: nn.Module) -> Iterator[None]:
    """Put the statistics found last back at the end."""
    blends = list(blends_of(model))
    before = [(blend.mean.clone(), blend.var.clone()) for blend in blends]
    yield
    for blend, (mean, var) in zip(blends, before, strict=True):
        blend.mean.copy_(mean)
        blend.var.copy_(var)


def remove_blends(model: nn.Module, source: bool) -> None:
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
    if any(blends_of(adapter)):
        once().warning(
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


class Once(logging.Filter):
    """Lets every message through once; what is filled into its text does not count."""

    def __init__(self) -> None:
        super().__init__()
        self._messages: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether this is the first record with its message."""
        first = record.msg not in self._messages
        self._messages.add(record.msg)
        return first


def once() -> logging.Logger:
    """Return the logger of notes that are logged once in a process, however many adapters have them to say."""
    logger = logging.getLogger("haptera.once")
    if not any(isinstance(each, Once) for each in logger.filters):
        logger.addFilter(Once())
    return logger
