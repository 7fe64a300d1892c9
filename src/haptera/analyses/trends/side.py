"""Side: models on one set of data, as far as anybody wrote it down: who is right on which example, or accuracies.

Two sides are joined by the names of the models. What is left over, moved or repaired on the way is said in a note.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from haptera.errors import HapteraError, nearest
from haptera.words import shorten

FEWEST = 3
STANDARD = "standard"
"""The group of the models that a line is fitted to."""
MOST_MODELS = 10_000
"""More are examples that were taken for models; the draws of their lines would not fit into memory either."""


@dataclass(frozen=True, eq=False)
class Side:
    """Models on one set of data.

    Attributes:
        source: where it comes from, for messages.
        models: their names, each once.
        accuracy: `(models,)`.
        n: `(models,)`, on how many examples; None if nobody wrote it down.
        correct: `(models, examples)`, whether each is right; None where only accuracies are known.
        ids: `(examples,)`, each once; None if they have no names.
        notes: what a reader must know about it.
        groups: `(models,)`, the kind of each model, such as `standard`; None where nobody says.
    """

    source: str
    models: tuple[str, ...]
    accuracy: np.ndarray
    n: np.ndarray | None = None
    correct: np.ndarray | None = None
    ids: np.ndarray | None = None
    notes: tuple[str, ...] = field(default=())
    groups: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.models) > MOST_MODELS:
            raise HapteraError(
                f"{self.source} has {len(self.models):,} models; at most {MOST_MODELS:,} were expected, one row each: "
                "are these examples?"
            )
        name, times = Counter(self.models).most_common(1)[0] if self.models else ("", 0)
        if times > 1:
            raise HapteraError(
                f"{self.source}: the name {name!r} comes {times} times; one row for each model was expected"
            )
        outside = (self.accuracy < 0) | (self.accuracy > 1) | np.isnan(self.accuracy)
        if outside.any():
            first = int(outside.argmax())
            raise HapteraError(
                f"{self.source}: {self.models[first]} has the accuracy {self.accuracy[first]:g}; 0 to 1 was expected"
            )
        if self.ids is not None and len(np.unique(self.ids)) < len(self.ids):
            raise HapteraError(f"{self.source}: ids repeat; one for each example was expected")

    @classmethod
    def of_correct(
        cls,
        source: str,
        models: Sequence[str],
        correct: np.ndarray,
        ids: np.ndarray | None = None,
        notes: Sequence[str] = (),
        groups: Sequence[str] | None = None,
    ) -> "Side":
        """A side of which is known who is right on which example."""
        n = np.full(len(models), correct.shape[1])
        kinds = None if groups is None else tuple(groups)
        return cls(source, tuple(models), correct.mean(1), n, correct, ids, tuple(notes), kinds)

    @property
    def at_the_ends(self) -> list[str]:
        """Models with an accuracy of 0 or 1."""
        return [name for name, each in zip(self.models, self.accuracy, strict=True) if each in (0, 1)]

    @property
    def name(self) -> str:
        """Return what the data is called: the array, column or stream, or else the file without its ending."""
        last = Path(self.source).name
        beginning, _, rest = last.partition(":")
        return rest or Path(beginning).stem or self.source

    @property
    def size(self) -> str:
        """Return the number of examples as a sentence says it, such as `500 to 508`; empty where it is not known."""
        least, most = (0, 0) if self.n is None else (self.n.min(), self.n.max())
        return f"{least:,} to {most:,}" if least < most else f"{most:,}" if most else ""

    def with_n(self, n: int) -> "Side":
        """The same with the number of examples, which was not written down."""
        if n < 1:
            raise HapteraError(f"n of {self.source} is {n}; a number of examples was expected")
        if self.n is not None and (self.n != n).any():
            raise HapteraError(f"n is {n:,}, but {self.source} itself says {self.size}; leave n out")
        return replace(self, n=np.full(len(self.models), n))

    def only(self, models: Sequence[str]) -> "Side":
        """The same for some of the models, in that order."""
        places = {name: place for place, name in enumerate(self.models)}
        rows = [places[name] for name in models]
        return replace(
            self,
            models=tuple(models),
            accuracy=self.accuracy[rows],
            n=None if self.n is None else self.n[rows],
            correct=None if self.correct is None else np.ascontiguousarray(self.correct[rows]),
            groups=None if self.groups is None else tuple(self.groups[row] for row in rows),
        )


@dataclass(frozen=True, eq=False)
class Sides:
    """Two sides with the same models in the same order.

    Attributes:
        reference: the side from which the line starts.
        shifted: the other one.
        paired: whether both have the same examples, in the same order.
        notes: of both sides, and what happened when they met.
    """

    reference: Side
    shifted: Side
    paired: bool
    notes: tuple[str, ...]

    def __iter__(self) -> Iterator[Side]:
        return iter((self.reference, self.shifted))

    @property
    def sized(self) -> bool:
        """Say whether n is known on both sides."""
        return self.reference.n is not None and self.shifted.n is not None


def join(reference: Side, shifted: Side) -> Sides:
    """Keep the models that both sides have, in the order of the reference, and name the others."""
    both = set(reference.models) & set(shifted.models)
    common = [name for name in reference.models if name in both]
    notes = [*reference.notes, *shifted.notes]
    for side, other in ((reference, shifted), (shifted, reference)):
        alone = [name for name in side.models if name not in both]
        if alone:
            near = nearest(alone[0], set(other.models) - both, cutoff=0.7)
            meant = f" (is {alone[0]} the {near} of {other.source}?)" if near else ""
            notes.append(f"{len(alone)} left out, which only {side.source} has: {shorten(alone)}{meant}")
    if len(common) < FEWEST:
        found = "; ".join(notes)
        raise HapteraError(
            f"{reference.source} and {shifted.source} have {len(common)} models in common; at least {FEWEST} "
            "were expected" + (f" ({found})" if found else "")
        )
    left, right = reference.only(common), shifted.only(common)
    right, paired, note = _align(left, right)
    return Sides(left, right, paired, tuple(notes + note))


def standard_models(sides: Sides, patterns: Sequence[str]) -> np.ndarray:
    """`(models,)`, which models a pattern names; without patterns, those of the group `standard`, or else all."""
    models = sides.reference.models
    if patterns:
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in models):
                near = nearest(pattern, models, cutoff=0.5)
                meant = f"; did you mean {near!r}?" if near else ""
                raise HapteraError(
                    f"standard: no model is called {pattern!r}, a name or a pattern such as 'res*'{meant}"
                )
        seen = np.array([any(fnmatchcase(name, pattern) for pattern in patterns) for name in models])
    else:
        groups = next((side.groups for side in sides if side.groups is not None), None)
        if groups is None:
            return np.ones(len(models), bool)
        seen = np.array([group.strip().lower() == STANDARD for group in groups])
        if not seen.any():
            raise HapteraError(
                f"{sides.reference.source}: no model is of the group {STANDARD!r}, only {shorten(sorted(set(groups)))}"
            )
    if seen.sum() < FEWEST:
        raise HapteraError(f"there are {seen.sum()} standard models; at least {FEWEST} were expected to fit a line to")
    return seen


def _align(reference: Side, shifted: Side) -> tuple[Side, bool, list[str]]:
    """The shifted side with its examples in the order of the reference, where both have the same ones."""
    if reference.ids is None or shifted.ids is None or shifted.correct is None or reference.correct is None:
        return shifted, False, []
    if len(reference.ids) != len(shifted.ids) or set(reference.ids.tolist()) != set(shifted.ids.tolist()):
        return shifted, False, []
    if np.array_equal(reference.ids, shifted.ids):
        return shifted, True, []
    place = {each: at for at, each in enumerate(shifted.ids.tolist())}
    columns = np.array([place[each] for each in reference.ids.tolist()])
    note = f"the examples of {shifted.source} were put into the order of those of {reference.source}, by id"
    return replace(shifted, correct=shifted.correct[:, columns], ids=reference.ids), True, [note]
