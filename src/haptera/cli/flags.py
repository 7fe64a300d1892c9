"""Commands whose help shows a flag as a flag, `--quiet`, not `--quiet <bool>`, and the options one needs first."""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

FIRST = ("model", "weights", "data", "reference", "stream", "adapter", "shift", "severity", "out")
"""Options that help shows before others, in this order."""


class _PlainFlags:
    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters in the order of help; flags take no value, so none is named there."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return sorted(parameters, key=_rank)


def _rank(parameter: Any) -> int:
    """Return the place of a parameter: arguments, then the options of `FIRST`, then others in their own order."""
    if parameter.param_type_name == "argument":
        return -1
    return FIRST.index(parameter.name) if parameter.name in FIRST else len(FIRST)


class Command(_PlainFlags, TyperCommand):
    """A command."""


class Group(_PlainFlags, TyperGroup):
    """A command with commands of its own."""


def with_plain_flags(app: typer.Typer) -> typer.Typer:
    """Return an app whose commands are of these classes."""
    for each in app.registered_commands:
        each.cls = Command
    return app
