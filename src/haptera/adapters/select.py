"""Which parameters of a model adapt, what an optimiser steps on in their place, and the features before the last layer.

Source: thesis chapter 3: affine parameters of normalisation layers for convolutional networks, the last layer, or all
of them for transformers; and, as SLR and SAR have it, normalisation layers but those of the last stage (`last_stage`).
In half precision a step of 1e-4 on a weight of 1 is lost, and Adam's denominator is 0: there single-precision copies,
`Masters`, take the steps, and the parameters their values. Cost: a copy of the half-precision parameters that adapt.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from haptera.adapters.passes import HALF
from haptera.errors import HapteraError, NotApplicable

WORDS = ("norm", "early", "last", "all")
LAST_OF_RESNETS = re.compile(r"(^|\.)layer4\.")
BLOCK = re.compile(r"(.*?[A-Za-z])[._]?(\d+)\.")
"""A name with something inside a numbered part: `blocks.9.norm1`, `encoder.layers.encoder_layer_9.ln_1`."""
NORMS = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


@dataclass(frozen=True)
class Select:
    """Parameters by kind or by name; a model of a loader has its network's names, without the `network.` before them.

    Args:
        what: `norm`, scale and offset of BatchNorm, LayerNorm, GroupNorm, InstanceNorm and RMSNorm layers; `early`, the
            same without the last stage of the network; `last`, the last linear or convolutional layer; `all`; a pattern
            of parameter names, such as `layer4.*`; or any of these after an exclamation mark, for everything but them:
            `!last`. Several are joined by `+`: `norm+last`.

    >>> net = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3), nn.Linear(3, 2))
    >>> list(Select("norm")(net)), list(Select("!last")(net))
    (['1.weight', '1.bias'], ['0.weight', '0.bias', '1.weight', '1.bias'])
    """

    what: str = "norm"

    def __post_init__(self) -> None:
        if not isinstance(self.what, str) or not all(part.strip("!") for part in self.what.split("+")):
            raise HapteraError(
                f"parameters is {self.what!r}; {', '.join(WORDS)}, a pattern of names such as 'layer4.*', "
                "or one of these after ! was expected"
            )

    def __call__(self, model: nn.Module) -> dict[str, nn.Parameter]:
        """Name -> parameter, in the model's order; an error where nothing is chosen."""
        everything = dict(model.named_parameters())
        chosen: set[str] = set()
        for part in self.what.split("+"):
            names = _chosen(model, everything, part.lstrip("!"))
            chosen |= set(everything) - names if part.startswith("!") else names
        if not chosen:
            raise self._nothing(model)
        return {name: parameter for name, parameter in everything.items() if name in chosen}

    def _nothing(self, model: nn.Module) -> HapteraError:
        if self.what in ("norm", "early"):
            return NotApplicable(
                "there is no normalisation layer with scale and offset in the model; choose parameters='last' or 'all'"
            )
        return HapteraError(
            f"parameters {self.what!r} chooses none of the {sum(1 for _ in model.parameters())} parameters of "
            f"{type(model).__name__}, such as {next(iter(dict(model.named_parameters())), 'none')!r}"
        )


def _chosen(model: nn.Module, everything: dict[str, nn.Parameter], word: str) -> set[str]:
    if word == "all":
        return set(everything)
    if word == "norm":
        return {name for layer in _layers(model, *NORMS) for name in _own(*layer)}
    if word == "early":
        last = last_stage(model)
        return {name for layer in _layers(model, *NORMS) if layer[0] not in last for name in _own(*layer)}
    if word == "last":
        return set().union(*(_own(*layer) for layer in _layers(model, nn.Linear, nn.modules.conv._ConvNd)[-1:]))
    return {name for name in everything if fnmatchcase(name, word) or fnmatchcase(name, f"network.{word}")}


def _layers(model: nn.Module, *kinds: type[nn.Module]) -> list[tuple[str, nn.Module]]:
    return [(name, layer) for name, layer in model.named_modules() if isinstance(layer, kinds)]


