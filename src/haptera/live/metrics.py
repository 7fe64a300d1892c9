"""Metrics: what a guard sees, for Prometheus and OpenTelemetry, each by an extra package.

Both are listeners: called with a row of the log (`{"kind": "step", ...}` or `{"kind": "event", ...}`), they keep
counts, the last value of every gauge, and the latencies. `INSTRUMENTS` names them all, once for both. Prometheus gets a
registry of its own, so that a service with metrics of its own sees no name twice. A value that is not known is not
shown: a gauge appears with its first number, and goes when it is unknown again. Counts of events begin at 0, since the
increase of a count that appears with 1 is 0 to Prometheus, and the first alarm would not be seen.
Cost: some tens of microseconds for each step.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from threading import Lock
from typing import Any

from haptera.errors import HapteraError
from haptera.extras import import_extra
from haptera.live import record

Row = Mapping[str, Any]
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper ends of the classes of latency, in seconds."""


@dataclass(frozen=True)
class Instrument:
    """One metric.

    Attributes:
        name: as Prometheus has it; a counter gets `_total` there.
        kind: `gauge`, `counter` or `histogram`.
        about: what it is, with the unit.
        read: from a step to its number; None where it is not known, and for what events count.
        unit: as OpenTelemetry writes it.
    """

    name: str
    kind: str
    about: str
    read: Callable[[Row], float | None] = lambda row: None
    unit: str = "1"


def _field(name: str, unit: float = 1) -> Callable[[Row], float | None]:
    """Return what reads a field of a step, in another unit."""
    return lambda row: None if (value := _number(row.get(name))) is None else unit * value


def _number(value: Any) -> float | None:
    """Return a finite number; None for anything else."""
    return float(value) if isinstance(value, int | float) and isfinite(value) else None


INSTRUMENTS = (
    Instrument("haptera_steps", "counter", "Batches that were predicted.", lambda row: 1.0),
    Instrument("haptera_images", "counter", "Images that were predicted.", _field("images")),
    Instrument("haptera_events", "counter", "Alarms, fall-backs, resets and other decisions, by event."),
    Instrument("haptera_shift_size", "gauge", "Size of the shift, corrected for the batch size.", _field("shift_size")),
    Instrument("haptera_shift_active", "gauge", "1 from an alarm until it is cleared, else 0."),
    Instrument("haptera_accuracy", "gauge", "Accuracy in the window: predicted, or by labels.", _field("accuracy")),
    Instrument("haptera_accuracy_low", "gauge", "Lower end of its interval.", _field("low")),
    Instrument("haptera_accuracy_high", "gauge", "Upper end of its interval.", _field("high")),
    Instrument("haptera_entropy", "gauge", "Entropy of the mean answer, in nats.", _field("entropy")),
    Instrument("haptera_largest_class", "gauge", "Share of the class that is predicted most.", _field("largest")),
    Instrument("haptera_kept", "gauge", "Share of the images that the adapter learns from.", _field("kept")),
    Instrument("haptera_change", "gauge", "Norm of the change of the weights.", _field("change")),
    Instrument("haptera_adapted", "gauge", "1 while the adapted model is served, else 0.", lambda row: _adapted(row)),
    Instrument("haptera_memory_bytes", "gauge", "Memory of the process.", _field("memory", 2**20), "By"),
    Instrument("haptera_latency_seconds", "histogram", "Time from a batch to its answer.", _field("latency"), "s"),
)
ALARM, EVENTS = "haptera_shift_active", "haptera_events"
WRITE: Mapping[str, Callable[[Any, float], None]] = {
    "gauge": lambda metric, value: metric.set(value),
    "counter": lambda metric, value: metric.inc(value),
    "histogram": lambda metric, value: metric.observe(value),
}


def _adapted(row: Row) -> float | None:
    served = row.get("served")
    return None if not isinstance(served, str) else float(served == "adapted")


