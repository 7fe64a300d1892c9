"""Training of a pose model, repeatable, and resumed where it was stopped.

Source: thesis chapter 5: Adam, batches of 8, a learning rate that falls along a cosine, once or with restarts, rotation
and crops. The chapter's rates: ResNets 1e-4 to 1e-5, EfficientNets 5e-4 to 1e-5 (or 0), MobileNets 1e-2 to 0 (or 1e-4),
for 30,000 iterations; from scratch with restarts for 180,000. Small networks on small frames need far fewer.
What a step draws depends on the seed and the number of the step alone, so that a run that was stopped ends as one that
was not; see `haptera.pose.checkpoints`.
Augmentation has the ranges of DeepLabCut by default. Rotation, and a crop that is made as large as the frame again, are
one affine map for each image, sampled once, bilinearly, with black outside; keypoints that leave the frame become
missing. The loss is the sigmoid cross-entropy of the score maps, the mean over all cells and parts, and .05 times
Huber's loss of the offsets, the mean over the cells of the discs, in both coordinates.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from math import cos, pi
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from haptera.adapters.passes import arrange, takes_channels_last
from haptera.checks import check_whole_number
from haptera.errors import HapteraError
from haptera.pose.checkpoints import KIND, Checkpoints
from haptera.pose.data import PoseData
from haptera.pose.model import PoseModel, make_targets, split_maps
from haptera.progress import Progress
from haptera.run.ledger import Ledger

COLUMNS = ["step", "scores", "offsets", "lr"]
MODEL, HISTORY = "model.safetensors", "history.csv"
WEIGHT = 0.05
"""Of the offsets in the loss."""


@dataclass(frozen=True)
class Training:
    """How a pose model is trained.

    Attributes:
        steps: batches in all.
        lr: the learning rate at the start of a cycle.
        lr_end: at its end.
        cycles: how often the rate begins anew.
        batch_size: frames in a step.
        rotation: see `augmented`.
        crop: likewise.
        radius: of the discs, in pixels; see `make_targets`.
        frozen_statistics: BatchNorm keeps the statistics that the backbone came with, and learns scale and shift alone.
        seed: of the order of frames and of the augmentation.
    """

    steps: int = 2000
    lr: float = 1e-3
    lr_end: float = 1e-5
    cycles: int = 1
    batch_size: int = 8
    rotation: float = 25.0
    crop: float = 0.15
    radius: float | None = None
    frozen_statistics: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "cycles", "batch_size"):
            check_whole_number(name, getattr(self, name))


def fit(
    model: PoseModel,
    data: PoseData,
    training: Training | None = None,
    *,
    every: int = 200,
    out: Path | None = None,
    texts: Mapping[str, str] | None = None,
    watch: Callable[[int], None] | None = None,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Train in place; the model ends in evaluation mode.

    Args:
        model: whose parts are those of the data.
        data: labelled frames.
        training: how; `Training()` if left out.
        every: so many steps come between checkpoints, and between calls of `watch`.
        out: a folder for checkpoints, from which the same call goes on, and for `model.safetensors` and `history.csv`.
        texts: name -> content of further files for the folder.
        watch: called with the number of steps done, the model in evaluation mode.
        progress: None shows it where somebody is looking.

    Returns:
        `step`, `scores`, `offsets`, `lr`: means of both terms of the loss over the steps until then.
    """
    training, texts = training or Training(), texts or {}
    if model.parts != data.parts:
        raise HapteraError(f"the model has the parts {model.parts}, the data {data.parts}; the same were expected")
    check_whole_number("every", every)
    optimiser = torch.optim.Adam(model.parameters(), training.lr)
    ledger = None if out is None else Ledger(out, KIND, noun="file")
    with ledger or nullcontext():
        kept = None
        if ledger is not None:
            about = asdict(training) | {"model": {**model.recipe, "origin": model.origin, "parts": model.parts}}
            about |= {"prints": {"data": data.fingerprint()}}
            kept = Checkpoints(ledger, about, [MODEL, HISTORY, *texts])
        run = _Run(model, optimiser, kept, watch)
        try:
            run.train(data, training, every, progress)
        except KeyboardInterrupt as error:
            if kept is not None:
                error.add_note(f" after {run.saved:,} of {training.steps:,} steps")
            raise
        history = pd.DataFrame(run.rows, columns=COLUMNS).astype({"step": int})
        if kept is not None:
            contents = {name: text.encode() for name, text in texts.items()}
            kept.finish(contents | {MODEL: model.to_bytes(), HISTORY: history.to_csv(index=False).encode()})
    return history


