"""From a study file, or the same as flags, to a Study: every key is known, or the error names the nearest that is.

    batch_size = 64                      # optional, as are seeds, keep, device
    data = "val/"                        # or a table: path, size, channels, mapping, restrict
    [[models]]
    build = "net.py:build"               # or a name of the catalog; name, weights, arguments, allow_pickle are optional
    [[streams]]
    use = "corruptions"                  # a name of the catalog; name, data and the stream's own settings are optional,
                                         # as are interleave, repeat, truncate and one_by_one, for any stream
    [[adapters]]
    use = "batchnorm"                    # name and the adapter's own settings are optional, as are, for any adapter,
                                         # reset (every so many steps) and epochs (learn offline, then predict)
    prior = 16

Paths are relative to the study file, or to the present folder for flags.

A study file, written: what `haptera.run.settings.read_study` reads.
"""

import inspect
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from haptera import catalog
from haptera.errors import HapteraError, check_keys
from haptera.files.atomic import write_text
from haptera.files.schema import (
    ANYTHING,
    FLAG,
    LARGEST,
    TABLE,
    TEXT,
    Kind,
    check,
    either,
    list_of,
    optional,
    shown,
    whole_number,
)
from haptera.files.toml import parse_value, read_toml

AROUND_ADAPTERS = ("reset", "epochs")
STUDY = {
    "data": ANYTHING,
    "models": ANYTHING,
    "streams": ANYTHING,
    "adapters": ANYTHING,
    "seeds": optional(list_of(whole_number(-LARGEST))),
    "batch_size": whole_number(1, 2**20),
    "keep": TEXT,
    "device": optional(TEXT),
}
DATA = {
    "path": TEXT,
    "size": whole_number(1, 2**14),
    "channels": whole_number(1),
    "mapping": either(TEXT, Kind("a path", lambda value: isinstance(value, Path))),
    "restrict": FLAG,
}
MODEL = {"name": TEXT, "build": TEXT, "weights": TEXT, "arguments": TABLE, "allow_pickle": FLAG}
WRAPPERS = ("interleave", "repeat", "truncate", "one_by_one")
CALIBRATION = "haptera-calibration"
"""The folder that `haptera calibrate` writes, and the stream `ccc` reads, where no other is given."""


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
        >>> Spec.parse("net.py:build").name
        'net.py:build'
        >>> Spec.parse("ccc:easy,speed=2000", {"ccc": "difficulty"})
        Spec(name='ccc', arguments={'difficulty': 'easy', 'speed': 2000})
        """
        name, _, rest = text.rpartition(":")
        key = (words or {}).get(name, "")
        if "=" not in rest and not key:
            return cls(text, {})
        arguments: dict[str, Any] = {}
        for item in rest.split(","):
            found, equals, value = item.partition("=")
            if equals:
                key = found.strip()
                if key in arguments:
                    raise HapteraError(f"{text!r} gives {key!r} twice")
                arguments[key] = _value(value)
            elif not key:
                raise HapteraError(f"{text!r} says {item!r}; key=value was expected")
            elif key not in arguments:  # the word that needs no key
                arguments[key] = _value(item)
            else:  # "severities=1,3,5": a list goes on until the next key
                before = arguments[key] if isinstance(arguments[key], list) else [arguments[key]]
                arguments[key] = [*before, _value(item)]
        return cls(name, arguments)


def _value(text: str) -> Any:
    return parse_value(text.strip())


def read_study(path: Path) -> dict[str, Any]:
    """The content of a study file."""
    if not path.exists():
        raise HapteraError(f"there is no study file {path}")
    return read_toml(path, "study file")


def from_flags(
    models: Sequence[str],
    weights: Sequence[Path] = (),
    streams: Sequence[str] = (),
    adapters: Sequence[str] = (),
    base: Path = Path(),
) -> dict[str, Any]:
    """Flags as the study file would say them; their paths are relative to `base`."""
    if weights and len(weights) != len(models):
        raise HapteraError(
            f"--weights is given {len(weights)} times for {len(models)} models; give one for each, in order"
        )
    content: dict[str, Any] = {"models": [], "streams": [], "adapters": []}
    for place, text in enumerate(models):
        spec = Spec.parse(text)
        model = {"build": _located(spec.name, base), "arguments": dict(spec.arguments)}
        content["models"].append(model | ({"weights": str(base / weights[place])} if weights else {}))
    for kind, texts in (("streams", streams), ("adapters", adapters)):
        words = {name: entry.word for name, entry in catalog.entries(kind).items() if entry.word}
        specs = [Spec.parse(text, words) for text in texts]
        content[kind] = [{"use": _located(spec.name, base), **spec.arguments} for spec in specs]
    return {key: value for key, value in content.items() if value}


def models_from_flags(
    models: Sequence[str], weights: Sequence[Path] = (), allow_pickle: bool = False
) -> dict[str, Any]:
    """Name -> `ModelSource`, for commands that take models but no study."""
    return _models(from_flags(models, weights)["models"], Path(), allow_pickle)


def data_from_flags(
    path: str | None,
    size: int | None = None,
    channels: int | None = None,
    mapping: Path | None = None,
    restrict: bool = False,
    base: Path = Path(),
) -> dict[str, Any]:
    """The data as the study file would say it, empty where no flag does; paths are relative to `base`."""
    source: dict[str, Any] = {"path": path, "size": size, "channels": channels, "mapping": mapping}
    source |= {"path": str(base / path)} if path and path != "digits" else {}
    source |= {"mapping": str(base / mapping)} if mapping else {}
    source = {key: value for key, value in source.items() if value is not None}
    return source | ({"restrict": True} if restrict else {})


def make_study(
    content: Mapping[str, Any], out: Path, folder: Path = Path(), allow_pickle: bool = False, where: str = ""
) -> Any:
    """The Study that a study file describes.

    Args:
        content: what the file holds.
        out: the folder of the study.
        folder: paths in the content are relative to it.
        allow_pickle: what holds for models that do not say it.
        where: the file, which errors name.
    """
    try:
        return _make_study(content, out, folder, allow_pickle)
    except HapteraError as error:
        if where in str(error):
            raise
        raise HapteraError(f"study file {where}: {error}") from error


def _make_study(content: Mapping[str, Any], out: Path, folder: Path, allow_pickle: bool) -> Any:
    from haptera.run.study import Study

    check_keys("key in the study file", content, STUDY)
    check(content, STUDY, "the study", missing=tuple(STUDY))
    batch_size, seeds = content.get("batch_size", 64), content.get("seeds")
    data = _Sources(folder, content.get("data"))
    models = _models(_tables(content, "models"), folder, allow_pickle)
    streams = [_stream(table, data, batch_size) for table in _tables(content, "streams") or data.default_streams()]
    adapters: dict[str, Any] = {}
    for table in _tables(content, "adapters") or [{"use": "none"}]:
        name, make = _adapter(table, folder)
        if name in adapters:
            raise HapteraError(f"two adapters are called {name!r}; give one another name")
        adapters[name] = make
    return Study(
        models,
        streams,
        adapters,
        out=out,
        seeds=seeds,
        keep=content.get("keep", "float32"),
        device=content.get("device"),
        settings={"study": dict(content)},
    )


class _Sources:
    """Data sets by path, each opened once."""

    def __init__(self, folder: Path, main: Any) -> None:
        self.folder, self.main, self.opened = folder, main, {}  # type: ignore[var-annotated]

    def open(self, source: Any = None) -> Any:
        """The data behind a path or a table; the study's own by default."""
        from haptera.data import open_data

        source = self.main if source is None else source
        if source is None:
            raise HapteraError("no data: give data in the study file, or --data")
        settings = dict(source) if isinstance(source, Mapping) else {"path": source}
        check_keys("key of data", settings, DATA)
        if not isinstance(settings.get("path"), str):
            raise HapteraError(f"data is {shown(source)}; a path was expected")
        check(settings, DATA, "data", missing=tuple(DATA))
        path = settings.pop("path")
        path = path if path == "digits" else self.folder / path
        if "mapping" in settings:
            settings["mapping"] = self.folder / settings["mapping"]
        key = repr((str(path), sorted(settings.items(), key=str)))
        if key not in self.opened:
            self.opened[key] = open_data(path, **settings)
        return self.opened[key]

    def default_streams(self) -> list[dict[str, Any]]:
        """What to run where nothing is said."""
        from haptera.data import CorruptedImages

        if isinstance(self.open(), CorruptedImages):
            return [{"use": "directory"}]
        return [{"use": "clean"}, {"use": "corruptions"}]


