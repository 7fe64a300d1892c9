"""How often to reset, which entropy to keep, how strong an anchor: tables 4.4, 4.5, C.2; and mixed corruptions, 2.4.

The text's networks collapse on ImageNet at the rate that it uses, so that resets and anchors have something to do; ours
do on CIFAR-10 at ten times the rate that is best for one corruption. That is the rate of these tables.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import permutations
from typing import Any

import pandas as pd

from cifar_data import HOLDOUT, TEST, corrupted
from cifar_networks import source_of
from cifar_streams import LENGTH, ccc_stream
from cifar_study import (
    ADAM,
    BATCH,
    BN,
    NONE,
    STUDIES,
    Run,
    compare,
    markdown,
    rate_of,
    say,
    tuned,
    unlearned,
    values,
    write,
)
from haptera import Study
from haptera.adapters import EATA, ETA, RDumb
from haptera.batch import Stream
from haptera.streams import Mixed, Recurring

EVERY = (25, 50, 100, 200)
MARGINS = (0.1, 0.2, 0.4, 0.7)
STRENGTHS = (10.0, 100.0, 1000.0)
ORDERS, VISITS, IMAGES, RESET = 3, 6, 1_000, 100
Makes = Mapping[tuple[str, str], Any]
"""(Row, column) of a table -> a method with its settings."""


def rate(run: Run) -> float:
    """Return ten times ETA's rate that is best for one corruption."""
    return 10 * float(rate_of(tuned("eta", "batch", run.jobs)))


