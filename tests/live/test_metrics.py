"""What a guard tells is what Prometheus's own parser, and an OpenTelemetry reader, get."""

import json
import re
import socket
import sys
from importlib.resources import files
from urllib.request import urlopen

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client.parser import text_string_to_metric_families
from tests.live.recorded_rows import FALL, event_row, rows, step_row

from haptera.errors import HapteraError
from haptera.live.metrics import INSTRUMENTS, OpenTelemetryMetrics, PrometheusMetrics
from haptera.live.record import EVENTS

ROWS = rows(FALL)  # an alarm that is not cleared yet


def parsed(text: bytes) -> dict[tuple[str, str], float]:
    """Name and event of every sample -> its value."""
    found = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            assert sample.labels["model"] == "camera"
            found[sample.name, sample.labels.get("event", sample.labels.get("le", ""))] = sample.value
    return found


def fed(metrics):
    for row in ROWS:
        metrics(row)
    return metrics


def test_prometheus_parses_counts_gauges_and_latencies():
    samples = parsed(fed(PrometheusMetrics("camera")).text())
    steps = [row for row in ROWS if row["kind"] == "step"]
    assert samples["haptera_steps_total", ""] == len(steps)
    assert samples["haptera_images_total", ""] == 64 * len(steps)
    assert samples["haptera_events_total", "alarm"] == 1
    assert samples["haptera_shift_active", ""] == 1
    assert samples["haptera_shift_size", ""] == steps[-1]["shift_size"]
    assert samples["haptera_accuracy", ""] == pytest.approx(0.71)
    assert samples["haptera_adapted", ""] == 1
    assert samples["haptera_memory_bytes", ""] == 812 * 2**20
    assert samples["haptera_latency_seconds_count", ""] == len(steps)
    assert samples["haptera_latency_seconds_bucket", "0.01"] == 0
    assert samples["haptera_latency_seconds_bucket", "0.025"] == len(steps)
    assert samples["haptera_latency_seconds_sum", ""] == pytest.approx(sum(row["latency"] for row in steps))


def test_a_number_that_is_not_known_any_more_is_not_shown_with_its_old_value():
    metrics = PrometheusMetrics("camera")
    metrics(step_row(0))
    assert ("haptera_accuracy", "") in parsed(metrics.text())
    for _ in range(2):
        metrics(step_row(1, accuracy=None, low=float("nan")))
    samples = parsed(metrics.text())
    assert ("haptera_accuracy", "") not in samples
    assert ("haptera_accuracy_low", "") not in samples
    assert samples["haptera_accuracy_high", ""] == pytest.approx(0.97)
    metrics(step_row(2))
    assert ("haptera_accuracy", "") in parsed(metrics.text())


def test_counts_of_events_are_there_before_the_first_so_that_it_is_an_increase():
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    OpenTelemetryMetrics("camera", provider)
    (resource,) = reader.get_metrics_data().resource_metrics
    (counter,) = (each for each in resource.scope_metrics[0].metrics if each.name == "haptera.events")
    told = {point.attributes["event"]: point.value for point in counter.data.data_points}
    provider.shutdown()
    samples = parsed(PrometheusMetrics("camera").text())
    scraped = {event: value for (name, event), value in samples.items() if name == "haptera_events_total"}
    assert told == scraped == dict.fromkeys(EVENTS, 0)


def test_cleared_ends_the_alarm():
    metrics = fed(PrometheusMetrics("camera"))
    metrics(event_row(FALL, "cleared", "back"))
    assert parsed(metrics.text())["haptera_shift_active", ""] == 0


def test_two_guards_of_one_process_and_a_service_with_metrics_of_its_own_do_not_meet():
    one, two = PrometheusMetrics("camera"), PrometheusMetrics("camera")
    one(step_row(0))
    assert ("haptera_steps_total", "") not in parsed(two.text())


def test_metrics_are_scraped_over_http_and_a_port_in_use_is_one_sentence():
    metrics = fed(PrometheusMetrics("camera"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HapteraError, match=rf"cannot serve metrics at 127\.0\.0\.1:{port}: .*in use"):
            metrics.serve(port)
    close = metrics.serve(port)
    try:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            assert parsed(answer.read())["haptera_events_total", "alarm"] == 1
    finally:
        close()


def test_opentelemetry_gets_the_same_numbers():
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    fed(OpenTelemetryMetrics("camera", provider))
    (resource,) = reader.get_metrics_data().resource_metrics
    points = {metric.name: metric.data.data_points[0] for metric in resource.scope_metrics[0].metrics}
    provider.shutdown()
    samples = parsed(fed(PrometheusMetrics("camera")).text())
    for name in ("shift_size", "accuracy", "accuracy_low", "largest_class", "memory_bytes", "shift_active"):
        assert points[f"haptera.{name}"].value == pytest.approx(samples[f"haptera_{name}", ""])
    assert points["haptera.steps"].value == samples["haptera_steps_total", ""]
    assert points["haptera.latency_seconds"].count == samples["haptera_latency_seconds_count", ""]
    assert points["haptera.steps"].attributes == {"model": "camera"}


def test_without_the_package_it_says_which_extra_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(HapteraError, match=r"haptera\[live\]"):
        PrometheusMetrics()


@pytest.fixture(scope="module")
def dashboard():
    return json.loads((files("haptera.live") / "static" / "grafana.json").read_text("utf-8"))


def test_the_dashboard_asks_for_metrics_that_are_exported_and_for_events_that_happen(dashboard):
    asked = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    asked += " ".join(each["expr"] for each in dashboard["annotations"]["list"])
    asked += dashboard["templating"]["list"][1]["query"]["query"]
    exported = {name for name, _ in parsed(fed(PrometheusMetrics("camera")).text())}
    named = set(re.findall(r"haptera_\w+", asked))
    assert named <= exported
    there = {each.name + {"counter": "_total", "histogram": "_bucket"}.get(each.kind, "") for each in INSTRUMENTS}
    assert named == there
    assert set(re.findall(r'event="(\w+)"', asked)) <= set(EVENTS)


def test_the_dashboard_has_what_grafana_requires(dashboard):
    assert isinstance(dashboard["schemaVersion"], int)
    assert {"title", "uid", "time", "refresh", "version"} <= dashboard.keys()
    variables = {each["name"]: each["type"] for each in dashboard["templating"]["list"]}
    assert variables == {"datasource": "datasource", "model": "query"}
    source = {"type": "prometheus", "uid": "${datasource}"}
    places = set()
    for panel in dashboard["panels"]:
        assert {"id", "type", "title", "gridPos", "fieldConfig", "options", "targets"} <= panel.keys()
        place = panel["gridPos"]
        assert place.keys() == {"x", "y", "w", "h"}
        assert place["x"] + place["w"] <= 24
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not own & places  # panels do not lie on one another
        places |= own
        assert all(target["datasource"] == source for target in panel["targets"])
        letters = [target["refId"] for target in panel["targets"]]
        assert len(set(letters)) == len(letters)
    assert all(each["datasource"] == source for each in dashboard["annotations"]["list"])
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
