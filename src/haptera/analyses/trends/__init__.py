"""Trends: why accuracies on two sets of data fall on a line, which model leaves it, and accuracy without labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from haptera.errors import HapteraError, check_keys

if TYPE_CHECKING:
    from haptera.analyses.trends.analysis import Trends
    from haptera.analyses.trends.many import ManyTrends
    from haptera.analyses.trends.unlabelled import Unlabelled

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
    *shifted: str,
    model: Sequence[str] = (),
    n: tuple[int, int] | None = None,
    unlabelled: str | None = None,
    **settings: Annotated[Any, TrendSettings],
) -> "Trends | ManyTrends | Unlabelled":
    """Fit lines to the accuracies of models on two sets of data or more, and say why, how sure, and who is off them.

    Args:
        reference: an .npz (FILE.npz or FILE.npz:ARRAY), a .csv (or FILE.csv:COLUMN), or FOLDER:STREAM of a study.
        shifted: the same models on shifted data, likewise; of several sets, or of a wide CSV or a study, each.
        model: a model to place among the others.
        n: examples of the reference and of shifted data, where files of accuracies do not say.
        unlabelled: predictions or logits of the models on data without labels, whose accuracy there is predicted;
            shifted data, with labels, say how far off that is.
        settings: `fit`, `switch`, `joined`, `wedge`, `share`, `baseline`, `standard`, `draws` and `seed`, as
            `TrendSettings`.
    """
    from haptera.analyses.trends.analysis import Trends
    from haptera.analyses.trends.reading import expand, read_side
    from haptera.analyses.trends.side import join
    from haptera.analyses.trends.wedge import as_wedge

    check_keys("setting of trends", settings, TrendSettings.__dataclass_fields__)
    if unlabelled is not None:
        from haptera.analyses.trends.unlabelled import Unlabelled

        return Unlabelled.read(str(reference), str(unlabelled), [str(source) for source in shifted])
    if not shifted:
        raise HapteraError("trends needs shifted data, a file or stream after the reference, or unlabelled data")
    first = read_side(str(reference))
    sources = [each for source in shifted for each in expand(str(source)) if each != str(reference)]
    others = [read_side(source) for source in sources or map(str, shifted)]
    if n is not None:
        first, others = first.with_n(n[0]), [side.with_n(n[1]) for side in others]
    wedge = as_wedge(settings["wedge"]) if settings.get("wedge") else None
    settings |= {"wedge": wedge}
    if len(others) == 1:
        return Trends(join(first, others[0]), placed=model, **settings)
    from haptera.analyses.trends.many import ManyTrends

    return ManyTrends.of(first, others, **settings)
