"""Events: what the triplets of models say: wedges, which models own the events outside, and which are outliers.

Source: "Why do classifier accuracies show linear trends under distribution shift?", appendix C, where one model alone
broke closeness and was set aside. A file with wrong labels or with examples in another order looks just like that,
even when its accuracy does not, so an outlier is worth a look at its file.
The rule: an event outside belongs to three models. Take a given wedge, or the narrowest that leaves out as many events
as one model takes part in. Whoever owns more than a third of the events that are outside by more than chance, and more
than twice a fair share of them, is an outlier, if these are a quarter of all outside at least. It is set aside, and all
begins again without it, while a tenth of the events outside is left.
Cost: that of a frontier and of closeness for each outlier, and once more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from haptera.analyses.trends.closeness import Closeness, closeness
from haptera.analyses.trends.frontier import frontier, frontiers, narrowest
from haptera.analyses.trends.triplets import Counts, places_of_triplets
from haptera.analyses.trends.wedge import Wedge

OWNED, CLEAR, LEFT = 1 / 3, 0.25, 0.1
FEWEST = 7
"""Models; of six, each has half of the events."""


@dataclass(frozen=True, eq=False)
class Events:
    """Closeness of two sides.

    Attributes:
        counts: of the reference and of shifted data.
        frontiers: share -> the frontier of the wedges that hold it: of all events, and of the share that was asked for.
        asked: the wedge that was asked for, and what it holds; by default the narrowest that holds all events.
        share: the share that was asked for.
        most: the narrowest wedge that holds that share.
        tested: the wedge in which outliers were sought, which is the one that was asked for, if any.
        owners: who owns the events outside it.
        outliers: who owns too many, worst first.
    """

    counts: tuple[Counts, Counts]
    frontiers: dict[float, pd.DataFrame]
    asked: Closeness[Wedge]
    share: float
    most: Closeness[Wedge]
    tested: Closeness[Wedge]
    owners: pd.DataFrame
    outliers: list[str]


def analyse_events(
    models: Sequence[str], reference: Counts, shifted: Counts, wedge: Wedge | None = None, share: float = 0.95
) -> Events:
    """Find frontiers, wedges, owners and outliers."""
    lower = tested_share(len(models))
    found = frontiers(reference, shifted, list({1.0, share, lower}))

    def hold(most: float) -> Closeness[Wedge]:
        return closeness(reference, shifted, narrowest(found[most]))

    asked = closeness(reference, shifted, wedge) if wedge else hold(1.0)
    tested = asked if wedge else hold(lower)
    return Events(
        counts=(reference, shifted),
        frontiers={each: found[each] for each in dict.fromkeys((1.0, share))},
        asked=asked,
        share=share,
        most=hold(share),
        tested=tested,
        owners=owners(tested, models),
        outliers=outliers(reference, shifted, models, wedge),
    )


def outliers(reference: Counts, shifted: Counts, models: Sequence[str], wedge: Wedge | None = None) -> list[str]:
    """The names of models that own too many of the events outside, worst first.

    Args:
        reference: counts under P.
        shifted: counts under Q, of the same models in the same order.
        models: their names.
        wedge: outside of which events are counted; by default the narrowest, for each set of models anew.
    """
    left, found = [str(name) for name in models], []
    most = 0
    while len(left) >= FEWEST:
        tested = wedge or narrowest(frontier(reference, shifted, tested_share(len(left))))
        events = closeness(reference, shifted, tested)
        most = max(most, events.outside)
        owned = _count_owned(events.clear_by_triplet, len(left))
        worst = int(owned.argmax())
        enough = events.clear > CLEAR * events.outside and events.outside > LEFT * most
        if not enough or owned[worst] <= max(OWNED, 6 / len(left)) * events.clear:
            break
        found.append(left.pop(worst))
        reference, shifted = reference.without(worst), shifted.without(worst)
    return found


def tested_share(models: int) -> float:
    """The share of events that the wedge should hold in which outliers are sought.

    >>> round(tested_share(66), 4)
    0.9545
    """
    return 1 - 3 / max(models, 4)


def owners(closeness: Closeness, models: Sequence[str]) -> pd.DataFrame:
    """One row for each model, who owns most first.

    Returns:
        `model`; `outside`, the events outside that it takes part in; their `share` of all events outside; `own_share`,
        that of its own events; and `clear`, how many are outside by more than chance.
    """
    count = _count_owned(closeness.by_triplet, len(models))
    frame = pd.DataFrame({"model": [str(name) for name in models], "outside": count})
    frame["share"] = count / max(closeness.outside, 1)
    frame["own_share"] = count / (closeness.events * 3 // len(models))
    frame["clear"] = _count_owned(closeness.clear_by_triplet, len(models))
    return frame.sort_values(["outside", "clear"], ascending=False, kind="stable", ignore_index=True)


def _count_owned(by_triplet: np.ndarray, models: int) -> np.ndarray:
    """`(models,)`, the events in all triplets of each."""
    owned, start = np.zeros(models, np.int64), 0
    for places in places_of_triplets(models):
        weight = by_triplet[start : start + places.shape[1]]
        start += places.shape[1]
        for row in places:
            owned += np.bincount(row, weight, minlength=models).astype(np.int64)
    return owned
