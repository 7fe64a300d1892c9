"""What the commands of `pose` share: their options, and what these name."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.errors import HapteraError, check_keys

if TYPE_CHECKING:
    from haptera.pose import PoseData, PoseModel

Data = Annotated[
    str, typer.Argument(help="drawn, a table or project of DeepLabCut, or a COCO .json file.", show_default=False)
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
Normalise = Annotated[
    str | None, typer.Option(help="box, pixels, or two parts such as nose,eye; nose,eye where there are both.")
]
OwnBackbone = Annotated[
    str | None, typer.Option("--backbone", help="file.py:function, again, if the model was trained with one.")
]
Drawn = Annotated[str | None, typer.Option(help="Settings of drawn animals: individuals=30,frames=40,seed=0.")]


def open_frames(
    data: str, images: Path | None, size: str | None, scorer: str | None, individual: str | None, drawn: str | None
) -> "PoseData":
    """Return labelled frames, as the options say."""
    from inspect import signature

    from haptera.pose import drawn_animals, open_pose
    from haptera.run.flags import Spec

    settings = {} if drawn is None else dict(Spec.parse(f"drawn:{drawn}").arguments)
    check_keys("setting of drawn animals", settings, signature(drawn_animals).parameters)
    return open_pose(data, images, size=read_size(size), scorer=scorer, individual=individual, **settings)


def read_size(text: str | None) -> tuple[int, int] | None:
    """Height and width.

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

    own = None if backbone is None else read_backbone(backbone)["backbone"]
    if isinstance(own, str):
        raise HapteraError(f"--backbone is {backbone!r}, which the file says by itself; file.py:function was expected")
    return PoseModel.load(path, own)


def read_shift(text: str) -> Any:
    """Return the shift of `contrast=5`."""
    from haptera import catalog

    name, _, severity = text.partition("=")
    try:
        level = float(severity)
    except ValueError as error:
        raise HapteraError(f"--shift is {text!r}; NAME=SEVERITY was expected, such as contrast=5") from error
    return catalog.find_or_import("shifts", name)(level)