def _own(prefix: str, layer: nn.Module) -> list[str]:
    return [f"{prefix}.{name}" if prefix else name for name, _ in layer.named_parameters(recurse=False)]


def last_stage(model: nn.Module) -> set[str]:
    """Return the names of the normalisation layers that SLR and SAR leave alone, found by the names of their modules.

    The public code of SAR has `layer4` of ResNets, and blocks 9 to 11 of the twelve of a ViT with the layer after them.
    Here a transformer is what has LayerNorm in numbered parts, whatever they are called: the last quarter of them, and
    what comes after. Other networks, and those of fewer than four blocks, have no last stage.
    """
    names = [name for name, _ in _layers(model, *NORMS)]
    if found := {name for name in names if LAST_OF_RESNETS.search(name)}:
        return found
    blocks: dict[str, dict[int, str]] = {}
    for name, _ in _layers(model, nn.LayerNorm, nn.RMSNorm):
        if block := BLOCK.match(name):
            blocks.setdefault(block[1], {}).setdefault(int(block[2]), name)
    stem, numbered = max(blocks.items(), key=lambda item: len(item[1]), default=("", {}))
    if len(numbered) < 4:
        return set()
    first = sorted(numbered)[-(len(numbered) // 4)]
    after = names[names.index(numbered[first]) :]
    return {name for name in after if not (block := BLOCK.match(name)) or (block[1] == stem and int(block[2]) >= first)}


def last_layer(model: nn.Module) -> nn.Module:
    """The last linear or convolutional layer, the one that `parameters="last"` chooses."""
    try:
        name = next(iter(Select("last")(model)))
    except HapteraError as error:
        raise NotApplicable("there is no linear or convolutional layer in the model to read features before") from error
    return model.get_submodule(name.rpartition(".")[0])


@contextmanager
def features(model: nn.Module) -> Iterator[list[torch.Tensor]]:
    """Yield a list to which every pass through the model adds the features `(batch, ...)` of its inputs."""
    seen: list[torch.Tensor] = []
    with last_layer(model).register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].flatten(1))):
        yield seen
    if not seen:
        raise HapteraError("the model does not use its last linear or convolutional layer; there are no features")


class Masters:
    """Parameters of a model, and `values` to step on in their place: themselves, or copies of half-precision ones."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        self.values: list[torch.Tensor] = [
            nn.Parameter(p.detach().float()) if p.dtype in HALF else p for p in self.parameters
        ]

    def separate(self) -> list[tuple[nn.Parameter, torch.Tensor]]:
        """Parameter and copy, where there is one."""
        return [(p, value) for p, value in zip(self.parameters, self.values, strict=True) if p is not value]

    def take_gradients(self) -> None:
        """Move the gradients of parameters to their copies."""
        for parameter, value in self.separate():
            value.grad = None if parameter.grad is None else parameter.grad.float()
            parameter.grad = None

    @torch.no_grad()
    def give(self) -> None:
        """Hand the values to the parameters."""
        for parameter, value in self.separate():
            parameter.copy_(value)

    @torch.no_grad()
    def read(self) -> None:
        """Begin anew from the parameters, which somebody wrote to."""
        for parameter, value in self.separate():
            value.copy_(parameter)

    def state(self) -> list[torch.Tensor]:
        """The copies."""
        return [value.detach() for _, value in self.separate()]

    @torch.no_grad()
    def load(self, state: list[torch.Tensor]) -> None:
        """Take what `state` returned."""
        for (_, value), saved in zip(self.separate(), state, strict=True):
            value.copy_(saved)

    @torch.no_grad()
    def rebuild(self) -> "Masters":
        """Return the same after the parameters went to another device or type; what copies know better is kept."""
        new = Masters(self.parameters)
        for parameter, before, after in zip(self.parameters, self.values, new.values, strict=True):
            if before is not parameter:
                after.copy_(before)
        return new
