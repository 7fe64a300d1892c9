"""`pose similarity`: what two networks hold about the same frames, layer by layer."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from haptera.cli.present import command_of

if TYPE_CHECKING:
    from haptera.pose.similarity import PoseSimilarity

Network = Annotated[str, typer.Argument(help="A network, as --model of the other pose commands.", show_default=False)]
Frames = Annotated[str, typer.Option(help="Labelled frames, as of pose score.", show_default=False)]


def similarity(
    first: Network, second: Network, data: Frames, layer: Sequence[str] = (), batch_size: int = 64
) -> "PoseSimilarity":
    """Compare the layers of two pose networks by CKA.

    Args:
        first: a network.
        second: another one.
        data: the frames that both see.
        layer: names of layers, or patterns of names; all BatchNorm layers by default.
        batch_size: frames in a pass; more give less noise.
    """
    from haptera.pose.opening import open_model, open_pose
    from haptera.pose.similarity import compare_networks

    networks = [open_model(name) for name in (first, second)]
    names = tuple(str(Path(name)) for name in (first, second))
    return compare_networks(
        networks[0], networks[1], open_pose(data, size=networks[0].size), layers=tuple(layer), batch_size=batch_size,
        names=(names[0], names[1]),
    )  # fmt: skip


similarity_command = command_of(similarity)
