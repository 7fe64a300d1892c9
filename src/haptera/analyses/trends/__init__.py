"""Trends: why accuracies on two sets of data fall on a line, and which model leaves it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from haptera.analyses.trends.settings import TrendSettings
from haptera.errors import check_keys

if TYPE_CHECKING:
    from haptera.analyses.trends.analysis import Trends

__all__ = ["TrendSettings", "trends"]


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

    check_keys("setting of trends", settings, TrendSettings.__match_args__)
    asked = vars(TrendSettings(**settings))
    sides = [read_side(str(source)) for source in (reference, shifted)]
    if n is not None:
        sides = [side.with_n(each) for side, each in zip(sides, n, strict=True)]
    wedge = as_wedge(asked["wedge"]) if asked["wedge"] else None
    return Trends(join(*sides), placed=model, **asked | {"wedge": wedge})
