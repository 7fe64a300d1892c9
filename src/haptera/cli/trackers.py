"""`export mlflow | wandb | tensorboard | card`: the results of a study where a team keeps its experiments."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from haptera.cli.options import Quiet
from haptera.cli.say import say, session
from haptera.errors import HapteraError

Source = Annotated[Path, typer.Argument(help="The folder of a study, or of an analysis.", show_default=False)]
Measures = Annotated[list[str] | None, typer.Option("--measure", help="Only this measure; repeatable.")]
Steps = Annotated[bool, typer.Option(help="Measures along a stream, a number for each step.")]


def mlflow(
    source: Source,
    tracking_uri: Annotated[
        str | None, typer.Option(help="A server, or a database such as sqlite:///mlflow.db; as MLflow is set.")
    ] = None,
    experiment: Annotated[
        str | None, typer.Option(help="Name of the experiment; that of the study by default.")
    ] = None,
    measure: Measures = None,
    steps: Steps = True,
    quiet: Quiet = False,
) -> None:
    """Write a run for each model and adapter into MLflow, with the page and the table."""
    with session(quiet):
        from haptera.export import to_mlflow

        say(str(to_mlflow(source, tracking_uri, experiment, measures=measure or (), steps=steps)))


def wandb(
    source: Source,
    project: Annotated[str, typer.Option(help="Name of the project.")] = "haptera",
    mode: Annotated[str, typer.Option(help="offline, for `wandb sync` later; or online.")] = "offline",
    folder: Annotated[Path, typer.Option(help="Where the folder wandb is kept.")] = Path(),
    entity: Annotated[str | None, typer.Option(help="Team or user; your own by default.")] = None,
    measure: Measures = None,
    steps: Steps = True,
    quiet: Quiet = False,
) -> None:
    """Write a run for each model and adapter for Weights & Biases, with the page and the table."""
    with session(quiet):
        from haptera.export import to_wandb

        chosen = measure or ()
        say(str(to_wandb(source, project, mode, folder=folder, entity=entity, measures=chosen, steps=steps)))


def tensorboard(
    source: Source,
    out: Annotated[Path, typer.Option(help="The folder for `tensorboard --logdir`.")],
    measure: Measures = None,
    steps: Steps = True,
    quiet: Quiet = False,
) -> None:
    """Write events for TensorBoard, a folder for each model and adapter."""
    with session(quiet):
        from haptera.export import to_tensorboard

        say(str(to_tensorboard(source, out, measures=measure or (), steps=steps)))


def card(
    source: Source,
    out: Annotated[Path | None, typer.Option(help="Write a new card, such as README.md.")] = None,
    update: Annotated[Path | None, typer.Option(help="Write into a card that is there; all else in it stays.")] = None,
    model: Annotated[str | None, typer.Option(help="Which model, where the study has several.")] = None,
    dataset: Annotated[
        str | None, typer.Option(help="ORG/NAME of a benchmark on the hub; then .eval_results are written.")
    ] = None,
    task: Annotated[str, typer.Option(help="The task, as the hub calls it.")] = "image-classification",
    task_id: Annotated[str, typer.Option(help="A task of the benchmark; {shift} stands for a shift.")] = "{shift}",
    title: Annotated[str, typer.Option(help="Heading of the section.")] = "Robustness",
    quiet: Quiet = False,
) -> None:
    """Write a section of a model card for the Hugging Face hub, with the results in its head."""
    if out is not None and update is not None:
        raise HapteraError("--out writes a new card and --update changes one; give one of them")
    with session(quiet):
        from haptera.export import model_card

        made = model_card(source, model, dataset=dataset, task=task, task_id=task_id, title=title)
        paths: Sequence[Path] = made.save(out) if out else made.update(update) if update else ()
        if not paths:
            typer.echo(made.text, nl=False)
        for path in paths:
            say(str(path))
