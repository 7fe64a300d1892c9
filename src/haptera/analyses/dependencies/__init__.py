"""Dependencies: which classes a saved network derives from others, from its logits alone, without torch."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from haptera.analyses.dependencies.analysis import ClassDependencies

__all__ = ["dependencies"]


def dependencies(
    logits: Path,
    onto: Path | None = None,
    *,
    alpha: float | None = None,
    per_class: int | None = None,
    fit_on: str = "half",
    seed: int = 0,
) -> "ClassDependencies":
    """Find for every class the few others from which its logit can be derived.

    Args:
        logits: an .npz with logits (and targets and classes if known), a cell of a study, or a study with one cell.
        onto: derive the logits of this network, on the same samples in the same order, from those of the first.
        alpha: λ/2 of the lasso; 0.25 by default.
        per_class: instead, how many dependencies to keep for each class.
        fit_on: one half of the examples, and the other half says what it costs (half); or both on all (all), which is
            also done where a half has fewer examples than there are classes.
        seed: of the halves.
    """
    from haptera.analyses.dependencies.analysis import analyse

    return analyse(Path(logits), None if onto is None else Path(onto), alpha, per_class, fit_on, seed)
