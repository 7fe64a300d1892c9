"""Prompts: what is added to the inputs of a model in the place of a change to its weights, found without gradients.

A model with blocks of attention gets tokens beside those of the image: they join before the first block and leave after
the last, so that only attention sees them. Attention does not ask for the order of tokens, so they stand at the end,
where the class token keeps its place. Any other model, also one whose layers cannot be seen, gets a prompt in its
images: a gain for each channel, and a pattern that is smooth from edge to edge.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters.passes import first_of, run
from haptera.errors import NotApplicable
from haptera.modules import hides_layers

NORMS = (nn.LayerNorm, nn.RMSNorm)


@dataclass(frozen=True)
class TokenPrompt:
    """Tokens beside those of an image.

    Attributes:
        blocks: names of the blocks that they pass through.
        width: of a token.
        tokens: how many.
        sigma: the standard deviation of the first tokens that are tried.
    """

    blocks: tuple[str, ...]
    width: int
    tokens: int
    sigma: float = 1.0

    @classmethod
    @torch.no_grad()
    def fit(cls, model: nn.Module, inputs: torch.Tensor, tokens: int) -> Self | None:
        """Return the prompt for a model, or None where it has no blocks that take further tokens."""
        names = () if hides_layers(model) else find_blocks(model)
        if not names:
            return None
        widths: list[int] = []
        first = model.get_submodule(names[0])
        take = lambda _, given, kept: widths.append(token_width(given, kept))  # noqa: E731
        with first.register_forward_pre_hook(take, with_kwargs=True):
            plain = run(model, inputs[:1])
        if len(widths) != 1 or not widths[0]:
            return None
        prompt = cls(names, widths[0], tokens)
        try:
            with prompt.put(model, torch.zeros(prompt.size)):
                same = run(model, inputs[:1]).shape == plain.shape
        except (RuntimeError, ValueError, AssertionError):  # such as windows of a fixed number of tokens
            return None
        return prompt if same else None

    @property
    def size(self) -> int:
        """How many numbers it is."""
        return self.tokens * self.width

    @contextmanager
    def put(self, model: nn.Module, vector: torch.Tensor) -> Iterator[None]:
        """Let passes within it see the prompt."""
        first, last = (model.get_submodule(self.blocks[place]) for place in (0, -1))
        rows = vector.view(1, self.tokens, self.width)

        def join(_: nn.Module, given: tuple[Any, ...], kept: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            add = lambda x: torch.cat([x, rows.to(x).expand(len(x), -1, -1)], 1)  # noqa: E731
            if given:
                return (add(given[0]), *given[1:]), kept
            name = next(iter(kept))
            return given, kept | {name: add(kept[name])}

        def leave(_: nn.Module, __: Any, outputs: Any) -> Any:
            rest = first_of(outputs)[:, : -self.tokens]
            return rest if isinstance(outputs, torch.Tensor) else (rest, *outputs[1:])

        with ExitStack() as hooks:
            hooks.enter_context(first.register_forward_pre_hook(join, with_kwargs=True))
            hooks.enter_context(last.register_forward_hook(leave))
            yield

    def apply(self, inputs: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
        """The images, which stay as they are."""
        return inputs


@dataclass(frozen=True)
class ImagePrompt:
    """A gain for each channel, and a pattern of a few cells that is added, smoothly, to the whole image.

    Attributes:
        channels: of an image.
        cells: of the pattern, along each side.
        sigma: the standard deviation of the first prompts that are tried, of log gains and of values.
    """

    channels: int
    cells: int = 3
    sigma: float = 0.1

    @classmethod
    def fit(cls, inputs: torch.Tensor) -> Self:
        """Return the prompt for these images."""
        if inputs.ndim != 4 or not inputs.is_floating_point():
            raise NotApplicable(
                f"a prompt is for images (batch, channels, height, width) of floats, or for blocks of attention; found "
                f"{tuple(inputs.shape)} of {str(inputs.dtype).removeprefix('torch.')}"
            )
        return cls(inputs.shape[1])

    @property
    def size(self) -> int:
        """How many numbers it is."""
        return self.channels * (1 + self.cells**2)

    @contextmanager
    def put(self, model: nn.Module, vector: torch.Tensor) -> Iterator[None]:
        """Nothing inside the model changes."""
        yield

    def apply(self, inputs: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
        """Images around their mean by the gain, with the pattern; in [0, 1] where the images are."""
        gains, pattern = vector.to(inputs).split([self.channels, self.channels * self.cells**2])
        pattern = pattern.view(1, self.channels, self.cells, self.cells)
        added = F.interpolate(pattern, inputs.shape[2:], mode="bilinear", align_corners=False)
        mean = inputs.mean((2, 3), keepdim=True)
        low, high = (float(bound) for bound in inputs.aminmax())
        moved = mean + (inputs - mean) * gains.exp().view(1, -1, 1, 1) + added
        return moved.clamp(min(low, 0.0), max(high, 1.0))


def find_blocks(model: nn.Module) -> tuple[str, ...]:
    """Names of the longest row of modules of one class that hold a LayerNorm; none where there is no such row."""
    rows = []
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList | nn.Sequential) and len(module):
            inside = list(module.named_children())
            alike = len({type(each) for _, each in inside}) == 1
            if alike and all(first_norm(each) is not None for _, each in inside):
                rows.append(tuple(f"{name}.{own}" if name else own for own, _ in inside))
    return max(rows, key=len, default=())


def first_norm(block: nn.Module) -> str | None:
    """The name of the first LayerNorm inside a block."""
    return next((name for name, each in block.named_modules() if isinstance(each, NORMS) and each is not block), None)


def token_width(given: tuple[Any, ...], kept: dict[str, Any]) -> int:
    """The width of the tokens `(batch, tokens, width)` that a block is given; 0 for anything else."""
    tokens = given[0] if given else next(iter(kept.values()), None)
    return tokens.shape[2] if isinstance(tokens, torch.Tensor) and tokens.ndim == 3 else 0
