"""Adapters beside a straightforward implementation of the same method, in one run: CPU time per batch.

    python benchmarks/adapters.py [speed] [long] [catalog [batch | group | layer] [METHOD ...]]

speed: a residual network of 20 layers at 32 pixels, batches of 64, one thread; the least of several rounds, the two
sides by turns. "plain" is a pass of the caller's model without gradients. The straightforward side is what the public
code does: train-mode BatchNorm, `requires_grad` on the affine parameters, the whole batch through the backward pass.
long: a stream of 100,000 small batches; time and memory of the first against the last thousand.
catalog: every method against plain inference and against the passes of its paper, see `adapter_costs.py`.
"""

import copy
import math
import resource
import sys
import time

import torch
from torch import nn

from haptera.adapters import ETA, BatchNorm, CoTTA, NoAdaptation, RDumb, Tent
from haptera.models import ResNet


def entropy(logits):
    return -(logits.softmax(1) * logits.log_softmax(1)).sum(1)


def configured(model):
    """As the public code prepares a model."""
    net = copy.deepcopy(model).train().requires_grad_(False)
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.requires_grad_(True)
            layer.track_running_stats, layer.running_mean, layer.running_var = False, None, None
    return net, torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 2.5e-4, momentum=0.9)


class Plain:
    def __init__(self, model):
        self.net = copy.deepcopy(model).eval()

    @torch.no_grad()
    def __call__(self, inputs):
        return self.net(inputs)


class StraightBatchNorm:
    def __init__(self, model):
        self.net = configured(model)[0]

    @torch.no_grad()
    def __call__(self, inputs):
        return self.net(inputs)


class StraightTent:
    def __init__(self, model):
        self.net, self.optimiser = configured(model)

    def __call__(self, inputs):
        logits = self.net(inputs)
        entropy(logits).mean().backward()
        self.optimiser.step()
        self.optimiser.zero_grad()
        return logits


class StraightETA(StraightTent):
    def __init__(self, model, keep):
        super().__init__(model)
        self.keep = keep

    def __call__(self, inputs):
        logits = self.net(inputs)
        h = entropy(logits)
        kept = torch.arange(len(h))[: int(self.keep * len(h))]
        loss = (h[kept] * torch.exp(0.4 * math.log(logits.shape[1]) - h[kept].detach())).mean()
        if len(kept):
            loss.backward()
        self.optimiser.step()
        self.optimiser.zero_grad()
        return logits


class StraightCoTTA:
    """Without augmentation: student, teacher, source, moving average and restoration, tensor by tensor."""

    def __init__(self, model):
        self.student, self.teacher, self.source = (copy.deepcopy(model).train() for _ in range(3))
        for net in (self.student, self.teacher, self.source):
            for layer in net.modules():
                if isinstance(layer, nn.BatchNorm2d):
                    layer.track_running_stats, layer.running_mean, layer.running_var = False, None, None
        self.teacher.requires_grad_(False)
        self.source.requires_grad_(False)
        self.optimiser = torch.optim.SGD(self.student.parameters(), 0.01, momentum=0.9)

    def __call__(self, inputs):
        logits = self.student(inputs)
        self.source(inputs).softmax(1).amax(1).mean()
        target = self.teacher(inputs)
        loss = -(target.softmax(1) * logits.log_softmax(1)).sum(1).mean()
        loss.backward()
        self.optimiser.step()
        self.optimiser.zero_grad()
        with torch.no_grad():
            for t, s in zip(self.teacher.parameters(), self.student.parameters(), strict=True):
                t.data[:] = 0.999 * t.data + 0.001 * s.data
            for s, first in zip(self.student.parameters(), self.source.parameters(), strict=True):
                mask = (torch.rand(s.shape) < 0.001).float()
                s.data = first * mask + s * (1 - mask)
        return target


