"""`diagnose`: has data shifted, where in the network, what will it cost, how should adaptation be set?"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.cli.options import AllowPickle, Channels, Device, Json, MappingFile, Quiet, Restrict, Size
from haptera.cli.say import logging_to_stderr, say, say_json

if TYPE_CHECKING:
    from haptera.analyses.diagnosis.analysis import Diagnosis


def diagnose(
    model: Annotated[str, typer.Option(help="A name of the catalog, module:function or file.py:function.")],
    data: Annotated[str, typer.Option(help="The data in question: digits, an .npz file, or a folder of images.")],
    weights: Annotated[Path | None, typer.Option(help="A .safetensors file.")] = None,
    reference: Annotated[
        str | None, typer.Option(help="What the model was made for; labelled to predict errors.")
    ] = None,
    layer: Annotated[list[str] | None, typer.Option(help="A module, or a pattern of names; repeatable.")] = None,
    samples: Annotated[int, typer.Option(help="Images of each, at most.")] = 1000,
    known_samples: Annotated[int, typer.Option(help="Images per known corruption; 0 leaves these out.")] = 256,
    covariance: Annotated[bool, typer.Option(help="Distances with whole covariance matrices as well.")] = False,
    adapted: Annotated[
        bool, typer.Option(help="Also the errors of known corruptions with BatchNorm adaptation; three times as long.")
    ] = False,
    batch_size: Annotated[int, typer.Option(help="Images per forward pass.")] = 64,
    size: Size = None,
    channels: Channels = None,
    mapping: MappingFile = None,
    restrict: Restrict = False,
    device: Device = None,
    seed: Annotated[int, typer.Option(help="Of the choice of images.")] = 0,
    allow_pickle: AllowPickle = False,
    quiet: Quiet = False,
    as_json: Json = False,
    report: Annotated[Path | None, typer.Option(help="Also write a page with figures to this file.")] = None,
) -> None:
    """Compare unlabelled data with a reference, or with a model's BatchNorm statistics."""
    from haptera.run.flags import Spec

    with logging_to_stderr(quiet):
        from haptera.analyses.diagnosis.analysis import diagnose as look
        from haptera.data import Data, map_labelled, open_data
        from haptera.errors import HapteraError
        from haptera.models import ModelSource
        from haptera.models.device import choose_device

        spec = Spec.parse(model)
        opened: dict[str, Data] = {}
        for name, source in (("data", data), ("reference", reference)):
            if source is not None:
                one = open_data(source, size=size, channels=channels)
                if not isinstance(one, Data):
                    raise HapteraError(f"--{name} {source} has several parts; give one of its folders")
                opened[name] = one
        if mapping is not None or restrict:
            map_labelled(opened, mapping, restrict)
        found = look(
            ModelSource(spec.name, weights, dict(spec.arguments), allow_pickle)().to(choose_device(device)),
            opened["data"],
            opened.get("reference"),
            layers=layer or (),
            samples=samples,
            known_samples=known_samples,
            batch_size=batch_size,
            covariance=covariance,
            adapted=adapted,
            seed=seed,
            progress=False if quiet else None,
        )
    from haptera.analyses.diagnosis.page import sentences, write_diagnosis

    if report is not None:
        write_diagnosis(found, report, data, reference)
    if as_json:
        say_json(_content(found))
        return
    for name, text in sentences(found, data, reference):
        say(f"{name:<16} {text}")
    if report is not None:
        say(str(report))


def _content(found: "Diagnosis") -> dict[str, Any]:
    """The JSON object."""
    from haptera.files.json import plain

    nearest = found.nearest
    return plain(
        {
            "size": found.test.size,
            "chance": found.test.chance,
            "p_value": found.test.p_value,
            "layers": found.profile.to_dict("records"),
            "nearest": None if nearest is None else {k: nearest[k] for k in ("shift", "severity", "cosine")},
            "reference_error": found.reference_error,
            "measured_error": found.measured_error,
            "prediction": None if found.predicted is None else asdict(found.predicted),
            "families": found.families.to_dict("records"),
            "regressions": found.regressions.to_dict("records"),
            "priors": found.priors.to_dict("records"),
        }
    )
