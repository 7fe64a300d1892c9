"""Recurring: the same shifts in the same order, again and again, with nothing reset in between.

Source: Hoang et al. (2024), Persistent test-time adaptation in recurring testing scenarios (PeTTA): the sequence of
corruptions comes twenty times, and what is reported is the error of each visit. A method that slowly collapses looks
well on the first visit.
Differs: classes come mixed, unless `labels="dirichlet"` says that they come in runs, as in the paper. Each visit shows
the images in an order of its own, with noise of its own.
"""

from dataclasses import dataclass, field

from haptera.batch import Batch
from haptera.checks import check_whole_number
from haptera.streams.condition import Condition
from haptera.streams.sequence import Continual

MOST_VISITS = 10**5


@dataclass(frozen=True)
class Recurring(Continual):
    """The data under one shift after the other, and all of them again, several times.

    The context has the key `visit`, from 1; the measure `visit_error` is the mean error of each.

    Args:
        data: a data set whose images are shifted while they are read, or one that is corrupted already, in parts.
        shifts: classes of shifts; names, where data is in parts.
        severity: from 0 to 5; by default 5, or the largest that is there.
        visits: how many times the shifts come.
    """

    visits: int = 20
    name: str = field(default="recurring", kw_only=True)

    def __post_init__(self) -> None:
        check_whole_number(f"visits of the stream {self.name!r}", self.visits, 1, MOST_VISITS)
        super().__post_init__()

    def steps(self) -> list[Condition]:
        """Every shift, as often as there are visits."""
        return super().steps() * self.visits

    def __getitem__(self, index: int) -> Batch:
        batch, (step, _) = super().__getitem__(index), self.locate(index)
        visit = 1 + step * self.visits // len(self._steps)
        return Batch(batch.inputs, batch.targets, batch.ids, {**batch.context, "visit": visit})
