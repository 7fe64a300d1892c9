"""Events: what the triplets of models say, from their counts on both sides: wedges, owners, guarantees."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from haptera.analyses.trends.closeness import Closeness, closeness
from haptera.analyses.trends.frontier import frontiers, narrowest
from haptera.analyses.trends.ownership import outliers, owners, tested_share
from haptera.analyses.trends.triplets import Counts
from haptera.analyses.trends.wedge import Wedge


@dataclass(frozen=True, eq=False)
class Held:
    """A wedge and what it holds."""

    wedge: Wedge
    closeness: Closeness


@dataclass(frozen=True, eq=False)
class Events:
    """Closeness of two sides.

    Attributes:
        counts: of the reference and of shifted data.
        frontiers: share -> the frontier of the wedges that hold it: of all events, and of the share that was asked for.
        asked: the wedge that was asked for; by default the narrowest that holds all events.
        share: the share that was asked for.
        most: the narrowest wedge that holds that share.
        tested: the wedge in which outliers were sought, which is the one that was asked for, if any.
        owners: who owns the events outside it.
        outliers: who owns too many, worst first.
    """

    counts: tuple[Counts, Counts]
    frontiers: dict[float, pd.DataFrame]
    asked: Held
    share: float
    most: Held
    tested: Held
    owners: pd.DataFrame
    outliers: list[str]


def analyse_events(
    models: Sequence[str], reference: Counts, shifted: Counts, wedge: Wedge | None = None, share: float = 0.95
) -> Events:
    """Frontiers, wedges, owners and outliers."""

    def held(each: Wedge) -> Held:
        return Held(each, closeness(reference, shifted, each))

    lower = tested_share(len(models))
    found = frontiers(reference, shifted, list({1.0, share, lower}))
    asked = held(narrowest(found[1.0]) if wedge is None else wedge)
    tested = asked if wedge else held(narrowest(found[lower]))
    return Events(
        (reference, shifted),
        {each: found[each] for each in dict.fromkeys((1.0, share))},
        asked,
        share,
        held(narrowest(found[share])),
        tested,
        owners(tested.closeness, models),
        outliers(reference, shifted, models, wedge),
    )
