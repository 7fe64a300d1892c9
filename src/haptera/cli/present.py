"""One way to run any analysis as a command, and to show what it found.

A command is made from a function that returns an `Analysis`: its parameters become arguments and options, and its
docstring their help; one whose type is a dataclass, or `**settings: Annotated[Any, SomeDataclass]`, becomes an option
for each of its fields. Every command gets `--out`, `--quiet` and `--json` as well; a function that has a parameter
`out` keeps a ledger there and goes on where it was stopped, and one that has `progress` is told whether to show a bar.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

from haptera.cli.options import Json, Out, Quiet
from haptera.cli.say import logging_to_stderr, resumable, say, say_json

if TYPE_CHECKING:
    from haptera.analysis import Analysis

OWN = {"out": (Out, None), "quiet": (Quiet, False), "as_json": (Json, False)}


def command_of(function: "Callable[..., Analysis]") -> Callable[..., None]:
    """Return a function that the command line can call: it runs an analysis and shows what it found."""
    signature = inspect.signature(function)
    asked = [parameter for name, parameter in signature.parameters.items() if name not in (*OWN, "progress")]
    hints = _hints(function)
    groups = {each.name: kind for each in asked if (kind := _group(hints.get(each.name)))}
    spread = [each.name for each in asked if each.kind is inspect.Parameter.VAR_KEYWORD]
    own = _options([each for each in asked if each.name not in groups], hints, inspect.getdoc(function))
    for kind in groups.values():
        fields = inspect.signature(kind).parameters.values()
        own += _options(fields, get_type_hints(kind, include_extras=True), inspect.getdoc(kind))
    more = [inspect.Parameter(name, KEYWORD, default=default, annotation=kind) for name, (kind, default) in OWN.items()]
    first = [name for name, each in signature.parameters.items() if each.kind is inspect.Parameter.POSITIONAL_ONLY]
    empty = [each.name for each in own if each.default == ()]  # no values, which typer writes as None
    own = [each.replace(default=None) if each.default == () else each for each in own]

    @wraps(function)
    def command(out: Path | None, quiet: bool, as_json: bool, **given: Any) -> None:
        given |= {name: () for name in empty if given[name] is None}
        given |= {name: kind(**{key: given.pop(key) for key in kind.__match_args__}) for name, kind in groups.items()}
        given |= {key: value for name in spread for key, value in vars(given.pop(name)).items()}
        given |= {"out": out} if "out" in signature.parameters else {}
        given |= {"progress": False if quiet else None} if "progress" in signature.parameters else {}
        arguments = [given.pop(name) for name in first]
        goes_on = out is not None and "out" in signature.parameters
        with logging_to_stderr(quiet), resumable(lambda: _how_far(out), always=goes_on):
            present(function(*arguments, **given), out, quiet, as_json)

    command.__signature__ = inspect.Signature(own + more)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in own + more}
    command.__doc__ = (inspect.getdoc(function) or "").split("\n\n")[0]
    return command


def present(analysis: "Analysis", out: Path | None, quiet: bool, as_json: bool) -> None:
    """Write an analysis into its folder, if there is one, and print it; ends with 1 where a part of it failed."""
    out = out or analysis.folder
    files = {} if out is None else {name: str(path) for name, path in analysis.save(out).items()}
    if as_json:
        say_json(analysis.json() | ({"files": files} if files else {}))
    else:
        say(analysis.summary(notes=not quiet))
        if files:
            say("  ".join(files.values()))
    if analysis.failures:
        raise typer.Exit(1)


KEYWORD = inspect.Parameter.KEYWORD_ONLY


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
    return [each.replace(annotation=kind, kind=KEYWORD) for each, kind in zip(parameters, kinds, strict=True)]


def _option(hint: Any, parameter: inspect.Parameter, text: str) -> Any:
    """Return an annotation for typer; those that are one already stay."""
    if get_origin(hint) is Annotated:
        return hint
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


def _how_far(out: Path | None) -> str:
    from haptera.run.ledger import how_far

    return "" if out is None else how_far(out)
