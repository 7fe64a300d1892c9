"""What the experiments on poses share: their arguments, networks that are kept, errors over individuals, their tables.

Intervals are over individuals: each individual's mean over the shuffles in which it was tested, then Student's t.
Both sides of a comparison see the same frames, so the interval of a difference is of differences frame by frame.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from haptera.measures import keypoint_distances, keypoint_scales, mean_over_individuals
from haptera.measures.keypoints import Mean
from haptera.outputs import Outputs
from haptera.pose import PoseData, PoseModel, Split, Training, drawn_animals, evaluate, fit, split_individuals

TABLES = Path(__file__).parents[1] / "docs" / "evidence" / "results"
THRESHOLD = 0.3


def kept_in(name: str) -> Path:
    """Return the folder of networks or cells that outlive a run."""
    return Path(os.environ.get("HAPTERA_DATA", Path.home() / ".cache" / "haptera")) / name


def arguments() -> argparse.ArgumentParser:
    """Return a parser of FOLDER and --tiny; what comes before FOLDER is added by `read`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tiny", action="store_true", help="a minute, to see that it runs; write elsewhere")
    return parser


def read(parser: argparse.ArgumentParser | None = None) -> argparse.Namespace:
    """Return the arguments; `--tiny` must not overwrite the evidence. One thread from here on."""
    parser = parser or arguments()
    parser.add_argument("folder", nargs="?", type=Path, default=TABLES)
    given = parser.parse_args()
    if given.tiny and given.folder == TABLES:
        sys.exit("--tiny needs a FOLDER of its own")
    torch.set_num_threads(1)
    return given


def write(folder: Path, name: str, lines: Iterable[str]) -> None:
    """Write a table, and show it."""
    text = "\n".join(lines) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    print(text, end="")


def small_network(individuals: int, train: int, steps: int) -> tuple[PoseModel, PoseData, Split]:
    """Train `small` on some of the drawn individuals, nine of the twelve frames of each."""
    torch.manual_seed(0)
    data = drawn_animals(individuals, 12)
    split = split_individuals(data, train, fraction=0.75)
    model = PoseModel(data.parts, settings={"width": 16}, skeleton=data.skeleton)
    fit(model, data.select(split.train), Training(steps=steps, lr=5e-3), every=100)
    return model, data, split


def scales_of(data: PoseData) -> np.ndarray:
    """`(frames,)`: by what errors are divided, from all frames of an individual, for a few may not show its head."""
    return keypoint_scales(data.keypoints, data.individuals, data.parts)


def trained(
    path: Path, model: PoseModel, data: PoseData, split: Split, training: Training, watched: np.ndarray, times: int
) -> tuple[PoseModel, list[float]]:
    """Return a network from its file, or train it now, and its error on watched frames so many times on the way."""
    along = path.with_suffix(".json")
    if path.is_file() and along.is_file():
        return PoseModel.load(path), json.loads(along.read_text())
    errors: list[float] = []
    start, seen, scales = time.process_time(), data.select(watched), scales_of(data)[watched]
    fit(
        model, data.select(split.train), training, every=-(-training.steps // times), progress=False,
        watch=lambda _: errors.append(mean_error(evaluate(model, seen), scales)),
    )  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    model.save(path)
    along.write_text(json.dumps(errors))
    print(f"{path.stem}: {time.process_time() - start:.0f} CPU-seconds, {errors}", file=sys.stderr, flush=True)
    return model, errors


def normalised(outputs: Outputs, scales: np.ndarray | None = None) -> np.ndarray:
    """`(frames, parts)`, NaN where nothing is labelled; divided by scales, or those of individuals in these frames."""
    assert outputs.targets is not None
    if scales is None:
        scales = keypoint_scales(outputs.targets, outputs.context["individual"], outputs.provenance["parts"])
    return keypoint_distances(outputs.arrays["keypoints"], outputs.targets) / scales[:, None]


def mean_error(outputs: Outputs, scales: np.ndarray | None = None) -> float:
    return float(np.nanmean(normalised(outputs, scales)))


class Errors:
    """Normalised errors of all shuffles, by what was evaluated."""

    def __init__(self) -> None:
        self.parts: dict[tuple[object, ...], list[tuple[np.ndarray, np.ndarray]]] = {}

    def add(self, key: tuple[object, ...], outputs: Outputs, scales: np.ndarray | None = None) -> None:
        self.parts.setdefault(key, []).append((normalised(outputs, scales), outputs.context["individual"]))

    def of(self, *key: object) -> tuple[np.ndarray, np.ndarray]:
        values, who = zip(*self.parts[key], strict=True)
        return np.concatenate(values), np.concatenate(who)

    def error(self, *key: object) -> Mean:
        return mean_over_individuals(*self.of(*key), scale="log")

    def pck(self, *key: object) -> Mean:
        values, who = self.of(*key)
        return mean_over_individuals(np.where(np.isnan(values), np.nan, values <= THRESHOLD), who, "share")

    def difference(self, one: tuple[object, ...], two: tuple[object, ...]) -> Mean:
        (first, who), (second, _) = self.of(*one), self.of(*two)
        return mean_over_individuals(first - second, who)


def text(mean: Mean, digits: int = 3) -> str:
    """Mean with its interval."""
    return f"{mean.value:.{digits}f} ({mean.low:.{digits}f} .. {mean.high:.{digits}f})"
