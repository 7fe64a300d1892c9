"""Predicted against true accuracy along streams of CIFAR-10: mean absolute error, and how often intervals hold.

    python experiments/live_accuracy.py [FOLDER] [--small] [--all]

The network is `batch` of `experiments/cifar_networks.py`; `--small` takes one that is trained in a minute. The profile
is of `REFERENCE` labelled test images; all streams show other ones: `continual`, the 15 test corruptions one after the
other at severity 3 and at severity 5; `ccc`, CCC with five corruptions, calibrated on `batch` to a steady difficulty;
and `fading`, pairs of more corruptions without that calibration. After each batch the accuracy in the window of the
last `WINDOW` images is estimated and compared with the true one. The estimator and its interval know the four hold-out
corruptions alone, which no stream shows; another row gets labels of one image in ten, `DELAY` images late, and with
`--all` one knows all 19 corruptions beforehand. Average confidence, thresholded confidence (ATC) and difference of
confidences have no interval. Then the same where RDumb adapts: the profile is of the model as it was.
Writes `live_accuracy.md` into FOLDER, by default `docs/evidence/results`; a few minutes on one core. What the network
says is kept beside the data (`live-accuracy`), so that estimates can be made again in seconds; delete it for another
network.
"""

import argparse
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import nn

from charts import RESULTS
from cifar_data import FOLDER, TEST, clean
from cifar_networks import source_of
from haptera.adapters import NoAdaptation, RDumb
from haptera.catalog import find
from haptera.data import ArrayData
from haptera.live import Accuracy, Profile, ShiftWindow, Signals
from haptera.measures.label_free import Reference
from haptera.run.calibrate import Scale, calibrate
from haptera.streams import CCC, Clean, Continual
from haptera.streams.walk import Stage
from live_scores import network

REFERENCE, KNOWN, WINDOW, BATCH, DELAY, LEVEL = 2000, 256, 500, 50, 500, 0.95
IMAGES = {3: 300, 5: 500}
"""Severity -> images of each corruption."""
FADE, STEPS = 200, 5
"""Images of each step of a fading pair, and steps until the first corruption is gone."""
WALK = ("gaussian_noise", "fog", "glass_blur", "contrast", "pixelate", "snow", "motion_blur", "jpeg_compression")
PAIRS, DIFFICULTY, SPEED, LENGTH = ("gaussian_noise", "glass_blur", "fog", "contrast", "pixelate"), 0.4, 1000, 6000
"""Corruptions of CCC, the accuracy that it is calibrated to, images until another pair begins, and images in all."""
TRIED = 100
"""Images that CCC's calibration tries each pair of severities on."""
SHARE = 10
ALONE = ("average confidence", "thresholded confidence", "difference of confidences", "nuclear norm")
"""Estimators that are shown beside the combination, without an interval."""
LEARNS = {"lr": 1e-3, "every": 100, "optimiser": "adam"}
Labelled = Iterator[tuple[torch.Tensor, np.ndarray]]
KEPT = FOLDER / "live-accuracy"
"""What the network said, kept beside the data, so that estimates can be made again without it."""


def part(start: int, stop: int) -> ArrayData:
    """Return some of the test images."""
    data = clean()
    assert data.targets is not None
    images = (255 * data.images(np.arange(start, stop))).round().byte().permute(0, 2, 3, 1).numpy()
    return ArrayData(images, data.targets[start:stop], "CIFAR-10")


def continual(severity: int) -> Labelled:
    """Yield the test corruptions one after the other."""
    shifts = tuple(find("shifts", name) for name in TEST)
    for batch in Continual(clean(IMAGES[severity]), shifts, severity, batch_size=BATCH, table="cifar"):
        assert batch.targets is not None
        yield batch.inputs, batch.targets.numpy()


