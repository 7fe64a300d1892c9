"""Build a Study from its settings: open its data, find its models, streams and adapters."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from haptera.errors import HapteraError
from haptera.run.flags import from_flags, located
from haptera.run.parts import make_adapter, make_stream
from haptera.run.settings import DataSettings, ModelSettings, StudySettings


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
    data = DataSets(folder, settings.data)
    models = _models(settings.tables("models"), folder, allow_pickle)
    tables = settings.tables("streams") or data.default_streams()
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
    )


class DataSets:
    """The data sets of a study, each opened once.

    Args:
        folder: paths are relative to it.
        main: the study's own data, as its file gives it.
    """

    def __init__(self, folder: Path, main: Any) -> None:
        self.folder, self.main = folder, main
        self._opened: dict[DataSettings, Any] = {}

    def open(self, source: Any = None) -> Any:
        """Return the data behind a path or a table; the study's own by default."""
        from haptera.data import open_data

        source = self.main if source is None else source
        if source is None:
            raise HapteraError("no data: give data in the study file, or --data")
        settings = DataSettings.read(source)
        if settings not in self._opened:
            given = {key: value for key, value in asdict(settings).items() if value is not None}
            path = given.pop("path")
            if settings.mapping is not None:
                given["mapping"] = self.folder / settings.mapping
            self._opened[settings] = open_data(path if path == "digits" else self.folder / path, **given)
        return self._opened[settings]

    def default_streams(self) -> list[dict[str, Any]]:
        """Return what to run where nothing is said."""
        from haptera.data import CorruptedImages

        if isinstance(self.open(), CorruptedImages):
            return [{"use": "directory"}]
        return [{"use": "clean"}, {"use": "corruptions"}]


def models_from_flags(
    models: Sequence[str], weights: Sequence[Path] = (), allow_pickle: bool = False
) -> dict[str, Any]:
    """Return name -> `ModelSource`, for commands that take models but no study."""
    return _models(from_flags(models, weights)["models"], Path(), allow_pickle)


def _models(tables: Sequence[Mapping[str, Any]], folder: Path, allow_pickle: bool) -> dict[str, Any]:
    from haptera.models import ModelSource

    if not tables:
        raise HapteraError("no models: give [[models]] in the study file, or --model")
    models: dict[str, Any] = {}
    every = [ModelSettings.read(table) for table in tables]
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
        models[name] = ModelSource(located(each.build, folder), weights, dict(each.arguments), pickles)
    return models
