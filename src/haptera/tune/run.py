"""`tune`: every setting of a search runs on hold-out corruptions, as a study, and the least error decides."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from torch import nn

from haptera.adapters import NoAdaptation
from haptera.data import CorruptedImages, Data
from haptera.errors import HapteraError, NotApplicable, Unfinished, first_line
from haptera.files.atomic import write_text
from haptera.files.toml import toml, write_toml
from haptera.run.study import RunSummary, Study
from haptera.run.work import Model
from haptera.tune import recipes, scores
from haptera.tune.choice import Choice
from haptera.tune.plan import Plan, make_plan
from haptera.tune.search import Search, at_edges, words

LISTED = 3
HARDLY = 0.5
"""A setting that keeps nothing at more than this share of its steps hardly learns."""


def tune(
    models: Mapping[str, Model],
    data: Data | CorruptedImages,
    adapter: Callable[..., Any] | None = None,
    search: Search | None = None,
    *,
    out: str | Path,
    device: str | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    progress: bool | None = None,
    study: Mapping[str, Any] | None = None,
) -> Choice:
    """Choose the settings of an adapter by the mean error on hold-out corruptions.

    Args:
        models: name -> model, as a study takes them; with several, one setting is chosen for all.
        data: labelled; clean, or corrupted on disk, of which only hold-out corruptions are read.
        adapter: a class, or a partial of one with settings that stay; the recipes `prior` and `reset` bring their own.
        search: what to try, and on what.
        out: the folder of the study; what is finished there is not run again.
        device: where models run.
        jobs: processes on this machine.
        cluster: the address of a Dask scheduler, instead.
        progress: show a bar; by default on a terminal or in a notebook.
        study: what else the study file shall say: `models` and `data` as it names them, and under `adapters` the `use`
            of this one, where the catalog does not have it.
    """
    more, search = dict(study or {}), search or Search()
    plan = make_plan(data, adapter, search, more.pop("adapters", [{}])[0].get("use"))
    seeds, keep = search.seeds, search.keep
    toml(plan.study_file(0, seeds, more))  # what it cannot hold is said before anything runs
    _check_applicable(plan, models)
    folder, studies = Path(out), []
    for batch, stream in plan.streams.items():
        adapters = {"none": NoAdaptation, **plan.adapters(batch)}
        described = plan.described()
        studies.append(
            Study(models, [stream], adapters, out=folder, seeds=seeds, keep=keep, device=device, settings=described)
        )
    for one in studies:
        table = one.run(jobs=jobs, cluster=cluster, progress=progress)
    cells = RunSummary(*(sum(getattr(one.last, count) for one in studies) for count in ("ran", "kept", "failed")))
    found = _errors(plan, table, models, seeds)
    units = scores.by_corruption(found)
    order = scores.rank(units)
    if not order:
        raise Unfinished(f"no setting ran on every corruption, so none is chosen; why: haptera report {folder}")
    return _write(plan, found, units, order, cells, folder, seeds, more, _idle(plan, table, order[0]))


def _check_applicable(plan: Plan, models: Mapping[str, Model]) -> None:
    """Refuse an adapter that can adapt none of the models; a study would run the unadapted ones before we see it."""
    label, make = next(iter(plan.adapters(plan.batch).items()))
    reasons = []
    for name, source in models.items():
        try:
            make(source if isinstance(source, nn.Module) else source())
            return
        except NotApplicable as reason:
            reasons.append(f"{name}: {reason}")
        except HapteraError:
            raise
        except Exception as error:
            raise HapteraError(f"adapter {label} on model {name}: {first_line(error)}") from error
    if reasons:
        raise HapteraError(f"{plan.name} cannot adapt {reasons[0]}")


def _errors(plan: Plan, table: pd.DataFrame, models: Mapping[str, Model], seeds: Sequence[int]) -> pd.DataFrame:
    """The errors of this search's cells; the folder may hold those of others."""
    tried: dict[tuple[str, str], int] = {}
    for batch, stream in plan.streams.items():
        tried[stream.name, "none"] = scores.UNADAPTED
        tried |= {(stream.name, name): number for number, name in enumerate(plan.adapters(batch))}
    within: dict[str, Sequence[Any]] = {"model": list(models), "seed": seeds}
    return scores.errors(table, tried, within | {"shift": plan.shifts, "severity": plan.severities})


