"""Streams, adapters and measures by name, with settings that are checked against what each takes."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haptera import catalog
from haptera.checks import check_whole_number, is_number
from haptera.errors import HapteraError, check_keys
from haptera.files.schema import kind_of, shown
from haptera.files.toml import parse_value
from haptera.run.flags import Spec, located
from haptera.run.settings import CALIBRATION

if TYPE_CHECKING:
    from haptera.run.build import DataSets

AROUND_ADAPTERS = ("reset", "epochs")
"""Settings of any adapter: reset every so many steps; learn offline for so many epochs, then predict."""
AROUND_STREAMS = ("interleave", "repeat", "truncate", "one_by_one")


def check_settings(
    make: Callable[..., Any], what: str, settings: Mapping[str, Any], taken: Sequence[str], more: Sequence[str] = ()
) -> None:
    """Refuse a setting that a part does not have, and anything else where its signature says a number or a flag.

    Args:
        make: the part.
        what: what errors call it, such as `adapter tent`.
        settings: of the part.
        taken: parameters that are not settings, such as `model`.
        more: settings of any part of its kind, such as `reset`.
    """
    parameters = inspect.signature(make).parameters
    check_keys(f"setting of {what}", settings, (set(parameters) - set(taken)) | set(more))
    for key, value in settings.items():
        annotation = parameters[key].annotation if key in parameters else None
        if annotation in (bool, int, float):
            # A whole number given as 1e3 is a float in TOML; the part itself says where that will not do.
            kind = kind_of(bool if annotation is bool else float)
            if not kind.fits(value):
                raise HapteraError(f"{key} of {what} is {shown(value)}; {kind.expected} was expected")


def check_adapter(make: Callable[..., Any], name: str, settings: Mapping[str, Any]) -> None:
    """Refuse settings that an adapter, or what goes around any adapter, does not take."""
    check_settings(make, f"adapter {name}", settings, ("model",), AROUND_ADAPTERS)
    around = {key: settings[key] for key in AROUND_ADAPTERS if key in settings}
    for key, value in around.items():
        check_whole_number(key, value, 1)


def make_stream(table: dict[str, Any], data: "DataSets", batch_size: int) -> Any:
    """Return the stream of a table of `[[streams]]`."""
    kind = _use(table, "streams")
    settings = {key: value for key, value in table.items() if key != "data"}
    make = _find("streams", kind, settings, ("data", "seed"), data.folder, AROUND_STREAMS)
    around = {key: settings.pop(key) for key in AROUND_STREAMS if key in settings}
    if "by" in settings:
        settings["by"] = make_shift(str(settings["by"]), severity=5.0)
    if "shifts" in settings:
        names = settings["shifts"] if isinstance(settings["shifts"], list) else [settings["shifts"]]
        settings["shifts"] = tuple(catalog.find_or_import("shifts", str(name)) for name in names)
    if "calibration" in inspect.signature(make).parameters:
        from haptera.run.calibrate import load_calibration

        settings["calibration"] = load_calibration(data.folder / str(settings.get("calibration", CALIBRATION)))
    if "severities" in settings and not isinstance(settings["severities"], list):
        settings["severities"] = [settings["severities"]]
    source = data.open(table.get("data"))
    if kind == "clean" and data.main is not None and source is not data.open():
        settings = {"called": str(settings.get("name", source.name))} | settings  # other data is a shift
    try:
        stream = make(source, **{"batch_size": batch_size} | settings)
    except TypeError as error:
        raise HapteraError(f"stream {kind}: {error}") from error
    return _wrap(stream, around, str(settings.get("name", ""))) if around else stream


def _wrap(stream: Any, around: Mapping[str, Any], name: str) -> Any:
    from haptera.data import Data
    from haptera.streams import Clean
    from haptera.streams.wrap import wrapped

    data = getattr(stream, "data", None)
    sizes = {"batch_size": stream.batch_size} if hasattr(stream, "batch_size") else {}
    clean = Clean(data, seed=stream.seed, **sizes) if isinstance(data, Data) else None
    return wrapped(stream, clean, **around, name=name)


def make_shift(text: str, severity: float | None = None) -> Any:
    """Return the shift behind `name:severity`, or `name:severity=...,key=value`.

    Args:
        text: what a person wrote.
        severity: where the text has none; an error if this is None.
    """
    name, _, rest = text.rpartition(":")
    words = {each: entry.word for each, entry in catalog.entries("shifts").items()}
    if is_number(parse_value(rest.partition(",")[0])):  # a mistyped name too, and `file.py:object:5`
        words[name] = catalog.WORDS["shifts"]
    spec = Spec.parse(text, words)
    settings = ({} if severity is None else {"severity": severity}) | dict(spec.arguments)
    make = _find("shifts", spec.name, settings, (), Path())
    if "severity" not in settings:
        raise HapteraError(f"the shift {text!r} has no severity; {spec.name}:5 or {spec.name}:severity=5 was expected")
    return make(**settings)


def make_adapter(table: dict[str, Any], folder: Path) -> tuple[str, Any]:
    """Return the name and the adapter of a table of `[[adapters]]`."""
    kind = _use(table, "adapters")
    settings = {key: value for key, value in table.items() if key != "name"}
    make = catalog.find_or_import("adapters", located(kind, folder))
    check_adapter(make, kind, settings)
    name = table.get("name") or catalog.label(kind.rpartition(":")[2], settings)
    return str(name), configured(make, settings)


def configured(make: Any, settings: Mapping[str, Any]) -> Any:
    """Return an adapter with its settings, and with what goes around any adapter: `reset` and `epochs`."""
    own = {key: value for key, value in settings.items() if key not in AROUND_ADAPTERS}
    make = partial(make, **own) if own else make
    if "reset" in settings:
        from haptera.adapters import PeriodicReset

        make = PeriodicReset(make, settings["reset"])
    if "epochs" in settings:
        from haptera.adapters import Offline

        make = partial(Offline, method=make, epochs=settings["epochs"])
    return make


def make_measure(text: str) -> Any:
    """Return the measure behind `name` or `name:key=value`, with its settings."""
    from haptera.measures.facts import required

    spec = Spec.parse(text)
    make = _find("measures", spec.name, spec.arguments, ("outputs", "table"), Path())
    if missing := [key for key in required(make) if key not in spec.arguments]:
        about = (make.__doc__ or "").partition("\n")[0]
        raise HapteraError(f"measure {spec.name} needs {missing[0]}: {spec.name}:{missing[0]}=... ({about})")
    return partial(make, **spec.arguments) if spec.arguments else make


def _use(table: dict[str, Any], kind: str) -> str:
    use = table.pop("use", None)
    if not isinstance(use, str):
        raise HapteraError(
            f"{kind}: {table!r} does not say which to use; use = one of {', '.join(catalog.entries(kind))}"
        )
    return use


def _find(
    kind: str, name: str, settings: Mapping[str, Any], taken: Sequence[str], folder: Path, more: Sequence[str] = ()
) -> Any:
    """Return the class behind a name, after checking that it takes these settings."""
    make = catalog.find_or_import(kind, located(name, folder))
    check_settings(make, f"{kind.removesuffix('s')} {name}", settings, taken, more)
    return make
