"""Quick: run, or read, a candidate a few batches at a time, and stop as soon as the answer is certain.

Where the model is as it is, batches come in a random order that depends on the seed alone, and images of a stream that
is sorted are mixed first. An adapter that learns from what it has seen is run through its whole cell at once.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd

from haptera.analyses.gate.analysis import Effort
from haptera.analyses.gate.bars import Bar, bars_of, check_places
from haptera.analyses.gate.pairs import About, Pairs, Scores, pair_scores, scores_by_place
from haptera.analyses.gate.race import Lane, Race
from haptera.analyses.gate.reading import cells_of_model, load_scores, pair_names
from haptera.errors import HapteraError
from haptera.outputs import Outputs
from haptera.progress import Progress
from haptera.run.cells import CellEntry
from haptera.run.ledger import Ledger
from haptera.run.matching import Names
from haptera.words import count

CHUNK = 128
"""Answers that are asked for at a time, at least."""


@dataclass(frozen=True)
class Before:
    """What the model before said in one cell.

    Attributes:
        cell: of the baseline.
        scores: by shift and severity.
        seconds: for an answer; NaN where they were not recorded.
    """

    cell: CellEntry
    scores: Scores
    seconds: float

    def lanes(self, bars: Sequence[Bar] = ()) -> list[Lane]:
        """Return the comparisons of the cell, with what bars demand of them."""
        made = []
        for place, frame in self.scores.items():
            about = self._about(place)
            limits = tuple(bar.limit for bar in bars_of(bars, about.shift, about.severity))
            made.append(Lane(about, float(frame["score"].mean()), frame["image"].nunique(), limits))
        return made

    def _about(self, place: tuple[str, float | None]) -> About:
        return About(*self.cell.names[:4], place[0], float("nan") if place[1] is None else place[1])

    def pair(self, after: Scores) -> dict[tuple[object, ...], tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return the answers of a candidate beside these: key of a comparison -> images, scores before and after."""
        found = {}
        for place, frame in pair_scores(self.scores, after, self.cell.title):
            columns = tuple(frame[name].to_numpy() for name in ("image", "before", "after"))
            found[self._about(place).key] = columns
        return found  # type: ignore[return-value]


@dataclass(frozen=True)
class RaceResult:
    """What a race found: a row for each comparison, what was seen of them, a row for each bar, and the effort."""

    comparisons: pd.DataFrame
    pairs: list[Pairs]
    bars: pd.DataFrame
    effort: Effort


class Candidate(Protocol):
    """What can be asked, a few answers at a time."""

    def cells(self) -> Mapping[str, Names]:
        """Return key -> names of the cells that it can answer."""

    def draw(self, key: str, like: Scores) -> Scores | None:
        """Return the next answers of a cell, in groups like these; None when there are no more."""


