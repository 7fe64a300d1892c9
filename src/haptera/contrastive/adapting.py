"""Adapting to a new session: all layers as they are, but the stem, which reads the channels, begins by a regression.

The published code begins from random weights. Here some samples of the fitted session are kept, what the stem made of
them and their labels; a ridge regression then looks for weights by which the stem makes the same of samples of the new
session with like labels. Training goes on from there, and has far less left to do.
Where labels are missing, or the stem is not a single linear layer, the weights are random after all.
Cost: one regression with as many columns as the stem has inputs.
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.spatial import cKDTree
from sklearn.linear_model import RidgeCV
from torch import nn

from haptera.contrastive.modes import Context
from haptera.contrastive.neighbours import LabelSpace
from haptera.errors import HapteraError

KEPT = 2048
"""Samples of a session that are kept."""
USED = 20_000
"""Samples of a new session that the regression uses."""
LIKE = 32
"""Kept samples whose mean is the target of a new one."""
PENALTIES = np.logspace(-1, 5, 7)


@dataclass(frozen=True)
class Anchors:
    """Samples of a session that was fitted.

    Attributes:
        hidden: what the stem made of them, `(samples, units)`.
        continuous: their continuous label, `(samples, columns)`, or None.
        classes: the names of their classes, `(samples,)`, or None.
    """

    hidden: np.ndarray
    continuous: np.ndarray | None
    classes: np.ndarray | None

    @classmethod
    def of(cls, encoder: nn.Module, signal: np.ndarray, context: Context, seed: int) -> "Anchors | None":
        """Keep some samples; `context` is that of this session."""
        stem = _linear(encoder)
        if stem is None or (context.continuous is None and context.classes is None):
            return None
        places = _places(stem, len(signal), KEPT, seed)
        weight, bias = _weights(stem)
        hidden = _inputs(stem, signal, places) @ weight.T + bias
        return cls(hidden, *_labels(stem, context, places))


def take_over(new: nn.Module, old: nn.Module) -> list[str]:
    """Copy all but the stem; the names of the parameters of the stem.

    The stem is the module of that name, or the first that has parameters.
    """
    first = "stem." if hasattr(new, "stem") else next(iter(dict(new.named_parameters()))).rpartition(".")[0] + "."
    state = {name: tensor for name, tensor in old.state_dict().items() if not name.startswith(first)}
    unfit = [name for name, tensor in state.items() if new.state_dict()[name].shape != tensor.shape]
    if unfit:
        raise HapteraError(f"cannot adapt: {', '.join(unfit)} would change shape; put such layers into a module `stem`")
    new.load_state_dict(state, strict=False)
    return [name for name, _ in new.named_parameters() if name.startswith(first)]


def begin_stem(
    encoder: nn.Module, signal: np.ndarray, context: Context, anchors: Anchors, space: LabelSpace | None, seed: int
) -> None:
    """Give the stem weights by which samples of a new session look like kept ones with like labels."""
    stem = _linear(encoder)
    if stem is None:
        return
    places = _places(stem, len(signal), USED, seed)
    continuous, classes = _labels(stem, context, places)
    columns = [0 if some is None else some.shape[1] for some in (anchors.continuous, continuous)]
    if columns[0] != columns[1]:
        raise HapteraError(f"cannot adapt: the continuous label had {columns[0]} columns, and has {columns[1]} now")
    targets = np.full((len(places), anchors.hidden.shape[1]), np.nan)
    groups = [None] if classes is None or anchors.classes is None else list(np.intersect1d(classes, anchors.classes))
    for group in groups:
        here = np.ones(len(places), bool) if group is None else classes == group
        kept = np.ones(len(anchors.hidden), bool) if group is None else anchors.classes == group
        if continuous is None or anchors.continuous is None or space is None:
            targets[here] = anchors.hidden[kept].mean(0)
        else:
            tree = cKDTree(space.points(anchors.continuous[kept]))
            like = tree.query(space.points(continuous[here]), k=min(LIKE, int(kept.sum())))[1]
            targets[here] = anchors.hidden[kept][np.reshape(like, (int(here.sum()), -1))].mean(1)
    known = np.isfinite(targets[:, 0])
    if known.sum() < 2:
        return
    inputs = _inputs(stem, signal, places[known])
    scale = inputs.std(0) + 1e-6
    found = RidgeCV(alphas=PENALTIES).fit(inputs / scale, targets[known])
    weight = torch.from_numpy(np.atleast_2d(found.coef_) / scale)
    with torch.no_grad():
        stem.weight.copy_(weight.reshape(stem.weight.shape))
        assert stem.bias is not None
        stem.bias.copy_(torch.from_numpy(np.atleast_1d(found.intercept_)))


def _linear(encoder: nn.Module) -> nn.Linear | nn.Conv1d | None:
    """The stem, if it is one linear layer with a bias."""
    stem = getattr(encoder, "stem", None)
    plain = isinstance(stem, nn.Linear) or (isinstance(stem, nn.Conv1d) and stem.stride == (1,) and stem.groups == 1)
    return stem if plain and stem is not None and stem.bias is not None else None


def _kernel(stem: nn.Linear | nn.Conv1d) -> int:
    return stem.kernel_size[0] if isinstance(stem, nn.Conv1d) else 1


def _places(stem: nn.Linear | nn.Conv1d, samples: int, most: int, seed: int) -> np.ndarray:
    """First samples of some of the stem's windows, in order."""
    windows = samples - _kernel(stem) + 1
    return np.sort(np.random.default_rng(seed).permutation(windows)[:most])


def _inputs(stem: nn.Linear | nn.Conv1d, signal: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Windows as rows, in the order of the stem's weights."""
    windows = signal[places[:, None] + np.arange(_kernel(stem))]
    return windows.transpose(0, 2, 1).reshape(len(places), -1).astype(np.float64)


def _weights(stem: nn.Linear | nn.Conv1d) -> tuple[np.ndarray, np.ndarray]:
    assert stem.bias is not None
    weight = stem.weight.detach().flatten(1).double().cpu().numpy()
    return weight, stem.bias.detach().double().cpu().numpy()


def _labels(
    stem: nn.Linear | nn.Conv1d, context: Context, places: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Continuous label and name of the class in the middle of each window."""
    middle = places + _kernel(stem) // 2
    continuous = None if context.continuous is None else context.continuous[middle]
    classes = None if context.classes is None or context.names is None else context.names[context.classes[middle]]
    return continuous, classes
