"""Verdict: which classes have a dependency in the sense of definition 1, with how many classes, and what that costs.

Source: "Neural Dependencies Emerging from Learning Massive Categories", definition 1: a few classes k ≪ n and constants
with Pr(|f_i − Σ θ_j f_j| < ε) > 1 − δ for 0 < ε, δ ≪ 1; and what table 1 shows of it, that the class keeps its images.
The source names no ε and no δ, and shows six picked classes. Here every class is asked, with at most K others, chosen
and fitted on some examples and judged on others:

- *close*: |e| < ε times the root mean square of the logit, for more than 1 − δ of the examples;
- *kept*: of its own images at least a share is still right of what was right before;
- *harmless*: over all images no more are lost than that share lets the class lose.

All three make a dependency. A derived logit can be close to its own everywhere but on the images of its class, which
are one in a thousand; so closeness alone is not called a dependency. The defaults admit the worst case of table 1 that
is printed (ResNet-18: 84 to 72 %, off by 18.7 % in the mean).
Cost: one pass over the logits, for K classes in full; along the curve own images in full and others in part.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from haptera.analyses.dependencies.covariance_lasso import Dependencies
from haptera.analyses.dependencies.forward import choose, refit
from haptera.analyses.dependencies.replacement import replacement_of_stream
from haptera.analyses.dependencies.second_moment import SecondMoment
from haptera.checks import check_number, check_whole_number
from haptera.correctness import beats, leaders
from haptera.statistics.intervals import wilson

Batch = tuple[np.ndarray, np.ndarray, np.ndarray | None]
STEPS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20)
"""Numbers of classes along the curve."""
LEAST_IMAGES = 5
THIN = 5000
"""Examples on which closeness is counted along the curve."""
GRID = np.geomspace(0.01, 2.0, 24)
"""Values of ε, as shares of the root mean square of a logit, among which the smallest that holds is looked for."""
DEPENDENCY, FAR, COSTS_OWN, COSTS_OTHERS, UNKNOWN = (
    "dependency",
    "too far off",
    "costs its images",
    "costs others' images",
    "images unknown",
)


@dataclass(frozen=True)
class Definition:
    """What is called a dependency.

    Attributes:
        at_most: K, from how many classes a logit may be derived.
        epsilon: ε as a share of the root mean square of the logit.
        delta: the share of examples that may be further off.
        keep: the share of its own images that must stay right, of those that were.
    """

    at_most: int = 5
    epsilon: float = 0.3
    delta: float = 0.1
    keep: float = 0.8

    def __post_init__(self) -> None:
        check_whole_number("at_most", self.at_most)
        check_number("epsilon", self.epsilon, above=0)
        check_number("delta", self.delta, above=0, most=1)
        check_number("keep", self.keep, above=0, most=1)


class FewClasses:
    """The first classes that say most about each class, fitted without shrinkage.

    Args:
        moment: to choose and to fit on.
        most: how many to choose for each class.

    Attributes:
        order: `(targets, most)`, the classes in the order in which they join; -1 where none is left.
    """

    def __init__(self, moment: SecondMoment, most: int) -> None:
        self.matrix, self.right, _ = moment.problems()
        self.moment = moment
        self.order = choose(self.matrix, self.right, moment.left_out(), min(most, len(self.matrix)))

    def at(self, count: int) -> Dependencies:
        """Least squares on the first `count` classes of each target, with the errors on what was fitted on."""
        theta = refit(self.matrix, self.right, self.order[:, :count])
        nothing = np.zeros(len(self.right))
        return Dependencies(theta, nothing, nothing, nothing, nothing).on_moment(self.moment)


@dataclass(eq=False)
class Judgement:
    """Every class judged, and the curve.

    Attributes:
        classes: one row for each class: `class`, `few` (from how many it is derived), `epsilon` (the smallest ε that
            holds for 1 − δ, of a grid), `delta` (the share of examples that is further off than ε), `relative_error`,
            `verdict`; with targets also `images`, `own_before`, `own_after` with `low` and `high` (Wilson, 95 %), and
            `lost` (images lost in all, as a share of the class's own that were right).
        curve: one row for each number of classes: `classes`, `relative_error` (the median), `close` (the share of
            classes), and with targets `own_before`, `own_after` (means over classes) and `dependencies` (a number).
    """

    classes: pd.DataFrame
    curve: pd.DataFrame


def judge(few: FewClasses, batches: Iterable[Batch], evaluation: SecondMoment, definition: Definition) -> Judgement:
    """Judge every class on batches of (logits, logits to replace, targets), whose second moment is given."""
    limit = np.sqrt(evaluation.problems()[2])
    found = few.at(definition.at_most).on_moment(evaluation)
    grid = np.append(GRID, definition.epsilon)
    beyond = np.zeros((len(grid), len(limit)))

    def watch(errors: np.ndarray) -> None:
        for place, share in enumerate(grid):
            beyond[place] += (errors >= share * limit).sum(0)

    curve = _Curve(few, limit * definition.epsilon, max(evaluation.samples // THIN, 1), definition)
    table = replacement_of_stream(curve.seeing(batches), found, watch)
    shares = beyond / evaluation.samples
    holds = np.where(shares[:-1] <= definition.delta, GRID[:, None], np.inf).min(0)
    columns = {"class": np.arange(len(limit)), "few": found.counts, "epsilon": holds, "delta": shares[-1]}
    frame = pd.DataFrame(columns | {"relative_error": found.relative_error})
    close = frame["delta"] < definition.delta
    if "accuracy" in table:
        frame = frame.assign(
            images=table["positives"], own_before=table["own_positive_accuracy"], own_after=table["positive_accuracy"]
        )
        right = (table["positive_accuracy"] * table["positives"]).fillna(0).round().astype(int)
        ends = [
            wilson(int(hits), int(n)) if n else (np.nan, np.nan) for hits, n in zip(right, frame["images"], strict=True)
        ]
        frame["low"], frame["high"] = zip(*ends, strict=True)
        before = table["own_positive_accuracy"] * table["positives"]
        lost = (table["own_accuracy"] - table["accuracy"]) * evaluation.samples
        frame["lost"] = (lost / before.where(before > 0)).round(12)
    frame["verdict"] = verdicts(frame, close, definition)
    return Judgement(frame, curve.table(evaluation))


def verdicts(frame: pd.DataFrame, close: pd.Series, definition: Definition) -> np.ndarray:
    """Return the word for each class, from the columns of a judgement."""
    if "images" not in frame:
        return np.where(close, UNKNOWN, FAR)
    unknown = (frame["images"] < LEAST_IMAGES) | ~(frame["own_before"] > 0)
    kept = frame["own_after"] >= definition.keep * frame["own_before"] - 1e-12
    harmless = frame["lost"] <= 1 - definition.keep + 1e-12
    return np.select([~close, unknown, ~kept, ~harmless], [FAR, UNKNOWN, COSTS_OWN, COSTS_OTHERS], DEPENDENCY)


@dataclass(eq=False)
class _Curve:
    """What is gathered for every number of classes while batches pass by."""

    few: FewClasses
    limit: np.ndarray
    thin: int
    definition: Definition
    seen: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        places = self.few.order.shape[1]
        self.steps = [step for step in STEPS if step < places] + [places]
        self.found = [self.few.at(step) for step in self.steps]
        classes = len(self.limit)
        values = np.zeros((classes, len(self.steps), places))
        rows, columns = np.nonzero(self.few.order >= 0)
        for place, found in enumerate(self.found):
            dense = found.coefficients.toarray()
            values[rows, place, columns] = dense[rows, self.few.order[rows, columns]]
        self.values = values
        self.beyond, self.looked = np.zeros((len(self.steps), classes)), 0
        self.hits, self.before, self.images = np.zeros((len(self.steps), classes)), np.zeros(classes), np.zeros(classes)
        self.labelled = True

    def seeing(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Pass batches on, and count."""
        for logits, own, targets in batches:
            some = slice(-self.seen % self.thin, None, self.thin)
            self.seen += len(own)
            part = np.ascontiguousarray(logits[some].T)
            self.looked += part.shape[1]
            for place, found in enumerate(self.found):
                errors = np.abs(own[some].T - np.asarray(found.coefficients @ part))
                self.beyond[place] += (errors >= self.limit[:, None]).sum(1)
            if targets is None:
                self.labelled = False
            else:
                self._count_images(logits, own, targets)
            yield logits, own, targets

    def _count_images(self, logits: np.ndarray, own: np.ndarray, targets: np.ndarray) -> None:
        """Own images only: the derived logit of the target against the best of the others."""
        rows, classes = np.arange(len(own)), len(self.limit)
        first, second = leaders(own)
        rival = np.where(first == targets, second, first)
        terms = logits[rows[:, None], np.maximum(self.few.order[targets], 0)].astype(np.float64)
        derived = np.einsum("bk,bsk->bs", terms, self.values[targets])
        wins = beats(derived, targets[:, None], own[rows, rival][:, None], rival[:, None])
        self.images += np.bincount(targets, minlength=classes)
        self.before += np.bincount(targets, first == targets, classes)
        for place in range(len(self.steps)):
            self.hits[place] += np.bincount(targets, wins[:, place], classes)

    def table(self, evaluation: SecondMoment) -> pd.DataFrame:
        """One row for each number of classes."""
        shares = self.beyond / max(self.looked, 1)
        errors = [np.median(found.on_moment(evaluation).relative_error) for found in self.found]
        frame = pd.DataFrame({"classes": self.steps, "relative_error": errors})
        frame["close"] = (shares < self.definition.delta).mean(1)
        if not self.labelled:
            return frame
        seen = self.images > 0
        after, before = self.hits[:, seen] / self.images[seen], self.before[seen] / self.images[seen]
        frame["own_before"], frame["own_after"] = before.mean(), after.mean(1)
        enough = (self.images >= LEAST_IMAGES) & (self.before > 0)
        kept = self.hits >= self.definition.keep * self.before - 1e-9
        frame["kept"] = (kept & enough).sum(1) / max(int(enough.sum()), 1)
        frame["dependencies"] = (kept & enough & (shares < self.definition.delta)).sum(1)
        return frame