class RecordedCandidate:
    """A study that was run already: its answers in a random order.

    Args:
        ledger: of the study.
        model: which of its models.
        seed: of the order.
    """

    def __init__(self, ledger: Ledger, model: str | None = None, seed: int = 0) -> None:
        self.ledger = ledger
        done = {piece.key for piece in ledger.finished}
        cells = cells_of_model(ledger, model, "model")
        self.entries = {names: cell for names, cell in cells.items() if cell.key in done}
        self._by_key = {cell.key: cell for cell in self.entries.values()}
        self._waiting: dict[str, list[Scores]] = {}
        self._random = np.random.default_rng(seed)

    def cells(self) -> dict[str, Names]:
        """Return key -> names of the finished cells."""
        return {cell.key: names for names, cell in self.entries.items()}

    def draw(self, key: str, like: Scores) -> Scores | None:
        """Return the next answers of a cell, in groups like these; None when there are no more."""
        if key not in self._waiting:
            scores = load_scores(self.ledger, self._by_key[key], "accuracy", like)
            self._waiting[key] = self._cut(scores)
        return self._waiting[key].pop(0) if self._waiting[key] else None

    def _cut(self, scores: Scores) -> list[Scores]:
        parts: list[dict[tuple[str, float | None], pd.DataFrame]] = []
        for place, frame in scores.items():
            images = self._random.permutation(frame["image"].unique())
            for turn, own in enumerate(np.array_split(images, max(1, len(images) // CHUNK))):
                parts += [{}] if len(parts) <= turn else []
                parts[turn][place] = frame[frame["image"].isin(own)]
        return list(parts)


def baseline_cells(ledger: Ledger, model: str | None, cells: Mapping[str, Names]) -> dict[str, Before]:
    """Return what the model before said: key of a cell of the candidate -> the same cell of the baseline, first seed.

    Args:
        ledger: of the baseline.
        model: which of its models.
        cells: of the candidate.
    """
    done = {piece.key for piece in ledger.finished}
    theirs = cells_of_model(ledger, model, "baseline model")
    entries = {names: CellEntry(key, *names) for key, names in cells.items()}
    ours, theirs = pair_names(entries, {names: cell for names, cell in theirs.items() if cell.key in done})
    found, seeds = {}, set()
    for names in sorted(ours.keys() & theirs.keys(), key=str):
        if names[:4] in seeds:
            continue
        seeds.add(names[:4])
        cell = theirs[names]
        outputs = Outputs.load(ledger.checked(cell.piece))
        seconds = outputs.steps.get("seconds", np.full(1, np.nan)).sum() / max(len(outputs), 1)
        scores = scores_by_place(outputs, "accuracy", f"{ledger.folder}: {cell.title}")
        found[ours[names].key] = Before(cell, scores, float(seconds))
    if not found:
        raise HapteraError(
            f"{ledger.folder} has no finished cell of the candidate's streams and adapters; it has "
            f"{count(len(theirs), 'cell')}, the candidate {count(len(cells), 'cell')}"
        )
    return found


def run_race(
    candidate: Candidate,
    before: Mapping[str, Before],
    tolerance: float,
    drop: float,
    minutes: float | None = None,
    progress: bool | None = None,
    bars: Sequence[Bar] = (),
) -> RaceResult:
    """Ask a candidate until the answer is certain.

    Args:
        candidate: what is asked.
        before: key of a cell -> what the model before said.
        tolerance: how much may be lost.
        drop: the drop that must not slip through.
        minutes: after which it stops; None for as long as it takes.
        progress: show a bar.
        bars: what the candidate must reach.
    """
    known = [own.seconds for own in before.values() if own.seconds == own.seconds and own.seconds > 0]
    usual = float(np.median(known)) if known else 1.0
    seconds = {key: own.seconds if own.seconds > 0 else usual for key, own in before.items()}
    lanes = {key: own.lanes(bars) for key, own in before.items()}
    check_places(bars, [(lane.about.shift, lane.about.severity) for own in lanes.values() for lane in own])
    race = Race(lanes, seconds, tolerance, drop)
    start, why, longest = time.monotonic(), "every answer", 0.0
    with Progress("gate", len(before), progress) as bar:
        while (key := race.next()) is not None:
            began = time.monotonic()
            if minutes is not None and began - start + longest > 60 * minutes:
                why = f"stopped by the budget of {minutes:g} min"
                break
            answers = candidate.draw(key, before[key].scores)
            if answers is None:
                race.close(key)
            else:
                race.add(key, before[key].pair(answers))
            longest = max(longest, time.monotonic() - began) if minutes is not None else 0.0
            if key not in race.open:
                bar.advance(before[key].cell.title)
    spent = time.monotonic() - start
    pairs = race.pairs()
    answers_seen = sum(len(each.images) for each in pairs)
    every = sum(lane.images for own in lanes.values() for lane in own)
    if why == "every answer" and answers_seen < every:
        why = "stopped when the answer was certain"
    order = [before[key].cell.part for key in race.order]
    effort = Effort(answers_seen, every, 0.0 if minutes is None else spent, why, order)
    return RaceResult(race.frame("accuracy"), pairs, race.bar_rows(bars), effort)
