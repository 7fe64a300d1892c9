"""Errors over many shifts in one number: means over all and over families, the ratios mCE and mDE, rank correlation.

Sources: (2.1) with the errors of AlexNet in tables A.3 and B.2 (mCE); (B.12) with those of table B.25 (mDE), which
averages E where the text, and table B.18, average E over AlexNet's; appendix B for the rank correlation of models'
errors between data sets, which is Spearman's, with the interval of Bonett and Wright (2000) for six models or more.
AlexNet's errors hold for ImageNet at 224 pixels and are not a yardstick for other data, so neither ratio is computed
unless somebody names what to divide by: `alexnet`, or a model of the same table, unadapted. Both are ratios, not per
cent. Intervals of means are means of interval ends, as in the report: they do not shrink with the number of shifts.
Those of the ratios take the errors one divides by as exact.
"""

from math import atanh, sqrt, tanh

import numpy as np
import pandas as pd

from haptera.errors import HapteraError, NotApplicable, check_keys, unknown
from haptera.families import FAMILIES
from haptera.measures.averages import CLEAN, RUN, once, over_shifts
from haptera.measures.facts import measure
from haptera.measures.pairs import NONE, name_group, records_of, rows_of
from haptera.statistics.intervals import Z95
from haptera.table import Rows

ALEXNET = {
    "gaussian_noise": 0.886428, "shot_noise": 0.894468, "impulse_noise": 0.922640, "defocus_blur": 0.819880,
    "glass_blur": 0.826268, "motion_blur": 0.785948, "zoom_blur": 0.798360, "snow": 0.866816, "frost": 0.826572,
    "fog": 0.819324, "brightness": 0.564592, "contrast": 0.853204, "elastic_transform": 0.646056, "pixelate": 0.717840,
    "jpeg_compression": 0.606500,
}  # fmt: skip
ALEXNET_HOLDOUT = {"speckle_noise": 0.845388, "gaussian_blur": 0.787108, "spatter": 0.717512, "saturate": 0.658248}
ALEXNET_DOMAINS = {
    "real": 0.54887, "clipart": 0.84010, "infograph": 0.95072, "painting": 0.79080, "quickdraw": 0.99745,
    "sketch": 0.91189,
}  # fmt: skip
SEVERITIES = (1.0, 2.0, 3.0, 4.0, 5.0)
FEWEST = 3
"""Models; the order of two agrees or does not, and tells nothing."""
FEWEST_FOR_INTERVAL = 6
"""Models; the orders of fewer are so few that an interval holds nearly everything."""


@measure(bounds=(0, 1), higher_is_better=False, of="table")
def mean_error(table: pd.DataFrame) -> Rows:
    """Mean over shifts of the mean error over severities, in each stream, without clean data and hold-out shifts."""
    means = over_shifts(_tested(table), RUN).drop(columns="shifts")
    return records_of(means.assign(measure="mean_error"))


@measure(bounds=(0, 1), higher_is_better=False, of="table")
def family_error(table: pd.DataFrame) -> Rows:
    """The same within each family of corruptions, which `shift` names: noise, blur, weather, digital, or holdout."""
    rows = rows_of(table, "error")
    families = {shift: family for family, shifts in FAMILIES.items() for shift in shifts}
    rows = rows[rows["shift"].isin(list(families)) & (rows["severity"] != 0)]
    means = over_shifts(rows.assign(family=rows["shift"].map(families)), [*RUN, "family"]).drop(columns="shifts")
    return records_of(means.rename(columns={"family": "shift"}).assign(measure="family_error"))


