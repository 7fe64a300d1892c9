"""Trends: why accuracies on two sets of data fall on a line, and which model leaves it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from haptera.errors import check_keys

if TYPE_CHECKING:
    from haptera.analyses.trends.analysis import Trends

__all__ = ["TrendSettings", "trends"]


@dataclass(frozen=True, kw_only=True)
class TrendSettings:
    """Which line, which wedge, and how many draws.

    Attributes:
        fit: line to measure from: linear, probit, logit, two_piece, robust, robust_probit or best.
        switch: two pieces meet at the model of this rank; else at the best.
        joined: whether two pieces meet at all.
        wedge: δ1 δ2 ν1 ν2 to test; else the narrowest.
        share: of the events, for which a narrowest wedge is sought too.
        baseline: what relative robustness compares with; else the line at the best other model.
        standard: models that the line is fitted to, such as 'resnet*'; else all, or the group standard of a column.
        draws: of examples, and of models, for the intervals.
        seed: of the draws.
    """

    fit: str = "best"
    switch: int | None = None
    joined: bool = True
    wedge: tuple[float, float, float, float] | None = None
    share: float = 0.95
    baseline: str | None = None
    standard: Sequence[str] = ()
    draws: int = 1000
    seed: int = 0


def trends(
    reference: str,
    shifted: str,
    *,
    model: Sequence[str] = (),
    n: tuple[int, int] | None = None,
    **settings: Annotated[Any, TrendSettings],
) -> "Trends":
    """Fit lines to the accuracies of models on two sets of data, and say why, how sure, and who is off them.

    Args:
        reference: an .npz (FILE.npz or FILE.npz:ARRAY), a .csv (or FILE.csv:COLUMN), or FOLDER:STREAM of a study.
        shifted: the same models on shifted data, likewise.
        model: a model to place among the others.
        n: examples of the reference and of shifted data, where files of accuracies do not say.
        settings: `fit`, `switch`, `joined`, `wedge`, `share`, `baseline`, `draws` and `seed`, as `TrendSettings`.
    """
    from haptera.analyses.trends.analysis import Trends
    from haptera.analyses.trends.reading import read_side
    from haptera.analyses.trends.side import join
    from haptera.analyses.trends.wedge import as_wedge

    check_keys("setting of trends", settings, TrendSettings.__dataclass_fields__)
    sides = [read_side(str(source)) for source in (reference, shifted)]
    if n is not None:
        sides = [side.with_n(each) for side, each in zip(sides, n, strict=True)]
    wedge = as_wedge(settings["wedge"]) if settings.get("wedge") else None
    return Trends(join(*sides), placed=model, **settings | {"wedge": wedge})
