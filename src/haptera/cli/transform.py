"""`transform`: a recording embedded by a model that `embed` saved."""

from pathlib import Path
from typing import Annotated

import typer

from haptera.cli.embed import SourceOptions
from haptera.cli.options import Json, Quiet, expand_groups
from haptera.cli.say import say, say_json
from haptera.cli.say import session as messages
from haptera.errors import HapteraError, unknown

ENDINGS = (".npz", ".csv", ".parquet")


@expand_groups
def transform(
    model: Annotated[Path, typer.Argument(help="The model.safetensors of an embedding.")],
    recording: Annotated[Path, typer.Argument(help="A recording with the channels of one of the model's sessions.")],
    read: SourceOptions,
    session: Annotated[str | None, typer.Option(help="Of the model; by default the one called like the file.")] = None,
    out: Annotated[Path, typer.Option(help="An .npz, .csv or .parquet file to write.")] = Path("embedding.npz"),
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Embed a recording by a saved model, prepared as the model's own recordings were."""
    with messages(quiet):
        if out.suffix.lower() not in ENDINGS:
            raise unknown(f"kind of file {out.name!r}, ending", out.suffix, ENDINGS)
        if not model.is_file():
            raise HapteraError(f"there is no file {model}; a model.safetensors that `haptera embed` wrote was expected")
        from haptera.analyses.sessions.applying import transform_recording, write_frame

        frame = transform_recording(model, read.sources([recording])[0], session)
        write_frame(frame, out)
        dimensions = sum(str(name).startswith("dimension ") for name in frame)
        if as_json:
            say_json({"file": str(out), "samples": len(frame), "dimensions": dimensions, "columns": list(frame)})
            return
        say(f"{recording.name}: {len(frame):,} samples in {dimensions} dimensions")
        say(str(out))
