"""Options that several commands share, each written once, and groups of them, of which a command takes the object."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from haptera.errors import HapteraError

if TYPE_CHECKING:
    from torch import nn

    from haptera.data import Data
    from haptera.models import Preprocessing

T = TypeVar("T")

Weights = Annotated[list[Path] | None, typer.Option(help="A .safetensors file for each model, in order.")]
Size = Annotated[int | None, typer.Option(help="Resize and crop images of a folder to this side.")]
Crop = Annotated[str | None, typer.Option(help="Share of the shorter side that is kept, 0.875 by default; or squash.")]
Interpolation = Annotated[str | None, typer.Option(help="How images are resized: bilinear, bicubic, ...")]
Upright = Annotated[bool, typer.Option("--upright", help="Turn photographs as their EXIF orientation says.")]
Broken = Annotated[str, typer.Option(help="stop at an image that cannot be decoded, or drop such images.")]
Channels = Annotated[int | None, typer.Option(help="1 for grey, 3 for colour.")]
MappingFile = Annotated[
    str | None, typer.Option(help="imagenet-r and the like, or a CSV from the data's classes to the model's.")
]
Restrict = Annotated[
    bool | None, typer.Option("--restrict/--no-restrict", help="Predict only classes that the mapping names.")
]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, ...; a GPU if there is one.")]
Jobs = Annotated[int, typer.Option(help="Processes on this machine.")]
AllowPickle = Annotated[bool, typer.Option("--allow-pickle", help="Read pickled weights.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no remarks.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Normalise = Annotated[
    str | None, typer.Option(help="What the model expects: imagenet, half, MEAN/STD, none; its own by default.")
]
Logits = Annotated[str | None, typer.Option(help="Which of the model's outputs, such as logits, 1 or heads.0.")]
Normalisations = Annotated[
    list[str] | None,
    typer.Option("--normalise", help="imagenet, half, MEAN/STD or none; one for all models, or one for each."),
]
LogitsKeys = Annotated[
    list[str] | None, typer.Option("--logits", help="Which of a model's outputs; one for all models, or one for each.")
]
Model = Annotated[
    str, typer.Option(help="file.py:function, timm:NAME, hf:FOLDER, net.onnx, ...; `haptera list loaders`.")
]
OwnWeights = Annotated[Path | None, typer.Option("--weights", help="A .safetensors file.")]
BatchSize = Annotated[int, typer.Option(help="Images per forward pass.")]
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
    normalise: Normalise = None
    logits: Logits = None

    def load(self) -> "nn.Module":
        """Return the model with its weights, on its device."""
        from haptera.models import ModelSource
        from haptera.models.source import choose_device
        from haptera.run.parts import Spec

        spec = Spec.parse(self.model)
        others = (self.allow_pickle, self.normalise, self.logits)
        model = ModelSource(spec.name, self.weights, dict(spec.arguments), *others)()
        return model.to(choose_device(self.device))

    def preprocessing(self, model: "nn.Module") -> "dict[str, Preprocessing]":
        """Return name -> what the configuration of the model says, if it says anything."""
        own = getattr(model, "preprocessing", None)
        return {} if own is None else {self.model: own}


@dataclass(frozen=True)
class SizeOptions:
    """How images are read, and which outputs of a model count as right for their classes."""

    size: Size = None
    crop: Crop = None
    channels: Channels = None
    mapping: MappingFile = None
    restrict: Restrict = None
    upright: Upright = False
    broken: Broken = "stop"

    def open(self, models: "Mapping[str, Preprocessing] | None" = None, /, **sources: str | None) -> "dict[str, Data]":
        """Return the data behind each option that was given, such as `data="digits"`.

        Args:
            models: name -> what its configuration says, which holds where no option does.
            **sources: name of the option -> what it says.
        """
        from haptera.data import Data, map_labelled, open_data
        from haptera.models.preprocessing import default_resize

        opened: dict[str, Data] = {}
        default = default_resize(models or {}, [key for key, value in self._resize().items() if value is not None])
        for name, source in sources.items():
            if source is not None:
                how = {"channels": self.channels, "upright": self.upright, "broken": self.broken, **self._resize()}
                one = open_data(source, default=default, **how)
                if not isinstance(one, Data):
                    raise HapteraError(f"--{name} {source} has several parts; give one of its folders")
                opened[name] = one
        if self.mapping is not None or self.restrict:
            map_labelled(opened, self.mapping, self.restrict)
        return opened

    def _resize(self) -> dict[str, Any]:
        from haptera.files.toml import parse_value

        return {"size": self.size, "crop": None if self.crop is None else parse_value(self.crop)}


@dataclass(frozen=True)
class ImageOptions(SizeOptions):
    """The same for commands whose own settings have no interpolation."""

    interpolation: Interpolation = None

    def _resize(self) -> dict[str, Any]:
        return super()._resize() | {"interpolation": self.interpolation}


def expand_groups(function: Callable[..., T], without: Sequence[str] = ()) -> Callable[..., T]:
    """Return a function of options alone, as typer reads them, that calls another one.

    A parameter whose type is a dataclass, or `**settings: Annotated[Any, SomeDataclass]`, becomes an option for each of
    its fields. The section `Args` or `Attributes` of a docstring is the help of those that typer has no help for yet.

    Args:
        function: what is called.
        without: parameters that are no options; who calls the function may give them.
    """
    asked = [each for each in inspect.signature(function).parameters.values() if each.name not in without]
    hints = _hints(function)
    groups = {each.name: kind for each in asked if (kind := _group(hints.get(each.name)))}
    own: list[inspect.Parameter] = []
    for each in asked:
        if kind := groups.get(each.name):
            fields = inspect.signature(kind).parameters.values()
            own += _options(fields, get_type_hints(kind, include_extras=True), inspect.getdoc(kind))
        else:
            own += _options([each], hints, inspect.getdoc(function))
    empty = [each.name for each in own if each.default == ()]  # no values, which typer writes as None
    own = [each.replace(default=None) if each.default == () else each for each in own]

    @wraps(function)
    def command(**given: Any) -> T:
        given |= {name: () for name in empty if given[name] is None}
        made = {name: {key: given.pop(key) for key in kind.__dataclass_fields__} for name, kind in groups.items()}
        given |= {name: groups[name](**fields) for name, fields in made.items()}
        several = next((each.name for each in asked if each.kind is each.VAR_POSITIONAL), None)
        spread = [each.name for each in asked if each.kind is each.VAR_KEYWORD]
        given |= {key: value for name in spread for key, value in vars(given.pop(name)).items()}
        placed = [each.POSITIONAL_ONLY for each in asked] + [each.POSITIONAL_OR_KEYWORD for each in asked if several]
        first = [given.pop(each.name) for each in asked if each.kind in placed]
        return function(*first, *(given.pop(several) or () if several else ()), **given)

    return set_options(command, own)


def set_options(command: Callable[..., T], options: Sequence[inspect.Parameter]) -> Callable[..., T]:
    """Return a command that says what its options are, and has the first paragraph of its docstring as help."""
    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in options}
    command.__doc__ = (inspect.getdoc(command) or "").split("\n\n")[0]
    return command


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of the parameters; that of the result may be known to type checkers alone."""
    known = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    return get_type_hints(SimpleNamespace(__annotations__=known), function.__globals__, include_extras=True)


