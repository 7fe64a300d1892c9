"""Jacobians, their inverses, and a regularised step, beside the plain way.

    python benchmarks/attribute.py

1. 3,000 Jacobians of 8 x 100 and their pseudo-inverses: in one batch, and sample by sample (torch's own Jacobian and
   pseudo-inverse). Aim: at most a fifth of the loop.
2. A training step with the Jacobian term against one without, of an estimator with 100 channels and 8 dimensions,
   batches of 512: offset1 and offset10, by time and hybrid. Aim: at most 2.5 times.

One thread, CPU seconds, the least of three rounds. About two minutes.
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from haptera.analyses.attribution.methods import jacobians, pseudo_inverse
from haptera.contrastive.estimator import ContrastiveEmbedding

SAMPLES, CHANNELS, LATENTS = 3000, 100, 8
STEPS = 30


def seconds(work: Callable[[], object], rounds: int = 3) -> float:
    found = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)


def inverses() -> None:
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(CHANNELS, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, LATENTS))
    inputs = torch.randn(SAMPLES, CHANNELS)
    together = pseudo_inverse(jacobians(encoder, inputs))

    def loop() -> torch.Tensor:
        return torch.stack([torch.linalg.pinv(torch.autograd.functional.jacobian(encoder, one)) for one in inputs])

    alone = loop()
    assert torch.allclose(together, alone, rtol=1e-2, atol=1e-4), (together - alone).abs().max()
    batched = seconds(lambda: pseudo_inverse(jacobians(encoder, inputs)))
    one_by_one = seconds(loop, 1)
    print(f"{SAMPLES:,} Jacobians of {LATENTS} x {CHANNELS} and their inverses: {batched:.3f} s in a batch, "
          f"{one_by_one:.2f} s one by one: {batched / one_by_one:.3f} of it (aim: at most .2)")  # fmt: skip


def steps() -> None:
    random = np.random.default_rng(0)
    label = np.cumsum(random.normal(0, 0.1, 10_000))
    signal = np.sin(label[:, None] * random.uniform(0.2, 2, CHANNELS) + random.uniform(0, 6, CHANNELS))
    signal = (signal + random.normal(0, 0.5, signal.shape)).astype(np.float32)
    for architecture in ("offset1-model", "offset10-model"):
        for mode in ("time", "hybrid"):
            times = {}
            for weight in (0.0, 0.1):

                def fit(count: int, weight: float = weight, mode: str = mode, name: str = architecture) -> None:
                    ContrastiveEmbedding(
                        name, output_dimension=LATENTS, time_offsets=10, hybrid=mode == "hybrid", max_iterations=count,
                        batch_size=512, jacobian_weight=weight, jacobian_ramp=(0, 0), random_state=0,
                    ).fit(signal, *([label] if mode == "hybrid" else []))  # fmt: skip

                fit(2)
                times[weight] = seconds(lambda fit=fit: fit(STEPS + 5)) - seconds(lambda fit=fit: fit(5))
            ratio = times[0.1] / times[0.0]
            print(f"{architecture}, {mode}: a step {1000 * times[0.0] / STEPS:.1f} ms, regularised "
                  f"{1000 * times[0.1] / STEPS:.1f} ms: {ratio:.2f} times (aim: at most 2.5)", flush=True)  # fmt: skip


if __name__ == "__main__":
    torch.set_num_threads(1)
    inverses()
    steps()
