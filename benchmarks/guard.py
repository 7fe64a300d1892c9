"""What a guard costs over its adapter, and whether eight threads get what they should, for as long as one likes.

    python benchmarks/guard.py [cost] [threads] [answers] [--batches 100000]

cost: a residual network of 20 layers at 32 pixels, batches of 64, one thread; CPU time of all threads, the log's too,
with a profile, a log and a row for each step. The guard does some of its work in one step of sixteen, so blocks of
sixteen batches are timed, adapter and guard by turns; the ratio is of the least times, and beside it stands the median
of the ratios of neighbours, since the machine may be busy. A guard that looks at the unadapted model as well is
measured apart, and counts by the share of steps in which it does so while nothing is suspicious. At most 1.05 of the
adapter's time was promised.
threads: eight threads, small batches through RDumb: memory and latency of the first tenth (but for the warm-up) and of
the last.
answers: eight threads, a frozen adapter, every answer compared with the one computed beforehand, bit by bit.
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

from haptera.adapters import BatchNorm, RDumb, Tent
from haptera.batch import Batch
from haptera.live.guard import Guard
from haptera.live.log import read_log
from haptera.live.profile import Profile
from haptera.live.record import memory_in_use
from haptera.models import ResNet

LIMIT = 1.05
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


def cost(rounds: int) -> float:
    """Print the cost of each adapter with and without a guard; return the largest ratio."""
    torch.manual_seed(0)
    model = ResNet(channels=3, width=16, blocks=3).eval()
    images = torch.rand(BLOCK, 64, 3, 32, 32)
    reference = [Batch(torch.rand(64, 3, 32, 32), torch.randint(10, (64,)), torch.arange(64), {}) for _ in range(8)]
    profile = Profile.measure(model, reference)
    adapters = {
        "batchnorm": partial(BatchNorm, prior=0),
        "tent": Tent,
        "rdumb": partial(RDumb, margin=1.1, redundancy=1.1),
    }
    heads = ("adapter ms", "guard ms", "looking ms", "ratio", "with looks", "median", "with looks")
    print(" " * 12 + "".join(f"{head:>12}" for head in heads))
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
            assert guard.status()["alarm"] is None
        least = {side: times.min() for side, times in found.items()}
        ratio, median = least["guard"] / least["adapter"], float(np.median(found["guard"] / found["adapter"]))
        looks = share * (least["looking"] - least["guard"]) / least["adapter"]
        worst = max(worst, ratio + looks)
        times = "".join(f"{1e3 * seconds:12.2f}" for seconds in least.values())
        print(f"{name:12}{times}" + "".join(f"{each:12.3f}" for each in (ratio, ratio + looks, median, median + looks)))
        sys.stdout.flush()
    return worst


def small_net() -> torch.nn.Module:
    torch.manual_seed(0)
    return ResNet(width=2, stem=2).eval()


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


def threads(batches: int) -> bool:
    """Print memory and latency along a stream; say whether both are flat."""
    images = torch.rand(16, 4, 1, 8, 8)
    latency, memory, tenth = np.zeros(batches), {}, batches // 10
    with tempfile.TemporaryDirectory() as folder:
        guard = Guard(small_net(), partial(RDumb, margin=1.1, redundancy=1.1), log=folder)

        def work(number: int) -> None:
            began = time.perf_counter()
            guard(images[number % 16], ids=range(4 * number, 4 * number + 4))
            latency[number] = time.perf_counter() - began
            if number % tenth == tenth - 1:
                memory[number // tenth] = memory_in_use()

        began = time.perf_counter()
        on_threads(work, batches)
        seconds = time.perf_counter() - began
        guard.close()
        steps, _ = read_log(folder)
        lost, parts = guard.status()["log"]["lost"], len(list(Path(folder).glob("part-*.parquet")))
    first, last = latency[tenth : 2 * tenth], latency[-tenth:]
    print(f"{batches:,} batches of 4 images, {THREADS} threads, {1e3 * seconds / batches:.2f} ms each")
    for name, share in (("median", 50), ("99th percentile", 99)):
        begin, end = (1e3 * np.percentile(part, share) for part in (first, last))
        print(f"latency, {name}: {begin:.2f} ms, {end:.2f} ms at the end")
    along = ", ".join(f"{memory[place]:.0f}" for place in sorted(memory))
    print(f"memory after each tenth, MB: {along}")
    print(f"log: {len(steps):,} steps in {parts} parts and the newest lines, {lost} rows lost")
    return len(steps) + lost >= batches and memory[9] - memory[1] < 30


def answers(batches: int) -> int:
    """Return how many answers differ from those computed beforehand."""
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
    print(f"{batches:,} concurrent calls, served {served}: {len(wrong)} wrong answers")
    return len(wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", help="cost, threads, answers")
    parser.add_argument("--batches", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=12, help="blocks of sixteen batches, for the cost")
    given = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("haptera").setLevel(logging.ERROR)
    good = True
    if not given.what or "cost" in given.what:
        good &= cost(given.rounds) <= LIMIT
    if not given.what or "threads" in given.what:
        good &= threads(given.batches)
    if not given.what or "answers" in given.what:
        good &= answers(given.batches) == 0
    sys.exit(not good)