def mean_errors(makes: Makes, streams: Sequence[Stream], folder: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the mean error of each method as a table, and errors of each stream, a column a method."""
    named = unlearned("batch") | {", ".join(place): make for place, make in makes.items()}
    table = Study({"batch": source_of("batch")}, streams, named, out=STUDIES / folder).run(progress=False)
    rows = table[table["measure"] == "accuracy_over_steps"]
    rows = (
        rows.assign(right=rows["value"] * rows["n"]).groupby(["stream", "adapter"], observed=True)[["right", "n"]].sum()
    )
    errors = (1 - rows["right"] / rows["n"]).unstack("adapter").astype(float)
    frame = (
        pd.DataFrame({place: errors[", ".join(place)].mean() for place in makes}, index=["error"]).T["error"].unstack()
    )
    order = list(dict.fromkeys(row for row, _ in makes)), list(dict.fromkeys(column for _, column in makes))
    return frame.reindex(index=order[0], columns=order[1]), errors


def holdout_streams() -> list[Stream]:
    """The four hold-out corruptions, again and again, in several orders."""
    orders = list(permutations(HOLDOUT))[:: 24 // ORDERS]
    data = corrupted(HOLDOUT, IMAGES)
    names = ["-".join(word[:4] for word in order) for order in orders]
    settings = {"visits": VISITS, "batch_size": BATCH}
    return [Recurring(data, shifts=order, name=name, **settings) for name, order in zip(names, orders, strict=True)]


def stream_words() -> str:
    return (
        f"the four hold-out corruptions, {VISITS} times over, in {ORDERS} orders, {IMAGES:,} images of each, "
        f"batches of {BATCH}, one network"
    )


def unadapted(errors: pd.DataFrame) -> str:
    return f"the network as it is {errors[NONE].mean():.3f}, BatchNorm statistics {errors[BN].mean():.3f}"


def resets_table(run: Run) -> None:
    """Table 4.4: ETA with a reset after so many steps."""
    lr = rate(run)
    makes = {(f"{every}", "error"): partial(RDumb, every=every, lr=lr, **ADAM) for every in EVERY}
    makes["never", "error"] = partial(ETA, lr=lr, **ADAM)
    frame, errors = mean_errors(makes, holdout_streams(), f"holdout-{ORDERS}")
    frame.index.name = "reset every"
    best = str(frame["error"].iloc[:-1].idxmin())
    own = compare(errors[f"{best}, error"], errors["never, error"])
    lines = [
        f"ETA at a rate of {lr:g}, {stream_words()}: mean error; {unadapted(errors)}.",
        "",
        *markdown(frame),
        "",
        f"- Every {best}, the best of them, minus never: {own}, over {own.pairs} orders.",
        "- Printed: 42.1, 44.4, 46.0, 46.7, 46.5, 46.4 % right at 125 to 2,000 steps (4.4, ResNet-50).",
    ]
    write("resets", lines)


def margin_table(run: Run) -> None:
    """Table 4.5: the largest entropy that is kept, with resets and with an anchor."""
    lr, makes = rate(run), {}
    for margin in MARGINS:
        settings = {"margin": margin, "lr": lr, **ADAM}
        makes[f"{margin:g}", "eata"] = partial(EATA, **settings)
        makes[f"{margin:g}", f"rdumb, every {RESET}"] = partial(RDumb, every=RESET, **settings)
    frame, errors = mean_errors(makes, [ccc_stream()], "margin")
    frame.index.name = "largest entropy / ln C"
    lines = [
        f"CCC as above, {LENGTH:,} images, rate {lr:g}: mean error; {unadapted(errors)}.",
        "",
        *markdown(frame),
        "",
        *(f"- {column}: {own.max() - own.min():.3f} from the best to the worst." for column, own in frame.items()),
        "- Printed: 27.8, 27.9, 29.9, 30.8, 28.7, 28.0, .33 % right EATA, 31.6, 32.9, 33.1, 32.6, 30.7, 25.7, 16.8 "
        "RDumb, at .1 to .7 (4.5, ResNet-50).",
    ]
    write("margin", lines)


def anchor_table(run: Run) -> None:
    """Table C.2: how strongly EATA's anchor holds."""
    lr = rate(run)
    makes: dict[tuple[str, str], Any] = {("never", "error"): partial(ETA, lr=lr, **ADAM)}
    makes |= {(f"{strength:g}", "error"): partial(EATA, strength=strength, lr=lr, **ADAM) for strength in STRENGTHS}
    frame, errors = mean_errors(makes, holdout_streams(), f"holdout-{ORDERS}")
    frame = frame.rename(index={"never": "0, which is ETA"})
    frame.index.name = "weight of the anchor"
    lines = [
        f"EATA at a rate of {lr:g}, {stream_words()}: mean error; {unadapted(errors)}.",
        "",
        *markdown(frame),
        "",
        "- Printed: 46.5, 46.9, 47.1, 46.7, 46.1, 45.6, 44.8, 44.0 % right at 25 to 2,000 (C.2, ResNet-50).",
    ]
    write("anchor", lines)


def mixed_table(run: Run) -> None:
    """Table 2.4: every image under a corruption of its own."""
    stream = Mixed(corrupted(TEST, run.images), shifts=TEST, batch_size=BATCH)
    errors: dict[str, pd.Series] = {}
    for net, name in (("batch", "BatchNorm"), ("group", "GroupNorm")):
        adapters = unlearned(net)
        folder = STUDIES / f"mixed-{net}-{run.images}"
        table = Study({net: source_of(net)}, [stream], adapters, out=folder).run(progress=False)
        errors |= {f"{name}, {adapter}": values(table, adapter) for adapter in adapters}
    frame = pd.DataFrame({"error": {name: own.mean() for name, own in errors.items()}})
    frame.index.name = "network"
    gain = compare(errors[f"BatchNorm, {BN}"], errors[f"BatchNorm, {NONE}"])
    lines = [
        f"Every image under one of the {len(TEST)} corruptions, {run}.",
        "",
        *markdown(frame, bold=False),
        "",
        say("BatchNorm statistics below the network as it is", gain, "61.1 → 60.9 (2.4, ResNet-50)"),
        "- Printed, too: 57.3 GroupNorm, 56.8 Fixup (2.4).",
    ]
    write("mixed", lines)
