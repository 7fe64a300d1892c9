"""The page of an attribution: which channels carry the label, and the map of every axis."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from haptera import __version__
from haptera.report.figure import Figure
from haptera.report.page import render, write_page
from haptera.report.section import Finding, Listing, Section

if TYPE_CHECKING:
    from haptera.analyses.attribution.analysis import Recorded

DEFINITIONS = {
    "decoy": "a copy of a channel, shifted in time (by time alone, in a random order) and given to the encoder beside "
    "the channels; it has the channel's statistics and says nothing",
    "value": "attribution of a channel, the mean over fits, over that of its decoys; about 1 for one that carries "
    "nothing. Decoys are the same in all fits and have values in the same way",
    "q": "p corrected for the number of channels (Benjamini and Hochberg): among channels with q below the level, that "
    "share is expected to be there by chance",
    "map": "absolute attributions summed over samples and window, inputs in units of their standard deviation; the "
    "mean over the fits of the test, the largest of each axis 1",
    "axis": "a principal axis of the embedding of the first fit, the widest first; other fits are turned towards it",
}


def write_attribution(found: "Recorded", path: Path) -> None:
    """Write the page, whole."""
    names = [found.names[place] for place in found.carriers.channels]
    answer = f"{len(names)} of {len(found.names)} {found.noun}" + (f": {', '.join(names)}." if names else ".")
    page = render(
        [carriers_section(found), map_section(found)],
        [
            Finding("", f"Which {found.noun} carry {found.what}?", answer),
            Finding("", "What does theory promise?", found.promise),
        ],
        title=f"Attribution of {found.folder.resolve().name}",
        settings={
            "haptera": __version__,
            "method": found.method,
            "jacobian_weight": found.jacobian_weight,
            "fits": found.carriers.fits,
            "decoys": len(found.carriers.null),
            "level": found.carriers.level,
        },
        definitions=DEFINITIONS,
    )
    write_page(page, path)


def carriers_section(found: "Recorded") -> Section:
    """Every channel between its fits, and where decoys end."""
    table = found.table()[["channel", "value", "low", "high", "p", "q", "carries"]]
    rows = table.assign(kind=np.where(table["carries"], f"carries {found.what}", "not shown to"))
    edge = float(np.quantile(found.carriers.null, 0.95))
    figure = Figure(
        f"Attribution of {found.noun}",
        f"Over the mean of their decoys; least and largest of {found.carriers.fits} fits. 95 % of "
        f"{len(found.carriers.null):,} decoys are below {edge:.2f}.",
        rows[["channel", "value", "low", "high", "q", "kind"]],
        kind="scatter",
        x="channel",
        y="value",
        color=("kind",),
        low="low",
        high="high",
        labels={"value": "attribution over that of decoys"},
    )
    text = f"A channel is named if decoys reach its value so seldom that {100 * found.carriers.level:g} % of the named "
    listing = Listing("All channels", "In the order of the recording.", table)
    return Section("Who carries it", text + "are expected to be there by chance.", (figure,), (listing,))


def map_section(found: "Recorded") -> Section:
    """Axes by channels."""
    frame = pd.DataFrame(found.map, index=found.latents, columns=found.names)
    rows = frame.rename_axis("axis").reset_index().melt("axis", var_name="channel", value_name="attribution")
    figure = Figure(
        "Attribution map",
        f"Mean of the {found.carriers.fits} fits of the test, by {found.method.replace('_', ' ')}, with a Jacobian "
        f"term of {found.jacobian_weight:g}; not of the model in the folder, which had none. {found.promise}",
        rows,
        kind="heatmap",
        x="channel",
        y="axis",
        value=("attribution",),
        limits=(0.0, 1.0),
    )
    return Section("Map", "Which inputs each axis of the embedding stands for.", (figure,))
