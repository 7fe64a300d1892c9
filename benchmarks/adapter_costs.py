"""Every method of the catalog: time and memory against plain inference, and against the passes that its paper needs.

    python benchmarks/adapters.py catalog [batch | group | layer] [METHOD ...]

A residual network of 20 layers at 32 pixels with BatchNorm or GroupNorm, or a transformer of six, batches of 64, one
thread. Every method runs in a process of its own; memory is its peak beyond that of plain passes of the caller's model.
`passes` counts, per batch, forward passes, backward passes to normalisation layers, backward passes to all weights, and
views of the batch, as the method's paper needs them; those of samples that are selected, or held in a bank, count by
how many there are. `arithmetic` is what they cost, in units of a plain pass, and `over` the time over that. The method,
a plain pass and every kind of pass in its count run by turns, and times are the least of several rounds, so that a busy
machine slows all of them alike. MEMO takes images one at a time, and so do the passes that it is held against: four
views of one image cost more than a sixteenth of a batch of 64. Methods that learn from some samples keep a half of
them, and are told as a share of Tent too. Settings are the defaults, with few views; image-text methods are left out.
"""

import math
import multiprocessing
import time
from collections.abc import Callable, Collection
from functools import partial

import torch
from torch import nn

from haptera import catalog
from haptera.adapters import Augment, BatchNorm, Tent
from haptera.models import ResNet, ViT
from haptera.run.loop import forget_peak, peak

ROUNDS = 4
HALF = {"margin": 1.1, "redundancy": 1.1}  # every sample is sure and unlike: `Half` drops a half of them
NONE = (0, 0, 0, 0)
PASSES = {  # settings, passes of the whole batch, and passes of those samples alone that are learnt from
    "none": ({}, (1, 0, 0, 0), NONE),
    "watch": ({}, (1, 0, 0, 0), NONE),
    "batchnorm": ({"prior": 0}, (1, 0, 0, 0), NONE),
    "unmixing_tns": ({}, (1, 0, 0, 0), NONE),
    "lame": ({}, (1, 0, 0, 0), NONE),
    "t3a": ({}, (1, 0, 0, 0), NONE),
    "ttaug": ({"augmentations": 4}, (5, 0, 0, 4), NONE),
    "tent": ({}, (1, 1, 0, 0), NONE),
    "pseudo_labels": ({}, (1, 1, 0, 0), NONE),
    "rpl": ({}, (1, 1, 0, 0), NONE),
    "slr": ({"parameters": "norm"}, (1, 1, 0, 0), NONE),
    "cpl": ({}, (1, 1, 0, 0), NONE),
    "eta": (HALF, (1, 0, 0, 0), (0, 1, 0, 0)),
    "eata": (HALF | {"fisher_samples": 64}, (1, 0, 0, 0), (0, 1, 0, 0)),
    "rdumb": (HALF, (1, 0, 0, 0), (0, 1, 0, 0)),
    "sar": ({"margin": 1.1, "floor": 0.0, "parameters": "norm"}, (2, 2, 0, 0), NONE),
    "deyo": ({"margin": 1.1, "threshold": -1.0, "parameters": "norm"}, (2, 1, 0, 0), NONE),
    "asr": (HALF, (2, 1, 0, 0), NONE),
    "weighted_slr": ({}, (1, 1, 0, 0), (1, 1, 0, 1)),
    "roid": ({}, (1, 1, 0, 0), (1, 1, 0, 1)),
    "cmf": ({}, (1, 1, 0, 0), (1, 1, 0, 1)),
    "santa": ({}, (3, 2, 0, 1), NONE),
    "rmt": ({}, (3, 0, 2, 1), NONE),
    "cotta": ({"augmentations": 4, "threshold": 1.0}, (7, 0, 1, 4), NONE),
    "rotta": ({}, (1, 0, 0, 0), (2, 1, 0, 1)),
    "petta": ({}, (2, 0, 0, 0), (4, 2, 0, 1)),
    "note": ({}, (1, 0, 0, 0), (1, 1, 0, 0)),
    "adacontrast": ({}, (5, 0, 1, 3), NONE),
    "gtta": ({}, (2, 0, 1, 0), (2, 0, 1, 0)),
    "shot": ({}, (1, 0, 1, 0), NONE),
    "dino": ({}, (5, 0, 2, 2), NONE),
    "foa": ({"population": 8}, (9, 0, 0, 0), NONE),
    "memo": ({"augmentations": 4}, (5, 0, 4, 4), NONE),
}


def network(norm: str) -> nn.Module:
    """The network of a kind, with the same weights every time, sure of most images, and of all classes alike."""
    torch.manual_seed(0)
    vit = norm == "layer"
    model = ViT(channels=3, size=32, width=128, depth=6) if vit else ResNet(channels=3, width=16, blocks=3, norm=norm)
    inputs = torch.rand(256, 3, 32, 32)
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.momentum = 1.0
        model.train()(inputs)
        last = [layer for layer in model.modules() if isinstance(layer, nn.Linear)][-1]
        logits = model.eval()(inputs)
        scale = 5 / logits.std(0)
        last.weight.mul_(scale[:, None])
        last.bias.sub_(logits.mean(0)).mul_(scale)
    return model


def half(method):
    """A method of ETA's kind that keeps every second sample."""

    class Half(method):
        def weights(self, logits):
            """Drop every second one."""
            weights = super().weights(logits)
            weights[::2] = 0
            return weights

    return Half


def made(name, model):
    """The adapter of a line of the table."""
    method = catalog.find("adapters", name)
    if name in ("eta", "eata"):
        return half(method)(model, **PASSES[name][0])
    adapter = method(model, **PASSES[name][0])
    if name == "rdumb":
        inner = adapter.inner
        inner.__class__ = half(type(inner))
    return adapter


