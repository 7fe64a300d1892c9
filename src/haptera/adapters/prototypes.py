"""Prototypes: where the features of each class are, a head that projects features, and labelled source data.

For methods that compare features with classes, as RMT and SANTA do. An adapter reads no source data unless the user
passes it by `source=`; prototypes are then the mean features of each class there. Without it they are the rows of the
last layer, to which the features of a well-trained network align (Papyan et al. 2020).
Cost: with source data, one forward pass over it when the adapter is built.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import torch
from torch import nn

from haptera.adapters.generator import generator_of
from haptera.adapters.learner import Learner
from haptera.adapters.select import last_layer
from haptera.batch import Batch
from haptera.errors import HapteraError, NotApplicable

Source = Sequence[Batch | tuple[torch.Tensor, torch.Tensor]]
"""Labelled batches by position: a stream, or a list of batches or of (inputs, targets)."""


class SourceData:
    """Labelled batches that a user passed, read again and again in their order; copies of an adapter share them.

    Args:
        source: a sequence of batches.
    """

    def __init__(self, source: Any) -> None:
        if not hasattr(source, "__getitem__") or not hasattr(source, "__len__") or not len(source):
            raise HapteraError(
                f"source is {type(source).__name__}; labelled batches by position were expected, a stream or a list "
                "of (inputs, targets), at least one of them"
            )
        self.source = source
        self[0]

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets of a batch; after the last one comes the first."""
        batch = self.source[index % len(self)]
        pair = (batch.inputs, batch.targets) if isinstance(batch, Batch) else batch
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], torch.Tensor):
            raise HapteraError(
                f"batch {index % len(self)} of source is {type(batch).__name__} {batch!r:.60}; (inputs, targets) was "
                "expected"
            )
        inputs, targets = pair
        if not isinstance(targets, torch.Tensor) or targets.shape != inputs.shape[:1]:
            found = tuple(targets.shape) if isinstance(targets, torch.Tensor) else targets
            raise HapteraError(f"batch {index % len(self)} of source has targets {found!r}; one per image was expected")
        return inputs, targets.long()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


Look = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


@torch.no_grad()
def class_means(source: SourceData, look: Look) -> torch.Tensor:
    """Mean features `(classes with samples, d)` of labelled data; `look` gives features and logits of inputs."""
    sums, counts = torch.zeros(0), torch.zeros(0)
    for index in range(len(source)):
        inputs, targets = source[index]
        seen, logits = look(inputs)
        if not index:
            sums = torch.zeros(logits.shape[1], seen.shape[1], dtype=torch.float64, device=seen.device)
            counts = torch.zeros(logits.shape[1], dtype=torch.float64, device=seen.device)
        if int(targets.min()) < 0 or int(targets.max()) >= len(counts):
            least, most = int(targets.min()), int(targets.max())
            raise HapteraError(f"source has targets from {least} to {most}; the model has {len(counts)} classes")
        targets = targets.to(seen.device)
        sums.index_add_(0, targets, seen.double())
        counts += torch.bincount(targets, minlength=len(counts))
    some = counts > 0
    return (sums[some] / counts[some, None]).float()


def prototypes_of(learner: Learner, source: Source | None) -> torch.Tensor:
    """Mean features of each class of labelled data that was passed, or the rows of the last layer; in float32."""
    if source is None:
        return head_rows(learner.model)
    return class_means(SourceData(source), partial(look_at_source, learner))


def look_at_source(learner: Learner, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Features and logits of source inputs, in the type of the weights, with the statistics of training."""
    return learner.look(learner._arrange(inputs.to(learner._source[0].dtype)), "last")


def head_rows(model: nn.Module) -> torch.Tensor:
    """Return the rows `(classes, d)` of the last layer, in single precision."""
    weight = getattr(last_layer(model), "weight", None)
    if not isinstance(weight, torch.Tensor) or weight[0, 0].numel() != 1:
        raise NotApplicable(
            f"the last layer is {last_layer(model)}, whose rows are not features of classes; pass labelled source data "
            "by source= for prototypes"
        )
    return weight.detach().flatten(1).float().clone()


def nearest(features: torch.Tensor, prototypes: torch.Tensor) -> torch.Tensor:
    """The prototype `(batch, d)` of largest cosine for each of the features `(batch, d)`."""
    if features.shape[1] != prototypes.shape[1]:
        raise NotApplicable(
            f"features have {features.shape[1]} dimensions and the prototypes of classes {prototypes.shape[1]}: the "
            "last layer is not applied to one vector per image; pass labelled source data by source= for prototypes"
        )
    prototypes = prototypes.to(features)
    cosine = nn.functional.normalize(features.detach(), dim=1) @ nn.functional.normalize(prototypes, dim=1).T
    return prototypes[cosine.argmax(1)]


class Projector(nn.Module):
    """Two linear layers with a ReLU between them, which learn beside an adapter with an optimiser like its own.

    Args:
        features: how many dimensions come in.
        width: how many go out.
        like: the optimiser whose kind and settings it takes.
        seed: of the first weights, which are torch's usual ones.
    """

    def __init__(self, features: int, width: int, like: torch.optim.Optimizer, seed: int = 0) -> None:
        super().__init__()
        generator = generator_of(seed, features, width)
        sizes = ((features, width), (width, width))
        self.layers = nn.ModuleList(nn.utils.skip_init(nn.Linear, *size) for size in sizes)
        for layer, (inside, _) in zip(self.layers, sizes, strict=True):
            for parameter in layer.parameters():
                parameter.data.uniform_(-(inside**-0.5), inside**-0.5, generator=generator)
        self.to(like.param_groups[0]["params"][0].device)
        self.optimiser = type(like)(self.parameters())  # type: ignore[call-arg]
        settings = {name: value for name, value in like.param_groups[0].items() if name != "params"}
        self.optimiser.param_groups[0].update(settings)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """`(..., features)` to `(..., width)`."""
        first, second = self.layers
        return second(first(features.float()).relu())

    def step(self) -> None:
        """Take the step that waits; none where a gradient is not finite."""
        gradients = [parameter.grad for parameter in self.parameters() if parameter.grad is not None]
        if gradients and bool(torch.isfinite(nn.utils.get_total_norm(gradients))):
            self.optimiser.step()
        self.optimiser.zero_grad()

    def get_extra_state(self) -> dict[str, Any]:
        """The optimiser's state, and the gradient that waits, for `state_dict`."""
        return {
            "optimiser": self.optimiser.state_dict()["state"],
            "gradients": [parameter.grad for parameter in self.parameters()],
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take what `get_extra_state` returned."""
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state["optimiser"], "param_groups": groups})
        for parameter, gradient in zip(self.parameters(), state["gradients"], strict=True):
            parameter.grad = None if gradient is None else gradient.to(parameter).clone()

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """What torch calls for `.to(device)`, `.half()` and the like: it goes along, and stays in single precision."""
        device = fn(next(self.parameters()).detach()[:0]).device
        super()._apply(lambda tensor: tensor.to(device), recurse)
        if before := getattr(self, "optimiser", None):
            self.optimiser = type(before)(self.parameters())
            self.optimiser.load_state_dict(before.state_dict())
        return self
