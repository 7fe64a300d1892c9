"""`profile`: what a model sees and says on the data it was made for, in one file, for guards and alarms."""

from pathlib import Path
from typing import Annotated, Any

import typer

from haptera.cli.options import BatchSize, ImageOptions, Json, ModelOptions, Quiet, expand_groups
from haptera.cli.say import say, say_json, session


@expand_groups
def profile(
    model: ModelOptions,
    data: Annotated[str, typer.Option(help="What the model was made for, best with labels: digits, .npz, a folder.")],
    images: ImageOptions,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("profile.safetensors"),
    corruptions: Annotated[
        str | None, typer.Option(help="Try known corruptions, all or holdout, to predict accuracy and name shifts.")
    ] = None,
    samples: Annotated[int, typer.Option(help="Images of the reference, at most.")] = 5000,
    known_samples: Annotated[int, typer.Option(help="Images that each known corruption is tried on.")] = 256,
    work: Annotated[
        Path | None, typer.Option(help="A folder for corruptions that were tried; stopped, it goes on from there.")
    ] = None,
    batch_size: BatchSize = 64,
    seed: Annotated[int, typer.Option(help="Of the choice of images.")] = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure a model once on reference images, for `haptera.live` to compare a stream with."""
    with session(quiet, work):
        from haptera.checks import check_whole_number
        from haptera.files.atomic import writable_folder
        from haptera.live.profile import FEWEST, Profile, check_corruptions
        from haptera.streams import Clean, Truncated

        check_whole_number("--samples", samples, FEWEST, what="a number of images")
        check_whole_number("--known-samples", known_samples, what="a number of images")
        check_corruptions(corruptions or "all")
        writable_folder(out.parent)
        network = model.load()
        opened = images.open(model.preprocessing(network), data=data)["data"]
        stream = Truncated(Clean(opened, batch_size=batch_size, seed=seed), first=samples)
        made = Profile.measure(network, stream, name=opened.name, seed=seed)
        if corruptions is not None:
            more: dict[str, Any] = {"images": known_samples, "batch_size": batch_size, "out": work}
            made = made.try_corruptions(network, opened, corruptions, progress=False if quiet else None, **more)
        made.save(out)
        if as_json:
            say_json({"file": str(out), **made.summary(), "remarks": made.remarks})
            return
        labels = "no labels" if made.accuracy is None else f"accuracy {made.accuracy:.3f}"
        say(f"{made.name}: {made.images:,} images, {labels}, {len(made.scores)} signals")
        if not quiet:
            for remark in made.remarks:
                say(f"  {remark}")
        say(str(out))