def by_turns(sides, rounds=ROUNDS):
    """The least CPU time of each, by turns."""
    least = dict.fromkeys(sides, math.inf)
    for _ in range(rounds):
        for name, side in sides.items():
            with torch.no_grad():  # adapters that learn turn gradients on
                start = time.process_time()
                side()
                least[name] = min(least[name], time.process_time() - start)
    return least


def kinds(norm: str, model: nn.Module, inputs: torch.Tensor) -> dict[str, Callable[[], object]]:
    """Return the kinds of passes that are counted; those backward come with the forward pass before them."""
    still = BatchNorm(model, prior=0) if norm == "batch" else model
    norms, everything = Tent(model, lr=0.0), Tent(model, lr=0.0, parameters="all")
    augment, generator = Augment(), torch.Generator().manual_seed(0)
    sides = {"plain": partial(model, inputs), "forward": partial(still, inputs), "norms": partial(norms, inputs)}
    return sides | {"all": partial(everything, inputs), "views": partial(augment, inputs, generator)}


def one_by_one(model: nn.Module, inputs: torch.Tensor, views: int) -> Callable[[], None]:
    """Return the passes of MEMO's paper: of every image alone, its views there and back, and the image."""
    everything, augment = Tent(model, lr=0.0, parameters="all"), Augment()
    generator = torch.Generator().manual_seed(0)

    def run() -> None:
        for image in inputs.split(1):
            everything(augment(image.expand(views, -1, -1, -1), generator))
            model(image)

    return run


def units(least: dict[str, float]) -> dict[str, float]:
    """What each kind of pass costs, in plain passes, from times of all or some of `kinds`; 0 where it was left out."""
    plain, forward = least["plain"], least["forward"]
    backward = {kind: (least.get(kind, forward) - forward) / plain for kind in ("norms", "all")}
    return {"forward": forward / plain} | backward | {"views": least.get("views", 0.0) / plain}


def measure_units(norm: str) -> dict[str, float]:
    """Measure what each kind of pass costs."""
    return units(by_turns(kinds(norm, network(norm), torch.rand(64, 3, 32, 32))))


def apart(function, *args):
    """What a function returns in a process of its own, or its error as a text; this one stays small."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def run():
        try:
            theirs.send(function(*args))
        except Exception as error:
            theirs.send(str(error))

    process = context.Process(target=run)
    process.start()
    result = ours.recv()
    process.join()
    return result


def count(name: str, adapter: nn.Module) -> dict[str, float]:
    """Return the passes of the last step, by kind."""
    _, whole, some = PASSES[name]
    labels = adapter.memory.get("labels") if name in ("rotta", "petta", "note") else None
    share = adapter.record.get("kept", 0.0) if labels is None else len(labels) / 64
    return {kind: w + share * s for kind, w, s in zip(("forward", "norms", "all", "views"), whole, some, strict=True)}


def measure(name: str, norm: str) -> tuple[float, dict[str, float], float, float, float]:
    """Return the time in plain passes, the count of passes, their time, Tent's if it was measured, and MB of memory."""
    model, inputs = network(norm), torch.rand(64, 3, 32, 32)
    forget_peak(torch.device("cpu"))
    with torch.no_grad():
        model(inputs)
    before = peak(torch.device("cpu"))
    adapter = made(name, model)
    for _ in range(1 if name == "memo" else 2):
        adapter(inputs)
    memory = (peak(torch.device("cpu")) - before) / 2**20
    every, counts = kinds(norm, model, inputs), count(name, adapter)
    sides = {kind: every[kind] for kind in every if kind in ("plain", "forward") or counts[kind]}
    if name == "memo":
        sides = {"plain": every["plain"], "needed": one_by_one(model, inputs, adapter.augmentations)}
    least = by_turns(sides | {"adapter": partial(adapter, inputs)}, 2 if name == "memo" else ROUNDS)
    plain, counts = least["plain"], count(name, adapter)
    if name == "memo":
        return least["adapter"] / plain, counts, least["needed"] / plain, math.nan, memory
    cost = units(least)
    needed = sum(times * cost[kind] for kind, times in counts.items())
    return least["adapter"] / plain, counts, needed, least.get("norms", math.nan) / plain, memory


def row(name: str, norm: str) -> str:
    """Return the line of a method."""
    result = apart(measure, name, norm)
    if isinstance(result, str):
        return f"{name:16}{'–':>9}   {result[:90]}"
    time_taken, counts, needed, tent, memory = result
    passes = ", ".join(f"{times:.3g}" for times in counts.values())
    told = f"   {time_taken / tent:.2f} of Tent" if name in ("eta", "eata", "rdumb") else ""
    return f"{name:16}{time_taken:9.2f}{memory:9.0f}   {passes:36}{needed:10.2f}{time_taken / needed:7.2f}{told}"


def heading(norm: str) -> str:
    """Return the lines above the methods: what each kind of pass costs, and the columns."""
    cost = ", ".join(f"{name} {value:.2f}" for name, value in apart(measure_units, norm).items())
    columns = (
        f"{'':16}{'x plain':>9}{'MB more':>9}   {'passes: forward, norms, all, views':36}{'arithmetic':>10}{'over':>7}"
    )
    return f"\n{norm}: in plain passes, {cost}\n{columns}"


def table(norm: str, only: Collection[str] = ()) -> None:
    """Print the table of one kind of network, of all methods or of some."""
    print(heading(norm))
    for name in [name for name in PASSES if not only or name in only]:
        print(row(name, norm), flush=True)
