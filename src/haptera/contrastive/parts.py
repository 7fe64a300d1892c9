"""Parts of an embedding: which dimensions each objective shapes; any number of objectives (8.3).

    hybrid=True                                  labels and time, both on all dimensions
    hybrid=3                                     labels on the first three, time on all
    hybrid={"behaviour": [0, 1], "time": [2]}    all labels together on some, time on others
    hybrid={"0": [0, 1], "1": [2], "time": [3]}  every label by itself, by its number in `fit(X, *y)`

Source: thesis (8.3), where the loss is a sum over parts z_i, each with a conditional of its own.
"""

from typing import Any

from haptera.errors import HapteraError

NAMES = ("behaviour", "time")


def part_names(hybrid: Any) -> tuple[str, ...]:
    """Return the names of parts that are labels by their number, and time; empty where labels go together."""
    if not isinstance(hybrid, dict) or "behaviour" in hybrid:
        return ()
    names = tuple(str(name) for name in hybrid)
    if not names or any(name != "time" and not name.isdigit() for name in names) or set(names) == {"time"}:
        raise HapteraError(
            f"hybrid has {sorted(names)}; 'behaviour', and 'time' or nothing, was expected, or numbers of labels and "
            "'time'"
        )
    return names


def learns_from_time(hybrid: Any) -> bool:
    """Say whether time is one of the objectives beside labels.

    >>> learns_from_time(3), learns_from_time({"0": [0], "1": [1]}), learns_from_time(False)
    (True, False, False)
    """
    return hybrid is not False and "time" in (part_names(hybrid) or NAMES)


def hybrid_dimensions(hybrid: Any, dimensions: int) -> list[list[int] | None]:
    """Return the dimensions of each objective; None is all of them.

    Args:
        hybrid: True is all for behaviour and for time; a number or list for behaviour, time on all; or a mapping.
        dimensions: of the embedding.

    >>> hybrid_dimensions(3, 8)
    [[0, 1, 2], None]
    >>> hybrid_dimensions({"behaviour": 2, "time": [2, 3]}, 4)
    [[0, 1], [2, 3]]
    >>> hybrid_dimensions({"0": [0, 1], "1": [2], "time": [3]}, 4)
    [[0, 1], [2], [3]]
    """
    if hybrid is True:
        return [None, None]
    parts = hybrid if isinstance(hybrid, dict) else {"behaviour": hybrid}
    names: tuple[str, ...] = part_names(hybrid)
    if not names:
        if not set(parts) <= set(NAMES):
            raise HapteraError(f"hybrid has {sorted(parts)}; 'behaviour', and 'time' or nothing, was expected")
        names = NAMES
    known = {str(name): part for name, part in parts.items()}
    return [_chosen(known.get(name), name, dimensions) for name in names]


def _chosen(part: Any, name: str, dimensions: int) -> list[int] | None:
    some = list(range(part)) if isinstance(part, int) else None if part is None else [int(one) for one in part]
    if some is not None and (not some or len(set(some)) < len(some) or not all(0 <= k < dimensions for k in some)):
        raise HapteraError(f"hybrid has {part!r} for {name}; how many, or which of 0 to {dimensions - 1}, was expected")
    return some
