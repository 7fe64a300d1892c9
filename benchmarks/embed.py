"""Embeddings beside the published package: steps per second, loss after the same number of steps, memory.

    python benchmarks/embed.py [speed] [cores] [loss] [memory] [--steps N] [--seeds N] [--mode MODE]

The peer (`cebra` 0.6.1) gets an environment of its own, made once, in $HAPTERA_DATA/peer-embed (default
~/.cache/haptera/peer-embed); or $CEBRA_PYTHON is the Python of one that is there. 100 neurons x 10,000 samples of the
synthetic sessions, three of them for `sessions`, offset10, 32 hidden units, 8 dimensions, batches of 512, one thread;
in turn, each in a process of its own. Steps per CPU-second: a fit of `steps` less one of 20, so that imports and set-up
do not count; the best of three rounds. `cores`: steps per second of the clock with one thread and with two. Loss: the
mean over the last 100 of 1,000 steps, its mean and standard deviation over seeds. In the peer's hybrid mode behaviour
acts on dimensions 0 to 2, so it does here. The peer's loss does not change with our code: --peer-losses FILE keeps it
from one run to the next, and `peer-losses` fills that file.
Memory: 1,000,000 samples of 100 neurons through a fit and a transform; the most that the process ever held, less the
signal and what it held after a first small fit, by which all that is imported and compiled is there.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

HOME = Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera")) / "peer-embed"
MODES = ("time", "time_delta", "hybrid", "sessions")
AIMS = {"time": 3.0, "time_delta": 6.0, "hybrid": 6.0, "sessions": 4.0}
SESSIONS = 3
SHARED = {
    "model_architecture": "offset10-model",
    "output_dimension": 8,
    "num_hidden_units": 32,
    "batch_size": 512,
    "learning_rate": 3e-4,
    "temperature": 1.0,
    "time_offsets": 10,
}
WARM = 20
STEPS = 1000
MEGABYTE = 2**20

PEER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np, torch, cebra
torch.set_num_threads(1)
task = json.load(open(sys.argv[1]))
data = np.load(task["data"])
mode = task["mode"]
torch.manual_seed(task["seed"])
np.random.seed(task["seed"])
def fit(steps):
    model = cebra.CEBRA(**task["settings"], max_iterations=steps, hybrid=mode == "hybrid", distance="cosine",
                        conditional="time" if mode == "time" else "time_delta", device="cpu", verbose=False)
    start = time.process_time()
    signal, label = list(data["signals"]), list(data["labels"])
    if mode != "sessions":
        signal, label = signal[0], label[0]
    model.fit(signal, *([] if mode == "time" else [label]))
    return time.process_time() - start, model
fit(task["warm"])  # what is imported and made ready once
short, _ = fit(task["warm"])
long, model = fit(task["steps"])
loss = np.asarray(model.state_dict_["loss"], float)
rate = (task["steps"] - task["warm"]) / (long - short)
print(json.dumps({"rate": rate, "loss": loss[-100:].mean(), "logged": len(loss)}))
"""


def ours(task: dict[str, Any]) -> dict[str, float]:
    """The same here; runs in a process of its own."""
    import torch

    from haptera.contrastive.estimator import ContrastiveEmbedding

    torch.set_num_threads(task.get("threads", 1))
    data, mode = np.load(task["data"]), task["mode"]
    signal, label = list(data["signals"]), list(data["labels"])
    if mode != "sessions":
        signal, label = signal[0], label[0]
    clock = time.perf_counter if "threads" in task else time.process_time

    def fit(steps: int) -> tuple[float, ContrastiveEmbedding]:
        hybrid = {"hybrid": 3} if mode == "hybrid" else {}
        model = ContrastiveEmbedding(**task["settings"], **hybrid, max_iterations=steps, random_state=task["seed"])
        start = clock()
        model.fit(signal, *([] if mode == "time" else [label]))
        return clock() - start, model

    fit(task["warm"])  # what is imported and made ready once
    short, _ = fit(task["warm"])
    long, model = fit(task["steps"])
    rate = (task["steps"] - task["warm"]) / (long - short)
    return {"rate": rate, "loss": float(model.loss_history_[-100:].mean())}


