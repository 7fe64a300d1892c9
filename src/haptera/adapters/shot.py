"""SHOT: keep the classifier, and move the features until predictions are sure, spread over the classes and consistent.

Source: Liang et al. 2020: entropy of each prediction minus that of the mean prediction, plus β times the cross-entropy
with pseudo-labels; the last layer stays. Offline (`adapt`, `epochs` in a study) labels are found before every pass:
centroids of the features, weighted by the predictions, the nearest of them for each image, then once more with the
labels in the place of the predictions.
The public code decides: features get a constant 1 and norm 1, distances are cosines, and a class without a predicted
image has no centroid. Online there is no set to cluster; the public collections (those of T3A and TTAB) take the
model's own labels where it is surer than .9. β is .3 (T3A's has .1).
Differs: the learning rate is the paper's for the body of a network, without its decay; TTAB's online rate is the same.
Momentum is not Nesterov's unless `nesterov=True`, as the public code has it.
Cost: as Tent with all parameters; offline one more forward pass in every epoch, and the features of the whole stream.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from haptera.adapters.base import all_finite
from haptera.adapters.learner import Learner, Learning
from haptera.adapters.select import features, last_layer
from haptera.batch import Batch
from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError
from haptera.losses.self_learning import information_maximisation


class SHOT(Learner):
    """Source hypothesis transfer.

    Args:
        model: any with a linear or convolutional layer at its end.
        lr: the learning rate.
        beta: β, the weight of the pseudo-labels; 0 leaves them out, which the paper calls SHOT-IM.
        threshold: online, the probability above which the model's own label is taken.
        rounds: offline, how often labels are found from centroids.
        settings: of every learner; `parameters` is `!last` and `weight_decay` .001 by default.
    """

    learning = Learning(parameters="!last", weight_decay=1e-3)
    fixed = ("window",)

    def __init__(
        self,
        model: nn.Module,
        lr: float = 1e-3,
        beta: float = 0.3,
        threshold: float = 0.9,
        rounds: int = 2,
        **settings: Any,
    ) -> None:
        check_number("beta", beta, least=0)
        check_number("threshold", threshold, least=0, most=1, what="a probability")
        check_whole_number("rounds", rounds)
        super().__init__(model, lr=lr, **settings)
        last_layer(self.model)
        self.beta, self.threshold, self.rounds = beta, threshold, rounds
        self._labels: torch.Tensor | None = None

    def loss(self, logits: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """Information maximisation, and the cross-entropy of the images that have a label."""
        loss = information_maximisation(logits)
        if not self.beta:
            return loss
        labels = self.own_labels(logits) if self._labels is None else self._labels.to(logits.device)
        kept = labels >= 0
        self.record["kept"] = float(kept.float().mean())
        if bool(kept.any()):
            loss = loss + self.beta * F.cross_entropy(logits[kept], labels[kept])
        return loss

    @torch.no_grad()
    def own_labels(self, logits: torch.Tensor) -> torch.Tensor:
        """The model's first class where it is sure, else −1."""
        surest, labels = logits.softmax(1).max(1)
        return labels.where(surest > self.threshold, -1)

    def adapt(self, stream: Iterable[Batch], epochs: int = 1) -> None:
        """Find labels for the whole stream and learn from it, as often as asked; other calls wait."""
        if not self.beta:
            return super().adapt(stream, epochs)
        if isinstance(stream, Iterator):
            raise HapteraError(
                "SHOT reads a stream twice in every epoch: first for its labels, then to learn; a list "
                "of batches or a Stream was expected, not what can be read once"
            )
        with self._lock:
            for _ in range(epochs):
                labels = self._find_labels(stream)
                try:
                    super().adapt(self._lessons(stream, labels))
                finally:
                    self._labels = None

    def _lessons(self, stream: Iterable[Batch], labels: list[torch.Tensor]) -> Iterator[Batch]:
        """The batches, with the labels of each at hand."""
        for batch, self._labels in zip(stream, labels, strict=True):
            yield batch

    @torch.no_grad()
    def _find_labels(self, stream: Iterable[Batch]) -> list[torch.Tensor]:
        """Labels for every batch; −1 for all of one that is not finite, since it is not learnt from."""
        found, said, labels = [], [], []
        for batch in stream:
            labels.append(torch.full((len(batch.inputs),), -1))
            if not len(batch.inputs) or not all_finite(batch.inputs):
                continue
            inputs = self._arrange(batch.inputs)
            self.begin_step(inputs)
            with features(self.model) as seen:
                logits = self.logits(inputs)
            found.append(seen[-1].float().cpu())
            said.append(logits.softmax(1).cpu())
            labels[-1].zero_()
        if not found:
            return labels
        every = torch.cat(labels)
        every[every == 0] = centroid_labels(torch.cat(found), torch.cat(said), self.rounds)
        return list(every.split([len(each) for each in labels]))


def centroid_labels(found: torch.Tensor, probabilities: torch.Tensor, rounds: int = 2) -> torch.Tensor:
    """Labels `(n,)` of features `(n, d)` by the nearest centroid of the classes, from predictions `(n, classes)`."""
    found = F.normalize(torch.cat([found, torch.ones_like(found[:, :1])], 1), dim=1)
    classes, weights = probabilities.shape[1], probabilities
    labels = probabilities.argmax(1)
    for _ in range(rounds):
        present = torch.bincount(labels, minlength=classes) > 0
        centroids = weights.T @ found / weights.sum(0).clamp_min(1e-8).unsqueeze(1)
        cosines = found @ F.normalize(centroids, dim=1).T
        labels = cosines.masked_fill(~present, -torch.inf).argmax(1)
        weights = F.one_hot(labels, classes).to(found)
    return labels
