"""Options that several commands share, each written once, and groups of them, of which a command takes the object."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from haptera.errors import HapteraError

if TYPE_CHECKING:
    from torch import nn

    from haptera.data import Data

Models = Annotated[
    list[str] | None, typer.Option(help="A name of the catalog, module:function or file.py:function; repeatable.")
]
Weights = Annotated[list[Path] | None, typer.Option(help="A .safetensors file for each model, in order.")]
DataPath = Annotated[str | None, typer.Option(help="digits, an .npz file, or a folder of images.")]
Size = Annotated[int | None, typer.Option(help="Resize and crop images of a folder to this side.")]
Channels = Annotated[int | None, typer.Option(help="1 for grey, 3 for colour.")]
MappingFile = Annotated[Path | None, typer.Option(help="CSV from the data's classes to the model's: class,accepted.")]
Restrict = Annotated[bool, typer.Option("--restrict", help="Predict only classes that the mapping names.")]
Keep = Annotated[str | None, typer.Option(help="float32 or float16 logits, or top5 and the like.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, ...; a GPU if there is one.")]
Jobs = Annotated[int, typer.Option(help="Processes on this machine.")]
Cluster = Annotated[str | None, typer.Option(help="Address of a Dask scheduler.")]
AllowPickle = Annotated[bool, typer.Option("--allow-pickle", help="Read pickled weights.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no remarks.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Model = Annotated[str, typer.Option(help="A name of the catalog, module:function or file.py:function.")]
OwnWeights = Annotated[Path | None, typer.Option("--weights", help="A .safetensors file.")]
BatchSize = Annotated[int, typer.Option(help="Images per forward pass.")]
Folder = Annotated[Path, typer.Argument(help="The folder of a study.", show_default=False)]
Out = Annotated[
    Path | None,
    typer.Option(help="Write report.html, table.parquet and result.json into this folder.", show_default=False),
]


@dataclass(frozen=True)
class ModelOptions:
    """The model that a command looks at, and where it runs."""

    model: Model
    weights: OwnWeights = None
    device: Device = None
    allow_pickle: AllowPickle = False

    def load(self) -> "nn.Module":
        """Return the model with its weights, on its device."""
        from haptera.models import ModelSource
        from haptera.models.device import choose_device
        from haptera.run.flags import Spec

        spec = Spec.parse(self.model)
        model = ModelSource(spec.name, self.weights, dict(spec.arguments), self.allow_pickle)()
        return model.to(choose_device(self.device))


@dataclass(frozen=True)
class ImageOptions:
    """How images are read, and which outputs of a model count as right for their classes."""

    size: Size = None
    channels: Channels = None
    mapping: MappingFile = None
    restrict: Restrict = False

    def open(self, **sources: str | None) -> "dict[str, Data]":
        """Return the data behind each option that was given, such as `data="digits"`."""
        from haptera.data import Data, map_labelled, open_data

        opened: dict[str, Data] = {}
        for name, source in sources.items():
            if source is not None:
                one = open_data(source, size=self.size, channels=self.channels)
                if not isinstance(one, Data):
                    raise HapteraError(f"--{name} {source} has several parts; give one of its folders")
                opened[name] = one
        if self.mapping is not None or self.restrict:
            map_labelled(opened, self.mapping, self.restrict)
        return opened


@dataclass(frozen=True)
class StudyOptions:
    """Models and data of a study."""

    model: Models = None
    weights: Weights = None
    data: DataPath = None
    size: Size = None
    channels: Channels = None
    mapping: MappingFile = None
    restrict: Restrict = False
    allow_pickle: AllowPickle = False

    def content(self, base: Path, streams: Sequence[str] = (), adapters: Sequence[str] = ()) -> dict[str, Any]:
        """Return what a study file would say, with paths relative to `base`."""
        from haptera.run.flags import data_from_flags, from_flags

        content = from_flags(self.model or [], self.weights or [], streams, adapters, base)
        source = data_from_flags(self.data, self.size, self.channels, self.mapping, self.restrict, base)
        return content | ({"data": source} if source else {})


@dataclass(frozen=True)
class RunOptions:
    """Where and how cells run, and what is said about it."""

    keep: Keep = None
    device: Device = None
    jobs: Jobs = 1
    cluster: Cluster = None
    quiet: Quiet = False
    as_json: Json = False

    @property
    def progress(self) -> bool | None:
        """Return whether to show a bar; None where that depends on who is looking."""
        return False if self.quiet else None


def expand_groups(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command with an option for each field of the parameters that are groups."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        owner = groups.get(name, function)
        own = inspect.signature(owner).parameters.values() if name in groups else [parameter]
        known = get_type_hints(owner, include_extras=True)
        parameters += [each.replace(annotation=known[each.name], kind=each.KEYWORD_ONLY) for each in own]

    @wraps(function)
    def command(**given: Any) -> None:
        made = {name: kind(**{key: given.pop(key) for key in kind.__match_args__}) for name, kind in groups.items()}
        function(**given, **made)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command
