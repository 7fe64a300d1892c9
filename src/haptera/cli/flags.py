"""Commands whose help shows a flag as a flag: `--quiet`, not `--quiet <bool>`."""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class _PlainFlags:
    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters; flags take no value, so none is named in help."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class Command(_PlainFlags, TyperCommand):
    """A command."""


class Group(_PlainFlags, TyperGroup):
    """A command with commands of its own."""


def with_plain_flags(app: typer.Typer) -> typer.Typer:
    """Return an app whose commands are of these classes."""
    for each in app.registered_commands:
        each.cls = Command
    return app
