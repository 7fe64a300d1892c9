"""What makes self-learning work, on CIFAR-10: tables 3.8 to 3.10, 3.14, A.7, B.3 and figure 3.2.

Rates are chosen on the hold-out corruptions, and the cases are compared on the fifteen others.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from cifar_data import TEST, clean, corrupted
from cifar_networks import source_of
from cifar_study import (
    BATCH,
    BN,
    FEW_IMAGES,
    NONE,
    STUDIES,
    Run,
    by_corruption,
    compare,
    faster,
    markdown,
    read_well,
    say,
    say_aim,
    tuned,
    unlearned,
    values,
    write,
)
from haptera import Study
from haptera.adapters import BatchNorm, NoAdaptation, Offline, PseudoLabels, Tent
from haptera.run.loop import evaluate
from haptera.streams import Clean, Directory

EPOCHS = 5
SEEDS = 5
PASSES, PASS_IMAGES = 4, 3_000
ONE_EACH = ("gaussian_noise", "defocus_blur", "fog", "jpeg_compression")
"""A corruption of every family, for tables with fifty cases."""


def ablation(
    name: str, title: str, cases: Mapping[str, Any], run: Run, printed: str, claims: list[tuple[str, str]]
) -> None:
    """Errors by corruption, a row for each case, and what is claimed of pairs of them."""
    table = by_corruption(name, "batch", {**unlearned("batch"), **cases}, run.few)
    if "epoch" in table:
        table = table[table["epoch"].isna() | (table["epoch"] == EPOCHS)]
    errors = {each: values(table, each) for each in (*unlearned("batch"), *cases)}
    rows = pd.DataFrame(errors).T
    rows.insert(0, "mean", rows.mean(axis=1))
    rows.index.name = "error"
    rows.columns = [read_well(column) for column in rows.columns]
    lines = [f"{title}: {run.few}.", "", *markdown(rows), ""]
    write(name, lines + [say(f"{one} below {two}", compare(errors[one], errors[two]), printed) for one, two in claims])


def threshold_table(run: Run) -> None:
    """Table 3.8: hard labels need a threshold."""
    hard = tuned("pseudo_labels", "batch", run.jobs)
    cases = {f"hard, threshold {each:g}": partial(hard, threshold=each) for each in (0.0, 0.5, 0.9)}
    cases |= {"soft": partial(hard, labels="soft"), "rpl": tuned("rpl", "batch", run.jobs)}
    claims = [
        ("rpl", "hard, threshold 0"),
        ("rpl", "hard, threshold 0.9"),
        ("hard, threshold 0.9", "hard, threshold 0"),
    ]
    printed = "mCE 53.8, 51.9, 52.4 for hard labels at 0, .5, .9; 60.1 soft; 49.7 RPL (3.8)"
    ablation("threshold", "Thresholds of pseudo-labels", cases, run, printed, claims)


def teacher_table(run: Run) -> None:
    """Table 3.9: how often the teacher is updated, over several epochs."""
    rpl = tuned("rpl", "batch", run.jobs)
    kinds = {"never": "never", "each epoch": "epoch", "at once": "step"}
    cases = {key: partial(Offline, method=partial(rpl, teacher=own), epochs=EPOCHS) for key, own in kinds.items()}
    claims = [("at once", "each epoch"), ("each epoch", "never")]
    title = f"When the teacher of rpl is updated, {EPOCHS} epochs"
    ablation("teacher", title, cases, run, "mCE 54.0 never, 49.7 each epoch, 49.2 at once (3.9)", claims)


def parameters_table(run: Run) -> None:
    """Table 3.10: which parameters adapt."""
    rpl = tuned("rpl", "batch", run.jobs)
    tenth = partial(rpl, lr=rpl.keywords["lr"] / 10)
    cases = {"affine": rpl, "last layer": partial(rpl, parameters="last"), "all": partial(rpl, parameters="all")}
    cases |= {"all, a tenth of the rate": partial(tenth, parameters="all")}
    claims = [("affine", "last layer"), ("affine", "all"), ("affine", "all, a tenth of the rate")]
    ablation("parameters", "What adapts (rpl)", cases, run, "mCE 60.2 last layer, 51.5 all, 48.9 affine (3.10)", claims)


def epochs_table(run: Run) -> None:
    """Table B.3: entropy gets worse with more epochs at a large rate, robust pseudo-labels later."""
    cases = {}
    for name in ("tent", "rpl"):
        best = tuned(name, "batch", run.jobs)
        for times in (1, 10):
            rate = times * best.keywords["lr"]
            cases[f"{name}, lr {rate:g}"] = partial(Offline, method=partial(best, lr=rate), epochs=EPOCHS)
    table = by_corruption("epochs", "batch", {NONE: NoAdaptation, **cases}, run.few)
    errors = table[(table["measure"] == "error") & table["epoch"].notna()]
    rows = errors.pivot_table(index="adapter", columns="epoch", values="value", observed=True).reindex(list(cases))
    rows.columns = [f"epoch {int(epoch)}" for epoch in rows.columns]
    rows.index.name = "mean error"
    lines = [
        f"Mean error after each epoch of learning offline: {run.few}.",
        "",
        *markdown(rows, bold=False),
    ]
    by = errors.set_index(["adapter", "epoch", "shift"])["value"].astype(float)
    lines.append("")
    for name in cases:
        change = compare(by[name, 1], by[name, EPOCHS])
        printed = "ENT at 10⁻² 72.5 → 131.2, at 10⁻³ 50.0 → 53.5; RPL at 10⁻³ 51.1 → 48.9 (B.3)"
        lines.append(say(f"{name}: epoch 1 below epoch {EPOCHS}", change, printed))
    write("epochs", lines)


def prior_table(run: Run) -> None:
    """Table A.7: statistics of few images need a prior."""
    priors, sizes = (0, 4, 16, 64, 256), (1, 8, 32, 128)
    few, data = Run(1_000, run.jobs), corrupted(TEST, 1_000)
    adapters = {NONE: NoAdaptation} | {f"N = {prior}": partial(BatchNorm, prior=prior) for prior in priors}
    streams = [Directory(data, shifts=TEST, batch_size=size, name=f"n = {size}") for size in sizes]
    study = Study({"batch": source_of("batch")}, streams, adapters, out=STUDIES / "prior")
    table = study.run(jobs=run.jobs, progress=False)
    errors = table[table["measure"] == "error"]
    rows = errors.pivot_table(index="stream", columns="adapter", values="value", observed=True)
    rows = rows.reindex(index=[stream.name for stream in streams], columns=list(adapters))
    rows.index.name = "mean error"
    lines = [f"BatchNorm statistics of n images with a prior of N: 15 corruptions, {few.images:,} images, severity 5."]
    by = errors.set_index(["stream", "adapter", "shift"])["value"].astype(float)
    small = compare(by["n = 8", "N = 16"], by["n = 8", "N = 0"])
    large = compare(by["n = 128", "N = 256"], by["n = 128", "N = 0"])
    lines += ["", *markdown(rows, bold=False), ""]
    lines.append(say("n = 8: N = 16 below N = 0", small, "mCE 65.6 at N = 16, 71.6 at N = 1 (A.7, ResNet-50)"))
    lines.append(say("n = 128: N = 256 below N = 0", large, "mCE 61.4 at N = 256, 62.8 at N = 1 (A.7)"))
    write("prior", lines)


def temperature_table(run: Run) -> None:
    """Figure 3.2: where the temperatures of student and teacher make self-learning collapse."""
    grid = (0.25, 0.5, 1.0, 2.0, 4.0)
    lines = [f"Mean error by temperature over {read_well(', '.join(ONE_EACH))}: {run.few}, five times the chosen rate."]
    for name, make in (("pseudo-labels, soft", partial(PseudoLabels, labels="soft")), ("entropy", Tent)):
        key = "pseudo_labels" if name.startswith("pseudo") else "tent"
        rate = 5 * tuned(key, "batch", run.jobs).keywords["lr"]
        cases = {
            f"{student:g} {teacher:g}": partial(
                make, optimiser="adam", lr=rate, student_temperature=student, teacher_temperature=teacher
            )
            for student in grid
            for teacher in grid
        }
        table = by_corruption(f"temperature-{key}", "batch", {**unlearned("batch"), **cases}, run.few, ONE_EACH)
        means = {each: values(table, each).mean() for each in (*unlearned("batch"), *cases)}
        rows = pd.DataFrame({f"τt = {t:g}": {f"τs = {s:g}": means[f"{s:g} {t:g}"] for s in grid} for t in grid})
        rows.index.name = name
        lines += [
            "",
            f"{name}; BatchNorm statistics have {means['batchnorm']:.3f}, the network as it is {means[NONE]:.3f}:",
        ]
        lines += ["", *markdown(rows, bold=False)]
    write("temperature", lines)


def offline_table(run: Run) -> None:
    """Tables 3.2 and B.13 again, offline: several epochs over each corruption, then predictions."""
    done, some = dict(unlearned("batch")), Run(min(run.images, PASS_IMAGES), run.jobs)
    for name in ("roid", "slr", "tent", "rpl"):
        done[name] = partial(Offline, method=tuned(name, "batch", run.jobs), epochs=PASSES)
        table = by_corruption("offline", "batch", done, some)
        write("offline", offline_lines(table[table["measure"] == "error"], done, some))


def offline_lines(errors: pd.DataFrame, done: Mapping[str, Any], run: Run) -> list[str]:
    def at(name: str, epoch: int) -> pd.Series:
        rows = errors[errors["adapter"] == name]
        if name not in unlearned("batch"):
            rows = rows[rows["epoch"] == epoch]
        return rows.set_index("shift")["value"].astype(float)

    epochs = range(1, PASSES + 1)
    rows = pd.DataFrame({f"epoch {epoch}": {name: at(name, epoch).mean() for name in done} for epoch in epochs})
    rows.index.name = "mean error"
    lines = [
        f"Learning offline, then predicting: {run}; {PASSES} epochs over each corruption.",
        "",
        *markdown(rows),
        "",
    ]
    gains = {name: compare(at(name, PASSES), at(BN, PASSES)) for name in list(done)[2:]}
    printed = "18.7 → 13.1 ENT, 15.1 RPL (B.13)"
    lines += [say(f"{name} after {PASSES} epochs below {BN}", gain, printed) for name, gain in gains.items()]
    return [*lines, say_aim([-gain.mean for gain in gains.values()], len(gains))]


def seeds_table(run: Run) -> None:
    """The main table again, each stream in five orders: how much is luck?"""
    few, adapters = run.few, unlearned("batch") | {name: tuned(name, "batch", run.jobs) for name in ("tent", "roid")}
    stream = Directory(corrupted(TEST, few.images), shifts=TEST, batch_size=BATCH)
    study = Study({"batch": source_of("batch")}, [stream], adapters, seeds=range(SEEDS), out=STUDIES / "seeds")
    table = study.run(jobs=run.jobs, progress=False)
    errors = table[table["measure"] == "error"]
    means = errors.pivot_table(index="adapter", columns="seed", values="value", observed=True).reindex(list(adapters))
    rows = means.set_axis([f"order {int(seed)}" for seed in means.columns], axis=1)
    rows.insert(0, "sd", means.std(axis=1))
    rows.insert(0, "mean", means.mean(axis=1))
    rows.index.name = "mean error"
    lines = [f"Mean error over the 15 corruptions, {few.images:,} images, severity 5, in five orders.", ""]
    lines += [*markdown(rows, 4, bold=False), ""]
    for name in ("tent", "roid"):
        gain = compare(means.loc[name], means.loc[BN])
        lines.append(f"- {name} below {BN}: {gain} over {gain.pairs} orders: **{gain.verdict}**.")
    write("seeds", lines)


def forgetting_table(run: Run) -> None:
    """Table 3.14: what learning from a corruption costs on clean images, with their own BatchNorm statistics."""
    model, few = source_of("batch")(), run.few
    images = Clean(clean(FEW_IMAGES), batch_size=BATCH)
    methods = {name: tuned(name, "batch", run.jobs) for name in ("tent", "rpl")}
    methods |= {f"{name}, ten times the rate": faster(make, 10) for name, make in methods.items()}
    without = evaluate(BatchNorm(model, prior=0), images).correct().mean()
    errors: dict[str, dict[str, float]] = {name: {} for name in methods}
    for shift in TEST:
        stream = Directory(corrupted([shift], few.images), shifts=(shift,), batch_size=BATCH)
        for name, make in methods.items():
            adapter = make(model)
            adapter.adapt(stream)
            errors[name][shift] = 1 - float(evaluate(adapter.predictor(), images).correct().mean())
    rows = pd.DataFrame(errors).T
    frame = pd.DataFrame({"error on clean images": rows.mean(axis=1), "sd": rows.std(axis=1)})
    frame.index.name = f"batchnorm: {1 - without:.3f}"
    lines = [f"Error on {len(clean(FEW_IMAGES)):,} clean images after learning from a corruption: {few}.", ""]
    lines += [*markdown(frame, bold=False), ""]
    printed = "accuracy 74.2 before, 69.8 ± 3.0 after RPL, 68.0 ± 3.9 after ENT, severity 5 (3.14, ImageNet)"
    before = pd.Series(1 - without, index=rows.columns)
    lines += [
        say(f"BatchNorm statistics alone below {name}", compare(before, rows.loc[name]), printed) for name in rows.index
    ]
    lines.append(say("rpl below tent", compare(rows.loc["rpl"], rows.loc["tent"]), "RPL forgets less (3.14)"))
    write("forgetting", lines)
