"""Labels: is the accuracy plausible, and is label i output i?

Which output stands for which label is guessed from one half of the images, by the assignment that explains most of
their confusions, and tested on the other half, and the other way round; so a lucky assignment gains nothing. Orders
that people mix up are tried as well, on all images: numbers that were sorted as text, labels that begin at 1, and
outputs with a class before the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax
from scipy.stats import binomtest

from haptera.analyses.preflight.check import ERROR, FINE, UNKNOWN, WARNING, Check
from haptera.analyses.preflight.evidence import SURE
from haptera.analyses.preflight.sample import Sample
from haptera.statistics.intervals import wilson
from haptera.words import count

ACCURACY, LABELS = "Is the accuracy on clean images plausible?", "Is label i output i?"
SHOWN = 3
APART = 0.7
"""The share of labels that a network must tell apart for another order of them to mean something."""
OVERCONFIDENT = 0.3
"""How far confidence may be above accuracy on images like those of training."""


@dataclass(frozen=True, eq=False)
class Order:
    """Which output stands for each label.

    Attributes:
        words: what a sentence calls it.
        outputs: `(labels,)`; -1 where nothing is known.
        accuracy: of the model if it holds, on images that it was not guessed from.
        before: of the model as it is, on the same images.
        p_value: the chance of such a gain where the order is right as it is.
    """

    words: str
    outputs: np.ndarray
    accuracy: float
    before: float
    p_value: float

    def applied(self, sample: Sample) -> Sample:
        """Return the images with the outputs that stand for their labels, where every label has one."""
        assert sample.targets is not None
        targets = self.outputs[sample.targets]
        fits = targets.min() >= 0 and targets.max() < len(self.outputs)
        return replace(sample, targets=targets) if fits else sample


def check_accuracy(sample: Sample, logits: np.ndarray, explained: bool) -> Check:
    """Compare the accuracy with chance and with what the model believes.

    Args:
        sample: the images.
        logits: of the model on them.
        explained: whether another check has found what is wrong with inputs or labels, so that this one need not.
    """
    accuracy, n = sample.accuracy(logits), len(sample)
    if accuracy is None or sample.targets is None:
        return Check("accuracy", ACCURACY, UNKNOWN, "it cannot be judged without labels", {"images": n})
    finite = np.isfinite(logits).all(1)
    confidence = float(softmax(logits[finite].astype(float), axis=1).max(1).mean()) if finite.any() else 0.0
    chance = _chance(sample, logits)
    low, high = wilson(accuracy * n, n)
    numbers: dict[str, Any] = {"accuracy": accuracy, "accuracy_interval": [low, high], "images": n, "chance": chance}
    told = f"{accuracy:.1%} of {count(n, 'image')} ({low:.0%} to {high:.0%})"
    numbers |= {"confidence": confidence, "p_value": _better_than(accuracy, n, chance)}
    if explained:
        return Check("accuracy", ACCURACY, FINE, f"{told}, as far as inputs and labels are right", numbers)
    if numbers["p_value"] > 0.01:
        told += (
            f", where chance gives {chance:.1%}: are the weights loaded, the labels of these images, the inputs right?"
        )
        return Check("accuracy", ACCURACY, WARNING, told, numbers)
    told += f", at a mean confidence of {confidence:.1%}"
    if confidence - high > OVERCONFIDENT:
        told += ": on images like those of training no network is so sure and so often wrong; look at labels and inputs"
        return Check("accuracy", ACCURACY, WARNING, told, numbers)
    return Check("accuracy", ACCURACY, FINE, told, numbers)


def _chance(sample: Sample, logits: np.ndarray) -> float:
    """Return the accuracy of the same answers on shuffled labels, in expectation."""
    assert sample.targets is not None
    outputs, classes = logits.shape[1], sample.classes
    if classes is None:
        said = np.bincount(logits.argmax(1), minlength=outputs) / len(sample)
        return float(said[sample.targets].mean())
    columns = classes.columns(outputs)
    said = np.bincount(logits[:, columns].argmax(1), minlength=len(columns)) / len(sample)
    return float((classes.matrix(outputs)[sample.targets] @ said).mean())


def _better_than(accuracy: float, n: int, chance: float) -> float:
    return float(binomtest(round(accuracy * n), n, min(max(chance, 1e-9), 1.0), alternative="greater").pvalue)


def check_labels(sample: Sample, logits: np.ndarray, names: Sequence[str] | None) -> tuple[Check, Order | None]:
    """Look for another order of labels that explains the answers; return the verdict, and the order if there is one.

    Args:
        sample: labelled images.
        logits: of the model.
        names: of the classes of the data, where it has any.
    """
    if sample.targets is None:
        return Check("labels", LABELS, UNKNOWN, "it cannot be judged without labels", {"tried": 0}), None
    if sample.classes is not None:
        told = "a mapping says which outputs count as right for each label"
        return Check("labels", LABELS, FINE, told, {"tried": 0}), None
    answers, targets = logits.argmax(1), sample.targets
    orders = [*_usual_mistakes(answers, targets, logits.shape[1], names)]
    orders += [guessed] if (guessed := guess_order(answers, targets, logits.shape[1])) is not None else []
    numbers: dict[str, Any] = {"accuracy": float((answers == targets).mean()), "tried": len(orders)}
    if not orders:
        told = "it cannot be judged: too few images of each class"
        return Check("labels", LABELS, UNKNOWN, told, numbers), None
    best = max(orders, key=lambda order: order.accuracy - order.before)
    numbers |= {"other": best.words, "other_accuracy": best.accuracy, "p_value": best.p_value}
    numbers["told_apart"] = share = told_apart(answers, targets)
    worth = best.accuracy - best.before > 0.02 and share >= APART
    if not worth or best.p_value > SURE / len(orders):
        told = f"{best.before:.1%} of the answers are right so, {best.accuracy:.1%} by the best other order"
        return Check("labels", LABELS, FINE, told, numbers), None
    told = (
        f"{best.before:.1%} of the answers are right if label i is output i and {best.accuracy:.1%} if {best.words} "
        f"({_examples(best, names)}; p = {best.p_value:.1g}): put the labels into the order of the outputs, or give "
        "--mapping mapping.csv, which this check writes with --out"
    )
    verdict = ERROR if best.before < best.accuracy / 2 else WARNING
    return Check("labels", LABELS, verdict, told, numbers), best


def told_apart(answers: np.ndarray, targets: np.ndarray) -> float:
    """Return how many different outputs are the usual answer to some label, for each label that there is.

    A network that has learnt nothing has a few favourite outputs; that they go with some labels is not an order.

    >>> told_apart(np.array([1, 1, 0, 0]), np.array([0, 0, 1, 1])), told_apart(np.ones(4, int), np.array([0, 0, 1, 1]))
    (1.0, 0.5)
    """
    seen = np.unique(targets)
    return len({int(np.bincount(answers[targets == label]).argmax()) for label in seen}) / len(seen)


def guess_order(answers: np.ndarray, targets: np.ndarray, outputs: int) -> Order | None:
    """Return the order that explains the most confusions, tested on images that it was not guessed from.

    Labels of which no assignment is seen keep their output. None where hardly any class has two images.

    >>> order = guess_order(np.tile([1, 2, 0], 20), np.tile([0, 1, 2], 20), 3)
    >>> order.outputs.tolist(), order.before, order.accuracy
    ([1, 2, 0], 0.0, 1.0)
    """
    half = _halves(targets)
    if half is None:
        return None
    after = np.zeros(len(targets), bool)
    for one in (half, ~half):
        after[~one] = answers[~one] == _assigned(answers[one], targets[one], outputs)[targets[~one]]
    p_value = _sign_test(answers == targets, after)
    every = _assigned(answers, targets, outputs)
    return Order("they are in another order", every, float(after.mean()), float((answers == targets).mean()), p_value)


def _halves(targets: np.ndarray) -> np.ndarray | None:
    """Return half of the images of each class; None where fewer than half of the images have company."""
    order = np.argsort(targets, kind="stable")
    _, starts, counts = np.unique(targets[order], return_index=True, return_counts=True)
    if counts[counts > 1].sum() < len(targets) / 2:
        return None
    half = np.zeros(len(targets), bool)
    half[order] = (np.arange(len(targets)) - np.repeat(starts, counts)) % 2 == 0
    return half


def _assigned(answers: np.ndarray, targets: np.ndarray, outputs: int) -> np.ndarray:
    """Return the output of each label, `(outputs,)`: the assignment with most answers, their own where it is a tie."""
    table = np.zeros((outputs, outputs))
    np.add.at(table, (targets, answers), 1.0)
    seen = np.unique(targets)
    table += 0.5 * np.eye(outputs)
    rows, columns = linear_sum_assignment(table[seen], maximize=True)
    found = np.full(outputs, -1)
    found[seen[rows]] = columns
    return found


def _usual_mistakes(answers: np.ndarray, targets: np.ndarray, outputs: int, names: Sequence[str] | None) -> list[Order]:
    """Return orders that people mix up, as far as they can be had here, without those that change nothing."""
    labels = np.arange(outputs)
    ways = {
        "they begin at 1": labels - 1,
        "the outputs have a class before the first": labels + 1,
        "the outputs are sorted as text": np.argsort(np.argsort([str(label) for label in labels])),
    }
    if names is not None and len(names) == outputs and all(name.isascii() and name.isdigit() for name in names):
        ways["the names of the classes are the numbers of the outputs"] = np.array([int(name) for name in names])
    right = answers == targets
    found = []
    for words, order in ways.items():
        if np.array_equal(order, labels):
            continue
        after = answers == order[targets]
        found.append(Order(words, order, float(after.mean()), float(right.mean()), _sign_test(right, after)))
    return found


def _sign_test(before: np.ndarray, after: np.ndarray) -> float:
    """Return the chance that a change with no effect wins as many of the images on which it matters."""
    won, lost = int((after & ~before).sum()), int((before & ~after).sum())
    return float(binomtest(won, won + lost, 0.5, alternative="greater").pvalue) if won + lost else 1.0


def _examples(order: Order, names: Sequence[str] | None) -> str:
    moved = [label for label, output in enumerate(order.outputs) if output not in (-1, label)][:SHOWN]
    said = [f"{label} ({names[label]})" if names is not None else str(label) for label in moved]
    return ", ".join(f"label {text} is output {order.outputs[label]}" for text, label in zip(said, moved, strict=True))
