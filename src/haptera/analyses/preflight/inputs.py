"""Scale and colour order: does the network see what it was trained on?

Both are judged by trying others (`normalisation.py`). A network that keeps statistics says by itself what it was
trained on: the distance of what reaches its first such layer from what that layer kept. For other networks only labels
tell (`evidence.py`). Distances depend on the images drawn, so a change must be better in nearly all of 200 draws of
them, and by a lot: images of another kind than those of training are also far, with any normalisation.
Cost: for networks that keep statistics a pass to their first layer for each of the tries, on some of the images; for
others a whole pass for each, on a quarter of them, and one on all for the best.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from haptera.analyses.preflight.check import ERROR, FINE, UNKNOWN, WARNING, Check
from haptera.analyses.preflight.evidence import Gain, gain, likelihoods
from haptera.analyses.preflight.normalisation import Setup, exchanged, has_colour, setups
from haptera.analyses.preflight.probe import Probe, draw_weights
from haptera.analyses.preflight.sample import Sample

FAR, COLOURS_FAR = 0.15, 0.05
"""How much nearer another scale, or the other order of colours, must bring the statistics."""
SHARE, DRAWS = 0.6, 0.99
"""What may be left of the distance, and in which share of draws of the images it must be less."""
STRANGE = 1.0
"""A distance that images like those of training do not have."""
IMAGES = 64
"""For passes to the first layer, at most."""
FEWEST = 64
"""For whole passes, at least."""
NEW = (
    "the first layer with kept statistics ({}) keeps those of a new layer, mean 0 and variance 1: were the weights "
    "loaded?"
)
BLIND = "it cannot be judged: the network keeps no statistics from training, and the images have no labels"
SCALE, COLOUR = "Are the inputs on the scale of training?", "Is the colour order RGB?"


@dataclass(frozen=True, eq=False)
class Trial:
    """One way that was tried.

    Attributes:
        setup: which.
        distance: from the kept statistics; NaN for a network that keeps none.
        draws: the same for draws of the images; empty for such a network.
        accuracy: on a part of the images, where labels decide.
    """

    setup: Setup
    distance: float = float("nan")
    draws: np.ndarray = field(default_factory=lambda: np.empty(0))
    accuracy: float | None = None

    def fits_better(self, other: "Trial", by: float, share: float = SHARE, draws: float = DRAWS) -> bool:
        """Say whether the statistics fit so much better than another's that it cannot be the choice of images.

        Args:
            other: what it is compared with.
            by: how much nearer they must be.
            share: what may be left of the distance.
            draws: the share of draws of the images in which they must be nearer.
        """
        enough = self.distance < share * other.distance and other.distance - self.distance > by
        return enough and float((other.draws - self.draws > 0).mean()) > draws


@dataclass(frozen=True, eq=False)
class InputChecks:
    """Scale and colour order.

    Attributes:
        checks: both.
        setup: the likeliest way, which is the one that is there unless a check complains.
        logits: of the model on the sample in that way.
        trials: all that was tried.
    """

    checks: list[Check]
    setup: Setup
    logits: np.ndarray
    trials: list[Trial]


def check_inputs(probe: Probe, sample: Sample, logits: np.ndarray) -> InputChecks:
    """Try other scales and the other order of colours.

    Args:
        probe: the model.
        sample: clean images.
        logits: of the model on them, as they are.
    """
    layer = probe.first(sample.images[:IMAGES])
    if layer is not None and not layer.trained:
        return _no_trial(sample, logits, WARNING, NEW.format(layer.name))
    if layer is None and sample.targets is None:
        return _no_trial(sample, logits, UNKNOWN, BLIND)
    trials, likeliest = _by_statistics(probe, sample) if layer is not None else _by_labels(probe, sample, logits)
    orders = {trial.setup.turned: trial for trial in trials if trial.setup.scale == likeliest.setup.scale}
    passes = {
        turned: logits if trial is trials[0] else probe.logits(trial.setup(sample.images))
        for turned, trial in orders.items()
    }
    colour, turned = _colour(sample, orders, passes) if len(orders) == 2 else (_grey(sample), False)
    there = next(trial for trial in trials if trial.setup.same_scale and trial.setup.turned == turned)
    cost = gain(sample, logits, passes[turned])
    scale = _scale(there, orders[turned], cost, layer.name if layer else None, len(trials))
    return InputChecks([scale, colour], orders[turned].setup, passes[turned], trials)


def _by_statistics(probe: Probe, sample: Sample) -> tuple[list[Trial], Trial]:
    """Return what was tried and the likeliest, by the statistics that a layer kept."""
    few = sample.images[:IMAGES]
    weights = draw_weights(len(few))

    def attempt(setup: Setup) -> Trial:
        reached = probe.first(setup(few))
        assert reached is not None
        return Trial(setup, float(reached.distance()[0]), reached.distance(weights))

    trials = [attempt(setup) for setup in setups(few)]
    best = min(trials, key=lambda trial: trial.distance)
    likeliest = best if best.fits_better(trials[0], FAR) else trials[0]
    return trials + [attempt(setup) for setup in exchanged(few, likeliest.setup)], likeliest


def _by_labels(probe: Probe, sample: Sample, logits: np.ndarray) -> tuple[list[Trial], Trial]:
    """Return what was tried and the likeliest, by the answers."""
    few = sample.first(max(len(sample) // 4, FEWEST))

    def attempt(setup: Setup) -> tuple[Trial, float]:
        answers = probe.logits(setup(few.images))
        return Trial(setup, accuracy=few.accuracy(answers)), float(likelihoods(few, answers).mean())

    tried = [attempt(setup) for setup in setups(few.images)]
    best, likeliest = max(tried, key=lambda each: each[1])[0], tried[0][0]
    if best is not likeliest:
        found = gain(sample, logits, probe.logits(best.setup(sample.images)))
        likeliest = best if found is not None and found.clear(len(tried)) else likeliest
    turned = [attempt(setup)[0] for setup in exchanged(few.images, likeliest.setup)]
    return [trial for trial, _ in tried] + turned, likeliest


def told_of(distance: float, accuracy: float | None, layer: str = "") -> str:
    """Return what is known of a way to hand over images: in a few words after others, in a sentence with a layer."""
    parts = (
        [] if np.isnan(distance) else [f"what reaches {layer} is {distance:.2f} off" if layer else f"{distance:.2f}"]
    )
    if accuracy is not None:
        parts.append(f"accuracy is {accuracy:.1%}" if layer or np.isnan(distance) else f"{accuracy:.1%}")
    return " and ".join(parts)


def _scale(there: Trial, likeliest: Trial, cost: Gain | None, layer: str | None, trials: int) -> Check:
    """Return the verdict on the scale."""
    other, tried = likeliest.setup.words, trials - 1
    numbers: dict[str, Any] = {"tried": tried, "likeliest": other}
    numbers |= {} if cost is None else {"accuracy": cost.before, "likeliest_accuracy": cost.after}
    changed = likeliest is not there
    if layer is not None:
        numbers |= {"distance": there.distance, "likeliest_distance": likeliest.distance}
    where = f"the first layer with kept statistics ({layer})"
    told = told_of(there.distance, cost.before if cost and (changed or layer is None) else None, where)
    if changed:
        told += f"; with {other} {told_of(likeliest.distance, cost.after if cost else None)}"
        ruined = cost is not None and cost.clear() and cost.before < cost.after / 2
        return Check("scale", SCALE, ERROR if ruined else WARNING, f"{told}: {likeliest.setup.advice}", numbers)
    if there.distance > STRANGE:
        told += f", and none of {tried} other ways helps much: are these the weights, and the images, you mean?"
        return Check("scale", SCALE, WARNING, told, numbers)
    return Check(
        "scale",
        SCALE,
        FINE,
        f"{told}; none of {tried} other ways to hand over the images is clearly better",
        numbers,
    )


def _colour(sample: Sample, orders: Mapping[bool, Trial], passes: Mapping[bool, np.ndarray]) -> tuple[Check, bool]:
    """Return the verdict on the colour order, and whether colours are the other way round."""
    found = gain(sample, passes[False], passes[True])
    fits = orders[True].fits_better(orders[False], COLOURS_FAR)
    # Answers alone are believed where statistics do not speak against them: labels may be in another order.
    nearer = not orders[True].distance >= orders[False].distance
    turned = (fits and (found is None or found.nats > 0)) or (found is not None and found.clear() and nearer)
    numbers: dict[str, Any] = {}
    if not np.isnan(orders[False].distance):
        numbers = {"distance": orders[False].distance, "turned_distance": orders[True].distance}
    accuracies: tuple[float | None, ...] = (None, None)
    if found is not None:
        numbers |= {"accuracy": found.before, "turned_accuracy": found.after}
        accuracies = found.before, found.after
    sentence = f"{told_of(orders[False].distance, accuracies[0], 'the first layer')}; with red and blue exchanged "
    sentence += told_of(orders[True].distance, accuracies[1])
    if turned:
        sentence += ": the network was trained on BGR, or the images are; exchange the channels"
    return Check("colour", COLOUR, WARNING if turned else FINE, sentence, numbers), turned


def _grey(sample: Sample) -> Check:
    numbers = {"channels": sample.images.shape[1]}
    return Check("colour", COLOUR, FINE, "the images are grey, so they have none", numbers)


def _no_trial(sample: Sample, logits: np.ndarray, verdict: str, sentence: str) -> InputChecks:
    """Return that nothing can be said of scale and colours."""
    ways = setups(sample.images[:1])
    scale = Check("scale", SCALE, verdict, sentence, {"tried": 0})
    unknown = Check("colour", COLOUR, UNKNOWN, "it cannot be judged either", {"tried": 0})
    colour = unknown if has_colour(sample.images) else _grey(sample)
    return InputChecks([scale, colour], ways[0], logits, [])
