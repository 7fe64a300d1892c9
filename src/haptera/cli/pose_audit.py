"""`pose audit`: a lab's own network on its own project."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.cli.present import command_of

if TYPE_CHECKING:
    from haptera.pose.audit import PoseAudit

NETWORK = "A DeepLabCut 3 snapshot (.pt), what `pose train` wrote, a folder of transformers, or file.py:function."
Model = Annotated[str, typer.Option(help=NETWORK, show_default=False)]
ADAPTER = "batchnorm:prior=16"


@dataclass(frozen=True)
class AuditOptions:
    """What is audited, and how much of it is looked at.

    Attributes:
        config: the pytorch_config.yaml of a snapshot, where it is not beside it.
        backbone: the file.py:function again, if the model was trained with one.
        new: videos of individuals that the network never saw, as a,b.
        split: the split.csv of `pose train`: frames of training are left out.
        video: further videos, to be compared with the labelled frames.
        shift: a corruption as name:severity; all:3, 15 at severity 3, by default; all for 5 severities; none for none.
        adapter: an adapter as name:key=value; batchnorm:prior=16 by default; none for none.
        scorer: whose labels; the project's own by default.
        size: HEIGHTxWIDTH to which frames are brought; a trained model knows its own.
        frames: labelled frames of each set that are scored.
        sample: frames of each video that are looked at.
        label: how many frames to name that should be labelled next.
        threshold: of PCK: 0.3 units of the animal; 5 where errors are in pixels.
        normalise: what divides errors: box, pixels, or two parts such as nose,eye.
        breaks: how many times the error makes a corruption one that breaks the network.
        far: the distance from the labelled frames above which a video is called out of domain.
        batch_size: frames in a pass.
        seed: of the corruptions.
    """

    model: Model
    config: Path | None = None
    backbone: str | None = None
    new: str | None = None
    split: Path | None = None
    video: Sequence[Path] = ()
    shift: Sequence[str] = ()
    adapter: Sequence[str] = ()
    scorer: str | None = None
    size: str | None = None
    frames: int = 60
    sample: int = 64
    label: int = 20
    threshold: float | None = None
    normalise: str | None = None
    breaks: float = 2.0
    far: float = 0.9
    batch_size: int = 64
    seed: int = 0


def audit(
    project: Annotated[Path, typer.Argument(help="The config.yaml of a DeepLabCut project.", show_default=False)],
    options: AuditOptions,
    out: Path | None = None,
    progress: bool | None = None,
) -> "PoseAudit":
    """Audit a network on a project: how good, where it breaks, what helps, which videos and frames to look at."""
    from dataclasses import replace

    from haptera.files.video import Video
    from haptera.pose.audit import AuditSettings
    from haptera.pose.audit import audit as run
    from haptera.pose.corruptions import read_shifts
    from haptera.pose.opening import open_adapter, open_model, read_size
    from haptera.pose.project import open_project
    from haptera.pose.splits import read_parts

    for path in options.video:
        Video(path)  # one that is asked for by name is refused at once; one that the project has is left out
    network = open_model(options.model, options.backbone, options.config)
    opened = open_project(project, scorer=options.scorer, size=read_size(options.size) or network.size)
    opened = replace(opened, videos=(*opened.videos, *options.video))
    names = [name for name in options.adapter or [ADAPTER] if name != "none"]
    settings = {key: getattr(options, key) for key in AuditSettings.__match_args__}
    path = Path(options.model)
    given: dict[str, Any] = {"out": out, "progress": progress, "settings": AuditSettings(**settings)}
    return run(
        network,
        opened,
        name=path.stem if path.stem != "model" else path.parent.name or "model",
        new=tuple(filter(None, (options.new or "").split(","))),
        split=None if options.split is None else read_parts(options.split, opened.data),
        shifts=read_shifts([text for text in options.shift or ["all:3"] if text != "none"]),
        adapters=dict(map(open_adapter, names)),
        **given,
    )


audit_command = command_of(audit)
