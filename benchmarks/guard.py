"""What a guard costs over its adapter, and whether eight threads get what they should, for as long as one likes.

    python benchmarks/guard.py [cost] [soak] [calls] [--batches 100000]

Each part writes what it prints into `docs/evidence/results/guard_PART.txt`.

cost: a residual network of 20 layers at 32 pixels, batches of 64, one thread; CPU time of all threads, the log's too,
with a profile, a log and a row for each step. The guard does some of its work in one step of sixteen, so blocks of
sixteen batches are timed, adapter and guard by turns; the ratio is of the least times, and beside it stands the median
of the ratios of neighbours, since the machine may be busy. A guard that looks at the unadapted model as well is
measured apart, and counts by the share of steps in which it does so while nothing is suspicious. The statistics of the
network are those of the images it sees, so that both models agree and the guard serves the adapter to the end, which is
checked. At most 1.05 of the adapter's time was promised.
soak: eight threads, batches of 4 images of 8 pixels through RDumb around one convolution, with a log: memory and
latency of the fifth tenth and of the last; of 100,000 batches the log is rotated twice before that, and each rotation
of the first two needs more memory than any before. Latency is that of a call, its wait for the other seven threads
included, and follows what else the machine does; the CPU time of a batch follows it less.
calls: eight threads, a frozen adapter, every answer compared with the one computed beforehand, bit by bit.
"""

import argparse
import logging
import sys
import tempfile
import threading
import time
from functools import partial
from math import inf
from pathlib import Path

import numpy as np
import torch
from torch import nn

from haptera.adapters import BatchNorm, RDumb, Tent
from haptera.batch import Batch
from haptera.live.guard import Guard
from haptera.live.log import read_log
from haptera.live.profile import Profile
from haptera.live.record import memory_in_use
from haptera.models import ResNet

RESULTS = Path(__file__).parents[1] / "docs" / "evidence" / "results"
LIMIT = 1.05
GROWTH, SLOWER = 30, 1.25
"""MB more after the last tenth than after the fifth, and times the CPU time of a batch, that still count as flat."""
THREADS = 8
BLOCK = 16


def blocks(sides: dict, images: torch.Tensor, rounds: int) -> dict[str, np.ndarray]:
    """CPU time of each batch in blocks of sixteen, of all threads of the process, by turns."""
    found = {name: np.zeros(rounds) for name in sides}
    for step in range(-1, rounds):  # the first block warms up
        for name, side in sides.items():
            began = time.process_time()
            for batch in range(BLOCK if name != "looking" else 1):
                side(images[batch % len(images)])
            found[name][step] = (time.process_time() - began) / (BLOCK if name != "looking" else 1)
    return found


def cost(rounds: int) -> tuple[list[str], bool]:
    """The cost of each adapter with and without a guard; and whether it is as small as promised."""
    torch.manual_seed(0)
    model = ResNet(channels=3, width=16, blocks=3).train()
    with torch.no_grad():
        for _ in range(50):
            model(torch.rand(64, 3, 32, 32))
    model.eval()
    images = torch.rand(BLOCK, 64, 3, 32, 32)
    reference = [Batch(torch.rand(64, 3, 32, 32), torch.randint(10, (64,)), torch.arange(64), {}) for _ in range(8)]
    profile = Profile.measure(model, reference)
    adapters = {
        "batchnorm": partial(BatchNorm, prior=0),
        "tent": Tent,
        "rdumb": partial(RDumb, margin=1.1, redundancy=1.1),
    }
    heads = ("adapter ms", "guard ms", "looking ms", "ratio", "with looks", "median", "with looks")
    lines = [f"{rounds} blocks of {BLOCK} batches of 64", " " * 12 + "".join(f"{head:>12}" for head in heads)]
    worst = 0.0
    for name, make in adapters.items():
        with tempfile.TemporaryDirectory() as folder, Guard(model, make, profile, log=folder) as guard:

            def answer(inputs, look, guard=guard):
                guard.safety.signs.looking = look
                return guard(inputs)

            sides = {
                "adapter": make(model),
                "guard": partial(answer, look=False),
                "looking": partial(answer, look=True),
            }
            found = blocks(sides, images, rounds)
            share = guard.settings.compare
            status = guard.status()
            assert (status["alarm"], status["falls"], status["served"]) == (None, 0, "adapted"), status
        least = {side: times.min() for side, times in found.items()}
        ratio, median = least["guard"] / least["adapter"], float(np.median(found["guard"] / found["adapter"]))
        looks = share * (least["looking"] - least["guard"]) / least["adapter"]
        worst = max(worst, ratio + looks)
        times = "".join(f"{1e3 * seconds:12.2f}" for seconds in least.values())
        ratios = (ratio, ratio + looks, median, median + looks)
        lines.append(f"{name:12}{times}" + "".join(f"{each:12.3f}" for each in ratios))
    return lines, worst <= LIMIT


