"""The page of a diagnosis: the profile over depth, what known corruptions cost, a map of them, and the best N."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from haptera import __version__
from haptera.report.figure import Figure
from haptera.report.page import render, write_page
from haptera.report.section import Finding, Listing, Section
from haptera.theory.figures import prior_figure

if TYPE_CHECKING:
    from haptera.analyses.diagnosis.analysis import Diagnosis
    from haptera.analyses.diagnosis.shift_size import ShiftTest

DEFINITIONS = {
    "size of a shift": "the mean over layers of the root of the mean over channels of the squared Wasserstein distance "
    "between statistics on the data and on the reference, in units of the reference's variance; dead channels, whose "
    "variance is nearly zero on both sides, are left out",
    "p": "the share of random divisions of the same images into two parts that are as far apart",
    "predicted accuracy": "a plane from the size of the shift and from doubt, the share of answers that are less "
    "confident than as many on the reference as are wrong there, to the error; fitted on all known corruptions of the "
    "reference. The interval is as wide as it must be to hold 90 % of them, each predicted from the others, and to "
    "allow for the number of images: it holds for a new shift as far as that is one of their kind",
    "alike": "the cosine between two changes of statistics, all layers with the same weight",
    "N": "the number of images that training statistics count for in BatchNorm layers",
}
REGRESSIONS = (
    "As table A.6: a line through the hold-out corruption of a family predicts the mean error of its other ones. "
    "“off” is the mean absolute difference, “adapted” means with BatchNorm statistics of the corrupted images."
)
BY_FAMILY = (
    "What a line through the hold-out corruption of a family, at five severities, and clean data says of a shift of "
    "this size, were it of that family; inside: the line has seen such sizes."
)
BEST = "The N with the least distance, for the whole network and for each layer alone (lower bound)."
DISTANCES = {"wasserstein": "Wasserstein", "normalised": "Wasserstein, normalised", "jeffreys": "Jeffreys"}


def write_diagnosis(found: "Diagnosis", path: Path, data: str, reference: str | None) -> None:
    """Write the page, whole."""
    makers = (depth_section, cost_section, map_section, prior_section)
    page = render(
        [section for make in makers if (section := make(found)) is not None],
        _answers(found, data, reference),
        title=f"Diagnosis of {Path(data).name}",
        settings={"haptera": __version__, "data": data, "reference": reference or "BatchNorm statistics of the model"},
        notes=(),
        definitions=DEFINITIONS,
    )
    write_page(page, path)


def depth_section(found: "Diagnosis") -> Section:
    """The distances of each layer."""
    kinds = [name for name in DISTANCES if name in found.profile]
    frame = found.profile.melt(["layer", "depth", "channels"], kinds, "distance", "value")
    frame["distance"] = frame["distance"].map(DISTANCES)
    figure = Figure(
        "Distance over depth",
        "Layers in the order of the model, the first at the left; point at one for its name.",
        frame[["distance", "depth", "value", "layer", "channels"]],
        kind="line",
        x="depth",
        y="value",
        color=("distance",),
        select=("distance",),
        start={"distance": DISTANCES["normalised"]},
    )
    listing = Listing("Layers", "Roots of means over channels; Jeffreys' divergence is a mean.", found.profile)
    return Section("Where", "In which layers the statistics of the data differ.", (figure,), (listing,))


def cost_section(found: "Diagnosis") -> Section | None:
    """Error against size for known corruptions, and where the data lies."""
    if found.known.empty or found.known["error"].isna().any():
        return None
    frame = found.known[["family", "shift", "severity", "size", "error", "cosine"]]
    figure = Figure(
        "Error against size",
        f"Each point is a known corruption of the reference at one severity. The data has size {found.test.size:.3f}.",
        frame,
        kind="scatter",
        x="size",
        y="error",
        color=("family",),
        limits=(0.0, 1.0),
        labels={"size": "size of the shift"},
    )
    tables = [Listing("Error by family", BY_FAMILY, found.families)]
    if not found.regressions.empty:
        tables.append(Listing("How well lines predict errors", REGRESSIONS, found.regressions))
    return Section("Cost", "What shifts of this size do to accuracy.", (figure,), tuple(tables))


def map_section(found: "Diagnosis") -> Section | None:
    """Known corruptions and the data, near where their statistics change alike."""
    if "x" not in found.known:
        return None
    data = pd.DataFrame({"family": ["the data"], "shift": ["the data"], "x": [found.place[0]], "y": [found.place[1]]})
    frame = pd.concat([data, found.known[["family", "shift", "severity", "x", "y", "cosine"]]], ignore_index=True)
    figure = Figure(
        "Map of shifts",
        "Distances on the map are those of the changes of statistics, as well as two dimensions show them (classical "
        "multidimensional scaling).",
        frame,
        kind="scatter",
        x="x",
        y="y",
        color=("family",),
    )
    return Section("What it is like", "Known corruptions beside the data.", (figure,))


def prior_section(found: "Diagnosis") -> Section | None:
    """The expected distance of blended statistics from the target's, against N."""
    if found.prior_curves.empty:
        return None
    figure = prior_figure(found.prior_curves)
    return Section(
        "BatchNorm", "How much training statistics should count.", (figure,), (Listing("Best N", BEST, _best(found)),)
    )


