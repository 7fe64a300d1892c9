"""Streams, adapters and measures by name, as flags and study files write them, with settings that are checked."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haptera import catalog
from haptera.checks import is_number
from haptera.errors import HapteraError, check_keys
from haptera.files.schema import kind_of, shown
from haptera.files.toml import parse_value
from haptera.run.around import AROUND_ADAPTERS, PRESET, check_around, configured

if TYPE_CHECKING:
    from haptera.run.settings import DataSets

CALIBRATION = "haptera-calibration"
"""The folder that `haptera calibrate` writes, and the stream `ccc` reads, where no other is given."""
AROUND_STREAMS = ("interleave", "repeat", "truncate", "one_by_one")


@dataclass(frozen=True)
class Spec:
    """`name:key=value,key=value`, as flags give it."""

    name: str
    arguments: Mapping[str, Any]

    @classmethod
    def parse(cls, text: str, words: Mapping[str, str] | None = None) -> "Spec":
        """Read a flag; the name itself may hold colons (`net.py:build`).

        Args:
            text: the flag.
            words: name -> the key whose value may come first, without the key.

        >>> Spec.parse("batchnorm:prior=8,frozen=true")
        Spec(name='batchnorm', arguments={'prior': 8, 'frozen': True})
        >>> Spec.parse("ccc:easy,speed=2000", {"ccc": "difficulty"})
        Spec(name='ccc', arguments={'difficulty': 'easy', 'speed': 2000})
        >>> Spec.parse("correlated:by=contrast:5").arguments
        {'by': 'contrast:5'}
        """
        head, equals, tail = text.partition("=")  # colons after it belong to a value
        name, _, first = head.rpartition(":")
        rest = first + equals + tail
        if not name and (equals or not text.strip()):
            raise HapteraError(f"{text!r} does not begin with a name; name:key=value was expected")
        key = (words or {}).get(name, "")
        if "=" not in rest and not key:
            return cls(text, {})
        arguments: dict[str, Any] = {}
        for item in rest.split(","):
            own, given, value = item.partition("=")
            if given:
                key = own.strip()
                if key in arguments:
                    raise HapteraError(f"{text!r} gives {key!r} twice")
                arguments[key] = parse_value(value.strip())
            elif not key:
                raise HapteraError(f"{text!r} says {item!r}; key=value was expected")
            elif key not in arguments:  # the word that needs no key
                arguments[key] = parse_value(item.strip())
            else:  # "severities=1,3,5": a list goes on until the next key
                before = arguments[key] if isinstance(arguments[key], list) else [arguments[key]]
                arguments[key] = [*before, parse_value(item.strip())]
        return cls(name, arguments)


def from_flags(
    models: Sequence[str],
    weights: Sequence[Path] = (),
    streams: Sequence[str] = (),
    adapters: Sequence[str] = (),
    base: Path = Path(),
    normalise: Sequence[str] = (),
    logits: Sequence[str] = (),
) -> dict[str, Any]:
    """Return flags as the study file would say them.

    Args:
        models: what `--model` says.
        weights: a file for each model, or none at all.
        streams: what `--stream` says.
        adapters: what `--adapter` says.
        base: paths become relative to it.
        normalise: a normalisation for all models, or one for each.
        logits: which outputs, for all models or for each.
    """
    if weights and len(weights) != len(models):
        raise HapteraError(
            f"--weights is given {len(weights)} times for {len(models)} models; give one for each, in order"
        )
    content: dict[str, Any] = {"models": [], "streams": [], "adapters": []}
    for place, text in enumerate(models):
        from haptera.models.loaders.finding import locate

        spec = Spec.parse(text)
        model = {"build": locate(spec.name, base), "arguments": dict(spec.arguments)}
        model |= {"weights": str(base / weights[place])} if weights else {}
        content["models"].append(model | _of_model({"normalise": normalise, "logits": logits}, place, len(models)))
    for kind, texts in (("streams", streams), ("adapters", adapters)):
        words = {name: entry.word for name, entry in catalog.entries(kind).items() if entry.word}
        specs = [Spec.parse(text, words) for text in texts]
        content[kind] = [{"use": located(spec.name, base), **spec.arguments} for spec in specs]
    return {key: value for key, value in content.items() if value}


def _of_model(flags: Mapping[str, Sequence[str]], place: int, models: int) -> dict[str, str]:
    """Return what flags say about one of several models."""
    for key, values in flags.items():
        if len(values) not in (0, 1, models):
            raise HapteraError(
                f"--{key} is given {len(values)} times for {models} models; give one for all, or one for each, in order"
            )
    return {key: values[place if len(values) > 1 else 0] for key, values in flags.items() if values}


def data_from_flags(path: str | None, base: Path = Path(), **how: Any) -> dict[str, Any]:
    """Return the data as the study file would say it, empty where no flag does.

    Args:
        path: of the data, if it is given.
        base: paths become relative to it.
        **how: other keys of data; None is left out.
    """
    source = {key: value for key, value in how.items() if value is not None}
    source |= {"path": located_data(path, base)} if path else {}
    source |= {"mapping": located_mapping(source["mapping"], base)} if "mapping" in source else {}
    source |= {"crop": parse_value(source["crop"])} if "crop" in source else {}
    return source


def located_data(path: str, folder: Path) -> str:
    """Return a file, folder or `file.py:object` relative to a folder; digits and objects of modules as they are."""
    if path == "digits":
        return path
    name = path.rpartition(":")[2]
    return located(path, folder) if name != path and name.isidentifier() else str(folder / path)


def located_mapping(mapping: str, folder: Path) -> str:
    """Return the file of a mapping relative to a folder, or the name of one that ships with haptera."""
    from haptera.data.named_mappings import NAMES

    return mapping if mapping in NAMES else str(folder / mapping)


def located(name: str, folder: Path) -> str:
    """Return `file.py:object` relative to the study file; any other name as it is."""
    place, _, attribute = name.rpartition(":")
    return f"{folder / place}:{attribute}" if place.endswith(".py") else name


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
    check_settings(make, f"adapter {name}", settings, ("model",), (*AROUND_ADAPTERS, PRESET))
    check_around(make, settings)


def make_stream(table: dict[str, Any], data: "DataSets", batch_size: int) -> Any:
    """Return the stream of a table of `[[streams]]`."""
    kind = _use(table, "streams")
    settings = {key: value for key, value in table.items() if key != "data"}
    make = _find("streams", kind, settings, ("data", "seed"), data.folder, AROUND_STREAMS)
    around = {key: settings.pop(key) for key in AROUND_STREAMS if key in settings}
    source = data.open(table.get("data"))
    given = not hasattr(source, "images")  # in parts: shifts are names of parts, not of the catalog
    if "by" in settings and not given:
        settings["by"] = make_shift(str(settings["by"]), severity=5.0)
    for key in ("shifts", "severities", "speeds", "difficulties"):
        if key in settings and not isinstance(settings[key], list):
            settings[key] = [settings[key]]
    if "shifts" in settings and not given:
        settings["shifts"] = tuple(catalog.find_or_import("shifts", str(name)) for name in settings["shifts"])
    if "calibration" in inspect.signature(make).parameters:
        from haptera.run.calibrate import load_calibration

        settings["calibration"] = load_calibration(data.folder / str(settings.get("calibration", CALIBRATION)))
    if kind == "clean" and data.main is not None and source is not data.open():
        settings = {"called": str(settings.get("name", source.name))} | settings  # other data is a shift
    try:
        stream = make(source, **{"batch_size": batch_size} | settings)
    except TypeError as error:
        raise HapteraError(f"stream {kind}: {error}") from error
    return _wrap(stream, around, str(settings.get("name", "")), data) if around else stream


def _wrap(stream: Any, around: Mapping[str, Any], name: str, sets: "DataSets") -> Any:
    """Return a stream with wrappers; clean data in between is its own, or the study's where its own is in parts."""
    from haptera.data import CorruptedImages, Data
    from haptera.streams import Clean
    from haptera.streams.wrap import wrap_stream

    data = getattr(stream, "data", None)
    if isinstance(data, CorruptedImages) and sets.main is not None:
        data = sets.open()
    sizes = {"batch_size": stream.batch_size} if hasattr(stream, "batch_size") else {}
    clean = Clean(data, seed=stream.seed, **sizes) if isinstance(data, Data) else None
    return wrap_stream(stream, clean, **around, name=name)


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


def make_measure(text: str) -> Any:
    """Return the measure behind `name` or `name:key=value`, with its settings."""
    from haptera.measures.facts import required_settings

    spec = Spec.parse(text)
    make = _find("measures", spec.name, spec.arguments, ("outputs", "table"), Path())
    if missing := [key for key in required_settings(make) if key not in spec.arguments]:
        about = (make.__doc__ or "").partition("\n")[0]
        raise HapteraError(f"measure {spec.name} needs {missing[0]}: {spec.name}:{missing[0]}=... ({about})")
    return partial(make, **spec.arguments) if spec.arguments else make


def _use(table: dict[str, Any], kind: str) -> str:
    use, names = table.pop("use", None), ", ".join(catalog.entries(kind))
    if not isinstance(use, str):
        raise HapteraError(f"{kind}: {table!r} does not say which to use; use = one of {names}")
    return use


def _find(
    kind: str, name: str, settings: Mapping[str, Any], taken: Sequence[str], folder: Path, more: Sequence[str] = ()
) -> Any:
    """Return the class behind a name, after checking that it takes these settings."""
    make = catalog.find_or_import(kind, located(name, folder))
    check_settings(make, f"{kind.removesuffix('s')} {name}", settings, taken, more)
    return make
