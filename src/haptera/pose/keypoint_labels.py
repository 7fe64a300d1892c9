"""KeypointLabels: an adapter that teaches a pose network its own confident keypoints on frames without labels.

A first pass over a batch, with the BatchNorm statistics of the batch, says where the parts are. Those that it is sure
of become labels: a disc in the score map and offsets to the keypoint, as in training. Then the network learns them on
rotated and cropped frames, the labels moved along. A part that is not sure teaches nothing, not even that it is absent.
Where frames follow one another, as in a video, labels must agree in time as well: of three frames in a row, a part
counts only if the middle one lies at most `jump` pixels from halfway between the other two.

Source: thesis chapter 5 (statistics of each individual; the loss) and (3.5), hard labels with a stopped gradient;
threshold, moved frames and agreement in time after Mu et al. 2020 ("Learning from synthetic animals"), labels of one's
own video after Ye et al. 2024 (SuperAnimal). Differs: labels are made once for a batch, by the network as it was before
it, not in rounds of training; only normalisation layers adapt by default.
Statistics stay as they are while it learns, so frames can be taken `chunk` at a time: memory is that of a chunk.
Cost: two passes over a batch, and `steps` forward and backward passes.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters.learner import Learner
from haptera.adapters.learning import Learning
from haptera.checks import check_number, check_whole_number
from haptera.errors import NotApplicable
from haptera.pose.model import make_targets
from haptera.pose.network import LOGITS, Maps, PoseNetwork
from haptera.pose.training import WEIGHT, augmented

THREE = 3
SMALLEST = 1e-6
"""Scores that are probabilities stay so far from 0 and 1."""


class KeypointLabels(Learner):
    """Pseudo-labels on confident keypoints.

    Args:
        model: a `PoseNetwork` that gives score maps, with or without offsets.
        lr: the learning rate.
        threshold: the confidence from which on a keypoint is a label.
        jump: pixels that the middle one of three frames may be off halfway between the others; two cells by default.
        triples: frames come in threes that follow each other; `pose predict` sees to it for a video.
        rotation: degrees to either side by which frames are turned at most, while it learns.
        crop: the largest share of each side that is cut off.
        radius: of the discs in pixels; see `make_targets`.
        chunk: frames in a gradient step.
        settings: of every learner; `steps` are passes over a batch.
    """

    learning = Learning(optimiser="adam", prior=16.0, steps=3, predictions="after")

    def __init__(
        self,
        model: nn.Module,
        lr: float = 1e-3,
        threshold: float = 0.6,
        jump: float | None = None,
        triples: bool = False,
        rotation: float = 25.0,
        crop: float = 0.15,
        radius: float | None = None,
        chunk: int = 8,
        **settings: Any,
    ) -> None:
        maps = getattr(model, "maps", None)
        if not isinstance(model, PoseNetwork) or maps is None:
            what = "gives keypoints alone" if isinstance(model, PoseNetwork) else f"is a {type(model).__name__}"
            raise NotApplicable(
                f"KeypointLabels learns in score maps, and the model {what}; a PoseModel, a DeepLabCut snapshot, or "
                "haptera.pose.as_network of a network with score maps was expected"
            )
        check_number("threshold", threshold, least=0, most=1, what="a confidence")
        check_number("rotation", rotation, least=0, most=180, what="degrees")
        check_number("crop", crop, least=0, below=1, what="a share")
        check_whole_number("chunk", chunk)
        if jump is not None:
            check_number("jump", jump, above=0, what="pixels")
        super().__init__(model, lr=lr, **settings)
        self.maps: Maps = maps
        self.threshold, self.triples, self.radius = threshold, triples, radius
        self.jump = 2.0 * maps.stride if jump is None else jump
        self.rotation, self.crop, self.chunk = rotation, crop, chunk

    def check_pass(self, outputs: Any) -> torch.Tensor:
        """Return score maps; anything else cannot be learnt from."""
        if not isinstance(outputs, torch.Tensor) or outputs.ndim != 4:
            raise NotApplicable("KeypointLabels learns in score maps, and the model gave none")
        return outputs

    def step(self, inputs: torch.Tensor) -> torch.Tensor:
        """Choose labels by a first pass, learn them on moved frames, and predict."""
        self.begin_step(inputs)
        outputs = self.answer(inputs)
        labels = self.labels(outputs)
        loss: torch.Tensor | None = None
        for _ in range(self.learning.steps):
            for rows in torch.arange(len(inputs)).split(self.chunk):
                if bool(torch.isfinite(labels[rows]).any()):
                    loss = self._lesson(inputs[rows], labels[rows])
        self._count_idle(loss is None)
        if self._after:
            outputs = self.answer(inputs)
        self._note(outputs, loss)
        return outputs

    def labels(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return `(batch, parts, 2)`: keypoints that are labels, NaN elsewhere."""
        assert isinstance(self.model, PoseNetwork)
        keypoints, confidence = self.model.decode(outputs)
        kept = (confidence >= self.threshold) & torch.isfinite(keypoints).all(2)
        if self.triples:
            kept = steady(keypoints, kept, self.jump)
        self.record["kept"] = float(kept.float().mean())
        return torch.where(kept[..., None], keypoints, torch.nan)

    def _lesson(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor | None:
        moved, points = augmented(inputs, labels.cpu(), self.random, self.rotation, self.crop)
        with torch.enable_grad():
            loss = label_loss(self.logits(self._arrange(moved), "last"), points.to(labels), self.maps, self.radius)
        if loss is not None:
            self.learn(loss)
        return loss

    def _note(self, outputs: torch.Tensor, loss: torch.Tensor | None) -> None:
        """What this step reports; score maps have no distribution over classes."""
        self.record["change"] = self.change()
        if loss is not None:
            self.record["loss"] = float(loss.detach())
        for piece in self.pieces:
            piece.after_step(outputs)


def steady(keypoints: torch.Tensor, kept: torch.Tensor, jump: float) -> torch.Tensor:
    """Return `(frames, parts)`: which keypoints agree with those of the two other frames of their three.

    Args:
        keypoints: `(frames, parts, 2)`; frames 0 to 2, 3 to 5 and so on follow each other; what is left does not count.
        kept: `(frames, parts)`, which keypoints are sure; all of three must be.
        jump: pixels at most between the middle one and halfway between the others.

    >>> one = torch.tensor([[[0.0, 0.0]], [[1.0, 0.0]], [[2.0, 0.0]], [[0.0, 0.0]], [[9.0, 0.0]], [[2.0, 0.0]]])
    >>> steady(one, torch.ones(6, 1, dtype=torch.bool), 4.0).flatten().tolist()
    [True, True, True, False, False, False]
    """
    whole = len(keypoints) // THREE * THREE
    points, sure = keypoints[:whole].unflatten(0, (-1, THREE)), kept[:whole].unflatten(0, (-1, THREE))
    off = (points[:, 1] - (points[:, 0] + points[:, 2]) / 2).norm(dim=2)
    agree = ((off <= jump) & sure.all(1)).repeat_interleave(THREE, 0)
    return torch.cat([agree, torch.zeros_like(kept[whole:])])


def label_loss(
    outputs: torch.Tensor, labels: torch.Tensor, maps: Maps, radius: float | None = None
) -> torch.Tensor | None:
    """Return the loss of chapter 5 over the labels alone: a part without a label does not count.

    Args:
        outputs: `(batch, parts or 3 parts, rows, columns)`, scores first.
        labels: `(batch, parts, 2)` in pixels, NaN where there is none.
        maps: what the cells mean.
        radius: of the discs in pixels; the stride by default.
    """
    kept = torch.isfinite(labels).all(2)
    if not bool(kept.any()):
        return None
    parts, (rows, columns) = labels.shape[1], outputs.shape[2:]
    first = (maps.stride - 1) / 2 if maps.first is None else maps.first
    # Cells of `make_targets` begin at (stride − 1) / 2; labels move along with the first cell of these maps.
    wanted, towards = make_targets(labels + ((maps.stride - 1) / 2 - first), rows, columns, maps.stride, radius)
    scores, wanted = outputs[:, :parts][kept], wanted[kept]
    if maps.scores == LOGITS:
        found = F.binary_cross_entropy_with_logits(scores, wanted)
    else:
        found = F.binary_cross_entropy(scores.clamp(SMALLEST, 1 - SMALLEST), wanted)
    if outputs.shape[1] == parts:
        return found
    offsets = outputs[:, parts:].unflatten(1, (parts, 2))[kept]
    towards = towards[kept] * (maps.stride / (maps.stride if maps.unit is None else maps.unit))
    inside = wanted[:, None].expand_as(offsets)
    apart = F.huber_loss(offsets, towards, reduction="none")
    return found + WEIGHT * (apart * inside).sum() / inside.sum().clamp(min=1)