class KeepsSome(ETA):
    """ETA with a given share of samples kept, whatever they are."""

    keep = 0.5

    def weights(self, logits):
        weights = super().weights(logits)
        weights = torch.exp(torch.full_like(weights, 0.1))
        weights[int(self.keep * len(weights)) :] = 0
        return weights


def keeping(share):
    return type(f"Keeps{int(100 * share)}", (KeepsSome,), {"keep": share})


def times(sides, inputs, rounds=15):
    """The least CPU time of each, by turns, so that a busy machine slows all of them alike."""
    least = dict.fromkeys(sides, math.inf)
    for _ in range(rounds):
        for name, side in sides.items():
            start = time.process_time()
            side(inputs)
            least[name] = min(least[name], time.process_time() - start)
    return least


def speed():
    torch.manual_seed(0)
    model = ResNet(channels=3, width=16, blocks=3).eval()
    inputs = torch.rand(64, 3, 32, 32)
    sides = {
        "plain": Plain(model),
        "none": NoAdaptation(model),
        "batchnorm": BatchNorm(model, prior=0),
        "batchnorm, straight": StraightBatchNorm(model),
        "batchnorm, prior 16": BatchNorm(model),
        "tent": Tent(model),
        "tent, straight": StraightTent(model),
        "eta, all kept": keeping(1.0)(model),
        "eta, all kept, straight": StraightETA(model, 1.0),
        "eta, half kept": keeping(0.5)(model),
        "eta, half kept, straight": StraightETA(model, 0.5),
        "eta, none kept": keeping(0.0)(model),
        "eta, none kept, straight": StraightETA(model, 0.0),
        "cotta": CoTTA(model, augmentations=0),
        "cotta, straight": StraightCoTTA(model),
    }
    for side in sides.values():
        side(inputs)
    least = times(sides, inputs)
    plain = least["plain"]
    print(f"{'':28}{'ms':>8}{'x plain':>9}{'x straight':>12}{'x our tent':>12}")
    for name, seconds in least.items():
        straight = least.get(f"{name}, straight")
        ratio = f"{seconds / straight:12.2f}" if straight else " " * 12
        print(f"{name:28}{1e3 * seconds:8.1f}{seconds / plain:9.2f}{ratio}{seconds / least['tent']:12.2f}")
    own = {t.data_ptr() for t in (*model.parameters(), *model.buffers())}
    adapter = Tent(model)
    held = [*adapter.parameters(), *adapter.buffers(), *adapter._source, *adapter._first.values()]
    extra = sum(t.numel() for t in held if isinstance(t, torch.Tensor) and t.data_ptr() not in own)
    print(f"Tent holds {extra:,} values beside the model's {sum(p.numel() for p in model.parameters()):,}")


def long(steps=100_000):
    torch.manual_seed(0)
    model = ResNet(width=2, stem=2).eval()
    adapter = RDumb(model, margin=1.1, redundancy=1.1)
    batches = torch.rand(16, 4, 1, 8, 8)
    laps, memory = [], []
    for step in range(steps):
        if step % 1000 == 0:
            laps.append(time.process_time())
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        adapter(batches[step % 16])
    laps.append(time.process_time())
    print(f"RDumb, {steps:,} batches of 4 images of 8 pixels")
    print(f"second thousand {laps[2] - laps[1]:.2f} s, last thousand {laps[-1] - laps[-2]:.2f} s of CPU")
    print(f"peak memory after two thousand {memory[2]:.0f} MB, at the end {memory[-1]:.0f} MB")


if __name__ == "__main__":
    torch.set_num_threads(1)
    chosen = sys.argv[1:] or ["speed", "long"]
    if "speed" in chosen:
        speed()
    if "long" in chosen:
        long()
    if "catalog" in chosen:
        from adapter_costs import PASSES, table

        for norm in [word for word in chosen if word in ("batch", "group", "layer")] or ["batch", "group", "layer"]:
            table(norm, [word for word in chosen if word in PASSES])
