"""Accuracy of one network without labels: how far off every estimator is, and what hold-out corruptions make of them.

    python experiments/accuracy_of_networks.py [--keep FOLDER] [--out FOLDER]

Six networks: two residual networks on CIFAR-10, with BatchNorm and with GroupNorm (`experiments/weights`), and four
networks of the demo on digits, which are trained here. Half of the images are the reference; on them the four hold-out
corruptions at five severities choose how estimates are combined, and give the lines; then all corruptions but the one
that is predicted, as `haptera diagnose` does. The new data are the other half under the 15 test corruptions at
severities 1, 3 and 5.
Outputs and estimates are kept in FOLDER, by default beside the data; the tables of `accuracy_of_networks.md` are made
from these. Ten minutes on one core, seconds where the outputs are kept.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from torch import nn

from charts import RESULTS
from cifar_networks import FOLDER, source_of
from haptera.analyses.diagnosis.shift_size import shift_size
from haptera.catalog import find
from haptera.correctness import correct
from haptera.data import ArrayData, digits
from haptera.demo import NETWORKS, train_missing
from haptera.families import FAMILIES
from haptera.measures.combination import SIZE, combine
from haptera.measures.label_free import ESTIMATES, estimate_all
from haptera.models import ModelSource
from haptera.observe import observe_moments
from haptera.streams import Clean, Shifted

CIFAR = {"cifar-batch": "batch", "cifar-group": "group"}
DIGITS = ("lenet-12", "resnet-bn-8", "resnet-gn-8", "vit-32")
IMAGES, BATCH = 1000, 100
HOLDOUT = FAMILIES["holdout"]
TEST = tuple(shift for family, shifts in FAMILIES.items() if family != "holdout" for shift in shifts)
CHOSEN = {"holdout": "**chosen on hold-out corruptions only**", "all": "**chosen on all other corruptions**"}


def halves(name: str) -> list[ArrayData]:
    """Return the reference and the new images of a network."""
    if name in CIFAR:
        with np.load(FOLDER / "cifar10.npz") as file:
            images, labels = file["test_images"][: 2 * IMAGES], file["test_labels"][: 2 * IMAGES].astype(np.int64)
        rows = np.arange(2 * IMAGES)
    else:
        data = digits("test")
        images = (255 * data.images(np.arange(len(data)))).round().byte().squeeze(1).numpy()
        labels, rows = data.targets, np.random.default_rng(0).permutation(len(data))
    half = len(rows) // 2
    return [ArrayData(images[part], labels[part], name) for part in (rows[:half], rows[half:])]


def network(name: str, keep: Path) -> nn.Module:
    """Return a network, trained here if it is one of digits."""
    if name in CIFAR:
        return source_of(CIFAR[name])().eval()
    own = next(each for each in NETWORKS if each.name == name)
    train_missing(keep / "networks", 1, None, [own])
    return ModelSource(own.build, keep / "networks" / own.piece.path, own.arguments)().eval()


def layers_of(name: str, net: nn.Module) -> Sequence[str]:
    """Return the layers at which the size of a shift is measured: where there is no BatchNorm, all that learn."""
    if "bn" in name or name == "cifar-batch":
        return ()
    if name == "cifar-group":
        return [key for key, module in net.named_modules() if isinstance(module, nn.GroupNorm)]
    leaves = [(key, module) for key, module in net.named_modules() if key and not list(module.children())]
    return [key for key, module in leaves if list(module.parameters())]


def cells() -> Iterator[tuple[int, str, int]]:
    """Half, corruption and severity of everything that is looked at."""
    for shift in HOLDOUT:
        yield from ((0, shift, severity) for severity in (1, 2, 3, 4, 5))
    for shift in TEST:
        yield from ((half, shift, severity) for severity in (1, 3, 5) for half in (0, 1))


def outputs(name: str, keep: Path) -> dict[str, np.ndarray]:
    """Return what a network says, and sizes of shifts: `clean`, `targets`, and `HALF SHIFT SEVERITY` and its size."""
    path = keep / f"{name}.npz"
    if not path.is_file():
        keep.mkdir(parents=True, exist_ok=True)
        parts, net = halves(name), network(name, keep)
        layers = layers_of(name, net)
        base = observe_moments(net, Clean(parts[0], batch_size=BATCH), layers)
        found = {"clean": base.outputs, "targets": base.targets}
        for half, shift, severity in cells():
            table = {"table": "cifar"} if name in CIFAR else {}
            stream = Shifted(parts[half], find("shifts", shift)(severity, **table), batch_size=BATCH)
            seen, key = observe_moments(net, stream, layers), f"{half} {shift} {severity}"
            found |= {key: seen.outputs, f"{key} targets": seen.targets}
            found[f"{key} size"] = np.array(shift_size(base.moments, seen.moments))
        np.savez(path, **found)
    with np.load(path) as file:
        return dict(file)


def estimates(name: str, keep: Path) -> pd.DataFrame:
    """Return every estimate for everything that was looked at; the first row is clean."""
    path = keep / f"{name}-estimates.csv"
    if not path.is_file():
        seen = outputs(name, keep)
        clean, targets = seen["clean"], seen["targets"]
        rows = [{"half": 0, "shift": "clean", "severity": 0, "holdout": False, SIZE: 0.0, "images": len(clean)}]
        rows[0] |= {"accuracy": float(correct(clean, targets).mean())} | estimate_all(clean, targets, clean)
        for half, shift, severity in cells():
            key = f"{half} {shift} {severity}"
            row = {"half": half, "shift": shift, "severity": severity, "holdout": shift in HOLDOUT}
            row |= {SIZE: float(seen[f"{key} size"]), "images": len(seen[key])}
            row["accuracy"] = float(correct(seen[key], seen[f"{key} targets"]).mean())
            rows.append(row | estimate_all(clean, targets, seen[key]))
        pd.DataFrame(rows).to_csv(path, index=False)
    return pd.read_csv(path)


def judge(rows: pd.DataFrame) -> tuple[pd.Series, dict[str, float]]:
    """Return how far off each method is on the new data, and facts about the intervals."""
    clean, rows = rows.iloc[0].to_dict(), rows.iloc[1:]
    known, new, images = rows[rows["half"] == 0], rows[rows["half"] == 1], int(clean["images"])
    off, held, widths = [], [], []
    made = {
        shift: {name: combine(known[known["shift"] != shift], clean, images, name) for name in CHOSEN} for shift in TEST
    }
    for row in new.to_dict("records"):
        told = {}
        for choose_on, name in CHOSEN.items():
            found = made[row["shift"]][choose_on]
            told[name] = found.accuracy(row)
            ends = found.interval(told[name], images)
            if choose_on == "holdout":
                told |= {each.name: float(each.accuracy(row)) for each in found.candidates}
            held.append({name: ends[0] <= row["accuracy"] <= ends[1]})
            widths.append({name: ends[1] - ends[0]})
        off.append({name: abs(value - row["accuracy"]) for name, value in told.items()})
    facts = {"accuracy on clean images": clean["accuracy"], "accuracy on the new data": new["accuracy"].mean()}
    for choose_on, name in CHOSEN.items():
        facts[f"95 % intervals that hold the truth, {choose_on}"] = float(pd.DataFrame(held)[name].mean())
        facts[f"their mean width, {choose_on}"] = float(pd.DataFrame(widths)[name].mean())
    return pd.DataFrame(off).mean(), facts


def markdown(frame: pd.DataFrame) -> str:
    """Return a frame as a table."""
    rows = [
        f"| {name} | {' | '.join(f'{value:.3f}' for value in row)} |"
        for name, row in zip(frame.index, frame.to_numpy(), strict=True)
    ]
    return "\n".join([f"| | {' | '.join(frame)} |", "|---" * (frame.shape[1] + 1) + "|", *rows])


def main() -> None:
    """Look at every network and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, default=FOLDER / "accuracy-without-labels")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    off, facts = {}, {}
    for name in (*CIFAR, *DIGITS):
        off[name], facts[name] = judge(estimates(name, given.keep))
    table, about = pd.DataFrame(off), pd.DataFrame(facts)
    table["mean"] = table.mean(axis=1)
    plain = table.loc[list(ESTIMATES)].sort_values("mean")
    lines = table.drop(index=[*ESTIMATES, *CHOSEN.values()]).sort_values("mean")
    both = pd.concat([table.loc[list(CHOSEN.values())], plain, lines])
    text = [
        f"Mean absolute error of the predicted accuracy on {len(TEST)} corruptions at three severities. `line of` "
        "and `plane of`: fitted to clean data and the hold-out corruptions, which is not what the sources do.",
        markdown(both),
        markdown(about.assign(mean=about.mean(axis=1))),
    ]
    (given.out / "accuracy_of_networks.md").write_text("\n\n".join(text) + "\n")
    print("\n\n".join(text))


if __name__ == "__main__":
    main()
