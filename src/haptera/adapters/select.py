"""Which parameters of a model adapt, as one object, and the features that reach its last layer.

Source: thesis chapter 3: affine parameters of normalisation layers for convolutional networks, the last layer, or all
of them for transformers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from haptera.errors import HapteraError, NotApplicable

WORDS = ("norm", "last", "all")


@dataclass(frozen=True)
class Select:
    """Parameters by kind or by name.

    Args:
        what: `norm`, scale and offset of BatchNorm, LayerNorm, GroupNorm, InstanceNorm and RMSNorm layers; `last`, the
            last linear or convolutional layer; `all`; a pattern of parameter names, such as `layer4.*`; or any of
            these after an exclamation mark, for everything but them: `!last`. Several are joined by `+`: `norm+last`.

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
        if self.what == "norm":
            return NotApplicable(
                "there is no normalisation layer with scale and offset in the model; choose parameters='last' or 'all'"
            )
        return HapteraError(
            f"parameters {self.what!r} chooses none of the {sum(1 for _ in model.parameters())} parameters of "
            f"{type(model).__name__}, such as {next(iter(dict(model.named_parameters())), 'none')!r}"
        )


def selected(parameters: "str | Select") -> Select:
    """What a user wrote, as an object."""
    return parameters if isinstance(parameters, Select) else Select(parameters)


def norm_layers(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Name and layer of everything that normalises activations."""
    kinds = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
    return ((name, layer) for name, layer in model.named_modules() if isinstance(layer, kinds))


def _chosen(model: nn.Module, everything: dict[str, nn.Parameter], word: str) -> set[str]:
    if word == "all":
        return set(everything)
    if word == "norm":
        return {name for prefix, layer in norm_layers(model) for name in _own(prefix, layer)}
    if word == "last":
        weighted = [
            (prefix, layer)
            for prefix, layer in model.named_modules()
            if isinstance(layer, nn.Linear | nn.modules.conv._ConvNd)
        ]
        return set(_own(*weighted[-1])) if weighted else set()
    return {name for name in everything if fnmatchcase(name, word)}


def _own(prefix: str, layer: nn.Module) -> list[str]:
    return [f"{prefix}.{name}" if prefix else name for name, _ in layer.named_parameters(recurse=False)]


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
    hook = last_layer(model).register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].flatten(1)))
    try:
        yield seen
    finally:
        hook.remove()
    if not seen:
        raise HapteraError("the model does not use its last linear or convolutional layer; there are no features")
