"""Watching without a profile: the size of a shift from BatchNorm's own statistics, and what cannot be told is said."""

import pytest
import torch
from tests.live.guarded_models import Told, images, small_net
from torch import nn

from haptera.adapters import BatchNorm
from haptera.live.guard import Guard


def trained_net():
    """A network whose BatchNorm statistics are those of `images`."""
    net = small_net()
    net.train()
    with torch.no_grad():
        for seed in range(60):
            net(images(64, seed))
    return net.eval()


def sizes(guard, shift, steps):
    """The size of the shift after each step."""
    found = []
    for step in range(steps):
        guard(shift(images(32, 1000 + step)))
        found.append(guard._watching._place[0])
    return found


@pytest.mark.long
def test_the_size_of_a_shift_is_known_from_batchnorm_statistics():
    for adapter in (None, BatchNorm):
        with Guard(trained_net(), adapter) as guard:
            still = sizes(guard, lambda batch: batch, 100)
            moved = sizes(guard, lambda batch: 0.4 * batch, 200)
            row = guard.status()["window"]
        assert abs(still[-1]) < 0.1
        assert moved[-1] > 0.5
        assert row["where"] == "0.1"
        assert row["nearest"] == ""


def test_what_cannot_be_told_without_a_profile_is_said():
    kinds = {trained_net(): "distance from the statistics in the BatchNorm layers", Told(): "has no BatchNorm layers"}
    for model, expected in kinds.items():
        with Guard(model) as guard:
            remarks = " ".join(guard.status()["remarks"])
        assert expected in remarks
        assert "accuracy is not predicted" in remarks
        assert "first 1000 images are the reference" in remarks


def test_layers_that_no_batch_meets_are_left_aside():
    class Spare(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.spare = trained_net(), nn.BatchNorm2d(3)

        def forward(self, inputs):
            return self.net(inputs)

    with Guard(Spare().eval()) as guard:
        assert abs(sizes(guard, lambda batch: batch, 40)[-1]) < 0.2


def test_a_guard_without_a_profile_goes_on_from_its_snapshot_to_the_same_numbers(tmp_path):
    model, rows = trained_net(), {"whole": [], "first": [], "second": []}

    def run(name, folder, steps):
        with Guard(model, log=folder, snapshot_every=20) as guard:
            guard.listeners.append(rows[name].append)
            for step in steps:
                guard(images(32, step) * (0.4 if step > 30 else 1.0))

    run("whole", tmp_path / "whole", range(60))
    run("first", tmp_path / "parts", range(40))
    run("second", tmp_path / "parts", range(40, 60))
    own = {name: [row["shift_size"] for row in each if row["kind"] == "step"] for name, each in rows.items()}
    assert own["first"] + own["second"] == own["whole"]
    assert own["whole"][-1] > own["whole"][20]