def _best(found: "Diagnosis") -> pd.DataFrame:
    """A row for the network by each curve and for each layer, a column for each n."""
    names = {"prior": "network, lower bound", "upper": "network, upper bound", "simulated": "network, simulated"}
    frame = found.priors.set_index("n").rename(columns=names).T.rename_axis("of").reset_index()
    return frame.rename(columns={n: f"batches of {n:g}" for n in found.priors["n"]})


def sentences(found: "Diagnosis", data: str, reference: str | None) -> list[tuple[str, str]]:
    """Name and sentence of each finding."""
    test, profile = found.test, found.profile
    halves = f"two parts of {reference} and {data}" if reference else f"two halves of {data}"
    lines = [("shift", _verdict(test, halves))]
    strongest = profile.dropna(subset="normalised").sort_values("normalised", ascending=False)["layer"].head(3)
    where = "strongest in " + ", ".join(strongest)
    if found.nearest is not None:
        alike = max(float(found.nearest["cosine"]), 0.0) ** 2
        where += f"; {alike:.0%} of it is like {found.nearest['shift']} {found.nearest['severity']:g}"
    lines.append(("where", where))
    if accuracy := _accuracy(found, data, reference):
        lines.append(("accuracy", accuracy))
    if not found.priors.empty:
        each = [f"{row['prior']:.0f} for batches of {row['n']:.0f}" for _, row in found.priors.iterrows()]
        small = "; with batches of fewer than 16 leave it out, and statistics move along the stream"
        lines.append(("BatchNorm prior", "N = " + ", ".join(each) + small))
    compared, dead = f"{len(profile)} layers, {int(profile['channels'].sum()):,} channels", int(profile["dead"].sum())
    if dead:
        compared += (
            f"; {dead:,} of them dead (they do not vary), in {int((profile['dead'] > 0).sum())} layers, left out"
        )
    lines.append(("compared", compared))
    return lines


def _accuracy(found: "Diagnosis", data: str, reference: str | None) -> str:
    """What is known of accuracies: measured where there are labels, predicted where there are none."""
    parts = [] if found.reference_error is None else [f"{reference} {1 - found.reference_error:.1%}"]
    if found.measured_error is not None:
        parts.append(f"{data}, measured {1 - found.measured_error:.1%}")
    if (guess := found.predicted) is not None:
        words = f"{data}, predicted without labels "
        if guess.means_something:
            words += (
                f"{1 - guess.error:.0%} ({1 - guess.high:.0%} to {1 - guess.low:.0%}, which holds for {guess.held:.0%} "
            )
            words += f"of {guess.corruptions} known corruptions, each predicted from the others)"
        elif guess.inside:
            words += f"cannot say: {1 - guess.high:.0%} to {1 - guess.low:.0%}"
        else:
            words += "cannot say: it is larger than every known corruption"
        parts.append(words)
    return "   ".join(parts)


def _verdict(test: "ShiftTest", halves: str) -> str:
    """Whether there is a shift; never from a number that is not finite."""
    if not np.isfinite([test.size, test.chance, test.p_value]).all():
        return f"cannot say: its size is {test.size:g} and chance gives {test.chance:g}"
    p = f"p < {1 / test.divisions:g}" if test.p_value <= 1 / test.divisions else f"p = {test.p_value:.3f}"
    verdict = "clear" if test.p_value < 0.01 else "likely" if test.p_value < 0.05 else "none to be seen"
    if not test.chance:
        return f"{verdict}: its size is {test.size:.3g}, where {halves} do not differ at all ({p})"
    return f"{verdict}: {test.ratio:.1f} x the distance of {halves} ({p})"


def _answers(found: "Diagnosis", data: str, reference: str | None) -> list[Finding]:
    questions = {
        "shift": "Has it shifted?",
        "where": "Where?",
        "accuracy": "What does it cost?",
        "BatchNorm prior": "How should adaptation be set?",
    }
    return [
        Finding("", questions[word], text + ".")
        for word, text in sentences(found, data, reference)
        if word in questions
    ]
