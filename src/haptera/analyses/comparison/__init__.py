"""Comparison: in what the protocols of two studies differ, and what that does to their numbers."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from haptera.analyses.comparison.analysis import Comparison


def compare(one: Path, other: Path, /) -> "Comparison":
    """Say in what two studies differ: how they were made, and image by image in what they found.

    Args:
        one: the folder of a study.
        other: the folder of another.
    """
    from haptera.analyses.comparison.analysis import compare_studies

    return compare_studies(Path(one), Path(other))
