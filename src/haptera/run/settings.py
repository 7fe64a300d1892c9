"""Settings of a study, as its file says them: one dataclass for each table, read by `haptera.files.schema.read_as`.

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

Paths are relative to the study file, or to the present folder for flags. `haptera.run.build` makes the Study.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

from haptera.errors import HapteraError, check_keys
from haptera.files.schema import read_as, shown, whole_number
from haptera.files.toml import read_toml

CALIBRATION = "haptera-calibration"
"""The folder that `haptera calibrate` writes, and the stream `ccc` reads, where no other is given."""


@dataclass(frozen=True)
class DataSettings:
    """Where the data is, and how it is read."""

    path: str
    size: Annotated[int, whole_number(1, 2**14)] | None = None
    channels: Annotated[int, whole_number(1)] | None = None
    mapping: Path | None = None
    restrict: bool | None = None

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
        place, _, function = self.build.rpartition(":")
        return Path(place).stem if place.endswith(".py") else function


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