def fading() -> Labelled:
    """Yield images under pairs of corruptions, one fading while the other grows."""
    random, data = np.random.default_rng(0), part(0, 10_000 - REFERENCE)
    assert data.targets is not None
    place = 0
    for first, second in pairwise(WALK):
        for step in range(STEPS):
            severities = 4.0 * (1 - step / STEPS), 4.0 * (step + 1) / STEPS
            for _ in range(FADE // BATCH):
                rows = random.integers(len(data), size=BATCH)
                ids = torch.arange(place, place + BATCH)
                yield Stage(first, second, severities, 0.0)(data.images(rows), ids, 0), data.targets[rows]
                place += BATCH


def ccc() -> Labelled:
    """Yield CCC: two corruptions at a time, steadily hard for the network as it is."""
    data, shifts = part(0, 10_000 - REFERENCE), [find("shifts", name) for name in PAIRS]
    scale = Scale(samples=TRIED, step=1.0)
    calibration = calibrate(source_of("batch")(), data, KEPT / "ccc-calibration", shifts, scale, progress=False)
    for batch in CCC(data, calibration, DIFFICULTY, SPEED, LENGTH, batch_size=BATCH):
        assert batch.targets is not None
        yield batch.inputs, batch.targets.numpy()


def record(net: nn.Module, profile: Profile, name: str) -> dict[str, np.ndarray]:
    """Return `logits`, `targets` and the size of the shift along a stream, from the file if it is there."""
    path = KEPT / f"{name.replace(',', '').replace(' ', '-')}.npz"
    if path.is_file():
        with np.load(path) as file:
            return dict(file)
    method, stream = STREAMS[name]
    adapter, window = method(net), ShiftWindow(profile)
    logits, wanted, sizes = [], [], []
    with Signals(adapter, profile, sample=BATCH) as signals:
        for inputs, targets in stream():
            logits.append(adapter(inputs).detach().numpy())
            signals.take()
            window.update(signals.take_moments())
            sizes.append(window.place().size)
            wanted.append(targets)
    found = {"logits": np.stack(logits), "targets": np.stack(wanted), "sizes": np.array(sizes)}
    np.savez(path.with_suffix(".part.npz"), **found)
    path.with_suffix(".part.npz").replace(path)
    return found


class Estimates:
    """Everything that is said about a window, after each batch."""

    def __init__(self, profiles: dict[str, Profile]) -> None:
        self.own = {name: Accuracy(each, window=WINDOW, level=LEVEL) for name, each in profiles.items()}
        self.profile = profiles["known: hold-out"]
        assert self.profile.labelled is not None
        self.reference: Reference = self.profile.labelled
        self.own["known: hold-out, labels of one in ten"] = Accuracy(
            self.profile, window=WINDOW, level=LEVEL, label_window=100
        )
        self.logits: list[np.ndarray] = []
        self.targets: list[np.ndarray] = []
        self.rows: list[dict[str, tuple[float, float, float]]] = []

    def add(self, logits: np.ndarray, targets: np.ndarray, size: float) -> None:
        """Take a batch, and say what is thought of the window where it is full."""
        self.logits.append(logits)
        self.targets.append(targets)
        late = len(self.logits) - 1 - DELAY // BATCH
        for name, each in self.own.items():
            each.update(logits, size)
            if "labels" in name and late >= 0:
                each.label(self.logits[late][::SHARE], self.targets[late][::SHARE])
        count = WINDOW // BATCH
        if len(self.logits) < count:
            return
        recent, wanted = np.concatenate(self.logits[-count:]), np.concatenate(self.targets[-count:])
        none = (float("nan"), float("nan"))
        told = self.reference.estimates(recent)
        row = {
            name: (each.value, each.low, each.high) for name, each in ((n, a.estimate()) for n, a in self.own.items())
        }
        row |= {name: (told[name], *none) for name in ALONE} | {"true": ((recent.argmax(1) == wanted).mean(), *none)}
        self.rows.append(row)


def follow(profiles: dict[str, Profile], kept: dict[str, np.ndarray]) -> Estimates:
    """Return what was said along a stream."""
    found = Estimates(profiles)
    for logits, targets, size in zip(kept["logits"], kept["targets"], kept["sizes"], strict=True):
        found.add(logits, targets, float(size))
    return found


def lines_of(found: Estimates) -> list[str]:
    """Return one line for each way to tell accuracy."""
    true = np.array([row["true"][0] for row in found.rows])
    lines = []
    for name in found.rows[0]:
        if name == "true":
            continue
        values, low, high = np.array([row[name] for row in found.rows]).T
        cells = [f"{np.abs(values - true).mean():.3f}", f"{(values - true).mean():+.3f}"]
        held = f"{((low <= true) & (true <= high)).mean():.2f} | {(high - low).mean():.2f}"
        lines.append(f"| {name} | {' | '.join(cells)} | {held if np.isfinite(low).all() else '– | –'} |")
    return lines


STREAMS = {
    "continual, severity 3": (NoAdaptation, lambda: continual(3)),
    "continual, severity 5": (NoAdaptation, lambda: continual(5)),
    "CCC": (NoAdaptation, ccc),
    "fading pairs": (NoAdaptation, fading),
    "continual, severity 5, while RDumb adapts": (lambda model: RDumb(model, **LEARNS), lambda: continual(5)),
}


def profiles_of(net: nn.Module, every: bool) -> dict[str, Profile]:
    """Return profiles that know hold-out corruptions alone, and all if asked for; from the files if they are there."""
    reference, found = part(10_000 - REFERENCE, 10_000), {}
    base = None
    for name, which in (("known: hold-out", "holdout"), ("known: all 19", "all"))[: 1 + every]:
        path = KEPT / f"{which}.safetensors"
        if not path.is_file():
            base = base or Profile.measure(net, Clean(reference, batch_size=100))
            base.try_corruptions(net, reference, which, images=KNOWN, batch_size=100, progress=False).save(path)
        found[name] = Profile.read(path)
        found[name].check(net)
    return found


def _weights(accuracy: Accuracy) -> str:
    """Return the three candidates that count most, with their weights."""
    return ", ".join(f"{each.name} {each.weight:.2f}" for each in accuracy.combinations[True].candidates[:3])


def run(net: nn.Module, folder: Path, every: bool) -> None:
    """Write the tables."""
    KEPT.mkdir(parents=True, exist_ok=True)
    began, profiles = time.process_time(), profiles_of(net, every)
    print(f"profiles after {time.process_time() - began:.0f} s", flush=True)
    first = profiles["known: hold-out"]
    methods = {name: _weights(Accuracy(each)) for name, each in profiles.items()}
    lines = [
        f"Accuracy in a window of {WINDOW} images, estimated after each batch of {BATCH} and compared with the true "
        f"one: mean absolute error, mean error, and for the {LEVEL:.0%} intervals the share of windows that they hold "
        f"and their mean width. The network is right on {first.accuracy:.3f} of {REFERENCE:,} reference images. Chosen "
        f"on corruptions that were left out, with the largest weights: "
        f"{'; '.join(f'{method} ({name})' for name, method in methods.items())}.",
        "",
    ]
    for name in STREAMS:
        found = follow(profiles, record(net, first, name))
        true = [row["true"][0] for row in found.rows]
        head = "| | mean absolute error | mean error | held | width |"
        lines += [f"{name}: {len(true)} windows, true accuracy {min(true):.2f} to {max(true):.2f}", "", head]
        lines += ["|---" * 5 + "|", *lines_of(found), ""]
        print(f"{name} after {time.process_time() - began:.0f} s", flush=True)
        (folder / "live_accuracy.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=RESULTS)
    parser.add_argument("--small", action="store_true", help="a network that is trained in a minute")
    parser.add_argument("--all", action="store_true", help="a row for a profile that knows all 19 corruptions, too")
    given = parser.parse_args()
    run(network() if given.small else source_of("batch")(), given.folder, given.all)
