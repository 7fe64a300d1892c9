"""Diagnosis on real images: is the size of a shift a guide to its cost, and which label-free estimate is the best?

    python experiments/diagnosis_on_images.py [FOLDER] [sizes] [detectors] [priors]

Three residual networks trained on Fashion-MNIST (`experiments/adaptation_on_images.py` trains them and keeps the
weights beside the data in $HAPTERA_DATA). Half of the test images are the labelled reference, the other half the data,
whose labels serve for the true errors alone. Writes `diagnosis_sizes.md`, `diagnosis_detectors.md` and
`diagnosis_priors.md` into FOLDER, by default `docs/evidence/results`; about twenty minutes on one core, three quarters
of it for the priors.

sizes: rank correlation of size and error over 15 corruptions x 5 severities; the mean absolute error of the accuracy
predicted from hold-out corruptions, per family, beside estimates from confidence and agreement of two networks;
table A.6. detectors: how often a shift of severity 1 is seen in few images, at a false-alarm rate of 5 % that clean
images set for each detector. priors: N chosen by itself beside N = 0 and N = 16 for batches of several sizes.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr
from torch import nn

from adaptation_on_images import DATA, SEEDS, networks, over_seeds
from haptera.adapters import BatchNorm, NoAdaptation
from haptera.analyses.diagnosis import DiagnosisSettings
from haptera.analyses.diagnosis.error_prediction import agreement, fit_temperature
from haptera.analyses.diagnosis.known_shifts import known_shifts
from haptera.analyses.diagnosis.shift_size import ks_p_value, mmd, shift_size, shift_test
from haptera.data import ArrayData
from haptera.measures.label_free import Reference
from haptera.observe import observe_moments
from haptera.observe.moments import Observation
from haptera.shifts import Shift
from haptera.streams import Clean, Corruptions, Shifted, Truncated
from haptera.streams.shift_stream import all_shifts

IMAGES, BATCH = 1000, 100
FAMILIES = ("noise", "blur", "weather", "digital")
DRAWS = {50: 200, 200: 100, 1000: 40}  # images -> draws of clean ones
PRIORS = {"N = 0": 0.0, "N = 16": 16.0, "auto": "auto", "training statistics": float("inf")}
PRIOR_IMAGES, PRIOR_SEVERITIES, SIZES = 192, (1.0, 3.0, 5.0), (1, 2, 4, 8, 32, 128)


def halves() -> tuple[ArrayData, ArrayData]:
    """Reference and data."""
    with np.load(DATA) as file:
        images, labels = file["test_images"], file["test_labels"]
    return ArrayData(images[0::2], labels[0::2], "reference"), ArrayData(images[1::2], labels[1::2], "data")


def look(net: nn.Module, data: ArrayData, shift: Shift | None = None, images: int = IMAGES) -> Observation:
    """Moments and outputs on the first images, shifted or not."""
    stream = Clean(data, batch_size=BATCH) if shift is None else Shifted(data, shift, batch_size=BATCH)
    return observe_moments(net, Truncated(stream, first=images))


def table(rows: pd.DataFrame, columns: list[str]) -> list[str]:
    """Markdown: one line per value of the index, mean and interval over networks in each column."""
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name in dict.fromkeys(rows["of"]):
        own = rows[rows["of"] == name]
        lines.append(f"| {name} | {' | '.join(over_seeds(own[column]) for column in columns)} |")
    return lines


def sizes(nets: list[nn.Module], reference: ArrayData, data: ArrayData) -> list[str]:
    """Correlations, label-free estimates per family, and table A.6."""
    correlations, estimates, regressions = [], [], []
    for place, net in enumerate(nets):
        other = nets[(place + 1) % len(nets)]
        base = look(net, reference)
        asked = DiagnosisSettings(known_samples=IMAGES, batch_size=BATCH, adapted=True)
        known = known_shifts(net, reference, base.moments, settings=asked, severities=(1, 2, 3, 4, 5))
        regressions.append(known.regressions().assign(net=place))
        lines, temperature = known.lines(), fit_temperature(base.outputs, base.targets)
        labelled = Reference.of(base.outputs, base.targets)
        found = []
        for kind in all_shifts():
            for severity in (1, 2, 3, 4, 5):
                shift = kind(severity)
                seen, second = look(net, data, shift), look(other, data, shift)
                size, told = shift_size(base.moments, seen.moments), labelled.estimates(seen.outputs)
                calibrated = labelled.estimates(seen.outputs / temperature)["average confidence"]
                accuracy = {
                    "size, line of the family": 1 - lines.get(shift.family, lines["all"]).predict(size),
                    "size, line of all": 1 - lines["all"].predict(size),
                    "average confidence": told["average confidence"],
                    "average confidence, calibrated": calibrated,
                    "difference of confidences": told["difference of confidences"],
                    "thresholded confidence": told["thresholded confidence"],
                    "agreement of two networks": agreement(seen.outputs, second.outputs),
                }
                row = {"family": shift.family, "shift": shift.name, "severity": severity, "size": size}
                found.append(row | {"error": seen.error} | {f"of {k}": 1 - v for k, v in accuracy.items()})
        frame = pd.DataFrame(found)
        within = [spearmanr(part["size"], part["error"]).statistic for _, part in frame.groupby("family")]
        correlations.append(
            {"all 75": spearmanr(frame["size"], frame["error"]).statistic, "within families": np.mean(within)}
        )
        for name in (column for column in frame if column.startswith("of ")):
            off = (frame[name] - frame["error"]).abs()
            row = {"of": name[3:], "rank correlation": spearmanr(frame[name], frame["error"]).statistic}
            row |= {family: off[frame["family"] == family].mean() for family in FAMILIES} | {"all": off.mean()}
            estimates.append(row)
    spread = pd.DataFrame(correlations)
    over_all, within_one = (over_seeds(spread[column]) for column in spread)
    lines = [
        f"Rank correlation of the size of a shift and the error it brings, 15 corruptions x 5 severities, {IMAGES:,} "
        f"images each, {len(nets)} networks: {over_all} over all, {within_one} on average within a family.",
        "",
        "Errors predicted without labels: rank correlation with the true ones, and mean absolute error.",
        "",
        *table(pd.DataFrame(estimates), ["rank correlation", *FAMILIES, "all"]),
        "",
        "Table A.6 for these networks: mean error of the test corruptions, what the line through the hold-out "
        "corruption of the family says, and the mean absolute difference.",
    ]
    both = pd.concat(regressions)
    for regression in dict.fromkeys(both["regression"]):
        own = both[both["regression"] == regression].rename(columns={"family": "of", "off": "difference"})
        lines += ["", f"*{regression}*", "", *table(own, ["true", "predicted", "difference", "slope"])]
    return lines


def drawn(
    net: nn.Module, data: ArrayData, shift: Shift | None, images: int, random: np.random.Generator
) -> Observation:
    """Some images of the data, shifted or not, as a network sees them."""
    chosen = random.choice(len(data), images, replace=False)
    pixels = data.images(chosen)
    part = ArrayData(pixels.numpy() if shift is None else shift(pixels, ids=chosen).numpy(), None)
    return look(net, part, images=images)


def scores(base: Observation, seen: Observation) -> dict[str, float]:
    """What each detector says; more is more of a shift."""
    return {
        "size of the shift": shift_size(base.moments, seen.moments),
        "KS per class output": -ks_p_value(base.outputs, seen.outputs),
        "MMD of the outputs": mmd(base.outputs, seen.outputs),
    }


def detectors(nets: list[nn.Module], reference: ArrayData, data: ArrayData) -> list[str]:
    """Detection rates at the same rate of false alarms."""
    rows, alarms = [], []
    for net in nets:
        base = look(net, reference)
        for images, draws in DRAWS.items():
            random = np.random.default_rng(images)
            clean = [drawn(net, data, None, images, random) for _ in range(draws)]
            limits = pd.DataFrame([scores(base, seen) for seen in clean]).quantile(0.95)
            alarms += [(images, shift_test(base.moments, seen.moments, 200).p_value < 0.05) for seen in clean[:40]]
            tried = [kind(1.0) for kind in all_shifts() for _ in range(4)]
            found = [scores(base, drawn(net, data, shift, images, random)) for shift in tried]
            rates = (pd.DataFrame(found) > limits).mean()
            rows += [{"of": name, "images": images, "rate": rate} for name, rate in rates.items()]
    frame = pd.DataFrame(rows)
    wide = frame.assign(at=frame.groupby(["of", "images"]).cumcount()).pivot_table("rate", ["of", "at"], "images")
    wide.columns = [f"{images:,} images" for images in wide]
    false = pd.DataFrame(alarms, columns=["images", "alarm"]).groupby("images")["alarm"].mean()
    said = ", ".join(f"{rate:.3f} at {images:,} images" for images, rate in false.items())
    return [
        f"Share of {15 * 4} draws under a corruption of severity 1 that exceed what 95 % of draws of clean images "
        f"reach, against {IMAGES:,} images of the reference.",
        "",
        *table(wide.reset_index(), list(wide.columns)),
        "",
        f"`diagnose` itself says p < .05 for clean images in a share of {said} of the draws.",
    ]


@torch.no_grad()
def error_with(adapter: nn.Module, stream: Corruptions) -> float:
    """Mean error over all parts of a stream, with a fresh adapter for each."""
    errors = []
    for part in stream.parts():
        adapter.reset()
        wrong = [(adapter(batch.inputs).argmax(1) != batch.targets).float() for batch in part]
        errors.append(float(torch.cat(wrong).mean()))
    return float(np.mean(errors))


def priors(nets: list[nn.Module], reference: ArrayData, data: ArrayData) -> list[str]:
    """Mean errors for batches of n images."""
    rows = []
    chosen = np.arange(PRIOR_IMAGES)
    part = ArrayData(data.images(chosen).numpy(), data.targets[chosen], "data")
    for name, prior in PRIORS.items():
        for net in nets:
            row: dict[str, object] = {"of": name}
            for n in SIZES:
                stream = Corruptions(part, severities=PRIOR_SEVERITIES, batch_size=n)
                row[f"n = {n}"] = error_with(
                    BatchNorm(net, prior) if prior != float("inf") else NoAdaptation(net), stream
                )
                print(name, n, row[f"n = {n}"], file=sys.stderr, flush=True)
                if prior == float("inf"):
                    row |= {f"n = {other}": row["n = 1"] for other in SIZES}
                    break
            row["mean"] = np.mean([row[f"n = {n}"] for n in SIZES])
            rows.append(row)
    return [
        f"Mean error over 15 corruptions at severities 1, 3 and 5, {PRIOR_IMAGES} images each, in batches of n.",
        "",
        *table(pd.DataFrame(rows), [*(f"n = {n}" for n in SIZES), "mean"]),
    ]


def main() -> None:
    """The parts that were asked for, or all."""
    torch.set_num_threads(1)
    parts = {"sizes": sizes, "detectors": detectors, "priors": priors}
    wanted = [name for name in parts if name in sys.argv[1:]] or list(parts)
    folders = [word for word in sys.argv[1:] if word not in parts]
    folder = Path(folders[0]) if folders else Path(__file__).parents[1] / "docs" / "evidence" / "results"
    folder.mkdir(parents=True, exist_ok=True)
    with np.load(DATA) as file:
        sources = networks(ArrayData(file["train_images"], file["train_labels"], "Fashion-MNIST"))
    nets = [sources[f"batch {seed}"]().eval() for seed in SEEDS]
    for name in wanted:
        lines = parts[name](nets, *halves())
        (folder / f"diagnosis_{name}.md").write_text("\n".join(lines) + "\n")
        print("\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
