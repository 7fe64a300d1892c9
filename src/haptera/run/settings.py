"""Settings of a study, as its file says them: one dataclass for each table, read by `haptera.files.schema.read_as`.

    batch_size = 64                      # optional, as are seeds, keep, device, images
    data = "val/"                        # or a table: path, size, crop, interpolation, channels, mapping, restrict
    [[models]]
    build = "net.py:build"               # or a name of the catalog; name, weights, arguments, allow_pickle, normalise
                                         # and logits are optional
    [[streams]]
    use = "corruptions"                  # a name of the catalog; name, data and the stream's own settings are optional,
                                         # as are interleave, repeat, truncate and one_by_one, for any stream;
                                         # a list as batch_size makes a stream of each size
    [[adapters]]
    use = "batchnorm"                    # name and the adapter's own settings are optional, as are, for any adapter,
                                         # reset (every so many steps), epochs (learn offline, then predict) and
                                         # cost (intervals of the stream that a step takes)
    prior = 16

Paths are relative to the study file, or to the present folder for flags. `make_study` opens the data, finds models,
streams and adapters, and returns the Study.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

from haptera.errors import HapteraError, check_keys
from haptera.files.schema import read_as, shown, whole_number
from haptera.files.toml import read_toml
from haptera.run.parts import from_flags, located_data, located_mapping, make_adapter, make_stream


@dataclass(frozen=True)
class DataSettings:
    """Where the data is, and how it is read."""

    path: str
    size: Annotated[int, whole_number(1, 2**14)] | None = None
    crop: float | str | None = None
    interpolation: str | None = None
    channels: Annotated[int, whole_number(1)] | None = None
    mapping: str | None = None
    restrict: bool | None = None
    upright: bool | None = None
    broken: str | None = None

    @classmethod
    def read(cls, source: Any) -> "DataSettings":
        """Return the settings of a path, or of a table with one."""
        table = source if isinstance(source, Mapping) else {"path": source}
        check_keys("key of data", table, [each.name for each in fields(cls)])
        if not isinstance(table.get("path"), str):
            raise HapteraError(f"data is {shown(source)}; a path was expected")
        return read_as(cls, table, "data", "key of data")


@dataclass(frozen=True)
class ModelSettings:
    """How a model is built; `use` is another word for `build`."""

    build: Any = None
    name: str | None = None
    weights: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    allow_pickle: bool | None = None
    normalise: str | None = None
    logits: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.build, str):
            expected = "a name, module:function or file.py:function"
            raise HapteraError(f"a model has build {self.build!r}; {expected} was expected")

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> "ModelSettings":
        """Return the settings of one table of `[[models]]`."""
        renamed = {"build" if key == "use" else key: value for key, value in table.items()}
        return read_as(cls, renamed, "a model", "key of models")

    @property
    def stem(self) -> str:
        """What it is called without a name and weights: after the file of `file.py:function`, or else the function."""
        from haptera.models.loaders.finding import call

        return call(self.build)


@dataclass(frozen=True)
class StudySettings:
    """A study file; what a stream or an adapter takes is known to its class, so their tables stay as they are."""

    data: Any = None
    models: Any = field(default_factory=list)
    streams: Any = field(default_factory=list)
    adapters: Any = field(default_factory=list)
    seeds: tuple[int, ...] | None = None
    batch_size: Annotated[int, whole_number(1, 2**20)] = 64
    keep: str = "float32"
    device: str | None = None
    images: bool = True

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> "StudySettings":
        """Return the settings of a study file."""
        return read_as(cls, content, "the study", "key in the study file")

    def tables(self, key: str) -> list[dict[str, Any]]:
        """Return the tables of `models`, `streams` or `adapters`; a bare text is the name of what to use."""
        given = getattr(self, key)
        if not isinstance(given, list) or not all(isinstance(each, str | Mapping) for each in given):
            raise HapteraError(f"{key} is {shown(given)}; a list of tables, [[{key}]], was expected")
        return [{"use": each} if isinstance(each, str) else dict(each) for each in given]


def read_study(path: Path) -> dict[str, Any]:
    """Return the content of a study file."""
    if not path.exists():
        raise HapteraError(f"there is no study file {path}")
    return read_toml(path, "study file")


def make_study(
    content: Mapping[str, Any], out: Path, folder: Path = Path(), allow_pickle: bool = False, where: str = ""
) -> Any:
    """Return the Study that a study file describes.

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

    settings = StudySettings.read(content)
    models = _models(settings.tables("models"), folder, allow_pickle)
    data = DataSets(folder, settings.data, models)
    tables = spread_batch_sizes(settings.tables("streams") or data.default_streams())
    streams = [make_stream(table, data, settings.batch_size) for table in tables]
    adapters: dict[str, Any] = {}
    for table in settings.tables("adapters") or [{"use": "none"}]:
        name, make = make_adapter(table, folder)
        if name in adapters:
            raise HapteraError(f"two adapters are called {name!r}; give one another name")
        adapters[name] = make
    return Study(
        models,
        streams,
        adapters,
        out=out,
        seeds=settings.seeds,
        keep=settings.keep,
        device=settings.device,
        settings={"study": dict(content)},
        images=settings.images,
    )


