"""The training loop: draw pairs, embed them, follow the gradient; stop where the loss runs away or no longer improves.

Source: thesis, chapter 7, (7.2). Several objectives may act on slices of the same embedding, as the hybrid mode does;
their losses are added, and a term may keep the encoder's Jacobian small (8.3). The reference side of a pair may have
encoders of its own. Where the similarity has no bound and the positive is not in the denominator, the loss can fall
without end: it is known to have run away when it claims more than the samples can tell, since KL(p‖q) ≤ log(samples).
Cost: one pass through the encoders for each side and step, whatever the number of objectives.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from haptera.contrastive.jacobian import JacobianTerm, squared_norms
from haptera.contrastive.loss import Cosine, InfoNCE
from haptera.contrastive.sampling import Pairs, Sampler
from haptera.contrastive.signals import Embedder
from haptera.errors import Unfinished
from haptera.progress import Progress

FORGIVEN = 10.0
"""Nats by which a loss may go below what the samples can tell before it counts as running away."""
REFERENCES = 256
"""Samples of a step, at most, at which the Jacobian is looked at; their mean is unbiased, and a step is quick."""


@dataclass(frozen=True)
class Objective:
    """One kind of pair, and where in the embedding it acts.

    Attributes:
        sampler: draws the pairs.
        loss: of them.
        dimensions: of the embedding that the loss sees; None is all of them.
        weight: of the loss.
    """

    sampler: Sampler
    loss: InfoNCE
    dimensions: Sequence[int] | None = None
    weight: float = 1.0


@dataclass(frozen=True)
class Sides:
    """What embeds references, and what embeds positives and negatives; often the same."""

    reference: Embedder
    other: Embedder


@dataclass(frozen=True)
class HeldOut:
    """Pairs that training does not see.

    Attributes:
        sides: embed them.
        pairs: of each objective, drawn once so that only the encoders differ from one time to the next.
        every: steps between two looks.
        patience: looks without an improvement before training stops; None never stops.
    """

    sides: Sides
    pairs: Sequence[Pairs]
    every: int = 50
    patience: int | None = None


@dataclass
class History:
    """What happened, over all calls.

    Attributes:
        loss: of every step, without the Jacobian term.
        goodness_of_fit: the same minus that of a constant embedding; nats, lower is better.
        jacobian: mean squared norm of the Jacobian in every step that had the term, as it was estimated.
        temperature: of the first loss after every step, where it is learnt.
        held_out: step -> goodness of fit of pairs that were held out.
    """

    loss: list[float] = field(default_factory=list)
    goodness_of_fit: list[float] = field(default_factory=list)
    jacobian: list[float] = field(default_factory=list)
    temperature: list[float] = field(default_factory=list)
    held_out: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Watch:
    """Somebody who looks at the encoders every so often, in evaluation mode; what it draws does not change the fit.

    Attributes:
        call: is given the number of steps done, and may end training by raising an error.
        every: steps between two calls.
    """

    call: Callable[[int], None]
    every: int

    def __call__(self, modules: nn.Module, step: int) -> None:
        """Call it if it is time."""
        if step % self.every:
            return
        modules.eval()
        with torch.random.fork_rng(devices=[]):
            self.call(step)
        modules.train()


@dataclass(frozen=True)
class Course:
    """How long training goes, and what is looked at on the way.

    Attributes:
        steps: at most so many.
        batch_size: references of each session in a step; None is all of them.
        samples: of the recording, by which a loss that runs away is known.
        held_out: pairs to look at every so often.
        jacobian: the term that keeps Jacobians small.
        progress: show a bar.
        watch: is called on the way.
    """

    steps: int
    batch_size: int | None
    samples: int
    held_out: HeldOut | None = None
    jacobian: JacobianTerm | None = None
    progress: bool = False
    watch: Watch | None = None


def train(
    sides: Sides,
    objectives: Sequence[Objective],
    optimiser: torch.optim.Optimizer,
    modules: nn.Module,
    random: np.random.Generator,
    course: Course,
    history: History,
) -> int | None:
    """Train in place; the step to whose state it went back, if held-out pairs stopped it.

    Args:
        sides: embed the pairs.
        objectives: their losses are added.
        optimiser: of the parameters to learn.
        modules: holds everything that learns, so that the best state can be kept.
        random: draws the pairs.
        course: how long, and what to look at.
        history: of steps before these; every step is added as it ends, so that nothing is lost where training is ended.
    """
    best: dict[str, torch.Tensor] = {}
    looks: list[int] = []
    chance, first = 0.0, objectives[0].loss
    start = len(history.loss)
    last = start + course.steps
    with Progress("embedding", course.steps, show=None if course.progress else False, unit="steps") as bar:
        for step in range(start + 1, last + 1):
            pairs = [objective.sampler.draw(course.batch_size, random) for objective in objectives]
            total = loss = total_loss(sides, objectives, pairs)
            if course.jacobian is not None and (weight := course.jacobian.at(step)):
                size = jacobian_size(sides, pairs[0].reference, course.jacobian.exact, random, first)
                history.jacobian.append(size.item())
                total = loss + weight * first.scale * size  # in the units of the similarity
            optimiser.zero_grad()
            total.backward()
            optimiser.step()
            chance = chance or chance_loss(objectives, pairs)
            history.loss.append(loss.item())
            history.goodness_of_fit.append(history.loss[-1] - chance)
            history.temperature += [first.temperature] if first.learnable else []
            _stop_if_it_runs_away(history, objectives, course.samples)
            bar.advance(f"{history.goodness_of_fit[-1]:.3f} nats")
            if course.watch is not None:
                course.watch(modules, step)
            held_out = course.held_out
            if held_out is None or ((step - start) % held_out.every and step < last):
                continue
            history.held_out[step] = goodness_of_fit(held_out.sides, objectives, held_out.pairs)
            looks.append(step)
            if held_out.patience is None:
                continue
            best_step = min(looks, key=history.held_out.__getitem__)
            if best_step == step:
                best = deepcopy(modules.state_dict())
            elif looks.index(best_step) < len(looks) - held_out.patience:
                break
    if best:
        modules.load_state_dict(best)
        return best_step
    return None


def total_loss(sides: Sides, objectives: Sequence[Objective], pairs: Sequence[Pairs]) -> torch.Tensor:
    """The weighted sum of the objectives' losses; every sample is embedded in one pass."""
    references = [one.reference for one in pairs]
    others = [places for one in pairs for places in (one.positive, one.negative)]
    if sides.reference is sides.other:
        points = _embed(sides.other, [*references, *others])
        at, around = points[: len(pairs)], points[len(pairs) :]
    else:
        at, around = _embed(sides.reference, references), _embed(sides.other, others)
    losses = []
    for objective, reference, positive, negative in zip(objectives, at, around[::2], around[1::2], strict=True):
        three = (reference, positive, negative)
        if objective.dimensions is not None:
            chosen = list(objective.dimensions)
            three = (reference[..., chosen], positive[..., chosen], negative[..., chosen])
        losses.append(objective.weight * objective.loss(*three))
    return torch.stack(losses).sum()


