"""A real guard with listeners: a receiver that hangs delays no answer, and metrics are those of its log."""

import socket
import time

import pytest
import torch
from prometheus_client.parser import text_string_to_metric_families
from tests.conftest import wait_until

from haptera.adapters import BatchNorm
from haptera.live import Guard, LogReader, PrometheusMetrics, Webhook
from haptera.live.record import EVENTS
from haptera.models import ResNet

BATCHES = torch.rand(12, 8, 1, 8, 8, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def net():
    torch.manual_seed(0)
    return ResNet(width=4, stem=2).eval()


def test_a_webhook_that_hangs_delays_no_answer_and_changes_none(net, tmp_path):
    alone = Guard(net, BatchNorm, log=tmp_path / "alone")
    expected = [alone(batch) for batch in BATCHES]
    alone.close()
    with socket.create_server(("127.0.0.1", 0)) as silent, Guard(net, BatchNorm, log=tmp_path / "told") as guard:
        webhook = Webhook(f"http://127.0.0.1:{silent.getsockname()[1]}/", events=EVENTS, timeout=300, queue=2)
        guard.listeners.append(webhook)
        guard.label([], [])
        wait_until(lambda: webhook._busy)  # it waits for an answer that never comes
        begun = time.perf_counter()
        for batch, logits in zip(BATCHES, expected, strict=True):
            assert torch.equal(guard(batch), logits)
            guard.label([], [])
        assert time.perf_counter() - begun < 60  # one call that waited would take 300
        assert webhook.dropped >= 10
        webhook.close(timeout=0)


def test_metrics_of_a_guard_are_what_its_log_says(net, tmp_path):
    metrics = PrometheusMetrics("net")
    with Guard(net, BatchNorm, log=tmp_path / "log") as guard:
        guard.listeners.append(metrics)
        for place, batch in enumerate(BATCHES):
            guard(batch, ids=range(8 * place, 8 * place + 8))
        guard.label(range(40), [0] * 40)
    reader = LogReader(tmp_path / "log")
    reader.read_on()
    families = text_string_to_metric_families(metrics.text().decode())
    samples = {(one.name, one.labels.get("event")): one.value for family in families for one in family.samples}
    frame = reader.history.frame()
    assert samples["haptera_images_total", None] == reader.history.images == 96
    assert samples["haptera_events_total", "label"] == reader.history.counts["label"] == 1
    assert samples["haptera_latency_seconds_sum", None] == pytest.approx(frame["latency"].sum())
    assert samples["haptera_entropy", None] == frame["entropy"].iloc[-1]
    labels = reader.history.labels().iloc[0]
    classes = torch.cat(_answers(net)).argmax(1)[:40]
    assert (labels["known"], labels["right"]) == (40, int((classes == 0).sum()))


def _answers(net):
    with Guard(net, BatchNorm) as guard:
        return [guard(batch) for batch in BATCHES]
