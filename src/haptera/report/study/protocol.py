"""Protocol: how the results came about, so that two reports can be compared."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from haptera.report.section import Listing, Section

TEXT = "What two studies must share so that their numbers can be compared; “haptera compare” says where two differ."
CHECKS = "What the preflight found before the first cell was run; an error is where a result would mean nothing."
STREAMS = "Which images, in which order, how many at a time; each part of a stream begins with a fresh adapter."
ADAPTERS = "When an adapter is brought back to its beginning."


def section(protocol: Mapping[str, Any], checks: Sequence[Mapping[str, Any]]) -> Section | None:
    """Return the section, or None where nothing is known.

    Args:
        protocol: rows of `streams` and `adapters`.
        checks: rows of the preflights: `model`, `check`, `verdict`, `sentence`.
    """
    return Section.of(
        "Protocol",
        TEXT,
        Listing("Preflight", CHECKS, pd.DataFrame(list(checks))),
        Listing("Streams", STREAMS, pd.DataFrame(list(protocol.get("streams", [])))),
        Listing("Resets", ADAPTERS, pd.DataFrame(list(protocol.get("adapters", [])))),
    )