def _group(hint: Any) -> Any:
    """Return the dataclass that a parameter is, or that its annotation names; None where there is none."""
    return next((kind for kind in (hint, *get_args(hint)) if isinstance(kind, type) and is_dataclass(kind)), None)


def _options(
    parameters: Iterable[inspect.Parameter], hints: Mapping[str, Any], docstring: str | None
) -> list[inspect.Parameter]:
    """Return parameters as typer wants them."""
    text = _help(docstring or "")
    kinds = [_option(hints.get(each.name, str), each, text.get(each.name, "")) for each in parameters]
    parameters = [
        each.replace(kind=each.KEYWORD_ONLY, default=None if each.kind is each.VAR_POSITIONAL else each.default)
        for each in parameters
    ]
    return [each.replace(annotation=kind) for each, kind in zip(parameters, kinds, strict=True)]


def _option(hint: Any, parameter: inspect.Parameter, text: str) -> Any:
    """Return an annotation for typer; those that are one already stay."""
    if get_origin(hint) is Annotated:
        return hint
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return Annotated[list[hint] | None, typer.Argument(help=text, show_default=False)]
    if parameter.default is inspect.Parameter.empty or parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        return Annotated[hint, typer.Argument(help=text, show_default=False)]
    if hint is bool and not parameter.default:
        return Annotated[bool, typer.Option(f"--{parameter.name.replace('_', '-')}", help=text)]
    if get_origin(hint) is Sequence or (get_origin(hint) in (list, tuple) and parameter.default == ()):
        hint = list[get_args(hint)[0]] | None if parameter.default == () else list[get_args(hint)[0]]  # type: ignore[misc]
        text = f"{text} Repeatable."
    return Annotated[hint, typer.Option(help=text, show_default=parameter.default not in (None, ()))]


def _help(docstring: str) -> dict[str, str]:
    """Return what the section `Args` or `Attributes` of a docstring says about each parameter."""
    rest = re.split(r"^(?:Args|Attributes):\n", docstring, maxsplit=1, flags=re.MULTILINE)[-1]
    rest = re.split(r"\n(?=\S)", rest, maxsplit=1)[0]
    entries = re.findall(r"^ {4}(\w+): (.*?)(?=^ {4}\w+: |\Z)", rest, re.MULTILINE | re.DOTALL)
    return {name: _capital(" ".join(text.split())) for name, text in entries}


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:] if text[:1].isascii() else text
