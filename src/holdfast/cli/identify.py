"""`identify`: whether contrastive learning inverts a process that is known; one row of tables 6.1 and 6.2."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.say import logging_to_stderr, say, say_json

if TYPE_CHECKING:
    from holdfast.embed.identifiability import Identifiability, Score

WIDTH = 14


def identify(
    process: Annotated[
        str, typer.Option(help="space/marginal/conditional: sphere/uniform/vmf=10, box/uniform/laplace=0.05, ...")
    ] = "sphere/uniform/vmf=10",
    model: Annotated[
        str, typer.Option(help="space/law: sphere/vmf, box/laplace, box/gennorm=3, unbounded/normal, ...")
    ] = "sphere/vmf",
    dimensions: Annotated[int, typer.Option(help="Of the latents.")] = 4,
    steps: Annotated[int, typer.Option(help="Of training.")] = 1000,
    batch_size: Annotated[int, typer.Option(help="Pairs, and as many negatives, in a step.")] = 512,
    learning_rate: Annotated[float, typer.Option(help="Of Adam, at first; it falls to 0.")] = 3e-3,
    start: Annotated[
        float | None, typer.Option(help="Where radius or side begins; by default near the process's.")
    ] = None,
    supervised: Annotated[bool, typer.Option("--supervised", help="Teach an encoder the latents as well.")] = False,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    seed: Annotated[int, typer.Option(help="Of mixing, pairs and weights.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="No bar.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Mix known latents, learn from pairs alone, and say how far the latents were found."""
    with logging_to_stderr(quiet):
        from holdfast.embed.building import chosen_device
        from holdfast.embed.identify import LatentModel
        from holdfast.embed.identify import identify as run
        from holdfast.embed.processes import Process

        made, assumed = Process.read(process, dimensions, seed), LatentModel.read(model)
        found = run(
            made,
            assumed,
            steps=steps,
            batch_size=batch_size,
            learning_rate=learning_rate,
            supervised=supervised,
            start=start,
            device=str(chosen_device(device)),
            seed=seed,
            progress=False if quiet else None,
        )
    parts = {"contrastive": found.contrastive, "identity": found.identity, "supervised": found.supervised}
    scored = {name: part for name, part in parts.items() if part is not None}
    if as_json:
        settings = {"process": process, "model": model, "dimensions": dimensions, "steps": steps, "seed": seed}
        goodness = float(found.loss[-100:].mean())
        sizes = {"size": found.encoder.output.size, "goodness_of_fit": goodness, "condition": made.mixing.condition}
        say_json(settings | sizes | {name: _content(part) for name, part in scored.items()})
        return
    say(f"{'process':<{WIDTH}}{process}, {dimensions} latents, mixing of condition {made.mixing.condition:.1f}")
    say(f"{'model':<{WIDTH}}{model}, {steps:,} steps of {batch_size}")
    for name, part in scored.items():
        say(f"{name:<{WIDTH}}R² {_text(part.r2)}   MCC {_text(part.mcc)}")
    null = found.contrastive
    say(f"{'rotations':<{WIDTH}}MCC {null.rotation_mcc:.3f} of a random rotation of the latents")


def _text(score: "Score") -> str:
    return f"{score.value:.3f} ({score.low:.3f} .. {score.high:.3f})"


def _content(part: "Identifiability") -> dict[str, Any]:
    scores = {"r2": part.r2, "mcc": part.mcc, "mcc_spearman": part.mcc_spearman}
    content: dict[str, Any] = {name: score.value for name, score in scores.items()}
    content |= {f"{name}_interval": [score.low, score.high] for name, score in scores.items()}
    return content | {"permutation": part.permutation.tolist(), "rotation_mcc": part.rotation_mcc, "n": part.n}
