"""Is a guarded adapter ever much worse than the unadapted model, and what does the guard cost one that is good?

Run it as `python experiments/live_safety.py [cifar | fashion] [--images 300] [--seeds 5]`. `cifar` needs the weights of
`cifar_networks.py batch` and `cifar10.npz` in $HAPTERA_DATA; `fashion` trains a small network on `fashion-mnist.npz`
once. It writes `live_safety_NETWORK.md` into `docs/evidence/results`; each seed is kept beside the data, so that a run
that was stopped goes on.

A stream is fifteen corruptions at severity 5 in a row, their order and their images drawn by the seed, batches of 64.
Tent runs at a learning rate at which it collapses, RDumb at one that suits it, each with and without a guard that has
neither labels nor anchors nor a profile; Tent also with a quarantine that is short for the stream. After the first
fall-back every window of 1,000 images in a row is compared with the unadapted model; "worst window" is the largest loss
among all of them, and must be below .03.

How the settings came about: the limits of `haptera.live.signs`, the frequency of looks and the resets after a fall were
chosen on Fashion-MNIST, and the rate there so that every seed collapses; an earlier run, at rates .3 and 1, fell back
in 8 of 10 runs; in the other two Tent ended above the unadapted model and still lost .11 and .14 in its worst window.
CIFAR-10 had no part in any of that. Its rate for Tent was found by one short stream of a seed that the table does not
have.
"""

import argparse
import json
import logging
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from cifar_data import FOLDER, SEVERITY, TEST, clean
from cifar_networks import RECIPES, source_of
from haptera.adapters import NoAdaptation, RDumb, Tent
from haptera.catalog import find
from haptera.data import ArrayData
from haptera.live.guard import Guard
from haptera.models import ResNet
from haptera.models.training import fit
from haptera.words import count

RESULTS = Path(__file__).parents[1] / "docs" / "evidence" / "results"
BATCH, WINDOW, LIMIT, LOSS = 64, 1000, 0.03, 0.005
RDUMB = {"cifar": {"lr": 1e-3, "redundancy": 0.4}, "fashion": {"lr": 1e-3, "redundancy": 0.4}}
RATES = {"cifar": (1.0,), "fashion": (3.0,)}
SHORT = {"quarantine": 128, "probation": 256}
"""So that adapters come back within a short stream, if they do."""
TABLES = {"cifar": "cifar", "fashion": "imagenet"}


def cifar(images: int) -> tuple[nn.Module, ArrayData]:
    """The network of the adaptation experiments, and all test images."""
    return source_of("batch")(), clean()


def fashion(images: int) -> tuple[nn.Module, ArrayData]:
    """A small network, trained once, and the first test images, the same for every seed."""
    weights = FOLDER / "fashion-live.safetensors"
    with np.load(FOLDER / "fashion-mnist.npz") as file:
        train = ArrayData(
            file["train_images"][:20_000], file["train_labels"][:20_000].astype(np.int64), "Fashion-MNIST"
        )
        test = ArrayData(file["test_images"][:images], file["test_labels"][:images].astype(np.int64), "Fashion-MNIST")
    torch.manual_seed(0)
    net = ResNet(width=8, stem=2)
    if weights.is_file():
        net.load_state_dict(load_file(weights))
    else:
        fit(net, train, epochs=3, seed=0)
        save_file({name: value.contiguous() for name, value in net.state_dict().items()}, weights)
    return net.eval(), test


def batches(test: ArrayData, images: int, seed: int, table: str) -> list[tuple[torch.Tensor, np.ndarray]]:
    """Corruptions in an order of the seed's own, each of images of its own draw."""
    random, found = np.random.default_rng(seed), []
    assert test.targets is not None
    for shift in random.permutation(list(TEST)):
        corruption = find("shifts", str(shift))(SEVERITY, table=table)
        for rows in np.split(order := random.permutation(len(test))[:images], range(BATCH, len(order), BATCH)):
            inputs = corruption(test.images(rows), torch.from_numpy(rows), 0)
            found.append((inputs, test.targets[rows]))
    return found


def right(model, stream) -> np.ndarray:
    """`(images,)`, whether each answer is right."""
    return np.concatenate([model(images).argmax(1).numpy() == targets for images, targets in stream]).astype(float)


def guarded(net: nn.Module, adapter, stream, **settings) -> tuple[np.ndarray, list[tuple[int, str]], float]:
    """Whether each answer is right, what was decided after how many images, and the share that was adapted."""
    decisions, served = [], []
    with Guard(net, adapter, **settings) as guard:

        def listen(row):
            if row["kind"] == "event" and row["event"] in ("fallback", "return", "reset"):
                decisions.append((guard.images, row["event"]))
            elif row["kind"] == "step":
                served.append(row["served"] == "adapted")

        guard.listeners.append(listen)
        answers = right(guard, stream)
    return answers, decisions, float(np.mean(served))


def worst_window(answers: np.ndarray, unadapted: np.ndarray, start: int) -> float:
    """The largest loss against the unadapted model over images in a row; NaN where there are too few."""
    difference = np.cumsum(np.append(0.0, (unadapted - answers)[start:]))
    return float(np.max(difference[WINDOW:] - difference[:-WINDOW]) / WINDOW) if len(difference) > WINDOW else np.nan


