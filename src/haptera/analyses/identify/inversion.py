"""invert: does contrastive learning invert a known process? One row of tables 6.1 and 6.2.

Source: thesis chapter 6 and appendix E. The encoder sees mixed latents only, in pairs; it learns by InfoNCE with the
positive in the sum, by dot products on the sphere and −‖·‖_p^p elsewhere (p = 1 for a Laplace model, 2 for a normal
one, β for a generalised normal one). Layers are n · (10, 50, 50, 50, 50, 10) wide with leaky ReLU. Beside it stand the
observations themselves (identity) and the same encoder taught the latents (supervised).
Different from the text: batches of 512 instead of 6,144, a learning rate of .003 that falls to 0 along a cosine,
observations with mean 0 and spread 1 in each channel, and a radius or side that begins near where the loss wants it.
Without the last two, a thousand steps are not enough.
The last operation of an encoder says where its latents live: the sphere with a radius that is learnt (footnote 1 of
proposition 4), the box with a side that is learnt, or all of space; in chapter 8, a scaled tanh. The text has an L∞
normalisation for the box; here, as in its code, a sigmoid times the side. Where the size begins matters: at 1, as in
the text, the box takes very many steps. In units of the loss the right radius is √κ, the right side one over the scale
of the conditional, and so is the right scale of unbounded space, which here has one as well: it changes nothing that
the last layer could not do, only how soon.
Cost: at n = 4, a thousand steps of 512 are about a quarter of a minute on one core.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from haptera.analyses.identify import Training
from haptera.analyses.identify.identifiability import Identifiability, identifiability
from haptera.analyses.identify.laws import GeneralisedNormal, VonMisesFisher
from haptera.analyses.identify.pictures import PictureEncoder, principal_components
from haptera.analyses.identify.processes import MIXED, Process
from haptera.analyses.identify.slow_vae import SlowVAE
from haptera.contrastive.loss import DotProduct, Euclidean, InfoNCE, Lp
from haptera.errors import HapteraError, Unfinished, unknown
from haptera.models.source import choose_device
from haptera.progress import Progress
from haptera.recordings.windows import Offset

WIDTHS = (10, 50, 50, 50, 50, 10)
SCORED = 4096
Objective = Callable[[nn.Module, np.random.Generator], torch.Tensor]
OUTPUTS = ("sphere", "box", "unbounded", "tanh")
SLOW = "slowvae"
EXPONENTS = {"vmf": None, "laplace": 1.0, "normal": 2.0}


@dataclass(frozen=True)
class LatentModel:
    """What the encoder assumes.

    Attributes:
        space: `sphere`, `box` or `unbounded`.
        exponent: p of −‖·‖_p^p; None is the dot product.
        generative: whether it is SlowVAE, which is not contrastive.
    """

    space: str
    exponent: float | None
    generative: bool = False

    @classmethod
    def read(cls, text: str) -> "LatentModel":
        """Read `space/law`: `sphere/vmf`, `box/laplace`, `unbounded/normal`, `box/gennorm=3`; or `slowvae`.

        >>> LatentModel.read("box/gennorm=3")
        LatentModel(space='box', exponent=3.0, generative=False)
        """
        if text == SLOW:
            return cls("unbounded", 1.0, generative=True)
        space, _, law = text.partition("/")
        if space not in ("sphere", "box", "unbounded"):
            raise unknown("space of the model", space, ("sphere", "box", "unbounded", SLOW))
        name, _, number = law.partition("=")
        if name not in (*EXPONENTS, "gennorm"):
            raise unknown("law of the model", name, (*EXPONENTS, "gennorm"))
        if (name == "gennorm") != bool(number):
            raise HapteraError(f"the model is {text!r}; as in gennorm=3, and no number after another law, expected")
        try:
            return cls(space, float(number) if number else EXPONENTS[name])
        except ValueError as error:
            raise HapteraError(f"the model is {text!r}; a number after = was expected, as in gennorm=3") from error

    def loss(self) -> InfoNCE:
        """Return the loss, with the positive in the sum."""
        if self.exponent is None:
            return InfoNCE(DotProduct(), positive_inside=True)
        return InfoNCE(Euclidean() if self.exponent == 2 else Lp(self.exponent), positive_inside=True)

    def start(self, process: Process) -> float:
        """Where the radius or side begins: near where the model's conditional is most likely, given the true one.

        A model ∝ exp(−|a x|^p) of differences x is most likely at a = (p E|x|^p)^(−1/p), which is one over the scale of
        the true law where that has the same exponent. A box that begins larger has room to turn in.

        >>> round(LatentModel.read("box/normal").start(Process.read("box/uniform/laplace=0.05")), 9)
        10.0
        """
        law = process.conditional
        if self.space == "sphere":
            return math.sqrt(law.kappa) if isinstance(law, VonMisesFisher) else 3.0
        if not isinstance(law, GeneralisedNormal) or self.exponent is None:
            return 10.0
        return float((self.exponent * law.moment(self.exponent)) ** (-1 / self.exponent))


class OutputSpace(nn.Module):
    """Bring points into a space.

    Args:
        space: one of `OUTPUTS`.
        size: where the radius, the side or the scale begins; it is learnt.
    """

    def __init__(self, space: str, size: float = 1.0) -> None:
        super().__init__()
        if space not in OUTPUTS:
            raise unknown("space", space, OUTPUTS)
        self.space = space
        # By its logarithm, so that steps are in proportion.
        self.log_size = nn.Parameter(torch.tensor(size).log())

    @property
    def size(self) -> float:
        """The radius, side or scale as it is now."""
        return self.log_size.exp().item()

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """`(batch, dimensions)` into the space."""
        if self.space == "sphere":
            points = F.normalize(points, dim=1)
        elif self.space != "unbounded":
            points = torch.sigmoid(points) if self.space == "box" else torch.tanh(points)
        return self.log_size.exp() * points


class LatentEncoder(nn.Module):
    """Dense layers, then an output space: the encoders of chapters 6 and 8.

    Args:
        channels: inputs.
        widths: of the layers between.
        dimensions: of the embedding.
        space: of the outputs.
        size: where the radius or side begins.
        activation: between the layers, such as `nn.GELU()`.
    """

    convolutional = False

    def __init__(
        self,
        channels: int,
        widths: "list[int]",
        dimensions: int,
        space: str = "unbounded",
        size: float = 1.0,
        activation: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.offset = Offset(0, 1)
        layers: list[nn.Module] = []
        for before, after in pairwise([channels, *widths]):
            layers += [nn.Linear(before, after), activation or nn.LeakyReLU(0.01)]
        last = widths[-1] if widths else channels
        self.layers = nn.Sequential(*layers, nn.Linear(last, dimensions))
        self.output = OutputSpace(space, size)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Take `(batch, channels)`, or windows `(batch, channels, 1)`, to `(batch, dimensions)`."""
        return self.output(self.layers(inputs[..., 0] if inputs.ndim == 3 else inputs))