class PrometheusMetrics:
    """A listener whose numbers Prometheus scrapes.

    Args:
        model: the label `model` of every metric.
    """

    def __init__(self, model: str = "model") -> None:
        client: Any = import_extra("prometheus_client", "live", "PrometheusMetrics")
        self._client, self._model, self._lock = client, model, Lock()
        self._shown: set[str] = set()
        self.registry = client.CollectorRegistry()
        kinds = {"gauge": client.Gauge, "counter": client.Counter, "histogram": client.Histogram}
        self._made: dict[str, Any] = {}
        for each in INSTRUMENTS:
            labels = ("model", "event") if each.name == EVENTS else ("model",)
            more = {"buckets": BUCKETS} if each.kind == "histogram" else {}
            self._made[each.name] = kinds[each.kind](each.name, each.about, labels, registry=self.registry, **more)
        self._made[ALARM].labels(model).set(0)
        for event in record.EVENTS:
            self._made[EVENTS].labels(model, event)

    def __call__(self, row: Row) -> None:
        """Take a row of the log."""
        with self._lock:  # a gauge that is set and one that is removed at once would leave an old number
            if row.get("kind") == "event":
                self._event(str(row.get("event")))
                return
            for each in INSTRUMENTS:
                value = each.read(row)
                metric = self._made[each.name]
                if value is not None:
                    WRITE[each.kind](metric.labels(self._model), value)
                    self._shown.add(each.name)
                elif each.kind == "gauge" and each.name in self._shown:
                    metric.remove(self._model)
                    self._shown.remove(each.name)

    def _event(self, event: str) -> None:
        self._made[EVENTS].labels(self._model, event).inc()
        if event in ("alarm", "cleared"):
            self._made[ALARM].labels(self._model).set(float(event == "alarm"))

    def text(self) -> bytes:
        """Return what `/metrics` answers, in Prometheus's text format."""
        return bytes(self._client.generate_latest(self.registry))

    def serve(self, port: int = 9464, host: str = "127.0.0.1") -> Callable[[], None]:
        """Answer at `http://host:port/metrics` from a thread; returns what ends it."""
        try:
            server, thread = self._client.start_http_server(port, host, self.registry)
        except OSError as error:
            raise HapteraError(f"cannot serve metrics at {host}:{port}: {error.strerror or error}") from error

        def close() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return close


class OpenTelemetryMetrics:
    """A listener that writes to OpenTelemetry meters; who collects them is up to the service's own provider.

    Args:
        model: the attribute `model` of every measurement.
        provider: a meter provider; the global one by default.
    """

    def __init__(self, model: str = "model", provider: Any = None) -> None:
        api: Any = import_extra("opentelemetry.metrics", "live", "OpenTelemetryMetrics")
        self._attributes, self._last = {"model": model}, {ALARM: 0.0}
        meter = (provider or api.get_meter_provider()).get_meter("haptera")
        self._made: dict[str, Any] = {}
        for each in INSTRUMENTS:
            name = each.name.replace("haptera_", "haptera.", 1)
            if each.kind == "gauge":
                meter.create_observable_gauge(name, [self._reader(each.name, api.Observation)], each.unit, each.about)
            elif each.kind == "counter":
                self._made[each.name] = meter.create_counter(name, each.unit, each.about)
            else:
                more = {"explicit_bucket_boundaries_advisory": BUCKETS}
                self._made[each.name] = meter.create_histogram(name, each.unit, each.about, **more)
        for event in record.EVENTS:
            self._made[EVENTS].add(0, self._attributes | {"event": event})

    def __call__(self, row: Row) -> None:
        """Take a row of the log."""
        if row.get("kind") == "event":
            event = str(row.get("event"))
            self._made[EVENTS].add(1, self._attributes | {"event": event})
            if event in ("alarm", "cleared"):
                self._last[ALARM] = float(event == "alarm")
            return
        for each in INSTRUMENTS:
            value = each.read(row)
            if each.kind == "gauge" and each.name != ALARM:
                self._last.pop(each.name, None) if value is None else self._last.update({each.name: value})
            elif value is not None:
                made = self._made[each.name]
                (made.add if each.kind == "counter" else made.record)(value, self._attributes)

    def _reader(self, name: str, observation: Any) -> Callable[[Any], Iterable[Any]]:
        def read(options: Any) -> Iterable[Any]:
            value = self._last.get(name)
            return [] if value is None else [observation(value, self._attributes)]

        return read