def _tables(content: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    tables = content.get(key, [])
    tables = (
        [{"use": item} if isinstance(item, str) else item for item in tables] if isinstance(tables, list) else tables
    )
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise HapteraError(f"{key} is {shown(content[key])}; a list of tables, [[{key}]], was expected")
    return [dict(table) for table in tables]


def _models(tables: Sequence[dict[str, Any]], folder: Path, allow_pickle: bool) -> dict[str, Any]:
    from haptera.models import ModelSource

    models: dict[str, Any] = {}
    if not tables:
        raise HapteraError("no models: give [[models]] in the study file, or --model")
    stems = Counter(_stem(table) for table in tables)
    for table in tables:
        if "use" in table:
            table["build"] = table.pop("use")
        check_keys("key of models", table, MODEL)
        check(table, {key: kind for key, kind in MODEL.items() if key != "build"}, "a model", missing=tuple(MODEL))
        if not isinstance(build := table.get("build"), str):
            raise HapteraError(f"a model has build {build!r}; a name, module:function or file.py:function was expected")
        weights = folder / table["weights"] if "weights" in table else None
        name = str(table.get("name") or (weights.stem if weights else _stem(table)))
        place, _, function = build.rpartition(":")
        if "name" not in table and weights is None and place.endswith(".py") and stems[name] > 1:
            name = f"{name}-{function}"  # several functions of one file
        if name in models:
            raise HapteraError(f"two models are called {name!r}; give each a name")
        pickles = bool(table.get("allow_pickle", allow_pickle))
        models[name] = ModelSource(_located(build, folder), weights, dict(table.get("arguments", {})), pickles)
    return models


def _stem(table: Mapping[str, Any]) -> str:
    """What a model without a name and weights is called: after the file of `file.py:function`, or else the function."""
    place, _, function = str(table.get("build", table.get("use"))).rpartition(":")
    return Path(place).stem if place.endswith(".py") else function


def _stream(table: dict[str, Any], data: _Sources, batch_size: int) -> Any:
    kind = _use(table, "streams")
    settings = {key: value for key, value in table.items() if key != "data"}
    make = _checked("streams", kind, settings, taken={"data", "seed"}, folder=data.folder, more=WRAPPERS)
    wrappers = {key: settings.pop(key) for key in WRAPPERS if key in settings}
    if "by" in settings:
        settings["by"] = _shift(settings["by"])
    if "shifts" in settings:
        names = settings["shifts"] if isinstance(settings["shifts"], list) else [settings["shifts"]]
        settings["shifts"] = tuple(catalog.find_or_import("shifts", str(name)) for name in names)
    if "calibration" in inspect.signature(make).parameters:
        from haptera.streams.calibration import Calibration

        settings["calibration"] = Calibration.load(data.folder / str(settings.get("calibration", CALIBRATION)))
    if "severities" in settings and not isinstance(settings["severities"], list):
        settings["severities"] = [settings["severities"]]
    source = data.open(table.get("data"))
    if kind == "clean" and data.main is not None and source is not data.open():
        settings = {"called": str(settings.get("name", source.name))} | settings  # other data is a shift
    try:
        stream = make(source, **{"batch_size": batch_size} | settings)
    except TypeError as error:
        raise HapteraError(f"stream {kind}: {error}") from error
    return _wrapped(stream, wrappers, str(settings.get("name", ""))) if wrappers else stream


def _wrapped(stream: Any, wrappers: Mapping[str, Any], name: str) -> Any:
    from haptera.data import Data
    from haptera.streams import Clean
    from haptera.streams.wrap import wrapped

    data = getattr(stream, "data", None)
    sizes = {"batch_size": stream.batch_size} if hasattr(stream, "batch_size") else {}
    clean = Clean(data, seed=stream.seed, **sizes) if isinstance(data, Data) else None
    return wrapped(stream, clean, **wrappers, name=name)


def _shift(text: Any) -> Any:
    """A shift at a severity, such as `contrast 5`, as the table of results calls it."""
    name, _, severity = str(text).strip().rpartition(" ")
    try:
        return (
            catalog.find_or_import("shifts", name)(float(severity))
            if name
            else catalog.find_or_import("shifts", severity)(5.0)
        )
    except ValueError as error:
        if isinstance(error, HapteraError):
            raise
        raise HapteraError(f"by is {text!r}; a shift and its severity, such as 'contrast 5', was expected") from error


def _adapter(table: dict[str, Any], folder: Path) -> tuple[str, Any]:
    kind = _use(table, "adapters")
    settings = {key: value for key, value in table.items() if key != "name"}
    make = _checked("adapters", kind, settings, taken={"model"}, folder=folder, more=AROUND_ADAPTERS)
    name = table.get("name") or catalog.label(kind.rpartition(":")[2], settings)
    return str(name), configured(make, settings)


def configured(make: Any, settings: Mapping[str, Any]) -> Any:
    """An adapter with its settings, and with what goes around any adapter: `reset` and `epochs`."""
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
    """The measure behind `name` or `name:key=value`, with its settings."""
    from haptera.measures.facts import required

    spec = Spec.parse(text)
    first = {"outputs", "table"}
    make = _checked("measures", spec.name, spec.arguments, taken=first, folder=Path())
    if missing := [key for key in required(make) if key not in spec.arguments]:
        about = (make.__doc__ or "").partition("\n")[0]
        raise HapteraError(f"measure {spec.name} needs {missing[0]}: {spec.name}:{missing[0]}=... ({about})")
    return partial(make, **spec.arguments) if spec.arguments else make


def _located(name: str, folder: Path) -> str:
    """`file.py:object` relative to the study file; any other name as it is."""
    place, _, attribute = name.rpartition(":")
    return f"{folder / place}:{attribute}" if place.endswith(".py") else name


def _use(table: dict[str, Any], kind: str) -> str:
    use = table.pop("use", None)
    if not isinstance(use, str):
        raise HapteraError(
            f"{kind}: {table!r} does not say which to use; use = one of {', '.join(catalog.entries(kind))}"
        )
    return use


def _checked(
    kind: str, name: str, settings: Mapping[str, Any], taken: set[str], folder: Path, more: Sequence[str] = ()
) -> Any:
    """The class behind a name, after checking that it takes these settings."""
    make = catalog.find_or_import(kind, _located(name, folder))
    valid = (set(inspect.signature(make).parameters) - taken) | set(more)
    check_keys(f"setting of {kind.removesuffix('s')} {name}", settings, valid)
    return make


def write_study(path: Path, content: Mapping[str, Any], remarks: Sequence[str] = ()) -> None:
    """Write a study file with remarks at its top."""
    write_text(path, "".join(f"# {remark}\n" for remark in remarks) + toml(content))


def toml(content: Mapping[str, Any]) -> str:
    """A mapping as TOML: plain values first, then a `[[key]]` for each table of a list.

    >>> print(toml({"seeds": [0, 1], "adapters": [{"use": "tent", "lr": 1e-3}]}), end="")
    seeds = [0, 1]
    <BLANKLINE>
    [[adapters]]
    use = "tent"
    lr = 0.001
    """
    tables = {key: value for key, value in content.items() if _is_tables(value)}
    text = "".join(f"{_key(key)} = {_toml_value(key, value)}\n" for key, value in content.items() if key not in tables)
    for key, entries in tables.items():
        for entry in entries:
            lines = "".join(f"{_key(name)} = {_toml_value(name, value)}\n" for name, value in entry.items())
            text += f"\n[[{_key(key)}]]\n{lines}"
    return text


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, Mapping) for entry in value)


def _key(key: str) -> str:
    plain = key.isascii() and key.replace("-", "_").isidentifier()
    return key if plain else json.dumps(key, ensure_ascii=False)


def _toml_value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml_value(key, item) for item in value)}]"
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(name)} = {_toml_value(name, item)}" for name, item in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    raise HapteraError(
        f"{key} is {value!r}, which a study file cannot hold; a number, a text, true, false or a list was expected"
    )
