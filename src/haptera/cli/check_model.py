"""`check-model`: is a model set up for its images as it was trained?"""

from typing import TYPE_CHECKING, Annotated

import typer

from haptera.analyses.preflight import PreflightSettings
from haptera.cli.options import ImageOptions, ModelOptions

if TYPE_CHECKING:
    from haptera.analyses.preflight.analysis import Preflight


def check_model(
    model: ModelOptions,
    data: Annotated[str, typer.Option(help="Clean images, best with labels: digits, an .npz file, or a folder.")],
    images: ImageOptions,
    settings: PreflightSettings,
    reference: str | None = None,
) -> "Preflight":
    """Check, in a minute at most, that a model gets its inputs and labels as in training.

    Args:
        model: what is checked.
        data: clean images of the kind that it was trained on.
        images: how they are read.
        settings: of the checks.
        reference: the images it was trained on, of which none should be among the data.
    """
    from haptera.analyses.preflight import analysis

    network = model.load()
    opened = images.open(model.preprocessing(network), data=data, reference=reference)
    return analysis.check_model(network, opened["data"], opened.get("reference"), name=model.model, **vars(settings))