def run(side: str, data: Path, mode: str, steps: int, seed: int = 0, threads: int | None = None) -> dict[str, float]:
    """One fit of one side; with `threads` by the clock on the wall."""
    task = {"data": str(data), "mode": mode, "steps": steps, "warm": WARM, "seed": seed, "settings": SHARED}
    if threads:
        task["threads"] = threads
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(task, file)
        file.flush()
        command = [peer_python(), "-c", PEER, file.name]
        if side == "ours":
            command = [sys.executable, __file__, "--task", file.name]
        single = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads or 1))
        done = subprocess.run(command, env=single, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def peer_python() -> str:
    """Python of the peer's environment, which is made if there is none."""
    if "CEBRA_PYTHON" in os.environ:
        return os.environ["CEBRA_PYTHON"]
    python = HOME / "bin" / "python"
    if not (HOME / "ready").is_file():
        print(f"setting up the peer in {HOME}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "torch==2.13.0"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "cebra==0.6.1"], check=True)
        (HOME / "ready").touch()
    return str(python)


def write_data(folder: Path) -> Path:
    from haptera.recordings.synthetic import sessions

    made = sessions((100,) * SESSIONS, 10_000)
    path = folder / "recording.npz"
    np.savez(path, signals=[one.signal.astype(np.float32) for one in made], labels=[one.label for one in made])
    return path


def speed(data: Path, steps: int, modes: Sequence[str], times: int) -> None:
    print(f"{'':<12}{'ours':>8}{'peer':>8}{'ratio':>8}{'aim':>6}   steps per CPU-second")
    for mode in modes:
        rounds = [
            (run("ours", data, mode, steps)["rate"], run("peer", data, mode, steps)["rate"]) for _ in range(times)
        ]
        own, other = (max(rates) for rates in zip(*rounds, strict=True))
        flag = "" if own / other >= AIMS[mode] else "   short of it"
        print(f"{mode:<12}{own:>8.1f}{other:>8.1f}{own / other:>8.2f}{AIMS[mode]:>6.1f}{flag}", flush=True)


def cores(data: Path, steps: int, modes: Sequence[str]) -> None:
    print(f"\n{'':<12}{'1':>8}{'2':>8}{'gain':>8}   threads, steps per second")
    for mode in modes:
        one, two = (max(run("ours", data, mode, steps, threads=count)["rate"] for _ in range(3)) for count in (1, 2))
        print(f"{mode:<12}{one:>8.1f}{two:>8.1f}{two / one:>8.2f}", flush=True)


def loss(data: Path, modes: Sequence[str], seeds: int, kept: Path | None) -> None:
    print(f"\n{'':<12}{'ours':>20}{'peer':>20}   loss after {STEPS} steps, {seeds} seeds")
    for mode in modes:
        own = [run("ours", data, mode, STEPS, seed)["loss"] for seed in range(seeds)]
        found = [own, peer_losses(data, mode, seeds, kept)]
        words = [f"{np.mean(some):.4f} ± {np.std(some, ddof=1):.4f}" for some in found]
        print(f"{mode:<12}{words[0]:>20}{words[1]:>20}", flush=True)


def peer_losses(data: Path, mode: str, seeds: int, kept: Path | None) -> list[float]:
    """The peer's loss for each seed, from the file where it is there."""
    known: dict[str, float] = json.loads(kept.read_text()) if kept is not None and kept.is_file() else {}
    for seed in range(seeds):
        if (key := f"{mode} {STEPS} {seed}") not in known:
            known[key] = run("peer", data, mode, STEPS, seed)["loss"]
            if kept is not None:
                kept.write_text(json.dumps(known, indent=1))
    return [known[f"{mode} {STEPS} {seed}"] for seed in range(seeds)]


def memory(samples: int = 1_000_000) -> None:
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "signal.npy"
        signal = np.lib.format.open_memmap(path, "w+", np.float32, (samples, 100))
        for start in range(0, samples, 50_000):
            signal[start : start + 50_000] = random.standard_normal((50_000, 100), np.float32)
        signal.flush()
        print(f"\n{samples} samples, {signal.nbytes / MEGABYTE:.0f} MB; the most that was held beside them, aim 120 MB")
        for where in ("memory", "disk"):
            task = Path(folder) / "task.json"
            task.write_text(json.dumps({"signal": str(path), "where": where}))
            subprocess.run(
                [sys.executable, __file__, "--task", task], check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
            )


def measure_memory(task: dict[str, str]) -> None:
    """One fit and one transform; runs in a process of its own."""
    import torch

    from haptera.contrastive.estimator import ContrastiveEmbedding

    torch.set_num_threads(1)
    model = ContrastiveEmbedding(**SHARED, random_state=0, max_iterations=30)
    first = np.random.default_rng(0).normal(size=(5000, 100)).astype(np.float32)
    ContrastiveEmbedding(**SHARED, random_state=0, max_iterations=2).fit(first, first[:, 0])  # numba, and its loops
    libraries = held()
    signal = np.load(task["signal"], mmap_mode="r" if task["where"] == "disk" else None)
    label = np.cumsum(np.random.default_rng(0).normal(0, 0.1, len(signal)))
    model.fit(signal, label).transform(signal)
    size = signal.nbytes / MEGABYTE
    where = {"memory": "in memory", "disk": "on disk"}[task["where"]]
    beside = held() - size - libraries
    print(f"{where:<11}{beside:>6.0f} MB beside the libraries, which hold {libraries:.0f} MB")


def held() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["speed", "cores", "loss", "memory"])
    parser.add_argument("--steps", type=int, default=220, help="of the fits that are timed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3, help="of which the best counts")
    parser.add_argument("--mode", action="append", choices=MODES, help="all if left out")
    parser.add_argument("--peer-losses", type=Path, help="a file that keeps the peer's losses")
    parser.add_argument("--task", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        task = json.loads(given.task.read_text())
        measure_memory(task) if "where" in task else print(json.dumps(ours(task)))
        return
    with tempfile.TemporaryDirectory() as folder:
        data = write_data(Path(folder))
        if "speed" in given.what:
            speed(data, given.steps, given.mode or MODES, given.rounds)
        if "cores" in given.what:
            cores(data, given.steps, given.mode or MODES)
        if "loss" in given.what:
            loss(data, given.mode or MODES, given.seeds, given.peer_losses)
        if "peer-losses" in given.what:
            for mode in given.mode or MODES:
                peer_losses(data, mode, given.seeds, given.peer_losses)
    if "memory" in given.what:
        memory()


if __name__ == "__main__":
    main()
