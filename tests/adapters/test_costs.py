"""What methods cost: how many images go forward and backward for each image of a batch, as their docstrings say."""

from functools import partial

import pytest
import torch
from torch import nn

from haptera.adapters import ASR, CMF, ROID, SANTA, DeYO, Ensemble, PeTTA, PriorCorrection, RoTTA, Tent

COUNTS = {"forward": 0, "backward": 0}
BANK = {"capacity": 20, "frequency": 20}


class Counted(torch.autograd.Function):
    """The identity, which counts the rows that pass in each direction."""

    @staticmethod
    def forward(ctx, inputs):
        COUNTS["forward"] += len(inputs)
        return inputs.clone()

    @staticmethod
    def backward(ctx, gradient):
        COUNTS["backward"] += len(gradient)
        return gradient


class Count(nn.Module):
    def forward(self, inputs):
        return Counted.apply(inputs)


def network():
    torch.manual_seed(0)
    first = (nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), Count(), nn.ReLU())
    return nn.Sequential(*first, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 3)).eval()


CASES = {
    "tent": (Tent, lambda kept, bank: (1, 1)),
    "tent in an ensemble, corrected": (PriorCorrection(Ensemble(Tent)), lambda kept, bank: (1, 1)),
    "roid without views": (partial(ROID, consistency=0), lambda kept, bank: (1, 1)),
    "roid": (ROID, lambda kept, bank: (1 + kept, 1 + kept)),
    "cmf": (CMF, lambda kept, bank: (1 + kept, 1 + kept)),
    "deyo, all kept": (partial(DeYO, margin=1.1, threshold=-1.0, parameters="norm"), lambda kept, bank: (2, 1)),
    "deyo, none sure": (partial(DeYO, margin=1e-9, parameters="norm"), lambda kept, bank: (1, 0)),
    "santa": (SANTA, lambda kept, bank: (3, 2)),
    "rotta": (partial(RoTTA, **BANK), lambda kept, bank: (1 + 2 * bank, bank)),
    "petta": (partial(PeTTA, **BANK), lambda kept, bank: (2 + 4 * bank, 2 * bank)),
    "petta, cross-entropy": (
        partial(PeTTA, labels="cross_entropy", **BANK),
        lambda kept, bank: (2 + 3 * bank, bank),
    ),
    "asr": (partial(ASR, margin=1.1, redundancy=1.1), lambda kept, bank: (2, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_so_many_images_go_forward_and_backward_for_each_of_a_batch(name):
    make, expected = CASES[name]
    adapter, images = make(network()), torch.rand(20, 1, 8, 8)
    adapter(images)  # a first batch may try out the memory layout
    COUNTS.update(forward=0, backward=0)
    adapter(images)
    bank = len(adapter.memory.get("labels", ())) / 20
    assert (COUNTS["forward"] / 20, COUNTS["backward"] / 20) == pytest.approx(
        expected(adapter.record.get("kept"), bank)
    )