@dataclass(frozen=True, eq=False)
class Inversion:
    """How far a process was inverted.

    Attributes:
        contrastive: how far the encoder found the latents.
        identity: the same of the observations.
        supervised: the same of an encoder that was taught the latents; None if it was not asked for.
        loss: of every step, minus that of a constant embedding.
        encoder: as it is in the end.
    """

    contrastive: Identifiability
    identity: Identifiability
    supervised: Identifiability | None
    loss: np.ndarray
    encoder: LatentEncoder | PictureEncoder


def invert(
    process: Process,
    model: LatentModel,
    training: Training | None = None,
    *,
    seed: int = 0,
    progress: bool | None = False,
) -> Inversion:
    """Train an encoder on pairs of a process, and score it.

    Args:
        process: makes the pairs.
        model: what the encoder assumes of them.
        training: how it is trained.
        seed: of pairs and weights.
        progress: show a bar; None does on a terminal.
    """
    how = training or Training()
    device, size = str(choose_device(how.device)), model.start(process) if how.start is None else how.start
    if model.generative and process.seen == MIXED:
        raise HapteraError(
            f"{SLOW} is for pictures and masks; a process such as box/uniform/laplace=0.05/masks expected"
        )
    loss, see = model.loss().to(device), _Eye(process, device, seed)

    def contrast(encoder: nn.Module, random: np.random.Generator) -> torch.Tensor:
        first, second = process.pairs(how.batch_size, random)
        other = process.latents(how.batch_size, random)
        points = encoder(see(np.concatenate([first, second, other])))
        return loss(*points.split(how.batch_size)) - loss.chance(how.batch_size)

    def explain(encoder: nn.Module, random: np.random.Generator) -> torch.Tensor:
        assert slow is not None
        pictures = see(np.concatenate(process.pairs(how.batch_size, random)))
        bound: torch.Tensor = slow(encoder(pictures), pictures, see.mean)
        return bound

    def teach(encoder: nn.Module, random: np.random.Generator) -> torch.Tensor:
        latents = process.latents(how.batch_size, random)
        target = torch.from_numpy(latents).float().to(device)
        return (encoder(see(latents)) - target).square().mean()

    encoder = _new(process, model.space, 1.0 if model.generative else size, seed).to(device)
    encoder.output.log_size.requires_grad_(not how.fixed)
    slow = SlowVAE(process.dimensions, see.mean.shape[0], seed).to(device) if model.generative else None
    taught = _new(process, "unbounded", 1.0, seed).to(device) if how.supervised else None
    with Progress("identify", how.steps * (1 + how.supervised), progress, unit="steps") as bar:
        history = _train(encoder, contrast if slow is None else explain, how, seed, bar, slow)
        if taught is not None:
            _train(taught, teach, how, seed, bar)
    latents = process.latents(2 * SCORED, np.random.default_rng([seed, 1]))
    seen = see(latents)

    def score(found: torch.Tensor) -> Identifiability:
        return identifiability(latents, found.cpu().numpy(), seed=seed)

    with torch.no_grad():
        best = None if taught is None else score(taught(seen))
        bare = seen if process.seen == MIXED else principal_components(seen.cpu().numpy(), process.dimensions)
        return Inversion(score(encoder(seen)), score(torch.as_tensor(bare)), best, history, encoder)


