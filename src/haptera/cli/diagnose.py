"""`diagnose`: has data shifted, where in the network, what will it cost, how should adaptation be set?"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.analyses.diagnosis import DiagnosisSettings
from haptera.cli.options import ImageOptions, ModelOptions

if TYPE_CHECKING:
    from haptera.analyses.diagnosis.analysis import Diagnosis


def diagnose(
    model: ModelOptions,
    data: Annotated[str, typer.Option(help="The data in question: digits, an .npz file, or a folder of images.")],
    images: ImageOptions,
    settings: DiagnosisSettings,
    reference: str | None = None,
    layer: Sequence[str] = (),
    out: Path | None = None,
    progress: bool | None = None,
) -> "Diagnosis":
    """Compare unlabelled data with a reference, or with a model's BatchNorm statistics.

    Args:
        model: what looks at the data.
        data: the data in question.
        images: how they are read.
        settings: of the comparison.
        reference: what the model was made for; labelled to predict errors.
        layer: a module, or a pattern of names.
        out: a folder where every known corruption that was tried is kept.
        progress: show a bar.
    """
    from haptera.analyses.diagnosis import analysis

    network = model.load()
    opened = images.open(model.preprocessing(network), data=data, reference=reference)
    more: dict[str, Any] = {"layers": layer, "out": out, "progress": progress}
    return analysis.diagnose(network, opened["data"], opened.get("reference"), **more, **vars(settings))
