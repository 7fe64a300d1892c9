"""`attribute`: which channels of an embedded recording carry what it was embedded by."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.cli.say import logging_to_stderr, say, say_json

if TYPE_CHECKING:
    from haptera.analyses.attribution.analysis import Recorded

SHOWN = 60
"""Channels that are named in the sentence; all of them are in the files."""


def attribute(
    folder: Annotated[Path, typer.Argument(help="What `haptera embed --out` wrote.", show_default=False)],
    recording: Annotated[
        Path | None, typer.Option(help="The recording, if it is no longer where it was.", show_default=False)
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="inverted_jacobian, gradient, integrated_gradients, feature_ablation or shapley (the last are slow)."
        ),
    ] = "inverted_jacobian",
    jacobian_weight: Annotated[float, typer.Option(help="Of the term that keeps Jacobians small, in the fits.")] = 0.1,
    fits: Annotated[int, typer.Option(help="Fits beside decoys, each as long as that of embed.")] = 3,
    copies: Annotated[int, typer.Option(help="Decoys of each channel.")] = 8,
    level: Annotated[float, typer.Option(help="Rate of false discoveries.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Of decoys and fits.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="No remarks.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Name the channels that carry a label, by attribution maps and a test against shuffled copies of the channels."""
    with logging_to_stderr(quiet):
        from haptera.analyses.attribution.analysis import attribute_recording
        from haptera.analyses.attribution.page import write_attribution
        from haptera.files.atomic import write_text

        found = attribute_recording(
            folder,
            recording,
            method=method,
            jacobian_weight=jacobian_weight,
            fits=fits,
            copies=copies,
            level=level,
            seed=seed,
            progress=False if quiet else None,
        )
        files = {"report": folder / "attribution.html", "table": folder / "attribution.csv"}
        write_text(files["table"], found.table().to_csv(index=False))
        write_attribution(found, files["report"])
    names = {name: str(path) for name, path in files.items()}
    if as_json:
        say_json(_content(found) | {"files": names})
        return
    say(sentence(found))
    say("  ".join(names.values()))


def sentence(found: "Recorded") -> str:
    """How many carry it, by which test, and which."""
    names = [found.names[place] for place in found.carriers.channels]
    shown = " ".join(names[:SHOWN]) + (f" ... ({len(names) - SHOWN} more)" if len(names) > SHOWN else "")
    least = found.carriers.least
    few = f"; with so few --copies, less than {least} cannot be named" * (least > 1)
    what = f"{len(names)} of {len(found.names)} {found.noun} carry {found.what}"
    return f"{what} (shuffle test, FDR {100 * found.carriers.level:g} %){': ' + shown if names else few}"


def _content(found: "Recorded") -> dict[str, Any]:
    from haptera.files.json import plain

    table = found.table()
    return {
        "what": found.what,
        "method": found.method,
        "jacobian_weight": found.jacobian_weight,
        "promise": found.promise,
        "level": found.carriers.level,
        "fits": found.carriers.fits,
        "decoys": len(found.carriers.null),
        "carriers": [found.names[place] for place in found.carriers.channels],
        "channels": plain(table.to_dict("records")),
    }
