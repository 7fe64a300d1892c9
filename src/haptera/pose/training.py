"""Training of a pose model, repeatable, and resumed where it was stopped.

Source: thesis chapter 5: Adam, batches of 8, a learning rate that falls along a cosine, once or with restarts, rotation
and crops. The chapter's rates: ResNets 1e-4 to 1e-5, EfficientNets 5e-4 to 1e-5 (or 0), MobileNets 1e-2 to 0 (or 1e-4),
for 30,000 iterations; from scratch with restarts for 180,000. Small networks on small frames need far fewer.
What a step draws depends on the seed and the number of the step alone, so that a run that was stopped ends as one that
was not. A checkpoint is a safetensors file with weights, Adam's moments and the history.

Augmentation of frames with keypoints: rotation, and a crop that is made as large as the frame again.

Source: thesis chapter 5, "random cropping and rotations"; the ranges are the defaults of DeepLabCut. Both are one
affine map for each image, sampled once, bilinearly, with black outside; keypoints that leave the frame become missing.

The loss of a pose model: sigmoid cross-entropy of the score maps, and .05 times Huber's loss of the offsets.

Source: thesis chapter 5. Cross-entropy is the mean over all cells and parts, Huber's loss the mean over the cells of
the discs, in both coordinates.
"""

import json
from collections.abc import Callable
from math import cos, pi
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file, save
from torch.nn import functional as F

from haptera.adapters.layout import arranged, takes_channels_last
from haptera.errors import HapteraError
from haptera.files.atomic import whole
from haptera.files.fingerprint import fingerprint
from haptera.pose.data import PoseData
from haptera.pose.model import PoseModel, make_targets, read_facts, split_maps
from haptera.progress import Progress

COLUMNS = ["step", "scores", "offsets", "lr"]


