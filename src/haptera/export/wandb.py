"""Weights & Biases: a group of runs, offline by default, so that nothing leaves the machine before `wandb sync`.

The id of a run is the fingerprint of what it is about and of what it says. Offline, a finished folder with this id is
left alone, and folders of other ids about the same thing are removed. Online, a run with this id that is finished is
left alone, and a study that went on since is a further run of the same group: haptera deletes nothing on a server.
Numbers about a whole stream are the summary of a run, those along it its history, with the step as their axis.
"""

import json
import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from haptera.errors import HapteraError, check_keys, first_line
from haptera.export.record import Outcome, Record, Run, artifacts, record_of
from haptera.export.tensorboard import MARK, read_mark
from haptera.extras import import_extra
from haptera.files.atomic import writable_folder, write_text

MODES = ("offline", "online")
PRIVATE = {
    "save_code": False,
    "disable_git": True,
    "x_disable_meta": True,
    "x_disable_stats": True,
    "x_save_requirements": False,
}
"""What wandb would add about the machine, the code and the packages has no place in an export."""
STEP, DIGEST = "step", "haptera_digest"
HALF = 12
"""Digits of an id that say what a run is about; as many again say what it says."""


def to_wandb(
    source: Any,
    project: str = "haptera",
    mode: str = "offline",
    *,
    folder: Path | str = ".",
    entity: str | None = None,
    measures: Sequence[str] = (),
    steps: bool = True,
) -> Outcome:
    """Write a study or an analysis as runs of Weights & Biases.

    Args:
        source: a study, an analysis, or the folder of one of them.
        project: the name of the project.
        mode: `offline` writes folders for `wandb sync`; `online` sends the runs, and needs `wandb login` before.
        folder: where wandb keeps its folder `wandb`.
        entity: the team or user; your own by default.
        measures: only these; all by default.
        steps: whether measures along a stream are written, a number for each step.
    """
    check_keys("mode", [mode], MODES)
    wandb = import_extra("wandb", "export", "export wandb")
    record = record_of(source, measures, steps)
    place = writable_folder(Path(folder)) / "wandb"
    outcome = Outcome(str(place) if mode == "offline" else f"project {project}", notes=record.notes)
    for run in record.runs:
        identity = run.key[:HALF] + run.digest[:HALF]
        old = list(place.glob(f"offline-run-*-{run.key[:HALF]}*")) if mode == "offline" else []
        same = [each for each in old if each.name.endswith(identity) and read_mark(each) is not None]
        if same or not _write_run(wandb, run, record, identity, project=project, mode=mode, dir=folder, entity=entity):
            outcome.kept.append(run.name)
        else:
            outcome.written.append(run.name)
            outcome.replaced += [run.name] if old else []
        for each in old:
            if each not in same[:1]:
                shutil.rmtree(each)
    return outcome


def _write_run(wandb: Any, run: Run, record: Record, identity: str, **where: Any) -> bool:
    """Write a run, and return whether it had to be."""
    how = wandb.Settings(silent=True, console="off", **PRIVATE)
    names = {"id": identity, "name": run.name, "group": record.title, "job_type": run.tags["kind"]}
    again = {"resume": "allow"} if where["mode"] == "online" else {}
    config = {"about": dict(run.tags), "settings": dict(run.settings)}
    try:
        made = wandb.init(**where, **names, **again, config=config, settings=how, reinit="create_new")
        try:
            old = made.resumed and made.summary.get(DIGEST) == run.digest
            if not old:
                _log(made, run, record)
                made.summary[DIGEST] = run.digest
        except BaseException:
            made.finish(exit_code=1)
            raise
        made.finish()
    except (wandb.Error, OSError) as error:
        raise HapteraError(f"Weights & Biases did not take the run {run.name}: {first_line(error)}") from error
    if where["mode"] == "offline":
        write_text(Path(made.settings.sync_dir) / MARK, json.dumps({"key": run.key, "digest": run.digest}))
    return not old


def _log(made: Any, run: Run, record: Record) -> None:
    history: dict[int, dict[str, float]] = defaultdict(dict)
    for each in run.metrics:
        if each.step is not None:
            history[each.step][each.name] = each.value
    made.summary.update({each.name: each.value for each in run.metrics if each.step is None})
    made.define_metric(STEP, hidden=True)
    made.define_metric("*", step_metric=STEP)
    for step, numbers in sorted(history.items()):
        made.log({STEP: step, **numbers})
    if run.main:
        with artifacts(record) as paths:
            for path in paths:  # inside the folder of the run: an artifact would be kept in the user's home until then
                copy = shutil.copyfile(path, Path(made.dir) / path.name)
                made.save(str(copy), base_path=made.dir, policy="now")