def spread_batch_sizes(tables: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return tables of streams, those with a list of batch sizes once for each, by a name of their own.

    >>> spread_batch_sizes([{"use": "clean", "batch_size": [1, 16]}])[1]
    {'use': 'clean', 'batch_size': 16, 'name': 'clean, batches of 16'}
    """
    every: list[dict[str, Any]] = []
    for table in tables:
        sizes = table.get("batch_size")
        if isinstance(sizes, list) and sizes:
            name = table.get("name", table.get("use"))
            every += [{**table, "batch_size": size, "name": f"{name}, batches of {size}"} for size in sizes]
        else:
            every.append(dict(table))
    return every


class DataSets:
    """The data sets of a study, each opened once.

    Args:
        folder: paths are relative to it.
        main: the study's own data, as its file gives it.
        models: name -> source of a model, whose configuration says how images are read where the study does not.
    """

    def __init__(self, folder: Path, main: Any, models: Mapping[str, Any] | None = None) -> None:
        self.folder, self.main, self.models = folder, main, models or {}
        self._opened: dict[DataSettings, Any] = {}
        self._defaults: dict[frozenset[str], Any] = {}

    def open(self, source: Any = None) -> Any:
        """Return the data behind a path or a table; the study's own by default."""
        from haptera.data import open_data
        from haptera.models.preprocessing import KEYS

        source = self.main if source is None else source
        if source is None:
            raise HapteraError("no data: give data in the study file, or --data")
        settings = DataSettings.read(source)
        if settings not in self._opened:
            given = {key: value for key, value in asdict(settings).items() if value is not None}
            path = given.pop("path")
            if settings.mapping is not None:
                given["mapping"] = located_mapping(settings.mapping, self.folder)
            default = self._default(frozenset(given) & frozenset(KEYS))
            self._opened[settings] = open_data(located_data(path, self.folder), default=default, **given)
        return self._opened[settings]

    def _default(self, given: frozenset[str]) -> Any:
        """Return how the models want images to be read; they are not asked where all of it is given."""
        from haptera.models.preprocessing import KEYS, default_resize

        if given not in self._defaults:
            known = {} if len(given) == len(KEYS) else self.models
            self._defaults[given] = default_resize({name: own.preprocessing() for name, own in known.items()}, given)
        return self._defaults[given]

    def default_streams(self) -> list[dict[str, Any]]:
        """Return what to run where nothing is said."""
        from haptera.data import CorruptedImages

        if isinstance(self.open(), CorruptedImages):
            return [{"use": "directory"}]
        return [{"use": "clean"}, {"use": "corruptions"}]


def models_from_flags(
    models: Sequence[str],
    weights: Sequence[Path] = (),
    allow_pickle: bool = False,
    normalise: Sequence[str] = (),
    logits: Sequence[str] = (),
) -> dict[str, Any]:
    """Return name -> `ModelSource`, for commands that take models but no study."""
    flags = from_flags(models, weights, normalise=normalise, logits=logits)
    return _models(flags["models"], Path(), allow_pickle)


def _models(tables: Sequence[Mapping[str, Any]], folder: Path, allow_pickle: bool) -> dict[str, Any]:
    from haptera.models import ModelSource
    from haptera.models.loaders.finding import locate

    if not tables:
        raise HapteraError("no models: give [[models]] in the study file, or --model")
    models: dict[str, Any] = {}
    every = [ModelSettings.read(table) for table in tables]
    every = [replace(each, build=locate(each.build, folder)) for each in every]
    stems = Counter(each.stem for each in every)
    for each in every:
        weights = None if each.weights is None else folder / each.weights
        name = each.name or (weights.stem if weights else each.stem)
        place, _, function = each.build.rpartition(":")
        if each.name is None and weights is None and place.endswith(".py") and stems[name] > 1:
            name = f"{name}-{function}"  # several functions of one file
        if name in models:
            raise HapteraError(f"two models are called {name!r}; give each a name")
        pickles = allow_pickle if each.allow_pickle is None else each.allow_pickle
        others = (dict(each.arguments), pickles, each.normalise, each.logits)
        models[name] = ModelSource(each.build, weights, *others)
    return models
