"""Where a CCC stream walks: how its two corruptions fade and grow, which accuracy that promises, what came of it."""

import pandas as pd

from haptera.report.figure import Figure
from haptera.report.section import Section
from haptera.report.study.cells import NONE, led_by, named
from haptera.report.thin import bounded, over_steps

FADES = " > "  # between the two shifts, as `haptera.streams.walk` writes it
TARGET, EXPECTED = "target", "expected of the calibrated model"
MOST_STEPS, MOST_POINTS = 10_000, 50_000
LINE = ["stream", "model", "adapter"]


def section(table: pd.DataFrame) -> Section | None:
    """Severities and accuracy along the walk, where a stream is one."""
    rows = named(table, "expected_accuracy")
    if rows.empty or "severity_1" not in rows:
        return None
    steps, left_out = bounded(_steps(rows), "stream", MOST_STEPS)
    accuracy = _accuracy(steps, _by_seed(named(table, "accuracy_over_steps")))
    nearest = _nearest(accuracy)
    shown = [line for line in accuracy["line"].unique() if line in (TARGET, EXPECTED) or _model(line) == nearest]
    severities = Figure(
        title="Severities along the walk",
        caption="One corruption fades while the next one grows; severity may jump where one pair follows another."
        + left_out,
        frame=_severities(steps),
        kind="line",
        x="step",
        y="severity",
        color=("corruption",),
        select=("stream",),
        bands="shift",
        limits=(0.0, 5.0),
    )
    reached = Figure(
        title="Accuracy along the walk",
        caption="The accuracy that the walk is meant to keep, that of the calibrated model at these severities on the "
        "images of its calibration, and that of models along the stream, in windows of batches with 95 % intervals. At "
        "first the model is shown that is nearest to what is expected.",
        frame=accuracy,
        kind="line",
        x="step",
        y="accuracy",
        low="low",
        high="high",
        color=("line",),
        select=("stream",),
        choose="line",
        bands="shift",
        start={"line": shown},
        limits=(0.0, 1.0),
        labels={"n": "images"},
    )
    text = "Where the world goes while it keeps changing, and whether it is as hard as it was meant to be."
    return Section("Walk", text, (severities, reached))


def _nearest(accuracy: pd.DataFrame) -> str | None:
    """The model that is, unadapted, nearest to what is expected of the calibrated one; mostly that model itself."""
    means = accuracy.groupby("line")["accuracy"].mean()
    unadapted = means[means.index.str.endswith(f" · {NONE}")]
    return None if unadapted.empty else _model(str((unadapted - means[EXPECTED]).abs().idxmin()))


def _model(line: str) -> str:
    return line.rpartition(" · ")[0]


def _by_seed(rows: pd.DataFrame) -> pd.DataFrame:
    """Make a stream of every walk, of which there are several with several seeds."""
    streams = rows["stream"].astype("str")
    if rows["seed"].nunique() > 1:
        streams += ", seed " + rows["seed"].astype("str")
    return rows.assign(stream=streams)


def _steps(rows: pd.DataFrame) -> pd.DataFrame:
    """The steps of every walk in order, each with the batch before it, its last batch, and which path it is on."""
    rows = _by_seed(rows).sort_values(["stream", "step"], kind="stable").drop_duplicates(["stream", "step"])
    rows = rows.astype({"shift": "str"}).reset_index(drop=True)  # whoever went along it, it is the same walk
    walks = rows.groupby("stream")
    path = (rows["shift"] != walks["shift"].shift()).cumsum()
    return rows.assign(before=walks["step"].shift(fill_value=0), path=path, place=range(len(rows)))


def _plateaus(steps: pd.DataFrame) -> pd.DataFrame:
    """Both ends of every step, in the order of the walk."""
    ends = [steps.assign(step=steps["before"], end=0), steps.assign(end=1)]
    return pd.concat(ends).sort_values(["place", "end"], kind="stable")


def _severities(steps: pd.DataFrame) -> pd.DataFrame:
    names = steps["shift"].str.split(FADES, n=1, expand=True)
    both = [steps.assign(corruption=names[place], severity=steps[f"severity_{place + 1}"]) for place in (0, 1)]
    points = _plateaus(pd.concat(both))
    return points[["stream", "corruption", "step", "severity", "shift"]].reset_index(drop=True)


def _accuracy(steps: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    ends = _plateaus(steps)
    meant = [ends.assign(line=TARGET, accuracy=ends["difficulty"]), ends.assign(line=EXPECTED, accuracy=ends["value"])]
    frames = [frame.assign(low=float("nan"), high=float("nan")) for frame in meant]
    for stream, walk in steps.groupby("stream", sort=False):
        own = measured[(measured["stream"] == stream) & measured["shift"].astype("str").str.contains(FADES)]
        if own.empty:  # the data has no labels
            continue
        points, _ = over_steps(own, LINE, MOST_POINTS)
        at = walk["step"].searchsorted(points["step"].clip(upper=walk["step"].iloc[-1]))
        lines = points["model"].astype("str") + " · " + points["adapter"].astype("str")
        told = walk[["path", "shift"]].iloc[at].set_index(points.index)
        frames.append(points.assign(line=lines, accuracy=points["value"], path=told["path"], shift=told["shift"]))
    frame = pd.concat(frames)
    unadapted = frame["line"][frame["line"].str.endswith(f" · {NONE}")]
    order = led_by([TARGET, EXPECTED, *unadapted.sort_values()], frame["line"])
    frame = frame.sort_values("line", key=lambda names: names.map(order.index), kind="stable")
    frame = frame.sort_values(["stream", "step", "path"], kind="stable")
    return frame[["stream", "line", "step", "shift", "accuracy", "low", "high", "n"]].reset_index(drop=True)
