"""What lasts: CIFAR-10's corruptions again and again, and CCC, with resets and without: table 4.1, figures 4.3, 4.4."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from cifar_data import TEST, clean, corrupted
from cifar_networks import source_of
from cifar_study import (
    ADAM,
    BATCH,
    BATCHNORM,
    BN,
    NONE,
    STUDIES,
    Run,
    along,
    compare,
    faster,
    markdown,
    rate_of,
    tuned,
    unlearned,
    write,
)
from haptera import Study
from haptera.adapters import CoTTA, PeriodicReset, RDumb
from haptera.batch import Stream
from haptera.catalog import find
from haptera.run.calibrate import Scale, calibrate
from haptera.streams import CCC, Recurring

VISITS, EVERY, IMAGES, FEWER_IMAGES = 4, 100, 1_000, 256
WALK = ("gaussian_noise", "glass_blur", "fog", "contrast", "pixelate")
LENGTH, SPEED, DIFFICULTY = 30_000, 1_000, 0.4


def adapters_of(net: str, run: Run) -> dict[str, Any]:
    """Return methods at the rate that is best for one corruption and at ten times that, with resets and without."""
    more = ("slr", "roid", "rpl", "eata") if net in BATCHNORM else ()
    every = {name: tuned(name, net, run.jobs) for name in ("tent", "eta", *more)}
    tent, eta = every["tent"], every["eta"]
    rdumb = partial(RDumb, every=EVERY, **ADAM, lr=eta.keywords["lr"])
    fast = {
        "tent, ten times the rate": faster(tent, 10),
        f"tent, ten times, reset every {EVERY}": PeriodicReset(faster(tent, 10), every=EVERY),
        "eta, ten times the rate": faster(eta, 10),
        f"rdumb, ten times, every {EVERY}": faster(rdumb, 10),
    }
    resets = {f"tent, reset every {EVERY}": PeriodicReset(tent, every=EVERY), f"rdumb, every {EVERY}": rdumb}
    cotta = {"cotta, 2 views": partial(CoTTA, augmentations=2, lr=1e-3, restore=0.01, **ADAM)} if more else {}
    return unlearned(net) | {"tent": tent, "eta": eta} | resets | fast | cotta | every


def one_by_one(net: str, stream: Stream, makes: Mapping[str, Any], folder: str, lines_of: Any, name: str) -> None:
    """Run one adapter after the other, and write the table anew after each."""
    done: dict[str, Any] = {}
    for adapter, make in makes.items():
        done[adapter] = make
        table = Study({net: source_of(net)}, [stream], done, out=STUDIES / folder).run(progress=False)
        if len(done) > 2:
            write(name, lines_of(table, done))


def recurring_table(net: str, run: Run) -> None:
    """The corruptions in a row, again and again, nothing reset from outside."""
    few = Run(min(run.images, IMAGES if net in BATCHNORM else FEWER_IMAGES), run.jobs)
    stream = Recurring(corrupted(TEST, few.images), shifts=TEST, visits=VISITS, batch_size=BATCH)
    name = "continual" if net == "batch" else f"continual_{net}"
    lines = partial(recurring_lines, parent=BN if net in BATCHNORM else NONE, run=few, steps=len(stream) // VISITS)
    one_by_one(net, stream, adapters_of(net, run), f"{name}-{few.images}", lines, name)


def recurring_lines(table: pd.DataFrame, makes: Mapping[str, Any], parent: str, run: Run, steps: int) -> list[str]:
    rows = table[table["measure"] == "visit_error"]
    frame = rows.pivot_table(index="adapter", columns="visit", values="value", observed=True).reindex(list(makes))
    frame.columns = [f"visit {int(visit)}" for visit in frame.columns]
    frame.insert(0, "lr", [rate_of(make) for make in makes.values()])
    frame.index.name = "error"
    errors = table[(table["measure"] == "error") & (table["visit"] == VISITS)]
    last = {
        name: own.set_index("shift")["value"].astype(float) for name, own in errors.groupby("adapter", observed=True)
    }
    lines = [
        f"The 15 corruptions one after the other, {VISITS} times over, nothing reset from outside: mean error of each "
        f"visit; {run}, {steps:,} steps per visit.",
        "",
        *markdown(frame),
        "",
    ]
    words = {"confirmed": "better than", "not confirmed": "worse than", "too small to say": "not told from"}
    return lines + [
        f"- {name}, last visit: {(own := compare(last[name], last[parent]))} against {parent}, over {own.pairs} "
        f"corruptions: **{words[own.verdict]} its parent**."
        for name in makes
        if name not in (NONE, BN)
    ]


def ccc_stream() -> CCC:
    """Two corruptions at a time, steadily hard for the network as it is."""
    shifts = [find("shifts", name) for name in WALK]
    data, scale = clean(), Scale(samples=500, step=1.0)
    calibration = calibrate(source_of("batch")(), data, STUDIES / "ccc-calibration", shifts, scale, progress=False)
    return CCC(data, calibration, DIFFICULTY, SPEED, LENGTH, batch_size=BATCH)


def ccc_table(run: Run) -> None:
    """CCC: two corruptions at a time, steadily hard for the network as it is."""
    one_by_one("batch", ccc_stream(), adapters_of("batch", run), "ccc", ccc_lines, "ccc")


def ccc_lines(table: pd.DataFrame, makes: Mapping[str, Any]) -> list[str]:
    rows = table[table["measure"] == "accuracy_over_steps"]
    frame = along(table, list(makes), 3)
    frame.insert(0, "lr", [rate_of(make) for make in makes.values()])
    frame.index.name = "error"
    windows = {
        name: own.groupby(own["step"] // (5 * SPEED // BATCH))["value"].mean().tail(6)
        for name, own in rows.groupby("adapter", observed=True)
    }
    lines = [
        f"CCC at a difficulty of {DIFFICULTY:g} (accuracy of the network as it is), pairs of {', '.join(WALK)}, "
        f"{LENGTH:,} images, batches of {BATCH}: error in each third of the walk.",
        "",
        *markdown(frame),
        "",
    ]
    words = {"confirmed": "worse than", "not confirmed": "better than", "too small to say": "not told from"}
    printed = "accuracy on CCC-Medium 27.9 BatchNorm, 1.4 Tent, 1.1 ETA, 7.7 CoTTA, 38.9 RDumb (4.1)"
    lines += [
        f"- {name}, end of the walk: accuracy {(own := compare(windows[name], windows[BN]))} against {BN}, over "
        f"{own.pairs} windows: **{words[own.verdict]} its parent**."
        for name in makes
        if name not in (NONE, BN)
    ]
    return [*lines, f"- Printed: {printed}."]