@measure(bounds=(0, float("inf")), higher_is_better=False, of="table")
def mce(table: pd.DataFrame, reference: str, split: str = "test") -> Rows:
    """Mean corruption error: for each shift the sum of errors over severities, over that of the reference; the mean.

    Args:
        table: with errors.
        reference: `alexnet` for the published errors on ImageNet-C at 224 pixels, for streams with all corruptions of
            the split at severities 1 to 5; or a model of the table, whose unadapted errors in the same stream are the
            measure for every model that met the same shifts.
        split: `test`, all shifts but the hold-out ones (for AlexNet the 15 corruptions of ImageNet-C), or `dev`, the
            four hold-out ones, on which settings are chosen; the rows then say so in the column `split`.
    """
    check_keys("split", [split], ("test", "dev"))
    rows = _tested(table) if split == "test" else _held_out(table)
    if _published(reference, rows):
        errors, kind = (ALEXNET, "test") if split == "test" else (ALEXNET_HOLDOUT, "hold-out")
        rows = rows[rows["shift"].isin(list(errors)) & rows["severity"].isin(SEVERITIES)]
        places = rows["shift"].astype(str) + " " + rows["severity"].astype(str)
        met = rows.assign(place=places).groupby(RUN, dropna=False)["place"].transform("nunique")
        wanted = len(errors) * len(SEVERITIES)
        most = int(met.max()) if len(met) else 0
        if most < wanted:
            raise NotApplicable(
                f"mce against AlexNet needs the {len(errors)} {kind} corruptions at severities 1 to 5, {wanted} in "
                f"all; no stream here has more than {most} of them; reference can also be a model of the table"
            )
        rows = rows.assign(reference=rows["shift"].map(errors))[met == wanted]
    else:
        rows = _with_reference(rows, reference, ["stream", "shift", "severity", "seed", "part"])
    return [row | ({} if split == "test" else {"split": split}) for row in _ratios("mce", rows)]


@measure(bounds=(0, float("inf")), higher_is_better=False, of="table")
def mde(table: pd.DataFrame, reference: str) -> Rows:
    """Mean domain error on ImageNet-D: the mean over domains of the error over that of the reference.

    A domain (real, clipart, infograph, painting, quickdraw, sketch) is the name of a shift or of a stream.

    Args:
        table: with errors.
        reference: `alexnet` for the published errors, where all six domains were met; or a model of the table.
    """
    rows = rows_of(table, "error")
    by_stream = rows["stream"].isin(list(ALEXNET_DOMAINS)) & ~rows["shift"].isin(list(ALEXNET_DOMAINS))
    rows = rows.assign(shift=rows["shift"].mask(by_stream, rows["stream"]), stream=rows["stream"].mask(by_stream, ""))
    rows = rows[rows["shift"].isin(list(ALEXNET_DOMAINS))]
    met = rows.groupby(RUN, dropna=False)["shift"].transform("nunique")
    if rows.empty or met.max() < len(ALEXNET_DOMAINS):
        missing = [domain for domain in ALEXNET_DOMAINS if domain not in set(rows["shift"])]
        what = f"; there is no {' and no '.join(missing)}" if len(missing) < len(ALEXNET_DOMAINS) else "; none is here"
        what = what if missing else ", all for the same model"
        raise NotApplicable(f"mde needs shifts or streams called {', '.join(ALEXNET_DOMAINS)}{what}")
    rows = rows[met == len(ALEXNET_DOMAINS)]
    if _published(reference, rows):
        rows = rows.assign(reference=rows["shift"].map(ALEXNET_DOMAINS))
    else:
        rows = _with_reference(rows, reference, ["stream", "shift", "severity", "seed"])
    return _ratios("mde", rows)


def _tested(table: pd.DataFrame) -> pd.DataFrame:
    """Errors on shifted data, hold-out shifts apart."""
    rows = rows_of(table, "error")
    return rows[~rows["shift"].isin([CLEAN, *FAMILIES["holdout"]]) & (rows["severity"] != 0)]


def _held_out(table: pd.DataFrame) -> pd.DataFrame:
    """Errors under hold-out shifts."""
    rows = rows_of(table, "error")
    return rows[rows["shift"].isin(FAMILIES["holdout"]) & (rows["severity"] != 0)]


def _published(reference: str, rows: pd.DataFrame) -> bool:
    """Return whether AlexNet's published errors are meant; an error for a name that nothing has."""
    models = [str(name) for name in rows["model"].unique()]
    if reference == "alexnet" and reference in models:
        raise HapteraError(
            "reference 'alexnet' is a model of this table and also the published AlexNet on ImageNet at 224 pixels; "
            "give the model another name"
        )
    if reference != "alexnet" and reference not in models:
        raise unknown("reference", str(reference), ["alexnet", *models])
    return reference == "alexnet"