class _Eye:
    """Observations of latents, each channel with mean 0 and spread 1, as encoders learn best; pictures as they are."""

    def __init__(self, process: Process, device: str, seed: int) -> None:
        seen = process.observe(process.latents(SCORED, np.random.default_rng([seed, 2])))
        self._process, self._device = process, device
        mixed = process.seen == MIXED
        self._mean: np.ndarray = seen.mean(0) if mixed else np.zeros(1)
        self._spread: np.ndarray = seen.std(0) if mixed else np.ones(1)
        self.mean = torch.from_numpy(seen.mean(0)).float().to(device)

    def __call__(self, latents: np.ndarray) -> torch.Tensor:
        seen = (self._process.observe(latents) - self._mean) / self._spread
        return torch.from_numpy(seen).float().to(self._device)


def _new(process: Process, space: str, size: float, seed: int) -> LatentEncoder | PictureEncoder:
    count = process.dimensions
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if process.seen != MIXED:
            channels = process.observe(np.full((1, count), 0.5)).shape[1]
            return PictureEncoder(channels, count, OutputSpace(space, size))
        return LatentEncoder(count, [count * width for width in WIDTHS], count, space, size)


def _train(
    encoder: nn.Module, objective: Objective, how: Training, seed: int, bar: Progress, beside: nn.Module | None = None
) -> np.ndarray:
    random = np.random.default_rng([seed, 0])
    learnt = [*encoder.parameters(), *(() if beside is None else beside.parameters())]
    optimiser = torch.optim.Adam(learnt, how.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, how.steps)
    history = np.empty(how.steps)
    for step in range(how.steps):
        value = objective(encoder, random)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        schedule.step()
        history[step] = value.item()
        if not np.isfinite(history[step]):
            raise Unfinished(f"the loss is {history[step]} after {step + 1} steps; lower the learning rate")
        bar.advance(f"{history[step]:.3f}")
    return history
