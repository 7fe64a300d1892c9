"""Samplers: which samples are references, which their positives, which the negatives.

Source: thesis, chapter 7, "Sampling", and Suppl. note 1. References and negatives are uniform over the samples with a
whole window, or uniform over the classes of a discrete label. A positive is

    time        the sample Δ later, Δ one of a set, never across the end of a trial
    discrete    any sample of the same class
    continuous  the sample whose label is nearest to c + d, of the same class if there are classes (mixed)

with d drawn from the differences c_{t+Δ} − c_t (`TimeDelta`; the methods print the other sign, Suppl. note 1 this one)
or from N(0, δ²) (`Gaussian`).

Sessions weigh equally, whatever their length. A positive by label comes from a session drawn for each reference among
those that have its class, so that the session says nothing about the pair; the text permutes queries over sessions,
which is the same distribution. A positive in time can only be of the same session, so there the negatives are, too:
otherwise the embedding would tell sessions apart.
Cost: a sort or a tree once, and B log T for every batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from haptera.checks import check_number
from haptera.contrastive.neighbours import LabelSpace, Members, Nearest
from haptera.contrastive.signals import Timeline
from haptera.errors import HapteraError, unknown

PRIORS = ("empirical", "uniform")


@dataclass(frozen=True)
class Pairs:
    """Places on the timeline.

    Attributes:
        reference: `(groups, batch)`; negatives are for the references of their group only.
        positive: `(groups, batch)`.
        negative: `(groups, negatives)`.
    """

    reference: np.ndarray
    positive: np.ndarray
    negative: np.ndarray


class Sampler(Protocol):
    """Anything that draws pairs."""

    def draw(self, batch_size: int | None, random: np.random.Generator) -> Pairs:
        """Pairs, `batch_size` references for each session; None is every valid sample once, of a single session."""


class Marginal:
    """Where references and negatives come from.

    Args:
        timeline: of the sessions.
        classes: a code from 0 on for each sample, if there is a discrete label.
        prior: `empirical`, every sample as likely as any other, or `uniform`, every class.
    """

    def __init__(self, timeline: Timeline, classes: np.ndarray | None = None, prior: str = "empirical") -> None:
        if prior not in PRIORS:
            raise unknown("prior", prior, PRIORS)
        self.timeline, self.classes, self.uniform = timeline, classes, prior == "uniform" and classes is not None
        self.members = [] if classes is None else [Members(valid, classes[valid]) for valid in _all(timeline)]

    def draw(self, batch_size: int | None, random: np.random.Generator) -> np.ndarray:
        """Places `(sessions, batch_size)`."""
        if batch_size is None and not self.uniform:
            return self.timeline.valid[0].all()[None]
        batch_size = len(self.timeline.valid[0]) if batch_size is None else batch_size
        if self.uniform:
            return np.stack([one.draw(random.choice(one.codes, batch_size), random) for one in self.members])
        return np.stack([one.draw(batch_size, random) for one in self.timeline.valid])

    def assign(self, references: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """A session for the positive of each reference `(references,)`, among those that have its class."""
        count = self.timeline.sessions
        if self.classes is None or count == 1:
            return random.integers(count, size=len(references))
        able = np.stack([one.has(self.classes[references]) for one in self.members])
        return np.where(able, random.random(able.shape), -1.0).argmax(0)


class TimeSampler:
    """Positives in time.

    Args:
        timeline: of the sessions.
        time_offsets: Δ, or several of them, each as likely as any other.
    """

    def __init__(self, timeline: Timeline, time_offsets: Sequence[int] = (1,)) -> None:
        self._marginal, self._offsets = Marginal(timeline), np.array(time_offsets)
        self._ranges = [[timeline.with_successor(s, step) for step in time_offsets] for s in range(timeline.sessions)]
        for session, ranges in enumerate(self._ranges):
            for step, some in zip(time_offsets, ranges, strict=True):
                if not len(some):
                    raise HapteraError(f"time_offsets has {step}; session {session} has no two windows so far apart")

    def draw(self, batch_size: int | None, random: np.random.Generator) -> Pairs:
        """Pairs and negatives within each session, a group each."""
        references, positives = [], []
        for ranges in self._ranges:
            if batch_size is None:
                which = np.array(random.integers(len(self._offsets)))
                places = ranges[int(which)].all()
            else:
                which = random.integers(len(self._offsets), size=batch_size)
                places = np.empty(batch_size, np.int64)
                for number, some in enumerate(ranges):
                    places[which == number] = some.draw(int((which == number).sum()), random)
            references.append(places)
            positives.append(places + self._offsets[which])
        return Pairs(np.stack(references), np.stack(positives), self._marginal.draw(batch_size, random))


class DiscreteSampler:
    """Positives of the same class.

    Args:
        marginal: of references and negatives, with classes.
    """

    def __init__(self, marginal: Marginal) -> None:
        self._marginal = marginal

    def draw(self, batch_size: int | None, random: np.random.Generator) -> Pairs:
        """Pairs over all sessions, in one group."""
        marginal = self._marginal
        assert marginal.classes is not None, "a discrete sampler needs classes"
        reference = marginal.draw(batch_size, random).reshape(-1)
        session = marginal.assign(reference, random)
        positive = np.empty_like(reference)
        for number, members in enumerate(marginal.members):
            here = session == number
            positive[here] = members.draw(marginal.classes[reference[here]], random)
        return Pairs(reference[None], positive[None], marginal.draw(batch_size, random).reshape(1, -1))


class TimeDelta:
    """d from the differences of the label over Δ samples, of all sessions together.

    Args:
        timeline: no difference goes across the end of a trial.
        labels: `(samples, dimensions)`.
        space: of the labels.
        time_offsets: Δ, or several of them.
        classes: if given, differences are drawn from D(k), those that begin in the class of the reference.
    """

    def __init__(
        self,
        timeline: Timeline,
        labels: np.ndarray,
        space: LabelSpace,
        time_offsets: Sequence[int] = (1,),
        classes: np.ndarray | None = None,
    ) -> None:
        self._labels, self._space, self._classes = labels, space, classes
        self._offsets = np.array(time_offsets)
        self._ranges = [timeline.differences(step) for step in time_offsets]
        if not all(map(len, self._ranges)):
            raise HapteraError(f"time_offsets is {list(time_offsets)}; every session or trial is shorter than that")
        self._counts = np.array([len(some) for some in self._ranges])
        self._members = []
        if classes is not None:
            self._members = [Members(places, classes[places]) for places in (some.all() for some in self._ranges)]

    def draw(self, references: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """One d for each reference, `(references, dimensions)`."""
        which = random.choice(len(self._offsets), len(references), p=self._counts / self._counts.sum())
        start = np.empty(len(references), np.int64)
        for number, some in enumerate(self._ranges):
            here = which == number
            if self._classes is None:
                start[here] = some.draw(int(here.sum()), random)
            else:
                codes = self._classes[references[here]]
                if not self._members[number].has(codes).all():
                    raise HapteraError(
                        f"a class has no sample that is followed by another after {self._offsets[number]} samples; "
                        "use differences of all classes (differences_per_label=False)"
                    )
                start[here] = self._members[number].draw(codes, random)
        return self._space.difference(self._labels[start], self._labels[start + self._offsets[which]])


class Gaussian:
    """d from N(0, δ²) in every dimension of the label.

    Args:
        dimensions: of the label.
        delta: δ.
    """

    def __init__(self, dimensions: int, delta: float) -> None:
        check_number("delta", delta, above=0)
        self._dimensions, self._delta = dimensions, delta

    def draw(self, references: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """One d for each reference, `(references, dimensions)`."""
        return random.normal(0, self._delta, (len(references), self._dimensions))


class ContinuousSampler:
    """Positives by a continuous label, within the same class if the marginal has classes.

    Args:
        marginal: of references and negatives.
        labels: `(samples, dimensions)`.
        space: of the labels.
        change: `TimeDelta` or `Gaussian`.
    """

    def __init__(self, marginal: Marginal, labels: np.ndarray, space: LabelSpace, change: TimeDelta | Gaussian) -> None:
        self._marginal, self._labels, self._space, self._change = marginal, labels, space, change
        if marginal.classes is None:
            cells = {(number, 0): valid for number, valid in enumerate(_all(marginal.timeline))}
        else:
            members = enumerate(marginal.members)
            cells = {(number, int(code)): one.of(int(code)) for number, one in members for code in one.codes}
        self._nearest = {cell: Nearest(space.points(labels[items]), items) for cell, items in cells.items()}

    def draw(self, batch_size: int | None, random: np.random.Generator) -> Pairs:
        """Pairs over all sessions, in one group."""
        marginal = self._marginal
        reference = marginal.draw(batch_size, random).reshape(-1)
        queries = self._space.points(self._labels[reference] + self._change.draw(reference, random))
        session = marginal.assign(reference, random)
        codes = np.zeros_like(session) if marginal.classes is None else marginal.classes[reference]
        positive = np.empty_like(reference)
        width = int(codes.max()) + 1
        cells = session * width + codes
        for cell in np.unique(cells):
            here = cells == cell
            nearest = self._nearest[int(cell) // width, int(cell) % width]
            positive[here] = nearest.draw(queries[here], random)
        return Pairs(reference[None], positive[None], marginal.draw(batch_size, random).reshape(1, -1))


def _all(timeline: Timeline) -> list[np.ndarray]:
    return [valid.all() for valid in timeline.valid]