def _with_reference(rows: pd.DataFrame, reference: str, same: list[str]) -> pd.DataFrame:
    """The rows of every run for all of which the reference, unadapted, has errors, and these errors."""
    own = rows[(rows["model"] == reference) & (rows["adapter"] == NONE)]
    if own.empty:
        raise HapteraError(f"reference {reference!r} was measured with adapters only; its unadapted errors are needed")
    errors = own.groupby(same, dropna=False)["value"].mean().rename("reference").reset_index()
    rows = rows.merge(errors, on=same, how="left")
    runs = rows.groupby(RUN, dropna=False)
    return rows[runs["reference"].transform("count") == runs["value"].transform("size")]


def _ratios(name: str, rows: pd.DataFrame) -> Rows:
    """Return the mean ratio of sums over shifts, for each run, without shifts on which the reference never errs."""
    numbers = ["value", "low", "high", "reference"]
    sums = rows.groupby([*RUN, "shift"], dropna=False)[numbers].sum(min_count=1)
    ratios = sums[["value", "low", "high"]].div(sums["reference"].replace(0.0, np.nan), axis=0)
    cells = once(rows.drop(columns="reference"), RUN)  # orders of a stream are counted once
    total = cells.groupby(RUN, dropna=False)["n"].sum()
    means = ratios.groupby(RUN, dropna=False).mean().join(total)
    return records_of(means.dropna(subset="value").reset_index().assign(measure=name))


@measure(bounds=(-1, 1), of="table")
def rank_correlation(table: pd.DataFrame, against: str = CLEAN) -> Rows:
    """Spearman's correlation, over models, of errors on each data set with those on one of them; `n` is models.

    A data set is a shift in a stream (the mean over severities) or a stream with several shifts (the mean over these);
    adapters and seeds are taken one at a time.

    Args:
        table: with errors.
        against: the stream or the shift to compare with; clean data by default.
    """
    rows = rows_of(table, "error")
    run = ["adapter", "seed", "model"]
    within = rows.groupby([*run, "stream", "shift"], as_index=False, dropna=False)["value"].mean()
    whole = within.groupby([*run, "stream"], as_index=False, dropna=False).agg(
        value=("value", "mean"), shifts=("shift", "size")
    )
    if against in set(whole["stream"]):
        yardstick = whole[whole["stream"] == against]
    elif against in set(within["shift"]):
        own = within[within["shift"] == against]
        yardstick = own.groupby(run, as_index=False, dropna=False)["value"].mean()
    elif against == CLEAN:
        return []
    else:
        raise unknown("stream or shift", against, [*whole["stream"], *within["shift"]])
    several = whole[whole["shifts"] > 1].assign(shift="")
    sets = pd.concat([several, within])
    sets = sets[(sets["stream"] != against) & (sets["shift"] != against)]
    pairs = sets.merge(yardstick[[*run, "value"]], on=run, suffixes=("", "_against"))
    found: Rows = []
    keys = ["adapter", "seed", "stream", "shift"]
    for key, models in pairs.groupby(keys, sort=True, dropna=False):
        if len(models) < FEWEST or models["value"].nunique() == 1 or models["value_against"].nunique() == 1:
            continue
        value = float(np.clip(np.corrcoef(models["value"].rank(), models["value_against"].rank())[0, 1], -1, 1))
        row = {"measure": "rank_correlation", "value": value, "n": len(models), "shift": "", "against": against}
        found.append(row | name_group(keys, key) | spearman_interval(value, len(models)))
    return found


def spearman_interval(value: float, n: int) -> dict[str, float]:
    """`low` and `high`; empty for fewer than six models, and for the same order."""
    if n < FEWEST_FOR_INTERVAL or abs(value) > 1 - 1e-12:
        return {}
    half = Z95 * sqrt((1 + value**2 / 2) / (n - 3))
    return {"low": tanh(atanh(value) - half), "high": tanh(atanh(value) + half)}
