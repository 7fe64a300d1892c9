"""What the commands of `pose` share: their options, and what these name."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.errors import HapteraError

if TYPE_CHECKING:
    from haptera.pose import PoseModel

Data = Annotated[
    str,
    typer.Argument(
        help="drawn (drawn:individuals=30,frames=40,seed=0), a table or project of DeepLabCut, or a COCO .json file.",
        show_default=False,
    ),
]
Images = Annotated[Path | None, typer.Option(help="The folder that paths of images begin at.")]
Size = Annotated[
    str | None,
    typer.Option(help="HEIGHTxWIDTH, such as 160x288, to which images are brought; a trained model knows its own."),
]
Scorer = Annotated[str | None, typer.Option(help="Whose labels, where there are several scorers; a,b for both.")]
Individual = Annotated[
    str | None,
    typer.Option("--individual-by", help="Whose image it is in a COCO file: a field of it, folder, or image."),
]
BatchSize = Annotated[int, typer.Option(help="Frames in a pass.")]
OwnBackbone = Annotated[
    str | None, typer.Option("--backbone", help="file.py:function, again, if the model was trained with one.")
]


def read_size(text: str | None) -> tuple[int, int] | None:
    """Return height and width.

    >>> read_size("160x288")
    (160, 288)
    """
    if text is None:
        return None
    height, _, width = text.partition("x")
    if not (height.isdigit() and width.isdigit()):
        raise HapteraError(f"--size is {text!r}; HEIGHTxWIDTH was expected, such as 160x288")
    return int(height), int(width)


def read_backbone(text: str) -> dict[str, Any]:
    """Return what `PoseModel` is told: `small:width=8` by its name, `file.py:build` as what that function returns."""
    from haptera.pose.backbone import import_backbone
    from haptera.run.flags import Spec

    spec = Spec.parse(text) if "=" in text else Spec(text, {})
    if ":" not in spec.name:
        return {"backbone": spec.name, "settings": dict(spec.arguments)}
    place, _, function = spec.name.rpartition(":")
    origin = f"{Path(place).name if place.endswith('.py') else place}:{function}"
    return {"backbone": import_backbone(spec.name, spec.arguments), "origin": origin}


def load_model(path: Path, backbone: str | None) -> "PoseModel":
    """Return a trained model; a backbone of one's own is named again."""
    from haptera.pose import PoseModel
    from haptera.pose.checkpoints import check_result

    own = None if backbone is None else read_backbone(backbone)["backbone"]
    if isinstance(own, str):
        raise HapteraError(f"--backbone is {backbone!r}, which the file says by itself; file.py:function was expected")
    check_result(path)
    return PoseModel.load(path, own)