def jacobian_size(
    sides: Sides, places: np.ndarray, exact: bool, random: np.random.Generator, loss: InfoNCE
) -> torch.Tensor:
    """Mean ‖J‖_F² at some of the places, with gradients; of separate encoders, of both.

    It is that of points of unit length where the similarity of the loss is of these.
    """
    on_sphere = isinstance(loss.similarity, Cosine)
    chosen = random.permutation(places.reshape(-1))[:REFERENCES]
    embedders = [sides.reference] if sides.reference is sides.other else [sides.reference, sides.other]
    parts = [squared_norms(*one, exact, on_sphere).sum() for embedder in embedders for one in embedder.windows(chosen)]
    return torch.stack(parts).sum() / len(chosen)


def chance_loss(objectives: Iterable[Objective], pairs: Iterable[Pairs]) -> float:
    """The same of a constant embedding."""
    return sum(
        one.weight * one.loss.chance(drawn.negative.shape[-1]) for one, drawn in zip(objectives, pairs, strict=True)
    )


@torch.no_grad()
def goodness_of_fit(sides: Sides, objectives: Sequence[Objective], pairs: Sequence[Pairs]) -> float:
    """Loss minus that of a constant embedding, in nats; encoders are in evaluation mode meanwhile."""
    encoders = [*sides.reference.encoders, *sides.other.encoders]
    modes = [encoder.training for encoder in encoders]
    nn.ModuleList(encoders).eval()
    value = total_loss(sides, objectives, pairs).item() - chance_loss(objectives, pairs)
    for encoder, mode in zip(encoders, modes, strict=True):
        encoder.train(mode)
    return value


def _embed(embedder: Embedder, places: Sequence[np.ndarray]) -> list[torch.Tensor]:
    """Points for several arrays of places, each as its array is."""
    points = embedder(np.concatenate([some.reshape(-1) for some in places]))
    parts = points.split([some.size for some in places])
    return [part.unflatten(0, some.shape) for part, some in zip(parts, places, strict=True)]


def _stop_if_it_runs_away(history: History, objectives: Sequence[Objective], samples: int) -> None:
    fit, step = history.goodness_of_fit[-1], len(history.loss)
    if not math.isfinite(fit):
        raise Unfinished(
            f"the loss is {history.loss[-1]} after {step} steps; lower learning_rate, or bring the signal to a common "
            "scale (z-score it)"
        )
    bounded = all(one.loss.similarity.bounded or one.loss.positive_inside for one in objectives)
    most = sum(one.weight for one in objectives) * math.log(samples)
    if not bounded and fit < -most - FORGIVEN:
        raise Unfinished(
            f"the loss runs away: its goodness of fit is {fit:.4g} nats after {step} steps, and {samples} samples "
            f"cannot tell more than {most:.1f}. Positive pairs are closer than any negative, so the embedding grows "
            "without end. Use positive_in_denominator=True, distance='cosine', a larger batch_size, or pairs further "
            "apart (time_offsets, delta)"
        )
