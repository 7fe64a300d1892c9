"""Answers: what was said about recent images, kept for labels that arrive late; the oldest go first.

Cost: one row of logits for each image, at most `BYTES` in all, however many classes there are.
"""

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from haptera.correctness import check_targets, correct
from haptera.errors import HapteraError

BYTES = 2**26
UNKNOWN = -1


@dataclass(frozen=True)
class Labelled:
    """Images whose labels arrived.

    Attributes:
        logits: `(images, classes)` that were served.
        targets: `(images,)`.
        differences: of those that both models had answered: 1 where only the adapted one was right, -1 where only the
            unadapted one was, else 0.
        unknown: ids that nobody asked about, or too long ago.
        recent: `(images,)`, whether each came after the last change of the stream.
    """

    logits: np.ndarray
    targets: np.ndarray
    differences: np.ndarray
    unknown: int
    recent: np.ndarray

    @property
    def numbers(self) -> dict[str, float]:
        """Return how many are known, right, answered by both models, and how many more the adapted one got right."""
        right = int(correct(self.logits, self.targets).sum()) if len(self.targets) else 0
        own = {"known": len(self.targets), "unknown": self.unknown, "right": right}
        return own | {"compared": len(self.differences), "gained": float(self.differences.sum())}


class Answers:
    """The answers about the last images that came with ids.

    Args:
        most: images.

    Attributes:
        since: the number, in the stream, of the first image after its last change.
    """

    def __init__(self, most: int) -> None:
        self.most, self.since = most, 0
        self._rows: OrderedDict[Hashable, tuple[np.ndarray, int, int, int]] = OrderedDict()

    def add(
        self,
        ids: Sequence[Hashable],
        served: np.ndarray,
        adapted: np.ndarray | None,
        unadapted: np.ndarray | None,
        first: int = 0,
    ) -> None:
        """Keep a batch.

        Args:
            ids: one for each image.
            served: `(images, classes)`, logits.
            adapted: `(images,)`, the adapted model's classes; None where it was not asked.
            unadapted: `(images,)`, the unadapted model's; None where it was not asked.
            first: the number of the first of them in the stream.
        """
        served = served.astype(np.float32)
        most = min(self.most, BYTES // (4 * served.shape[1]))
        for row, one in enumerate(ids):
            pair = tuple(UNKNOWN if classes is None else int(classes[row]) for classes in (adapted, unadapted))
            self._rows[one] = (served[row].copy(), pair[0], pair[1], first + row)
            self._rows.move_to_end(one)
        while len(self._rows) > most:
            self._rows.popitem(last=False)

    def label(self, ids: Sequence[Hashable], targets: np.ndarray) -> Labelled:
        """Return what had been said about images whose labels arrived, and forget them; refuse what is not a class."""
        if len(targets) and not (targets.dtype.kind in "iuf" and np.array_equal(targets, np.floor(targets))):
            raise HapteraError(f"targets hold {targets.tolist()[:3]} ...; whole numbers, the classes, were expected")
        here = [(one, int(target)) for one, target in zip(ids, targets, strict=True) if one in self._rows]
        if here:
            check_targets(np.array([target for _, target in here]), len(self._rows[here[0][0]][0]), None)
        known = [(self._rows.pop(one), target) for one, target in dict(here).items()]
        logits = np.array([row[0] for row, _ in known], np.float32)
        classes = np.array([target for _, target in known], np.int64)
        both = [
            float(row[1] == target) - float(row[2] == target)
            for row, target in known
            if row[1] != UNKNOWN and row[2] != UNKNOWN
        ]
        recent = np.array([row[3] >= self.since for row, _ in known], bool)
        return Labelled(logits, classes, np.array(both), len(ids) - len(known), recent)

    def state(self) -> dict[str, Any]:
        """Return everything that changes."""
        rows = list(self._rows.values())
        logits = np.stack([row[0] for row in rows]) if rows else np.zeros((0, 0), np.float32)
        return {
            "ids": list(self._rows),
            "logits": logits,
            "classes": np.array([row[1:3] for row in rows]).reshape(-1, 2),
            "places": np.array([row[3] for row in rows], np.int64),
            "since": self.since,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; older ones do not say where in the stream images were."""
        places = state.get("places", np.zeros(len(state["ids"]), np.int64))
        numbers = np.column_stack([state["classes"], places]).astype(int).tolist()
        rows = zip(state["ids"], state["logits"], numbers, strict=True)
        self._rows = OrderedDict((one, (logits.copy(), a, b, place)) for one, logits, (a, b, place) in rows)
        self.since = int(state.get("since", 0))


def ids_of(ids: Any, images: int, what: str = "ids") -> list[Hashable]:
    """Return ids as numbers and texts; refuse what is not one for each image."""
    values = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if len(values) != images:
        raise HapteraError(f"{what} has {len(values)} entries; one for each of {images} images was expected")
    for value in values:
        if not isinstance(value, int | str):
            raise HapteraError(f"{what} holds {value!r}; whole numbers or texts were expected")
    return values