def small_net() -> nn.Module:
    torch.manual_seed(0)
    body = (nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(*body, nn.Linear(4, 10)).eval()


def on_threads(work, batches: int) -> None:
    """Have eight threads do `work(number)` for all numbers."""
    numbers, lock, errors = iter(range(batches)), threading.Lock(), []

    def run() -> None:
        try:
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def soak(batches: int) -> tuple[list[str], bool]:
    """Memory, latency and CPU time along a stream; and whether they are flat."""
    images = torch.rand(16, 4, 1, 8, 8)
    latency, memory, spent, tenth = np.zeros(batches), {}, {-1: time.process_time()}, batches // 10
    with tempfile.TemporaryDirectory() as folder:
        guard = Guard(small_net(), partial(RDumb, margin=1.1, redundancy=1.1), log=folder)

        def work(number: int) -> None:
            began = time.perf_counter()
            guard(images[number % 16], ids=range(4 * number, 4 * number + 4))
            latency[number] = time.perf_counter() - began
            if number % tenth == tenth - 1:
                memory[number // tenth], spent[number // tenth] = memory_in_use(), time.process_time()

        began = time.perf_counter()
        on_threads(work, batches)
        seconds = time.perf_counter() - began
        guard.close()
        steps, _ = read_log(folder)
        lost, parts = guard.status()["log"]["lost"], len(list(Path(folder).glob("part-*.parquet")))
    first, last = latency[4 * tenth : 5 * tenth], latency[-tenth:]
    lines = [f"{batches:,} batches of 4 images, {THREADS} threads, {1e3 * seconds / batches:.2f} ms each"]
    for name, share in (("median", 50), ("99th percentile", 99)):
        begin, end = (1e3 * np.percentile(part, share) for part in (first, last))
        lines.append(f"latency, {name}: {begin:.2f} ms in the fifth tenth, {end:.2f} ms in the last")
    each = [1e3 * (spent[place] - spent[place - 1]) / tenth for place in range(10)]
    lines.append(f"CPU time of a batch in each tenth, ms: {', '.join(f'{value:.2f}' for value in each)}")
    lines.append(f"memory after each tenth, MB: {', '.join(f'{memory[place]:.0f}' for place in range(10))}")
    lines.append(f"log: {len(steps):,} steps in {parts} parts and the newest lines, {lost} rows lost")
    whole = len(steps) + lost >= batches
    return lines, whole and memory[9] - memory[4] < GROWTH and each[9] < SLOWER * each[4]


def calls(batches: int) -> tuple[list[str], bool]:
    """How many answers differ from those computed beforehand; and whether none does."""
    model, images = small_net(), torch.rand(64, 4, 1, 8, 8)
    adapter = Tent(model, lr=1e-2)
    for batch in images[:20]:
        adapter(batch)
    adapter.frozen = True
    expected = [adapter(batch).clone() for batch in images]
    wrong = []
    with Guard(model, adapter, largest=1.0, lost=inf) as guard:

        def work(number: int) -> None:
            if not torch.equal(guard(images[number % 64]), expected[number % 64]):
                wrong.append(number)

        on_threads(work, batches)
        served = guard.status()["served"]
    return [f"{batches:,} calls from {THREADS} threads, served {served}: {len(wrong)} wrong answers"], not wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", help="cost, soak, calls; all by default")
    parser.add_argument("--batches", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=12, help="blocks of sixteen batches, for the cost")
    given = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("haptera").setLevel(logging.ERROR)
    parts = {
        "cost": partial(cost, given.rounds),
        "soak": partial(soak, given.batches),
        "calls": partial(calls, given.batches),
    }
    if wrong := set(given.parts) - set(parts):
        sys.exit(f"there is no part {min(wrong)}; {', '.join(parts)} was expected")
    good = True
    for name in given.parts or parts:
        lines, flat = parts[name]()
        (RESULTS / f"guard_{name}.txt").write_text("\n".join(lines) + "\n", "utf-8")
        print(*lines, sep="\n", flush=True)
        good &= flat
    sys.exit(not good)
