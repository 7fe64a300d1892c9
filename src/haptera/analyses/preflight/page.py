"""The page of a preflight: every check with its verdict, and what was tried."""

from typing import TYPE_CHECKING

import pandas as pd

from haptera.report.section import Listing, Section

if TYPE_CHECKING:
    from haptera.analyses.preflight.analysis import Preflight

DEFINITIONS = {
    "off": "for each channel of a layer that keeps statistics from training, the root of the squared difference of the "
    "means, in kept standard deviations, and the squared logarithm of the ratio of the deviations; the mean over "
    "channels, dead ones left out",
    "clearly": "better in 99 % of draws of the images, and by a share that no chance explains; with labels, a gain of "
    "log-likelihood at the best temperature with p < 0.001, divided by the number of tries",
}
CHECKS = "Errors are where a result would mean nothing; what is unknown needs labels, or another kind of network."
TRIALS = (
    "The same images, handed over in other ways: a normalisation, or one in the place of another that the model may do "
    "already. The distance is that of the first layer with kept statistics; accuracy is on a part of the images."
)
CROPS = "The same files, cut in other ways. The distance is a mean over all layers with kept statistics."


INPUTS, CUTS = "Ways that were tried", "Crops that were tried"


def leads(preflight: "Preflight") -> dict[str, tuple[str, str]]:
    """Return what is in large above each answer, a complaint or the accuracy, and where the page shows more."""
    shown = {}
    for check in preflight.checks:
        large = check.verdict if check.complaint else ""
        if check.word == "accuracy" and "accuracy" in check.numbers:
            large = f"{large} {check.numbers['accuracy']:.1%}".strip()
        tried = {
            "scale": (INPUTS, preflight.trials),
            "colour": (INPUTS, preflight.trials),
            "crop": (CUTS, preflight.crops),
        }
        title, trials = tried.get(check.word, ("Checks", None))
        shown[check.word] = large, "Checks" if trials is None or trials.empty else title
    return shown


def sections(preflight: "Preflight") -> list[Section]:
    """Return the answers, and what was tried."""
    rows = [{"check": each.word, "verdict": each.verdict, "sentence": each.sentence} for each in preflight.checks]
    made = [Section("Checks", CHECKS, tables=(Listing("Checks", "One row each.", pd.DataFrame(rows)),))]
    if not preflight.trials.empty:
        listing = Listing(INPUTS, TRIALS, preflight.trials.dropna(axis=1, how="all"))
        made.append(Section("Inputs", "Other scales and the other order of colours.", tables=(listing,)))
    if not preflight.crops.empty:
        listing = Listing(CUTS, CROPS, preflight.crops.dropna(axis=1, how="all"))
        made.append(Section("Crops", "Other parts of the same files.", tables=(listing,)))
    return made