def _write(
    plan: Plan,
    found: pd.DataFrame,
    units: pd.DataFrame,
    order: Sequence[int],
    cells: RunSummary,
    folder: Path,
    seeds: Sequence[int],
    more: Mapping[str, Any],
    idle: list[str],
) -> Choice:
    """Write the files of the search and return what was chosen."""
    names, best, title = [words(point) for point in plan.tried], plan.tried[order[0]], plan.title(seeds)
    table = scores.ranking(units, plan.tried, names)
    # In a stream that mixes corruptions, one that is left out would still have been learnt from.
    control = scores.leave_one_out(units.iloc[:0] if plan.recipe == "reset" else units, names)
    margin = scores.margin(units, order[1], order[0]) if len(order) > 1 else None
    remarks = [*_remarks(plan, units, order, names), *idle]
    remarks += [*_by_batch(plan, found, names), *_about_cells(plan, units, cells)]
    write_text(folder / "tried.csv", table.to_csv(index=False))
    write_text(folder / "leave_one_out.csv", control.to_csv(index=False))
    equal = len(scores.ties(units, order))
    least = f"is one of {equal + 1} settings with the least error" if equal else "has the least error"
    head = [f"{title}.", f"{names[order[0]]} {least} of {len(names)}: tried.csv."]
    if plan.recipe == "lr":
        head.append(f"For batches of n, lr is {best['lr']} n / {recipes.REFERENCE_BATCH}.")
    write_toml(folder / "chosen.toml", plan.study_file(order[0], seeds, more), head)
    return Choice(folder, title, dict(best), table, margin, control, folder / "chosen.toml", remarks, cells)


def _remarks(plan: Plan, units: pd.DataFrame, order: Sequence[int], names: Sequence[str]) -> list[str]:
    """What speaks against the choice."""
    remarks = []
    if same := scores.ties(units, order):
        more = [f"{len(same) - LISTED} more"] if len(same) > LISTED else []
        equal = " and ".join([*(names[number] for number in same[:LISTED]), *more])
        remarks.append(f"equally good: {equal}; the one given first is chosen")
    remarks += at_edges(plan.tried, plan.tried[order[0]])
    if scores.UNADAPTED in units and units[scores.UNADAPTED].mean() <= units[order[0]].mean():
        remarks.append(f"no setting beats the unadapted model, {units[scores.UNADAPTED].mean():.4f}")
    return remarks


def _idle(plan: Plan, table: pd.DataFrame, best: int) -> list[str]:
    """Say whether the chosen setting found anything to learn from."""
    chosen = {(stream.name, list(plan.adapters(batch))[best]) for batch, stream in plan.streams.items()}
    rows = table[table["measure"] == "idle_steps"]
    own = [pair in chosen for pair in zip(rows["stream"], rows["adapter"], strict=True)]
    share = rows.loc[own, "value"].mean()
    if not share > HARDLY:
        return []
    return [f"it kept nothing to learn from at {100 * share:.0f} % of its steps, so it hardly learns"]


def _by_batch(plan: Plan, found: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Which setting would be chosen at each batch size alone."""
    if len(plan.streams) == 1:
        return []
    alone = {
        batch: scores.rank(scores.by_corruption(found[found.index.get_level_values("stream") == stream.name]))
        for batch, stream in plan.streams.items()
    }
    chosen = ", ".join(f"{batch}: {names[order[0]]}" for batch, order in alone.items() if order)
    return [f"chosen at each batch size alone, for a batch of {recipes.REFERENCE_BATCH}: {chosen}"]


def _about_cells(plan: Plan, units: pd.DataFrame, cells: RunSummary) -> list[str]:
    """What the cells do not tell."""
    remarks = []
    if len(units) < 2:
        remarks.append("one corruption and one seed: there is no interval")
    if cells.failed:
        failed = f"{cells.failed} cell{'s' if cells.failed > 1 else ''}"
        remarks.append(f"{failed} failed; a setting that did not run everywhere has no rank")
    if plan.recipe == "reset":
        longest, steps = recipes.longest_interval(plan.tried), len(plan.streams[plan.batch].parts()[0])
        if steps < 2 * longest:
            remarks.append(f"a stream has {steps:,} steps, less than twice the longest interval: it was hardly tried")
    return remarks