def fit(
    model: PoseModel,
    data: PoseData,
    *,
    steps: int = 2000,
    lr: float = 1e-3,
    lr_end: float = 1e-5,
    cycles: int = 1,
    batch_size: int = 8,
    rotation: float = 25.0,
    crop: float = 0.15,
    radius: float | None = None,
    seed: int = 0,
    every: int = 200,
    checkpoint: Path | None = None,
    watch: Callable[[int], None] | None = None,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Train in place; the model ends in evaluation mode.

    Args:
        model: whose parts are those of the data.
        data: labelled frames.
        steps: batches in all.
        lr: the learning rate at the start of a cycle.
        lr_end: at its end.
        cycles: how often the rate begins anew.
        batch_size: frames in a step.
        rotation: see `augmented`.
        crop: likewise.
        radius: of the discs, in pixels; see `make_targets`.
        seed: of the order of frames and of the augmentation.
        every: so many steps come between checkpoints, and between calls of `watch`.
        checkpoint: a file to go on from, if it is there, and to write to.
        watch: called with the number of steps done, the model in evaluation mode.
        progress: None shows it where somebody is looking.

    Returns:
        `step`, `scores`, `offsets`, `lr`: means of both terms of the loss over the steps until then.
    """
    _check(model, data, {"steps": steps, "cycles": cycles, "batch_size": batch_size, "every": every})
    optimiser = torch.optim.Adam(model.parameters(), lr)
    run = _Run(model, optimiser, watch)
    settings = (steps, lr, lr_end, cycles, batch_size, rotation, crop, radius, seed)
    key = "" if checkpoint is None else fingerprint(data.fingerprint(), model.parts, *settings)
    if checkpoint is not None and checkpoint.is_file():
        run.restore(checkpoint, key)
    device = next(model.parameters()).device
    keypoints = torch.from_numpy(data.keypoints).float()
    with torch.no_grad():
        channels_last = takes_channels_last(model, model.eval(), data.images(np.arange(1)).to(device))
    with Progress("training", steps - run.step, progress, "steps") as bar, torch.random.fork_rng(devices=[]):
        while run.step < steps:
            rate = schedule(run.step, steps, lr, lr_end, cycles)
            for group in optimiser.param_groups:
                group["lr"] = rate
            rows = batch_rows(len(data), run.step, batch_size, seed)
            torch.manual_seed(_mixed(seed, run.step))  # for layers that draw, such as dropout
            generator = torch.Generator().manual_seed(_mixed(seed, run.step) + 1)
            images, points = augmented(data.images(rows), keypoints[rows], generator, rotation, crop)
            model.train()
            found, apart = pose_loss(
                model(arranged(images.to(device), channels_last)), points.to(device), model.stride, radius
            )
            optimiser.zero_grad()
            (found + WEIGHT * apart).backward()
            optimiser.step()
            run.after(float(found.detach()), float(apart.detach()), rate)
            if run.step % every == 0 or run.step == steps:
                run.pause(checkpoint, key)
            bar.advance(f"loss {run.recent:.4f}")
    model.eval()
    return run.history()


def schedule(step: int, steps: int, lr: float, lr_end: float, cycles: int = 1) -> float:
    """The learning rate of a step: along half a cosine from `lr` towards `lr_end`, as often as there are cycles.

    >>> [round(schedule(step, 4, 1.0, 0.0), 3) for step in range(4)]
    [1.0, 0.854, 0.5, 0.146]
    """
    done = (step * cycles / steps) % 1
    return lr_end + (lr - lr_end) * (1 + cos(pi * done)) / 2


def batch_rows(frames: int, step: int, batch_size: int, seed: int) -> np.ndarray:
    """The frames of a step: one pass after another through all frames, each in an order of its own."""
    places = np.arange(step * batch_size, (step + 1) * batch_size)
    turns = range(int(places[0]) // frames, int(places[-1]) // frames + 1)
    orders = [np.random.default_rng([seed, turn]).permutation(frames) for turn in turns]
    return np.concatenate(orders)[places - turns[0] * frames]


class _Run:
    """How far training came."""

    def __init__(self, model: PoseModel, optimiser: torch.optim.Adam, watch: Callable[[int], None] | None) -> None:
        self.model, self.optimiser, self.watch = model, optimiser, watch
        self.step = 0
        self.rows: list[dict[str, float]] = []
        self.terms: list[tuple[float, float]] = []

    @property
    def recent(self) -> float:
        scores, offsets = np.mean(self.terms[-50:] or [(self.rows[-1]["scores"], self.rows[-1]["offsets"])], axis=0)
        return float(scores + WEIGHT * offsets)

    def after(self, found: float, apart: float, rate: float) -> None:
        if not np.isfinite(found + apart):
            raise HapteraError(f"the loss is not finite at step {self.step + 1}; a smaller learning rate may help")
        self.step += 1
        self.terms.append((found, apart))
        self.rate = rate

    def pause(self, checkpoint: Path | None, key: str) -> None:
        scores, offsets = np.mean(self.terms, axis=0)
        self.rows.append({"step": self.step, "scores": float(scores), "offsets": float(offsets), "lr": self.rate})
        self.terms = []
        if checkpoint is not None:
            self._save(checkpoint, key)
        if self.watch is not None:
            self.model.eval()
            self.watch(self.step)

    def history(self) -> pd.DataFrame:
        return pd.DataFrame(self.rows, columns=COLUMNS).astype({"step": int})

    def _save(self, path: Path, key: str) -> None:
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for number, moments in self.optimiser.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{name}": torch.as_tensor(value) for name, value in moments.items()}
        facts = {"step": self.step, "key": key, "rows": self.rows}
        with whole(path) as file:
            plain = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
            file.write(save(plain, {"training": json.dumps(facts)}))

    def restore(self, path: Path, key: str) -> None:
        facts = read_facts(path, "training")
        if facts["key"] != key:
            raise HapteraError(
                f"the checkpoint {path} is of other data or settings; train into another folder, or delete it"
            )
        tensors = load_file(path)
        self.model.load_state_dict({k[6:]: tensor for k, tensor in tensors.items() if k.startswith("model.")})
        state: dict[int, dict[str, Any]] = {}
        for name, tensor in tensors.items():
            if name.startswith("adam."):
                _, number, moment = name.split(".")
                state.setdefault(int(number), {})[moment] = tensor
        self.optimiser.load_state_dict(self.optimiser.state_dict() | {"state": state})
        self.step, self.rows = facts["step"], facts["rows"]


def _check(model: PoseModel, data: PoseData, numbers: dict[str, int]) -> None:
    if model.parts != data.parts:
        raise HapteraError(f"the model has the parts {model.parts}, the data {data.parts}; the same were expected")
    for name, value in numbers.items():
        if not isinstance(value, int) or value < 1:
            raise HapteraError(f"{name} is {value!r}; a whole number of at least 1 was expected")


def _mixed(seed: int, step: int) -> int:
    return int(np.random.SeedSequence([seed, step]).generate_state(1, np.uint32)[0])


def augmented(
    images: torch.Tensor,
    keypoints: torch.Tensor,
    generator: torch.Generator,
    rotation: float = 25.0,
    crop: float = 0.15,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Images `(batch, 3, height, width)` and keypoints `(batch, parts, 2)`, both moved.

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


WEIGHT = 0.05


def pose_loss(
    maps: torch.Tensor, keypoints: torch.Tensor, stride: int, radius: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy and Huber's loss, whose weighted sum, with `WEIGHT`, is minimised.

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
