"""MLflow: runs in an experiment, those of models under the one of the study.

A run that is finished carries the tag `haptera.digest`. One with the same digest is left alone; others about the same
thing, those that were cut short among them, go to MLflow's trash once the new run is whole.
The package `mlflow-skinny` suffices, with SQLAlchemy and Alembic for a local database; MLflow itself refuses its older
store, the files of `./mlruns`, unless `MLFLOW_ALLOW_FILE_STORE=true`.
Cost: some seconds for a new database.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from haptera.errors import HapteraError, first_line
from haptera.export.names import Names
from haptera.export.record import Outcome, Record, Run, artifacts, record_of
from haptera.extras import import_extra

KEY, DIGEST, PARENT = "haptera.key", "haptera.digest", "mlflow.parentRunId"
NUMBERS, TEXTS = 1000, 100
"""Metrics and parameters that one request may carry."""
LONGEST_TEXT = 5000
RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"


def to_mlflow(
    source: Any,
    tracking_uri: str | None = None,
    experiment: str | None = None,
    *,
    measures: Sequence[str] = (),
    steps: bool = True,
) -> Outcome:
    """Write a study or an analysis into MLflow.

    Args:
        source: a study, an analysis, or the folder of one of them.
        tracking_uri: a server, or a database such as `sqlite:///mlflow.db`; what MLflow is set to by default.
        experiment: its name; that of the study by default.
        measures: only these; all by default.
        steps: whether measures along a stream are written, a number for each step.
    """
    mlflow = import_extra("mlflow", "export", "export mlflow")
    record = record_of(source, measures, steps)
    uri = tracking_uri or mlflow.get_tracking_uri()
    outcome = Outcome(f"experiment {experiment or record.title} in {uri}", notes=record.notes)
    try:
        with _patience():
            client = mlflow.MlflowClient(tracking_uri=uri)
            place = _experiment(client, experiment or record.title)
            _write_runs(client, place, record, outcome)
    except HapteraError:
        raise
    except Exception as error:  # of its own kinds, of SQLAlchemy's and of requests'
        raise HapteraError(f"MLflow at {uri} did not take the runs: {first_line(error)}") from error
    return outcome


def _write_runs(client: Any, experiment: str, record: Record, outcome: Outcome) -> None:
    main = ""
    for run in record.runs:
        there = _find(client, experiment, run.key)
        same = [each for each in there if each.data.tags.get(DIGEST) == run.digest]
        if same:
            identity = same[0].info.run_id
            outcome.kept.append(run.name)
        else:
            identity = _write_run(client, experiment, run, record)
            outcome.written.append(run.name)
            outcome.replaced += [run.name] if there else []
        if run.main:
            main = identity
        else:
            client.set_tag(identity, PARENT, main)
        for each in there:
            if each.info.run_id != identity:
                client.delete_run(each.info.run_id)


def _write_run(client: Any, experiment: str, run: Run, record: Record) -> str:
    """Write a run and return its number; one that cannot be finished is marked so."""
    entities = import_extra("mlflow.entities", "export", "export mlflow")
    names, now = Names(), int(time.time() * 1000)
    tags = {f"haptera.{name}": text[:LONGEST_TEXT] for name, text in run.tags.items()} | {KEY: run.key}
    identity = str(client.create_run(experiment, run_name=run.name, tags=tags).info.run_id)
    try:
        settings = [entities.Param(names([name]), str(value)[:LONGEST_TEXT]) for name, value in run.settings.items()]
        for start in range(0, len(settings), TEXTS):
            client.log_batch(identity, params=settings[start : start + TEXTS])
        numbers = [entities.Metric(each.name, each.value, now, each.step or 0) for each in run.metrics]
        for start in range(0, len(numbers), NUMBERS):
            client.log_batch(identity, metrics=numbers[start : start + NUMBERS])
        if run.main:
            with artifacts(record) as paths:
                for path in paths:
                    client.log_artifact(identity, str(path))
        client.set_tag(identity, DIGEST, run.digest)
        client.set_terminated(identity)
    except BaseException:
        client.set_terminated(identity, "FAILED")
        raise
    return identity


def _experiment(client: Any, name: str) -> str:
    """Return the number of an experiment, which is made where it is not there."""
    found = client.get_experiment_by_name(name)
    if found is None:
        return str(client.create_experiment(name))
    if found.lifecycle_stage != "active":
        raise HapteraError(f"the experiment {name} is in MLflow's trash; restore it, or name another with --experiment")
    return str(found.experiment_id)


def _find(client: Any, experiment: str, key: str) -> list[Any]:
    """Return all runs about the same thing, whole or not."""
    found, token = [], None
    while True:
        page = client.search_runs([experiment], f"tags.`{KEY}` = '{key}'", page_token=token)
        found += page
        token = page.token
        if not token:
            return found


@contextmanager
def _patience() -> Iterator[None]:
    """Let MLflow ask a server that does not answer three times, and not eight, which takes minutes."""
    if RETRIES in os.environ:
        yield
        return
    os.environ[RETRIES] = "2"
    try:
        yield
    finally:
        os.environ.pop(RETRIES, None)