def row(name: str, seed: int, answers: np.ndarray, none: np.ndarray, decisions=None, share: float = 1.0) -> dict:
    falls = [images for images, event in decisions or () if event == "fallback"]
    start = falls[0] if falls else None
    return {
        "name": name,
        "seed": seed,
        "none": float(none.mean()),
        "accuracy": float(answers.mean()),
        "after": np.nan if start is None else start,
        "falls": len(falls),
        "returns": sum(event == "return" for _, event in decisions or ()),
        "worst": np.nan if start is None else worst_window(answers, none, start),
        "worst_ever": worst_window(answers, none, 0),
        "served": share,
    }


def measure(network: str, images: int, seeds: int) -> list[dict]:
    """Rows of all seeds; those that are kept beside the data are not measured again."""
    net, test = {"cifar": cifar, "fashion": fashion}[network](images)
    rows = []
    for seed in range(seeds):
        kept = FOLDER / f"live-safety-{network}-{images}-{seed}.json"
        if not kept.is_file():
            kept.write_text(json.dumps(measure_seed(network, net, batches(test, images, seed, TABLES[network]), seed)))
        rows += json.loads(kept.read_text())
    return rows


def measure_seed(network: str, net: nn.Module, stream, seed: int) -> list[dict]:
    """Each adapter on one stream, with and without a guard."""
    adapters = {f"tent, lr {rate:g}": partial(Tent, lr=rate) for rate in RATES[network]}
    adapters["rdumb"] = partial(RDumb, every=1000, **RDUMB[network])
    none, rows = right(NoAdaptation(net), stream), []
    for name, adapter in adapters.items():
        began = time.process_time()
        rows.append(row(name, seed, right(adapter(net), stream), none))
        answers, decisions, share = guarded(net, adapter, stream)
        rows.append(row(f"{name}, guarded", seed, answers, none, decisions, share))
        if name != "rdumb":
            answers, decisions, share = guarded(net, adapter, stream, **SHORT)
            rows.append(row(f"{name}, short quarantine, guarded", seed, answers, none, decisions, share))
        print(f"seed {seed}, {name}: {time.process_time() - began:.0f} s of CPU", flush=True)
    for each in rows:
        print(*(f"{key} {value:.4g}" if isinstance(value, float) else value for key, value in each.items()), flush=True)
    return rows


def table(rows: list[dict], network: str, images: int, seeds: int) -> str:
    """One line for each adapter, mean over seeds with the least and greatest."""
    lines = [
        f"{'CIFAR-10' if network == 'cifar' else 'Fashion-MNIST'}, {len(TEST)} corruptions at severity 5 in a row, "
        f"{images:,} images each, batches of {BATCH}, {count(seeds, 'seed')}. Mean over seeds, and the worst seed.",
        "",
        "| adapter | accuracy | gain over unadapted | first fall-back after images | falls, returns | served adapted "
        "| worst window, any | worst window after detection |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(each["name"] for each in rows):
        own = [each for each in rows if each["name"] == name]
        mean = {
            key: float(np.mean([each[key] for each in own]))
            for key in ("accuracy", "none", "falls", "returns", "served")
        }
        after = [each["after"] for each in own if each["after"] == each["after"]]
        worst = [each["worst"] for each in own if each["worst"] == each["worst"]]
        ever = max(each["worst_ever"] for each in own)
        when = f"{np.mean(after):,.0f} ({min(after):,.0f} to {max(after):,.0f})" if after else "none"
        lines.append(
            f"| {name} | {mean['accuracy']:.3f} | {mean['accuracy'] - mean['none']:+.3f} | {when} "
            f"| {mean['falls']:.1f}, {mean['returns']:.1f} | {mean['served']:.0%} | {ever:+.3f} "
            f"| {f'{max(worst):+.3f}' if worst else ''} |"
        )
    return "\n".join(lines) + "\n"


def verdicts(rows: list[dict]) -> list[str]:
    """What was promised, and whether it is so."""
    told = []
    plain = {(each["name"], each["seed"]): each["accuracy"] for each in rows if "guarded" not in each["name"]}
    tents = [each for each in rows if each["name"].startswith("tent") and each["name"].endswith("guarded")]
    bad = [each for each in tents if plain[", ".join(each["name"].split(", ")[:2]), each["seed"]] < each["none"]]
    missed = [each for each in bad if not each["falls"]]
    worst = max((each["worst"] for each in tents if each["worst"] == each["worst"]), default=np.nan)
    told.append(
        f"Tent without a guard ends below the unadapted model in {len(bad)} of {len(tents)} runs; guarded, "
        f"{len(missed)} of these go unnoticed, and the worst window of {WINDOW:,} images after a detection loses "
        f"{worst:+.4f}"
    )
    gains = {
        name: np.array([each["accuracy"] for each in rows if each["name"] == name])
        for name in ("rdumb", "rdumb, guarded")
    }
    loss = gains["rdumb"] - gains["rdumb, guarded"]
    told.append(f"RDumb guarded loses {loss.mean():+.4f} of its accuracy, at most {loss.max():+.4f} on a seed")
    good = bool(bad) and not missed and worst < LIMIT and loss.max() <= LOSS
    return [*told, "as promised" if good else "NOT as promised"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("network", nargs="?", choices=("cifar", "fashion"))
    parser.add_argument("--images", type=int, default=300, help="of each corruption")
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("haptera").setLevel(logging.ERROR)
    network = given.network or ("cifar" if RECIPES["batch"].weights.is_file() else "fashion")
    rows = measure(network, given.images, given.seeds)
    text = table(rows, network, given.images, given.seeds)
    told = verdicts(rows)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"live_safety_{network}.md").write_text(text + "\n" + "\n".join(f"- {line}" for line in told) + "\n")
    print(text, *told, sep="\n")
    sys.exit(told[-1] != "as promised")
