"""Spots: which images of a study are worth a picture, found in the outputs of its cells, which know where each was.

A spot is a row of the outputs of a cell: the batch it came in, its place there, its id, and what was said about it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from haptera.measures.averages import CLEAN
from haptera.measures.pairs import NONE
from haptera.outputs import Outputs

if TYPE_CHECKING:
    from haptera.run.work import Cell

MOST_SAMPLES, EACH = 48, 3
ERRORS, ALIKE = 6, 2
"""Errors of a model that are shown, and how many of them may be under the same shift."""
Condition = tuple[str, float | None]
"""A shift and its severity."""


@dataclass(frozen=True)
class Spot:
    """One image in a stream.

    Attributes:
        cell: in whose stream it is.
        condition: the shift and severity it is under.
        step: its batch.
        place: its position there.
        id: what the batch says at that position.
        number: of the image in its data set.
        target: index of its class; None without labels.
        predicted: index of the class that was predicted.
        confidence: the probability that the model gave to that; NaN where it is not known.
    """

    cell: "Cell"
    condition: Condition
    step: int
    place: int
    id: int
    number: int
    target: int | None
    predicted: int
    confidence: float


def unadapted(cells: Iterable["Cell"]) -> list["Cell"]:
    """Return, of cells in their order, those of the first seed without an adapter, or else with the first one."""
    cells = list(cells)
    adapters = [cell.entry.adapter for cell in cells]
    adapter = NONE if NONE in adapters else adapters[0] if adapters else NONE
    kept = [cell for cell in cells if cell.entry.adapter == adapter]
    return [cell for cell in kept if cell.entry.seed == kept[0].entry.seed]


def conditions(outputs: Outputs) -> dict[Condition, np.ndarray]:
    """Return the shifts and severities of outputs, and which rows are under each."""
    contexts, codes = outputs.groups
    found: dict[Condition, np.ndarray] = {}
    for code, context in enumerate(contexts):
        severity = context.get("severity")
        level = float(severity) if isinstance(severity, int | float) and np.isfinite(severity) else None
        condition = str(context.get("shift", CLEAN) or CLEAN), level
        rows = np.flatnonzero(codes == code)
        found[condition] = np.concatenate([found[condition], rows]) if condition in found else rows
    return found


def worth_showing(known: Iterable[Condition]) -> list[Condition]:
    """Return clean data, and each shift at its smallest and largest severity; as many as may be shown.

    >>> worth_showing([("fog", 1.0), ("fog", 3.0), ("fog", 5.0), ("clean", 0.0)])
    [('clean', 0.0), ('fog', 1.0), ('fog', 5.0)]
    """
    levels: dict[str, list[float | None]] = {}
    for shift, severity in known:
        levels.setdefault(shift, []).append(severity)
    order = sorted(levels, key=lambda shift: shift != CLEAN)
    ends = [(shift, end) for shift in order for end in dict.fromkeys(_ends(levels[shift]))]
    return ends[:MOST_SAMPLES]


def _ends(severities: Sequence[float | None]) -> tuple[float | None, float | None]:
    numbers = [each for each in severities if each is not None]
    return (min(numbers), max(numbers)) if numbers else (None, None)


def same_images(
    cell: "Cell", outputs: Outputs, condition: Condition, rows: np.ndarray, wanted: list[int]
) -> list[Spot]:
    """Return spots of the wanted images under a condition, the first ones where there are none wanted yet."""
    numbers = np.asarray(outputs.context.get("sample", outputs.ids))[rows]
    if not wanted:
        wanted += dict.fromkeys(int(each) for each in numbers[: 8 * EACH])
        del wanted[EACH:]
    places = [int(np.flatnonzero(numbers == each)[0]) for each in wanted if (numbers == each).any()]
    return [spot_at(cell, outputs, condition, int(rows[place])) for place in places]


def worst_errors(cell: "Cell", outputs: Outputs, groups: Mapping[Condition, np.ndarray]) -> list[Spot]:
    """Return, of each condition, the mistakes of which the model was most sure; none without labels or logits."""
    if outputs.targets is None or "logits" not in outputs.arrays or outputs.targets.ndim != 1:
        return []
    wrong = ~outputs.correct()
    found = []
    for condition, rows in groups.items():
        rows = rows[wrong[rows]]
        rows = rows[np.isfinite(outputs.logits[rows]).all(1)]
        sure = confidence(outputs.logits[rows])
        found += [spot_at(cell, outputs, condition, int(row)) for row in rows[np.argsort(-sure, kind="stable")[:ALIKE]]]
    return found


def most_sure(spots: Iterable[Spot]) -> list[Spot]:
    """Return the surest errors of a model, every image once and few under the same shift."""
    kept: list[Spot] = []
    for spot in sorted(spots, key=lambda spot: -spot.confidence):
        alike = sum(spot.condition[0] == each.condition[0] for each in kept)
        if alike < ALIKE and spot.number not in [each.number for each in kept]:
            kept.append(spot)
    return kept[:ERRORS]


def spot_at(cell: "Cell", outputs: Outputs, condition: Condition, row: int) -> Spot:
    """Return the spot of a row of outputs."""
    steps = np.zeros(len(outputs), np.int64) if outputs.step is None else outputs.step
    step = int(steps[row])
    known = "logits" in outputs.arrays
    return Spot(
        cell=cell,
        condition=condition,
        step=step,
        place=row - int(np.searchsorted(steps, step)),
        id=int(outputs.ids[row]),
        number=int(outputs.context["sample"][row] if "sample" in outputs.context else outputs.ids[row]),
        target=None if outputs.targets is None else int(outputs.targets[row]),
        predicted=int(outputs.predictions()[row]),
        confidence=float(confidence(outputs.logits[row : row + 1])[0]) if known else float("nan"),
    )


def confidence(logits: np.ndarray) -> np.ndarray:
    """Return the largest probability of each row of logits.

    >>> confidence(np.log([[1.0, 3.0]])).round(2).tolist()
    [0.75]
    """
    logits = np.asarray(logits, float)
    return 1 / np.exp(logits - logits.max(1, keepdims=True)).sum(1)
