"""Rows: a gradient of some samples of a batch that looks like one of all of them; `skip.py` says what for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar

import torch
from torch.utils._pytree import tree_map_only


@dataclass(frozen=True)
class Place:
    """Where the samples are in a tensor: dimension `dim` has `outer` x samples x `inner` entries.

    `scratch` is memory for the rows of what the forward pass saved, used again by one operation after the other: fresh
    memory costs as much as the copy.
    """

    index: torch.Tensor
    samples: int
    scratch: dict[Any, torch.Tensor]
    dim: int = 0
    outer: int = 1
    inner: int = 1

    def take(self, whole: torch.Tensor, slot: int = 0) -> torch.Tensor:
        """The entries of the kept samples, until the next operation takes others into the same slot."""
        if self.outer == 1 and self.inner == 1:
            return self._select(whole, self.dim, slot)
        apart = whole.unflatten(self.dim, (self.outer, self.samples, self.inner))
        return self._select(apart, self.dim + 1, slot).flatten(self.dim, self.dim + 2)

    def _select(self, whole: torch.Tensor, dim: int, slot: int) -> torch.Tensor:
        if whole.stride(dim) == 0:  # the same for every sample, as weights are that were expanded
            return whole.narrow(dim, 0, len(self.index))
        shape = (*whole.shape[:dim], len(self.index), *whole.shape[dim + 1 :])
        key = (slot, shape, whole.dtype)
        if key not in self.scratch:
            self.scratch[key] = whole.new_empty(shape)
        return torch.index_select(whole, dim, self.index, out=self.scratch[key])

    def spread(self, part: torch.Tensor) -> torch.Tensor:
        """The whole tensor, with zeros for the other samples."""
        apart = part.unflatten(self.dim, (self.outer, len(self.index), self.inner))
        whole = apart.new_zeros([*apart.shape[: self.dim + 1], self.samples, *apart.shape[self.dim + 2 :]])
        return whole.index_copy_(self.dim + 1, self.index, apart).flatten(self.dim, self.dim + 2)

    def size(self, count: int) -> int:
        """How long the dimension is with so many samples."""
        return self.outer * count * self.inner

    def at(self, dim: int) -> "Place":
        """The same in another dimension."""
        return replace(self, dim=dim)

    def sizes(self, whole: Sequence[int]) -> list[int]:
        """The shape of the part, from that of the whole."""
        sizes = list(whole)
        sizes[self.dim] = self.size(len(self.index))
        return sizes

    def matches(self, other: "Place") -> bool:
        """Say whether the same samples are in the same dimension, in the same order."""
        return self.index is other.index and (self.dim, self.outer, self.inner) == (other.dim, other.outer, other.inner)

    def viewed(self, old: Sequence[int], new: Sequence[int]) -> "Place | None":
        """Where the samples are after a view; None where they are in no dimension of their own."""
        before = prod(old[: self.dim]) * self.outer
        for dim, size in enumerate(new):
            ahead = prod(new[:dim])
            outer = before // ahead if ahead else 0
            if outer and outer * ahead == before and size % (outer * self.samples) == 0:
                return replace(self, dim=dim, outer=outer, inner=size // (outer * self.samples))
        return None


class Rows(torch.Tensor):
    """A gradient that is zero for all samples but some; it holds those, `part`.

    A gradient of one entry of a dimension, as those of query, key and value in one tensor are, holds that entry alone,
    and a sum of such gradients holds them all, until an operation needs them in one tensor.

    Attributes:
        rules: operation -> a function of it, its arguments and its keywords that runs it on the rows, or returns
            NotImplemented where it cannot.
        entries: entry of a dimension -> rows of the gradient of this entry, and that dimension; None where there is a
            `part` instead.
    """

    rules: ClassVar[dict[Any, Callable[..., Any]]] = {}
    place: Place
    _part: torch.Tensor | None
    entries: tuple[dict[int, torch.Tensor], int] | None
    __slots__ = ("_part", "entries", "place")

    @staticmethod
    def __new__(cls, part: torch.Tensor, place: Place, shape: Sequence[int]) -> "Rows":
        """Look like the whole tensor."""
        made = torch.Tensor._make_wrapper_subclass(cls, tuple(shape), dtype=part.dtype, device=part.device)
        made._part, made.place, made.entries = part, place, None
        return made

    @classmethod
    def of_entries(cls, entries: dict[int, torch.Tensor], dim: int, place: Place, shape: Sequence[int]) -> "Rows":
        """The rows of a gradient that is zero but for some entries of a dimension."""
        made = cls(next(iter(entries.values())), place, shape)
        made._part, made.entries = None, (entries, dim)
        return made

    @property
    def part(self) -> torch.Tensor:
        """The rows in one tensor."""
        if self._part is None:
            assert self.entries is not None
            entries, dim = self.entries
            zero = None if len(entries) == self.shape[dim] else torch.zeros_like(next(iter(entries.values())))
            self._part = torch.stack([entries.get(entry, zero) for entry in range(self.shape[dim])], dim)  # type: ignore[misc]
            self.entries = None
        return self._part

    @part.setter
    def part(self, value: torch.Tensor) -> None:
        self._part, self.entries = value, None

    @classmethod
    def of(cls, whole: torch.Tensor, index: torch.Tensor) -> "Rows":
        """The rows of a gradient `(samples, ...)` that is zero elsewhere."""
        return cls(whole.index_select(0, index), Place(index, len(whole), {}), whole.shape)

    def join(self, other: "Rows") -> "Rows | None":
        """The sum of two gradients of different entries of one dimension; None of any others."""
        if self.entries is None or other.entries is None or not self.place.matches(other.place):
            return None
        (ours, dim), (theirs, also) = self.entries, other.entries
        return (
            Rows.of_entries(ours | theirs, dim, self.place, self.shape)
            if dim == also and not ours.keys() & theirs
            else None
        )

    def whole(self) -> torch.Tensor:
        """The plain tensor."""
        return self.place.spread(self.part)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Run on the rows where that is known to be right, on the whole otherwise."""
        rule = cls.rules.get(func)
        if rule is not None:
            result = rule(func, args, kwargs or {})
            if result is not NotImplemented:
                return result
        plain, named = tree_map_only(Rows, Rows.whole, (args, kwargs or {}))
        outputs = func(*plain, **named)
        if func._schema.is_mutable and isinstance(args[0], Rows):
            return args[0].become(outputs)
        return outputs

    def become(self, whole: torch.Tensor) -> "Rows":
        """Hold all samples, after something was written to the whole tensor."""
        every = torch.arange(self.place.samples, device=whole.device)
        self.part, self.place = whole, replace(self.place, index=every, scratch={})
        return self
