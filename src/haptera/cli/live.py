"""`live LOG`, `live simulate` and `live grafana`: the page of a guard's log, a rehearsal, and a dashboard."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haptera.cli.flags import Group
from haptera.cli.options import Json, Out, Quiet, expand_groups
from haptera.cli.present import present
from haptera.cli.say import say, session
from haptera.cli.study import StudyOptions
from haptera.errors import HapteraError
from haptera.words import duration

if TYPE_CHECKING:
    from haptera.live.guard import Guard
    from haptera.live.simulate import Replay

SHOW = "show"


class _Log(Group):
    """`live LOG` is `live show LOG`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = [SHOW, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Log,
    help="Watch a deployed model: `live LOG` writes or serves the page of a guard's log.",
    no_args_is_help=True,
)
Log = Annotated[Path, typer.Argument(help="The folder that a guard writes.", show_default=False)]
Since = Annotated[str | None, typer.Option(help="14:00, 2h, 3d or 2026-11-17T14:00; all by default.")]
Serve = Annotated[bool, typer.Option("--serve", help="Serve the page while new data arrives, until Ctrl-C.")]
Port = Annotated[int, typer.Option(help="Of --serve; 0 for any that is free.", min=0, max=65535)]
Host = Annotated[str, typer.Option(help="Of --serve; another address lets others read it.")]