def loss_of(history: pd.DataFrame) -> float:
    """Return the loss at the end of a training."""
    return float(history["scores"].iloc[-1] + WEIGHT * history["offsets"].iloc[-1])


def schedule(step: int, steps: int, lr: float, lr_end: float, cycles: int = 1) -> float:
    """Return the learning rate of a step: along half a cosine from `lr` towards `lr_end`, as often as there are cycles.

    >>> [round(schedule(step, 4, 1.0, 0.0), 3) for step in range(4)]
    [1.0, 0.854, 0.5, 0.146]
    """
    done = (step * cycles / steps) % 1
    return lr_end + (lr - lr_end) * (1 + cos(pi * done)) / 2


def batch_rows(frames: int, step: int, batch_size: int, seed: int) -> np.ndarray:
    """Return the frames of a step: one pass after another through all frames, each in an order of its own."""
    places = np.arange(step * batch_size, (step + 1) * batch_size)
    turns = range(int(places[0]) // frames, int(places[-1]) // frames + 1)
    orders = [np.random.default_rng([seed, turn]).permutation(frames) for turn in turns]
    return np.concatenate(orders)[places - turns[0] * frames]


def augmented(
    images: torch.Tensor,
    keypoints: torch.Tensor,
    generator: torch.Generator,
    rotation: float = 25.0,
    crop: float = 0.15,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images `(batch, 3, height, width)` and keypoints `(batch, parts, 2)`, both moved.

    Args:
        images: in [0, 1].
        keypoints: in pixels, NaN where missing.
        generator: of the randomness.
        rotation: degrees to either side at most.
        crop: the largest share of each side that is cut off.
    """
    batch, (height, width) = len(images), images.shape[-2:]
    angle, share, x, y = torch.rand(4, batch, generator=generator, dtype=torch.float64)
    angle = (2 * angle - 1) * rotation * pi / 180
    kept = 1 - crop * share
    centre = torch.stack([(2 * x - 1) * (width - 1), (2 * y - 1) * (height - 1)], 1) / 2 * (1 - kept)[:, None]
    cosine, sine = kept * angle.cos(), kept * angle.sin()
    # In pixels around the middle of the frame: what is seen at p comes from A p + centre.
    matrix = torch.stack([torch.stack([cosine, -sine], 1), torch.stack([sine, cosine], 1)], 1)
    half = torch.tensor([width - 1, height - 1], dtype=torch.float64) / 2
    scaled = torch.cat([matrix * half / half[:, None], (centre / half)[:, :, None]], 2)
    grid = F.affine_grid(scaled.to(images), list(images.shape), align_corners=True)
    moved = F.grid_sample(images, grid, align_corners=True)
    around = keypoints.double() - half - centre[:, None]
    points = torch.einsum("bij,bpj->bpi", torch.linalg.inv(matrix), around) + half
    outside = ((points < -0.5) | (points > 2 * half + 0.5)).any(2, keepdim=True)
    return moved, torch.where(outside, torch.nan, points).to(keypoints.dtype)


def pose_loss(
    maps: torch.Tensor, keypoints: torch.Tensor, stride: int, radius: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cross-entropy and Huber's loss, whose weighted sum, with `WEIGHT`, is minimised.

    Args:
        maps: of a model.
        keypoints: `(batch, parts, 2)` in pixels, NaN where missing.
        stride: of the maps.
        radius: of the discs.
    """
    scores, offsets = split_maps(maps)
    wanted, towards = make_targets(keypoints.to(maps), maps.shape[2], maps.shape[3], stride, radius)
    found = F.binary_cross_entropy_with_logits(scores, wanted)
    inside = wanted[:, :, None].expand_as(offsets)
    apart = F.huber_loss(offsets, towards, reduction="none")
    return found, (apart * inside).sum() / inside.sum().clamp(min=1)


class _Run:
    """How far training came."""

    def __init__(
        self,
        model: PoseModel,
        optimiser: torch.optim.Adam,
        kept: Checkpoints | None,
        watch: Callable[[int], None] | None,
    ) -> None:
        self.model, self.optimiser, self.kept, self.watch = model, optimiser, kept, watch
        self.step, self.rows = (0, []) if kept is None else kept.restore(model, optimiser)
        self.saved = self.step
        self.terms: list[tuple[float, float]] = []

    def train(self, data: PoseData, training: Training, every: int, progress: bool | None) -> None:
        """Take the steps that are left."""
        model, device = self.model, next(self.model.parameters()).device
        keypoints = torch.from_numpy(data.keypoints).float()
        with torch.no_grad():
            channels_last = takes_channels_last(model, model.eval(), data.images(np.arange(1)).to(device))
        left = training.steps - self.step
        with Progress("training", left, progress, "steps") as bar, torch.random.fork_rng(devices=[]):
            while self.step < training.steps:
                rate = schedule(self.step, training.steps, training.lr, training.lr_end, training.cycles)
                for group in self.optimiser.param_groups:
                    group["lr"] = rate
                rows = batch_rows(len(data), self.step, training.batch_size, training.seed)
                drawn = _mixed(training.seed, self.step)
                torch.manual_seed(drawn)  # for layers that draw, such as dropout
                generator = torch.Generator().manual_seed(drawn + 1)
                frames = data.images(rows), keypoints[rows]
                images, points = augmented(*frames, generator, training.rotation, training.crop)
                model.train()
                if training.frozen_statistics:
                    _freeze(model)
                maps = model(arrange(images.to(device), channels_last))
                scores, offsets = pose_loss(maps, points.to(device), model.stride, training.radius)
                self.optimiser.zero_grad()
                (scores + WEIGHT * offsets).backward()
                self.optimiser.step()
                self._count(float(scores.detach()), float(offsets.detach()))
                if self.step % every == 0 or self.step == training.steps:
                    self._pause(rate)
                bar.advance(f"loss {self._recent:.4f}")
        model.eval()

    @property
    def _recent(self) -> float:
        scores, offsets = np.mean(self.terms[-50:] or [(self.rows[-1]["scores"], self.rows[-1]["offsets"])], axis=0)
        return float(scores + WEIGHT * offsets)

    def _count(self, scores: float, offsets: float) -> None:
        if not np.isfinite(scores + offsets):
            raise HapteraError(f"the loss is not finite at step {self.step + 1}; a smaller learning rate may help")
        self.step += 1
        self.terms.append((scores, offsets))

    def _pause(self, rate: float) -> None:
        scores, offsets = np.mean(self.terms, axis=0)
        self.rows.append({"step": self.step, "scores": float(scores), "offsets": float(offsets), "lr": rate})
        self.terms = []
        if self.kept is not None:
            self.kept.save(self.model, self.optimiser, self.step, self.rows)
            self.saved = self.step
        if self.watch is not None:
            self.model.eval()
            self.watch(self.step)


def _freeze(model: nn.Module) -> None:
    """Let BatchNorm layers normalise by their running statistics, which stay."""
    for layer in model.modules():
        if isinstance(layer, _BatchNorm):
            layer.eval()


def _mixed(seed: int, step: int) -> int:
    return int(np.random.SeedSequence([seed, step]).generate_state(1, np.uint32)[0])
