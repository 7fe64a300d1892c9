"""Trial of new classes: how well a network's logits, or its features, learn classes that are taken away from it.

Source: "Neural Dependencies Emerging from Learning Massive Categories", section 3.2, tables 2 and 4: 950 → 50 and
999 → 1, on all images and, for a single new class, on as many images of others as of its own (pos & neg).
Where it differs: the source trains a network without the new classes. From a file of logits one can take columns away,
as this does, several times at random; but the network has seen these classes, and its other logits know of them. A file
whose targets go beyond its columns comes from a network that never saw them, and is taken as it is.
The baseline of the source, trained on all classes, is then the network itself, with its own columns in place.
Cost: some hundred passes over the examples that are learnt from, for each run and method.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from haptera.analyses.dependencies.files import LogitsFile
from haptera.analyses.dependencies.new_classes import NewClasses, accuracy_by_group
from haptera.analysis import Analysis
from haptera.checks import check_number, check_whole_number
from haptera.correctness import correct
from haptera.errors import HapteraError
from haptera.files.npz import member, open_npz
from haptera.report.section import Finding, Listing, Section, answer
from haptera.statistics.intervals import mean_of_units

MOST = 10_000
"""Examples that are learnt from, and as many that are judged."""
ITERATIONS = 120
ALL = "network trained on all classes"
LABELS = {"method": "method", "learnt_on": "learnt on", "low": "low (95 %, over runs)", "high": "high"}
BALANCED = "positives and negatives"


@dataclass(frozen=True, eq=False)
class NewClassTrial(Analysis):
    """New classes learnt from what a frozen network gives.

    Attributes:
        logits: of the network.
        new: how many classes are new.
        unseen: whether the network never saw them.
        runs: how often classes were drawn.
        seed: of the draws and of the halves.
        rows: one for each run, method and group of images: `run`, `method`, `learnt_on`, `group`, `value`.
    """

    kind: ClassVar[str] = "new-classes"
    definitions: ClassVar[Mapping[str, str]] = {
        "old logits": "a new logit is a sum of old ones, dense, or sparse by an ℓ₁ penalty; nothing else is learnt",
        "new linear head": "a new logit is a linear map of the features that the file holds",
        ALL: "its own columns for the new classes, which it was trained with",
        "within": "only classes of the group compete (table 4)",
        BALANCED: "the mean of the share of its own images that the new class gets and the share of as many others "
        "that it does not",
    }
    logits: LogitsFile
    new: int
    unseen: bool
    runs: int
    seed: int
    rows: pd.DataFrame

    @property
    def title(self) -> str:
        """Return the name of the file."""
        return f"New classes: {self.logits.path.name}"

    @property
    def settings(self) -> dict[str, Any]:
        """Return what was asked."""
        return {"logits": str(self.logits.path), "new": self.new, "runs": self.runs, "seed": self.seed}

    @property
    def notes(self) -> list[str]:
        """Return what a reader must know."""
        seen = "The network was trained on the classes that are called new here, so its other logits know of them."
        return [] if self.unseen else [seen]

    def headline(self) -> str:
        """Return how many classes are old and new."""
        old = self.logits.shape[1] - (0 if self.unseen else self.new)
        return f"{old:,} → {self.new:,} classes of {self.logits.path.name}, {self.runs} runs"

    @cached_property
    def means(self) -> pd.DataFrame:
        """Return the mean over runs, with its 95 % interval where there are several, of every method and group."""
        groups = self.rows.groupby(["learnt_on", "method", "group"], sort=False)["value"]
        units = {names: mean_of_units(values.to_numpy(float)) for names, values in groups}
        rows = [(*names, each.value, *each.ends) for names, each in units.items()]
        return pd.DataFrame(rows, columns=["learnt_on", "method", "group", "mean", "low", "high"])

    def findings(self) -> list[Finding]:
        """Return a sentence for each method."""
        found: list[Finding] = []
        for number, ((learnt_on, method), part) in enumerate(self.means.groupby(["learnt_on", "method"], sort=False)):
            value = part.set_index("group")["mean"]
            balanced = f", {100 * value[BALANCED]:.1f} % {BALANCED}" if BALANCED in value else ""
            text = (
                f"{method}, learnt on {learnt_on}: {100 * value['all']:.1f} % of all images right, "
                f"{100 * value['old']:.1f} % of old and {100 * value['new']:.1f} % of new classes, "
                f"{100 * value['new within']:.1f} % among new ones{balanced}; {value['seconds']:.2g} s"
            )
            numbers = {f"method_{number}": {"method": method, "learnt_on": learnt_on} | value.to_dict()}
            found += answer(
                f"method {number + 1}", "How well are new classes learnt?" if not number else "", text, **numbers
            )
        return found

    def sections(self) -> list[Section | None]:
        """Return the table of means."""
        wide = self.means.pivot_table("mean", ["learnt_on", "method"], "group", sort=False).reset_index()
        wide.columns.name = None
        text = "Means over runs: shares of images that are right, and the seconds of learning."
        spread = Listing("With intervals", "Student's t over runs.", self.means, LABELS)
        return [Section.of("New classes", text, Listing("Methods", "One row each.", wide, LABELS), spread)]


def learn(path: Path, new: int, runs: int, sparse: float, ridge: float, seed: int) -> NewClassTrial:
    """Take classes away and learn them again; `learn_new_classes` explains the arguments."""
    check_whole_number("runs", runs)
    check_number("sparse", sparse, above=0)
    check_number("ridge", ridge, least=0)
    file = LogitsFile(path, unseen=True)
    if file.targets is None:
        raise HapteraError(f"{file.path} has no targets, and new classes are learnt from them")
    beyond = int(file.targets.max()) + 1 - file.shape[1]
    if beyond <= 0:
        check_whole_number("new", new, most=file.shape[1] - 2)
    rows = np.concatenate(list(file))
    features = _features(file)
    count, found = beyond if beyond > 0 else new, []
    for run in range(1 if beyond > 0 else runs):
        generator = np.random.default_rng([seed, run])
        taken = None if beyond > 0 else np.sort(generator.permutation(file.shape[1])[:count])
        found += [{"run": run, **row} for row in _run(rows, file.targets, features, taken, generator, sparse, ridge)]
    return NewClassTrial(file, count, beyond > 0, 1 if beyond > 0 else runs, seed, pd.DataFrame(found))


def _run(
    rows: np.ndarray,
    targets: np.ndarray,
    features: np.ndarray | None,
    taken: np.ndarray | None,
    generator: np.random.Generator,
    sparse: float,
    ridge: float,
) -> Iterator[dict[str, Any]]:
    """Yield every number of one draw of new classes; `taken` is None where the network never saw them."""
    base = rows if taken is None else np.delete(rows, taken, 1)
    if taken is not None:  # old classes first, then new ones, as `NewClasses` counts
        order = np.concatenate([np.setdiff1d(np.arange(rows.shape[1]), taken), taken])
        targets = np.argsort(order)[targets]
        whole = rows[:, order]
    old = base.shape[1]
    count = int(targets.max()) + 1 - old if taken is None else len(taken)
    shuffled = generator.permutation(len(rows))
    half = len(rows) // 2
    learn, judge = shuffled[:half][:MOST], shuffled[half:][:MOST]
    methods: dict[str, tuple[float, np.ndarray | None]] = {"old logits, dense": (0.0, None)}
    methods["old logits, sparse"] = (sparse, None)
    if features is not None:
        methods["new linear head"] = (0.0, features)
    for learnt_on, chosen in {"all classes": learn, "new classes": learn[targets[learn] >= old]}.items():
        if not (targets[chosen] >= old).any():
            raise HapteraError("new classes have no images among those that are learnt from; take more examples")
        for name, (lasso, inputs) in methods.items():
            start = time.perf_counter()
            fitted = NewClasses(count, ridge=ridge, lasso=lasso, most=ITERATIONS)
            fitted.fit(base[chosen], targets[chosen], None if inputs is None else inputs[chosen])
            seconds = time.perf_counter() - start
            logits = fitted.logits(base[judge], None if inputs is None else inputs[judge])
            yield from _values(logits, targets[judge], old, {"learnt_on": learnt_on, "method": name}, seconds)
    if taken is not None:
        yield from _values(whole[judge], targets[judge], old, {"learnt_on": "all classes", "method": ALL}, 0.0)


def _values(
    logits: np.ndarray, targets: np.ndarray, old: int, names: dict[str, str], seconds: float
) -> Iterator[dict[str, Any]]:
    for group in accuracy_by_group(logits, targets, old):
        yield {**names, "group": group.group, "value": group.value}
    yield {**names, "group": "seconds", "value": seconds}
    if logits.shape[1] == old + 1:
        own = correct(logits, np.full(len(logits), old))
        positives = targets == old
        yield {**names, "group": BALANCED, "value": (own[positives].mean() + (~own[~positives]).mean()) / 2}


def _features(file: LogitsFile) -> np.ndarray | None:
    with open_npz(file.path) as content:
        if "features" not in content.files:
            return None
        features = np.asarray(member(content, "features", file.path), np.float64)
    if features.ndim != 2 or len(features) != file.shape[0]:
        raise HapteraError(f"{file.path}: features have shape {features.shape}; ({file.shape[0]}, width) was expected")
    return np.hstack([features, np.ones((len(features), 1))])
