"""The page of an attribution: which channels carry the label, and the map of every axis."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from haptera.analyses.attribution.carriers import ALONE, GIVEN, TEST
from haptera.analyses.attribution.maps import map_scores
from haptera.report.figure import Figure
from haptera.report.section import Finding, Listing, Section, lead

if TYPE_CHECKING:
    from haptera.analyses.attribution.analysis import Attribution

DEFINITIONS = {
    "decoy": "a copy of a channel, shifted in time (by time alone, in a random order) and given to the encoder beside "
    "the channels; it has the channel's statistics and says nothing",
    "value": "attribution of a channel, the mean over fits, over that of its decoys; about 1 for one that carries "
    "nothing. Decoys are the same in all fits and have values in the same way",
    "q": "p corrected for the number of channels (Benjamini and Hochberg): among channels with q below the level, that "
    "share is expected to be there by chance",
    "map": "absolute attributions summed over samples and window, inputs in units of their standard deviation; the "
    "mean over fits, the largest of each axis 1",
    "axis": "a principal axis of the embedding of the first fit, the widest first, or a dimension that the label has "
    "for itself, in units of its spread; other fits are turned towards it",
}
SHOWN = 60
"""Channels that are named in the sentence; all of them are in the table."""
MAP, PAIRS = "Attribution map", "Canonical correlations of pairs"
"""Titles of what shows an answer on the page."""


def findings(attribution: "Attribution") -> list[Finding]:
    """Return which channels carry it, and what theory promises about the map."""
    test, noun, what = attribution.carriers, attribution.noun, attribution.what
    names = [attribution.names[place] for place in test.channels]
    shown = " ".join(names[:SHOWN]) + (f" ... ({len(names) - SHOWN} more)" if len(names) > SHOWN else "")
    few = f"; with so few --copies, fewer than {test.least} cannot be named" * (test.least > 1)
    sentence = (
        f"{len(names)} of {len(attribution.names)} {noun} carry {what} (shuffle test, FDR {100 * test.level:g} %)"
    )
    if not test.fits:
        sentence, few = f"not tested for {what}: --fits is 0, and the map is of the model in the folder", ""
    numbers = {"what": what, "level": test.level, "fits": test.fits, "decoys": len(test.null), "carriers": names}
    numbers |= {"channels": attribution.channels().to_dict("records")}
    promise = promise_of(attribution)
    theory = {"method": attribution.test.method, "jacobian_weight": attribution.jacobian_weight, "promise": promise}
    scored = [] if attribution.truth is None else [_truth(attribution)]
    told = [
        Finding("carriers", f"Which {noun} carry {what}?", f"{sentence}{': ' + shown if names else few}", numbers),
        *scored,
        Finding("theory", "What does theory promise?", promise, theory),
        Finding(
            "premises", "Which of its premises hold here?", test.assumptions.sentence(), test.assumptions.numbers()
        ),
    ]
    leads = {"carriers": ("", MAP), "theory": ("", MAP), "premises": ("", PAIRS)}
    if test.fits:
        leads["carriers"] = (f"{len(names)} of {len(attribution.names)} {noun}", f"Attribution of {noun}")
    if attribution.scores is not None:
        leads["truth"] = (f"auROC {attribution.scores.auroc:.3f}", MAP)
    return lead(told, leads)


def _truth(attribution: "Attribution") -> Finding:
    """Return how the map agrees with what is known."""
    scores, true = attribution.scores, attribution.truth
    assert scores is not None
    assert true is not None
    channels = map_scores(attribution.carriers.map.sum(0), true)
    sentence = (
        f"auROC {scores.auroc:.3f} of entries of the map for {int(true.sum())} of {len(true)} {attribution.noun} that "
        f"carry {attribution.what}; {channels.auroc:.3f} of {attribution.noun}, summed over axes"
    )
    numbers = {"auroc": scores.auroc, "average_precision": scores.average_precision, "chance": scores.connected}
    numbers |= {"channels_auroc": channels.auroc}
    return Finding("truth", "Does the map agree with what is known?", sentence, {"truth": numbers})


def promise_of(attribution: "Attribution") -> str:
    """Return what theorem 2 of chapter 8 says about the map, and what it does not."""
    method = attribution.test.method
    if method != "inverted_jacobian":
        return f"No theorem covers a map by {method.replace('_', ' ')}; theorem 2 is about inverted Jacobians."
    if attribution.jacobian_weight == 0:
        return "No theorem covers this map: theorem 2 needs the Jacobian term in training, and its weight is 0."
    block = f"the dimensions of {attribution.what}" if attribution.tied else "all dimensions together"
    return (
        "Theorem 2 of chapter 8 covers which entries of the map are zero, block by block; here a block is "
        f"{block}, so that columns mean something and single rows do not. It holds at the minimum of the "
        "loss, with endlessly many negatives, for signals that are an invertible function of the latents without "
        "noise. It does not cover the size of entries, nor the test, which is a permutation test of its own."
    )


def sections(attribution: "Attribution") -> list[Section]:
    """Return the channels beside their decoys, and the map."""
    tested = [carriers_section(attribution)] if attribution.carriers.fits else []
    return [*tested, map_section(attribution), premises_section(attribution)]


def premises_section(attribution: "Attribution") -> Section:
    """Show what could be seen of the premises of theorem 2."""
    seen = attribution.carriers.assumptions
    frame = seen.diversity.assign(
        pairs=np.where(seen.diversity["above"], "more than shuffled", "no more than shuffled")
    )
    frame = frame.assign(part="part " + frame["part"].astype(str))[["part", "place", "correlation", "null", "pairs"]]
    text = "Of references and their positives in the embedding, beside the largest of pairs in a random order."
    style: dict[str, Any] = {
        "x": "place",
        "y": "correlation",
        "color": ("part",),
        "dash": "pairs",
        "limits": (0.0, 1.0),
    }
    figure = Figure(PAIRS, text, frame, kind="scatter", **style)
    text = (
        "Theorem 2 needs a mixing whose Jacobian has full rank, diverse conditionals (definition 5; definition 6 for "
        "the strong form), a fit at its minimum with endlessly many negatives, and no noise. The first two can be "
        f"looked at; here {seen.sentence()}. Estimates see linear relations alone. A missing rank disproves a premise; "
        "nothing here proves one."
    )
    return Section("Premises", text, (figure,))


def carriers_section(attribution: "Attribution") -> Section:
    """Show every channel between its fits, and where decoys end."""
    test, table = attribution.carriers, attribution.channels()
    table = table[["channel", "value", "low", "high", "p", "q", "carries"]]
    rows = table.assign(kind=np.where(table["carries"], f"carries {attribution.what}", "not shown to"))
    rows = rows[["channel", "value", "low", "high", "q", "kind"]]
    text = (
        f"Over the mean of their decoys; least and largest of {test.fits} fits. 95 % of {len(test.null):,} decoys are "
        f"below {np.quantile(test.null, 0.95):.2f}."
    )
    style: dict[str, Any] = {"x": "channel", "y": "value", "low": "low", "high": "high", "color": ("kind",)}
    style |= {"labels": {"value": "attribution over that of decoys"}}
    figure = Figure(f"Attribution of {attribution.noun}", text, rows, kind="scatter", **style)
    text = (
        f"A channel is named if decoys reach its value so seldom that {100 * test.level:g} % of the named are expected "
        "to be there by chance."
    )
    listing = Listing("All channels", "In the order of the recording.", table)
    return Section("Who carries it", text, (figure,), (listing,))


def map_section(attribution: "Attribution") -> Section:
    """Show what each axis stands for."""
    frame = pd.DataFrame(attribution.map, index=attribution.axes, columns=attribution.names)
    rows = frame.rename_axis("axis").reset_index().melt("axis", var_name="channel", value_name="attribution")
    fits = attribution.carriers.fits
    of = {
        TEST: f"Mean of the {fits} fits of the test, not of the model in the folder",
        ALONE: f"Mean of {fits} fits to the channels without decoys, in which time would see structure",
        GIVEN: "Of the model in the folder" + ", which saw no decoys: in them time would see structure" * bool(fits),
    }
    text = (
        f"{of[attribution.carriers.map_of]}; by {attribution.test.method.replace('_', ' ')}, "
        f"with a Jacobian term of {attribution.jacobian_weight:g}. {promise_of(attribution)}"
    )
    style: dict[str, Any] = {"x": "channel", "y": "axis", "value": ("attribution",), "limits": (0.0, 1.0)}
    figure = Figure(MAP, text, rows, kind="heatmap", **style)
    return Section("Map", "Which inputs each axis of the embedding stands for.", (figure,))