@app.command(SHOW)
def show(
    log: Log,
    since: Since = None,
    serve: Serve = False,
    port: Port = 8642,
    host: Host = "127.0.0.1",
    out: Out = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Say what shifted when, what it cost and what the adapter did; write the page, or serve it."""
    from haptera.live.reader import LogReader, check_log, last_time, parse_since

    with session(quiet):
        start = None if since is None else parse_since(since, last_time(check_log(log)))
        if serve and out is not None:
            raise HapteraError("--serve writes nothing; leave --out away, or --serve to write the page")
        if serve:
            return _serve(log, host, port, start)
        reader = LogReader(log, start)
        reader.read_on()
        present(reader.run(), out, quiet, as_json)


def _serve(log: Path, host: str, port: int, since: float | None) -> None:
    from haptera.live.server import LiveServer

    server = LiveServer(log, host, port, since)
    say(f"{server.url}  (Ctrl-C ends it)")
    server.serve()


@app.command()
def grafana(
    out: Annotated[Path | None, typer.Option(help="Write into this file instead of printing.")] = None,
) -> None:
    """Print a Grafana dashboard of the metrics that a guard exports to Prometheus, to be imported there."""
    from importlib.resources import files

    from haptera.files.atomic import write_text

    text = (files("haptera.live") / "static" / "grafana.json").read_text("utf-8")
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)
        say(str(out))


@dataclass(frozen=True)
class GuardOptions:
    """What watches, and who is told.

    Attributes:
        adapter: name:key=value; none by default. `haptera list adapters`.
        reference: what `haptera profile` wrote; without it the first images serve.
        alpha: the chance of any false alarm, ever.
        shadow: serve the unadapted model, and adapt beside it.
        thumbnails: images to keep near each alarm and fall-back.
        thumbnails_before: batches before it of which as many are kept.
        webhook: a URL that alarms and fall-backs are sent to.
        metrics: answer Prometheus at this port while it runs.
    """

    adapter: str | None = None
    reference: Path | None = None
    alpha: float = 0.05
    shadow: bool = False
    thumbnails: int = 0
    thumbnails_before: int = 0
    webhook: str | None = None
    metrics: int | None = None


@dataclass(frozen=True)
class ReplayOptions:
    """How the stream is replayed.

    Attributes:
        rate: batches per second; 0 for as fast as possible.
        batch_size: images per batch.
        labels: share of the images whose labels arrive.
        delay: how many batches later they arrive.
        threads: that call the guard.
        seed: of the stream, the guard and the labels.
    """

    rate: float = 20.0
    batch_size: int = 64
    labels: float = 0.0
    delay: int = 50
    threads: int = 1
    seed: int = 0

    def replay(self) -> "Replay":
        """Return the same, checked."""
        from haptera.live.simulate import Replay

        return Replay(self.rate, self.labels, self.delay, self.threads, self.seed)


@app.command()
@expand_groups
def simulate(
    named: StudyOptions,
    guarded: GuardOptions,
    how: ReplayOptions,
    out: Annotated[Path, typer.Option(help="The folder of the log.")],
    stream: Annotated[
        list[str] | None, typer.Option(help="name:key=value; clean by default; repeatable, one after the other.")
    ] = None,
    serve: Serve = False,
    port: Port = 8642,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Replay a stream against a guard at a chosen rate, to see alarms and fall-backs before production."""
    from haptera.live.guard import Guard
    from haptera.live.reader import LogReader
    from haptera.live.simulate import simulate as run
    from haptera.progress import Progress
    from haptera.run.settings import make_study
    from haptera.run.work import ModelCache

    if len(named.model or []) != 1:
        raise HapteraError(f"--model was given {len(named.model or [])} times; once was expected")
    replay = how.replay()
    with session(quiet):
        content = named.content(Path(), stream or ["clean"], [guarded.adapter] if guarded.adapter else [])
        tables = [table | {"name": f"{place}. {table['use']}"} for place, table in enumerate(content["streams"], 1)]
        content |= {"batch_size": how.batch_size, "streams": tables}
        study = make_study(content, out / ".study", Path(), named.allow_pickle)
        (name, source), make = next(iter(study.models.items())), next(iter(study.adapters.values()))
        model = ModelCache()(source)
        batches = [each.with_seed(how.seed + place) for place, each in enumerate(study.streams)]
        settings = {"log": out, "name": name, "alpha": guarded.alpha, "shadow": guarded.shadow, "seed": how.seed}
        settings |= {"thumbnails": guarded.thumbnails, "thumbnails_before": guarded.thumbnails_before}
        closers: list[Callable[[], object]] = []
        with Guard(model, make if guarded.adapter else None, guarded.reference, **settings) as guard:
            try:
                closers += _listen(guard, guarded, name)
                closers += _serve_beside(out, port, as_json) if serve else []
                logging.getLogger("haptera").addFilter(_is_worth_a_line)
                with Progress("replay", sum(map(len, batches)), False if quiet else None, unit="batches") as bar:
                    summary = run(guard, batches, replay, progress=lambda done: bar.advance(""))
            finally:
                logging.getLogger("haptera").removeFilter(_is_worth_a_line)
                for close in reversed(closers):
                    close()
        reader = LogReader(out)
        reader.read_on()
        if not quiet and not as_json:
            right = "" if summary.accuracy != summary.accuracy else f", accuracy {summary.accuracy:.3f} by its labels"
            say(f"{summary.batches:,} batches in {duration(summary.seconds)}{right}; see them with: haptera live {out}")
        present(reader.run(), None, quiet, as_json)


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Labels arrive after every batch, and snapshots are taken often."""
    return not isinstance(record.args, tuple) or not {"label", "snapshot"} & {str(each) for each in record.args}


def _listen(guard: "Guard", options: GuardOptions, name: str) -> "list[Callable[[], object]]":
    """Tell others what the guard sees; returns what ends that."""
    closers: list[Callable[[], object]] = []
    if options.webhook is not None:
        from haptera.live.webhook import Webhook

        webhook = Webhook(options.webhook, model=name)
        guard.listeners.append(webhook)
        closers.append(webhook.close)
    if options.metrics is not None:
        from haptera.live.metrics import PrometheusMetrics

        metrics = PrometheusMetrics(name)
        guard.listeners.append(metrics)
        closers.append(metrics.serve(options.metrics))
    return closers


def _serve_beside(log: Path, port: int, as_json: bool) -> "list[Callable[[], object]]":
    from haptera.live.server import LiveServer

    server = LiveServer(log, port=port).start()
    typer.echo(server.url, err=as_json)
    return [server.close]
