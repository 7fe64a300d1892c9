"""The laws, as public checks: whoever adds a shift, stream, adapter, measure or analysis can run them on it.

from haptera.testing import check_adapter
assert not any(check_adapter(MyAdapter).values())
"""

from functools import partial
from typing import Any

from haptera import catalog
from haptera.adapters import Adapter
from haptera.batch import Stream
from haptera.errors import HapteraError, unknown
from haptera.own_code import find_object
from haptera.shifts import Shift
from haptera.testing.adapters import check_adapter
from haptera.testing.analyses import check_analysis, makes_an_analysis
from haptera.testing.intervals import check_interval
from haptera.testing.measures import check_measure
from haptera.testing.shifts import check_shift
from haptera.testing.streams import check_stream

__all__ = [
    "check_adapter",
    "check_analysis",
    "check_interval",
    "check_measure",
    "check_named",
    "check_object",
    "check_shift",
    "check_stream",
]

CHECKED = ("shifts", "streams", "adapters", "measures", "analyses")


def check_object(thing: Any) -> tuple[str, dict[str, str]]:
    """Return what kind of thing an object is, and law -> why it is broken, or an empty text."""
    if makes_an_analysis(thing):
        return "analysis", check_analysis(thing)
    if isinstance(thing, Shift):
        return "shift", check_shift(thing.at)
    kind = thing.func if isinstance(thing, partial) else thing
    if isinstance(kind, type) and issubclass(kind, Shift):
        return "shift", check_shift(thing)
    if isinstance(kind, type) and issubclass(kind, Stream):
        return "stream", check_stream(thing)
    if isinstance(kind, type) and issubclass(kind, Adapter):
        return "adapter", check_adapter(thing)
    if callable(thing) and not isinstance(thing, type):
        return "measure", check_measure(thing)
    raise HapteraError(f"{thing!r} is not a shift, stream, adapter, measure or analysis; no law is about it")


def check_named(name: str) -> tuple[str, dict[str, str]]:
    """Do the same for `module:object`, `file.py:object` or a name of the catalog."""
    if ":" in name:
        return check_object(find_object(name, "object"))
    for kind in CHECKED:
        if name in catalog.entries(kind):
            thing = catalog.find(kind, name)
            return ("analysis", check_analysis(thing)) if kind == "analyses" else check_object(thing)
    raise unknown("name", name, [entry for kind in CHECKED for entry in catalog.entries(kind)])
