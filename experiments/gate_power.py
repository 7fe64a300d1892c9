"""How often a gate fails a candidate that did not fall, how often it finds one that did, and what quick gates spare.

Run it as `python experiments/gate_power.py [--repetitions 200] [--jobs 2]`; it takes minutes, and writes `gate.md` into
`docs/evidence/results`. Two small networks are trained on digits and asked about every image under fifteen corruptions
at five severities. A repetition draws 2,000 images with replacement, and a coin for each decides which of the two
networks answers first, under all corruptions: so "before" and "after" are equally good in every comparison, and differ
as much, and under the same images together, as two real networks do. Then a drop is planted: under Gaussian noise at
severities 3 to 5, some right answers of the candidate become wrong.
"""

import argparse
import multiprocessing
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.special import ndtri

from haptera.adapters import NoAdaptation
from haptera.analyses.gate import GateSettings
from haptera.analyses.gate.decide import CLEARED, FELL, decide
from haptera.analyses.gate.pairs import About, Pairs
from haptera.analyses.gate.quick import CHUNK
from haptera.analyses.gate.race import Lane, Race
from haptera.data import digits
from haptera.models import LeNet
from haptera.models.training import fit
from haptera.run.loop import evaluate
from haptera.streams import Corruptions

RESULTS = Path(__file__).parents[1] / "docs" / "evidence" / "results"
IMAGES = 2_000
DROPS = (0.0, 0.02, 0.03, 0.05, 0.1)
PLANTED = [("gaussian_noise", severity) for severity in (3.0, 4.0, 5.0)]
SETTINGS = GateSettings()


def answers_of(seed: int) -> tuple[list[tuple[str, float]], np.ndarray]:
    """Shift and severity of every comparison, and whether a network is right there: `(comparisons, images)`."""
    torch.manual_seed(seed)
    net = LeNet(size=16, width=6)
    fit(net, digits("train", size=16), epochs=8, seed=seed)
    places, rows = [], []
    for part in Corruptions(digits("test", size=16), batch_size=256).parts():
        outputs = evaluate(NoAdaptation(net.eval()), part, "top1")
        places.append((str(outputs.context["shift"][0]), float(outputs.context["severity"][0])))
        rows.append(outputs.correct()[np.argsort(outputs.ids)])
    return places, np.array(rows)


def draw(
    places: list[tuple[str, float]], one: np.ndarray, other: np.ndarray, drop: float, generator: np.random.Generator
) -> list[Pairs]:
    """Return comparisons of two equally good models, the second with a planted drop."""
    images = generator.integers(0, one.shape[1], IMAGES)
    swap = generator.random(IMAGES) < 0.5
    before, after = (np.where(swap, a[:, images], b[:, images]) for a, b in ((one, other), (other, one)))
    for row, place in enumerate(places):
        if place in PLANTED and drop:
            after[row] &= generator.random(IMAGES) >= drop / after[row].mean()
    made = []
    for row, (shift, severity) in enumerate(places):
        about = About("net", "corruptions", f"{shift} {severity:g}", "none", shift, severity)
        made.append(Pairs(about, np.arange(IMAGES), before[row].astype(float), after[row].astype(float)))
    return made


def race(pairs: list[Pairs]) -> dict[tuple[str, float], tuple[str, int]]:
    """Return the verdict of a quick gate on every shift and severity, and how many answers it took."""
    cells = {str(each.about.key): each for each in pairs}
    lanes = {key: [Lane(each.about, each.before.mean(), IMAGES)] for key, each in cells.items()}
    run, at = Race(lanes, {}, SETTINGS.tolerance, SETTINGS.drop), dict.fromkeys(cells, 0)
    while (key := run.next()) is not None:
        rows = slice(at[key], at[key] + CHUNK)
        each = cells[key]
        if at[key] >= IMAGES:
            run.close(key)
            continue
        run.add(key, {each.about.key: (each.images[rows], each.before[rows], each.after[rows])})
        at[key] += CHUNK
    return {(each.about.shift, each.about.severity): run.verdicts[each.about.key] for each in pairs}


def repeat(drop: float, repetitions: int, networks: tuple[list, np.ndarray, np.ndarray]) -> dict[str, float]:
    """Return one row of the table, with the reach of the intervals in standard errors."""
    generator = np.random.default_rng(round(1000 * drop))
    rows = []
    for _ in range(repetitions):
        pairs = draw(*networks, drop, generator)
        whole, critical = decide(pairs, "accuracy", SETTINGS.tolerance)
        quick = race(pairs)
        fell = {(row["shift"], row["severity"]) for row in whole.to_dict("records") if row["verdict"] == FELL}
        row = {"whole": bool(fell), "right": fell <= set(PLANTED), "reach": critical}
        row["quick"] = any(verdict == FELL for verdict, _ in quick.values())
        row["share"] = sum(asked for _, asked in quick.values()) / (IMAGES * len(pairs))
        row["cleared"] = np.mean([quick[place][0] == CLEARED for place in PLANTED])
        rows.append(row)
    means = pd.DataFrame(rows).astype(float).mean()
    print(f"drop {drop:g}: {means.round(3).to_dict()}", flush=True)
    return {"drop": drop, **means.to_dict()}


def write(rows: pd.DataFrame, remark: str) -> None:
    """Write the table."""
    heads = ("planted drop", "whole gate fails", "names only what fell", "quick gate fails", "answers asked")
    lines = [f"| {' | '.join((*heads, 'planted cells cleared'))} |", "|" + "---|" * (len(heads) + 1)]
    for row in rows.to_dict("records"):
        shares = " | ".join(f"{row[name]:.1%}" for name in ("whole", "right", "quick", "share"))
        name, cleared = (f"{row['drop']:.2f}", f"{row['cleared']:.1%}") if row["drop"] else ("none", "")
        lines.append(f"| {name} | {shares} | {cleared} |")
    (RESULTS / "gate.md").write_text("\n".join([*lines, "", remark, ""]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    (places, one), (_, other) = answers_of(0), answers_of(1)
    print(f"accuracies {one.mean():.3f} {other.mean():.3f}, apart {(one != other).mean():.3f}", flush=True)
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        work = [(drop, given.repetitions, (places, one, other)) for drop in DROPS]
        rows = pd.DataFrame(pool.starmap(repeat, work, chunksize=1))
    remark = (
        f"{given.repetitions} repetitions in each row, {len(places)} comparisons of {IMAGES:,} images, tolerance "
        f"{SETTINGS.tolerance:g}; quick gates look for drops of {SETTINGS.drop:g}. The two networks are right in "
        f"{one.mean():.1%} and {other.mean():.1%} of all answers, and differ in {(one != other).mean():.1%}. Intervals "
        f"reach {rows['reach'].mean():.2f} standard errors to either side; with Bonferroni's correction it would be "
        f"{ndtri(1 - 0.025 / len(places)):.2f}."
    )
    write(rows, remark)


if __name__ == "__main__":
    main()
