"""`list`, `check` and `verify`: what there is, whether a class keeps the laws, whether a folder is what it was."""

from pathlib import Path
from typing import Annotated

import typer

from haptera import catalog
from haptera.cli.options import Json
from haptera.cli.say import say, say_json
from haptera.errors import unknown
from haptera.words import count

PRESETS = "presets"


def list_(
    kind: Annotated[
        str | None,
        typer.Argument(help="shifts, streams, adapters, measures, models, loaders, analyses, sections or presets."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what the catalog holds, plugins included, or the table of presets of adapters."""
    if kind == PRESETS:
        return list_presets(as_json)
    if kind is not None and kind not in catalog.KINDS:
        raise unknown("kind", kind, [*catalog.KINDS, PRESETS])
    kinds = catalog.KINDS if kind is None else (kind,)
    if as_json:
        say_json({each: {name: entry.summary for name, entry in catalog.entries(each).items()} for each in kinds})
        return
    for each in kinds:
        say(each)
        names = catalog.entries(each)
        width = max((len(name) for name in names), default=0)
        for name, entry in names.items():
            say(f"  {name:<{width}}  {entry.summary}")


def list_presets(as_json: bool) -> None:
    """Show the published settings of adapters, and where they come from."""
    from haptera.adapters.presets import presets

    if as_json:
        say_json({PRESETS: {name: {**vars(preset)} for name, preset in presets().items()}})
        return
    for name, preset in presets().items():
        say(f"{name}   {preset.about}, batches of {preset.batch_size}")
        for adapter, settings in preset.settings.items():
            told = ",".join(f"{key}={'true' if value is True else value}" for key, value in settings.items())
            say(f"  {adapter}:{told}   ({preset.sources[adapter]})")


def check(
    name: Annotated[str, typer.Argument(help="module:object, file.py:object, or a name of the catalog.")],
    as_json: Json = False,
) -> None:
    """Run the laws on a shift, stream, adapter, measure or analysis of your own."""
    from haptera.testing import check_named

    kind, verdicts = check_named(name)
    broken = [law for law, why in verdicts.items() if why]
    if as_json:
        say_json({"object": name, "kind": kind, "laws": verdicts, "broken": broken})
    else:
        say(f"{name} is {'an' if kind[0] in 'aeiou' else 'a'} {kind}")
        for law, why in verdicts.items():
            say(f"  {'broken' if why else 'kept  '}  {law.replace('_', ' ')}{': ' + why if why else ''}")
    if broken:
        raise typer.Exit(1)


def verify(
    folder: Annotated[Path, typer.Argument(help="A folder that a command keeps: of a study, a calibration, fits, ...")],
    as_json: Json = False,
) -> None:
    """Check everything that is finished in a folder, and in those inside it, and name what is not as it was."""
    from haptera.run.ledgers import ledgers_in

    ledgers = ledgers_in(folder)
    problems = {ledger.folder: ledger.problems() for ledger in ledgers}
    if as_json:
        each = [
            {
                "folder": str(ledger.folder),
                "kind": ledger.kind,
                "pieces": len(ledger.pieces),
                "finished": len(ledger.finished),
                "problems": problems[ledger.folder],
            }
            for ledger in ledgers
        ]
        say_json({"folders": each, "problems": sum(map(len, problems.values()))})
    else:
        for ledger in ledgers:
            finished = f"{len(ledger.finished)} of {count(len(ledger.pieces), ledger.noun)} finished"
            say(f"{ledger.folder}   a {ledger.kind}, {finished}, {count(len(problems[ledger.folder]), 'problem')}")
            for problem in problems[ledger.folder]:
                say(f"  {problem}")
    if any(problems.values()):
        raise typer.Exit(1)
