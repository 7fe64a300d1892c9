"""`dependencies LOGITS`, `dependencies new`, `dependencies cut`: verdict and graph, new classes, before and after."""

from typing import Any

import typer

from haptera.analyses.dependencies import compare_cut, dependencies, learn_new_classes
from haptera.cli.flags import Group
from haptera.cli.present import command_of

SHOW = "show"


class _Logits(Group):
    """`dependencies LOGITS` is `dependencies show LOGITS`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = [SHOW, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Logits,
    help="Which classes follow from others: `dependencies LOGITS` gives verdict, graph and cost; its options are "
    "those of `dependencies show`.",
    no_args_is_help=True,
)
app.command(SHOW)(command_of(dependencies))
app.command("new")(command_of(learn_new_classes))
app.command("cut")(command_of(compare_cut))
