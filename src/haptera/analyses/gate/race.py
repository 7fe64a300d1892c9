"""Race: which cell to ask next, and when the answer is certain.

Every comparison holds two bets (`statistics.betting`), which may be looked at after every batch: that it fell by more
than the tolerance, and that it did not fall by the drop that must not slip through. The first one that wins the bet on
a fall, corrected for the number of comparisons (Bonferroni), ends the race: the gate fails. One that wins the other is
cleared, and no more of it is run. So a candidate that did not fall fails in at most half of `alpha`, and a drop of that
size is cleared in at most half of `alpha`, whenever one stops. Bars are two more bets each, about the score itself: one
that is certain to be missed ends the race as well, and a comparison is cleared when all of its bars are held.

Next is the cell with the most to tell for its time: how likely a fall is there (the accuracy that the shift costs the
model before, times what is left to lose, times what the bet on a fall has won), over the seconds that it takes to
decide it, as far as the baseline's records say. A budget of time then buys the cells that tell most. Cost: under a
millisecond for each batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log

import numpy as np
import pandas as pd

from haptera.analyses.gate.bars import COLUMNS as BAR_COLUMNS
from haptera.analyses.gate.bars import HELD, MISSED, Bar, bars_of
from haptera.analyses.gate.decide import (
    CLEARED,
    COLUMNS,
    FELL,
    SAME,
    UNDECIDED,
    UNSEEN,
    describe,
)
from haptera.analyses.gate.pairs import About, Pairs
from haptera.statistics.betting import anytime_interval, evidence_above, evidence_below

ALPHA = 0.05
FLOOR = 0.1
"""How likely a fall is taken to be where the shift costs nothing, beside a loss of all accuracy."""
GUESS = 50
"""Images that the guess before the first batch counts as much as."""
OVERHEAD = 1.5
"""Of the logarithm of a capital: what the mixture of bets costs, roughly."""


@dataclass(frozen=True)
class Lane:
    """One comparison of a cell before it is run.

    Attributes:
        about: which one.
        before: the mean score of the model before.
        images: how many it has.
        limits: bars that the mean score must reach.
    """

    about: About
    before: float
    images: int
    limits: tuple[float, ...] = ()


@dataclass
class _State:
    """What is known about one comparison."""

    lane: Lane
    images: list[np.ndarray] = field(default_factory=list)
    before: list[np.ndarray] = field(default_factory=list)
    after: list[np.ndarray] = field(default_factory=list)
    values: np.ndarray = field(default_factory=lambda: np.empty(0))
    counts: np.ndarray = field(default_factory=lambda: np.empty(0))
    fall: float = 0.0
    verdict: str = UNSEEN

    def add(self, images: np.ndarray, before: np.ndarray, after: np.ndarray) -> None:
        for kept, new in ((self.images, images), (self.before, before), (self.after, after)):
            kept.append(new)
        every = np.concatenate([self.values, after - before])
        weights = np.concatenate([self.counts, np.ones(len(images))])
        self.values, places = np.unique(every, return_inverse=True)
        self.counts = np.bincount(places, weights)

    @property
    def scores(self) -> np.ndarray:
        return np.concatenate(self.after) if self.after else np.empty(0)

    @property
    def pairs(self) -> Pairs:
        none = [np.empty(0)]
        columns = (np.concatenate(kept or none) for kept in (self.images, self.before, self.after))
        return Pairs(self.lane.about, *columns)


class Race:
    """Decides comparisons one batch after the other.

    Args:
        cells: key of a cell -> its comparisons.
        seconds: key of a cell -> what an answer takes; 1 where nobody knows.
        tolerance: how much may be lost.
        drop: the drop that must not slip through.
        alpha: half of it is the chance to fail a candidate that did not fall, half that to clear such a drop.

    Attributes:
        fell: whether some comparison is certain to have fallen, or to miss a bar.
        order: the cells that were asked, in the order in which they were asked first.
    """

    def __init__(
        self,
        cells: Mapping[str, Sequence[Lane]],
        seconds: Mapping[str, float],
        tolerance: float,
        drop: float,
        alpha: float = ALPHA,
    ) -> None:
        self.tolerance, self.drop, self.alpha, self.seconds = tolerance, drop, alpha, seconds
        self.states = {key: {lane.about.key: _State(lane) for lane in lanes} for key, lanes in cells.items()}
        self.comparisons = sum(map(len, self.states.values()))
        self.bars = sum(len(state.lane.limits) for state in self._all)
        self.best = max((state.lane.before for state in self._all), default=1.0)
        self.open = {key: self._priority(key) for key in self.states}
        self.order: list[str] = []
        self.fell = False

    @property
    def _all(self) -> list[_State]:
        return [state for own in self.states.values() for state in own.values()]

    def next(self) -> str | None:
        """Return the cell that tells most; None when the answer is certain, or nothing is left to ask."""
        return None if self.fell or not self.open else max(self.open, key=lambda key: self.open[key])

    def add(self, cell: str, answers: Mapping[tuple[object, ...], tuple[np.ndarray, np.ndarray, np.ndarray]]) -> None:
        """Take answers of a cell.

        Args:
            cell: its key.
            answers: key of a comparison -> images, scores before, scores after.
        """
        if cell not in self.order:
            self.order.append(cell)
        for key, columns in answers.items():
            state = self.states[cell][key]
            state.add(*columns)
            self._judge(state)
        if all(state.verdict in (FELL, CLEARED) for state in self.states[cell].values()):
            self.open.pop(cell, None)
        else:
            self.open[cell] = self._priority(cell)

    def close(self, cell: str) -> None:
        """Take a cell out that has no more answers; what the bets have not decided is within noise."""
        self.open.pop(cell, None)
        for state in self.states[cell].values():
            if state.verdict == UNDECIDED:
                state.verdict = SAME

    def _judge(self, state: _State) -> None:
        state.fall = evidence_below(state.values, state.counts, -self.tolerance)
        bars = [self.judge_bar(state.scores, limit) for limit in state.lane.limits]
        self.fell |= MISSED in bars
        if state.fall >= log(2 * self.comparisons / self.alpha):
            state.verdict, self.fell = FELL, True
        elif evidence_above(state.values, state.counts, -self.drop) >= log(2 / self.alpha) and UNDECIDED not in bars:
            state.verdict = CLEARED
        else:
            state.verdict = UNDECIDED

    def judge_bar(self, scores: np.ndarray, limit: float) -> str:
        """Return `missed` or `held` where that is certain of a mean score and a bar, else `undecided`."""
        values, counts = np.unique(2 * scores - 1, return_counts=True)  # bets are about numbers from -1 to 1
        if evidence_below(values, counts, 2 * limit - 1) >= log(2 * self.bars / self.alpha):
            return MISSED
        return HELD if evidence_above(values, counts, 2 * limit - 1) >= log(2 / self.alpha) else UNDECIDED

    def _priority(self, cell: str) -> float:
        lanes = [state for state in self.states[cell].values() if state.verdict in (UNSEEN, UNDECIDED)]
        return max((self._worth(state) / max(self.seconds.get(cell, 1.0), 1e-9) for state in lanes), default=0.0)

    def _worth(self, state: _State) -> float:
        """Return how likely a fall is, over the answers that it takes to decide."""
        before, seen = state.lane.before, float(state.counts.sum())
        likely = before * (FLOOR + max(self.best - before, 0.0)) * float(np.exp(np.clip(state.fall, 0.0, 20.0)))
        guess = max(0.05, 0.3 * before * (1 - before))
        spread = (float((state.values**2) @ state.counts) + GUESS * guess) / (seen + GUESS)
        mean = float(state.values @ state.counts) / (seen + GUESS)
        gap = max(abs(mean + self.drop), self.drop / 4, 1e-3)
        needed = 2 * spread * (log(2 / self.alpha) + OVERHEAD) / gap**2
        return likely / max(needed - seen, 1.0)

    @property
    def verdicts(self) -> dict[tuple[object, ...], tuple[str, int]]:
        """Key of a comparison -> its verdict, and how many images it took."""
        return {
            key: (own.verdict, int(own.counts.sum())) for states in self.states.values() for key, own in states.items()
        }

    def pairs(self) -> list[Pairs]:
        """Return the comparisons that were looked at, with what was seen of them."""
        return [state.pairs for state in self._all if len(state.counts)]

    def bar_rows(self, bars: Sequence[Bar]) -> pd.DataFrame:
        """Return a row for each bar of each comparison; where every answer was seen, its value decides."""
        rows = []
        for state in self._all:
            for bar in bars_of(bars, state.lane.about.shift, state.lane.about.severity):
                own, scores = vars(state.lane.about) | {"measure": bar.measure, "bar": bar.text}, state.scores
                own["verdict"] = self.judge_bar(scores, bar.limit) if len(scores) else UNSEEN
                if len(scores):
                    values, counts = np.unique(2 * scores - 1, return_counts=True)
                    low, high = anytime_interval(values, counts, self.alpha / self.bars)
                    own |= {"value": float(scores.mean()), "low": (1 + low) / 2, "high": (1 + high) / 2}
                if len(scores) >= state.lane.images:
                    own["verdict"] = MISSED if own["value"] < bar.limit else HELD
                rows.append(own)
        return pd.DataFrame(rows, columns=BAR_COLUMNS)

    def frame(self, measure: str) -> pd.DataFrame:
        """Return a row for each comparison, with an interval that holds at any time and for all of them."""
        rows = []
        for state in self._all:
            row: dict[str, object] = {"verdict": state.verdict}
            if len(state.counts):
                ends = anytime_interval(state.values, state.counts, self.alpha / self.comparisons)
                row |= describe(state.pairs, measure) | {"low": ends[0], "high": ends[1]}
                row["difference"] = float(state.values @ state.counts / state.counts.sum())
            else:
                about = state.lane.about
                row |= vars(about) | {"measure": measure, "images": 0, "lost": 0, "won": 0, "before": state.lane.before}
            rows.append(row)
        return pd.DataFrame(rows, columns=COLUMNS).astype(
            {"after": float, "difference": float, "low": float, "high": float}
        )
