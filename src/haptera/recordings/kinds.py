"""Kinds: of what kind a label is where nobody says so, and what is to be doubted where somebody, or the file, does.

Text and whole numbers of few different values are classes; more of them are a measurement, such as a position in
pixels. Floats are numbers, or an angle if their name and range say so. MATLAB and tables with empty cells hold whole
numbers as floats: such a label stays a number, for nothing tells it from a measurement, and a note names the other
reading. So does a note where a range contradicts a unit: radians that go to 359, degrees that go to 6.28, or a number
that jumps from one end of a turn to the other.
"""

import numpy as np

ANGULAR = ("angle", "direction", "heading", "theta", "phase", "yaw", "orientation")
MANY = 50
"""Different whole numbers, beyond which a label of unknown kind is not taken for classes."""
RADIANS, DEGREES = 2 * np.pi, 360.0
AROUND = 0.75
"""Share of a turn that angles at least go through, in what is taken for one."""
JUMP, STEP = 0.9, 0.1
"""Shares of a turn: of the longest way from sample to sample where an angle wraps, and of the usual one at most."""
ROUNDING = 0.01
"""Share of a turn by which the range of what wraps may be off it."""
JUMPS, BETWEEN, FILLED = 5, 0.1, 0.01
"""Where it is certain: jumps at least, share of steps of a quarter to three of them, of samples in each tenth."""


def guess_kind(values: np.ndarray, name: str) -> tuple[str, str]:
    """Return the kind of a label of which nobody says it, and a note; an empty one where there is no doubt.

    >>> guess_kind(np.array([1.0, 2.0, 1.0]), "stimulus")[0], guess_kind(np.array([1, 2, 1]), "stimulus")
    ('continuous', ('discrete', ''))
    """
    if values.dtype.kind not in "iuf":
        return ("discrete" if values.ndim == 1 else "continuous"), ""
    if values.ndim > 1:
        return "continuous", ""
    known = values[np.isfinite(values)]
    count, whole = len(np.unique(known)), values.dtype.kind in "iu"
    if whole and count <= MANY:
        return "discrete", (
            f"{name} has {count} different whole numbers and is taken as classes; {name}:degrees takes it as an angle"
            if _is_angular(name) and _goes_round(known, DEGREES)
            else ""
        )
    if _is_angular(name) and _goes_round(known, DEGREES):
        return "degrees", f"{name} is taken as an angle in degrees; {name}:continuous takes it as a number"
    if _is_angular(name) and not whole and _goes_round(known, RADIANS):
        return "angle", ""
    return "continuous", _doubt_of_number(known, count, name)


def doubt_of_unit(values: np.ndarray, kind: str, name: str) -> str:
    """Return what is to be said where the range of an angle is that of the other unit; empty where it is not.

    >>> doubt_of_unit(np.array([0.0, 90.0, 359.0]), "angle", "hd")
    'hd is read in radians, and goes from 0 to 359, as degrees do; hd:degrees reads degrees'
    """
    if values.ndim != 1 or values.dtype.kind not in "iuf" or kind not in ("angle", "degrees"):
        return ""
    known = values[np.isfinite(values)]
    span = f"goes from {known.min():.3g} to {known.max():.3g}" if len(known) else ""
    if kind == "angle" and _goes_round(known, DEGREES):
        return f"{name} is read in radians, and {span}, as degrees do; {name}:degrees reads degrees"
    if kind == "degrees" and _goes_round(known, RADIANS):
        return f"{name} is read in degrees, and {span}, as radians do; {name}:angle reads radians"
    return ""


def turn_of(values: np.ndarray) -> float | None:
    """Return the turn, 2π, 360 or 1, at which numbers wrap for certain; None where they do not.

    They go through all of it in small steps, and jump from one end to the other. Two values that alternate do not.

    >>> turn_of(np.arange(4000) % 360), turn_of(np.arange(4000) % 300), turn_of(np.arange(4000.0) % 2)
    (360.0, None, None)
    """
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        return None
    known, ways = values[np.isfinite(values)], np.abs(np.diff(values.astype(float)))
    ways = ways[np.isfinite(ways)]
    for turn in (RADIANS, DEGREES, 1.0):
        if not len(ways) or not _wraps(known, turn, 2 * ROUNDING):
            continue
        jumps, between = (ways > JUMP * turn).sum(), ((ways > turn / 4) & (ways < 3 * turn / 4)).sum()
        least = np.histogram(known, 10)[0].min()
        return turn if jumps >= JUMPS and between <= BETWEEN * jumps and least >= FILLED * len(known) else None
    return None


def note_of_turn(name: str, turn: float) -> str:
    """Return what is to be said of numbers that are averaged around their turn."""
    return f"{name} jumps from one end of its range to the other: means go around its turn of {turn:.3g}, not across it"


def _doubt_of_number(known: np.ndarray, count: int, name: str) -> str:
    """Return what is to be said of numbers that may be classes or an angle; empty if they are neither."""
    if known.dtype.kind in "iu":
        return (
            f"{name} has {count:,} different whole numbers and is taken as continuous; {name}:discrete takes them as "
            f"classes, {name}:degrees as an angle"
        )
    if 1 < count <= MANY and (known == np.round(known)).all():
        return (
            f"{name} has {count} different whole numbers, stored as floats, and is taken as continuous; "
            f"{name}:discrete takes them as classes"
        )
    for turn, kind in ((RADIANS, "angle"), (DEGREES, "degrees")):
        if _wraps(known, turn):
            return (
                f"{name} jumps from one end of its range, {known.min():.3g} to {known.max():.3g}, to the other, and is "
                f"taken as continuous; {name}:{kind} takes it as an angle"
            )
    if _is_angular(name) and len(known) and np.ptp(known) > RADIANS * (1 + ROUNDING):
        return (
            f"{name} goes from {known.min():.3g} to {known.max():.3g} and is taken as continuous, not as an angle; "
            f"{name}:angle reads radians, {name}:degrees degrees"
        )
    return ""


def _is_angular(name: str) -> bool:
    return any(word in name.lower() for word in ANGULAR)


def _goes_round(known: np.ndarray, turn: float) -> bool:
    """Say whether numbers lie in a turn, from 0 or around it, and go through most of it."""
    if not len(known):
        return False
    low, high = float(known.min()), float(known.max())
    close = 1e-6 * (turn == RADIANS)
    inside = (low >= 0 and high <= turn + close) or (low >= -turn / 2 - close and high <= turn / 2 + close)
    return inside and high - low > AROUND * turn


def _wraps(known: np.ndarray, turn: float, rounding: float = ROUNDING) -> bool:
    """Say whether numbers fill a turn, change little from sample to sample, and jump from its end to its beginning."""
    if len(known) < 3 or not _goes_round(known, turn) or abs(float(np.ptp(known)) / turn - 1) > rounding:
        return False
    ways = np.abs(np.diff(known))
    return bool(ways.max() > JUMP * turn and np.median(ways) < STEP * turn)
