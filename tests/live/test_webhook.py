"""Webhooks send what was asked for, and whatever a receiver does, who gives them a row goes on at once."""

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.conftest import wait_until
from tests.live.recorded_rows import event_row, step_row

from haptera.errors import HapteraError
from haptera.live import webhook as module
from haptera.live.webhook import Webhook

ALARM = event_row(64, "alarm", "sharpness has changed", since=60)


@contextmanager
def receiver(codes: tuple[int, ...] = (), location: str = "") -> Iterator[tuple[str, list[dict]]]:
    """A receiver that keeps bodies, and answers with some codes before it is content."""
    bodies: list[dict] = []
    left = list(codes)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(left.pop(0) if left else 204)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/hook", bodies
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_events_that_were_asked_for_arrive_with_their_sentence_and_numbers():
    with receiver() as (url, bodies), Webhook(url, model="camera") as webhook:
        webhook(step_row(64))
        webhook(event_row(64, "snapshot", "kept"))
        webhook(ALARM)
    assert [body["event"] for body in bodies] == ["alarm"]
    assert bodies[0]["text"] == "camera: sharpness has changed"
    assert bodies[0]["numbers"] == {"since": 60}
    assert (bodies[0]["step"], bodies[0]["time"]) == (64, ALARM["time"])
    assert (webhook.sent, webhook.failed, webhook.dropped) == (1, 0, 0)


def test_a_receiver_that_hangs_never_delays_who_gives_a_row_and_the_queue_is_bounded():
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and never answers
        webhook = Webhook(f"http://127.0.0.1:{silent.getsockname()[1]}/", queue=5, timeout=60)
        webhook(ALARM)
        wait_until(lambda: webhook._busy)
        begun = time.perf_counter()
        for _ in range(1000):
            webhook(ALARM)
        took = time.perf_counter() - begun
        assert took < 30  # one that waited for the receiver would take a minute
        assert webhook.dropped == 995
        begun = time.perf_counter()
        webhook.close(timeout=0.05)
        assert time.perf_counter() - begun < 5
        assert webhook.dropped == 1000


def test_a_receiver_that_is_silent_for_too_long_is_given_up_and_said_once(monkeypatch, caplog):
    monkeypatch.setattr(module, "PAUSE", 0.001)
    with socket.create_server(("127.0.0.1", 0)) as silent, caplog.at_level(logging.WARNING, "haptera"):
        port = silent.getsockname()[1]
        with Webhook(f"http://127.0.0.1:{port}/a-secret", timeout=0.02, attempts=2) as webhook:
            webhook(ALARM)
            webhook(ALARM)
            wait_until(lambda: webhook.failed == 2)
    told = [message for message in caplog.messages if str(port) in message]  # others are webhooks of earlier tests
    assert len(told) == 1
    assert "does not take events" in told[0]
    assert "a-secret" not in told[0]


def test_an_event_is_tried_again_after_an_error(monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.001)
    with receiver((500, 503)) as (url, bodies), Webhook(url) as webhook:
        webhook(ALARM)
    assert (len(bodies), webhook.sent, webhook.failed) == (3, 1, 0)


def test_a_redirect_is_not_followed(monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.001)
    with receiver() as (other, stolen), receiver((302, 302, 302), other) as (url, _), Webhook(url) as webhook:
        webhook(ALARM)
        wait_until(lambda: webhook.failed)
    assert stolen == []


@pytest.mark.parametrize("url", ["ftp://host/x", "host/x", "http://", "http://host:abc/", "file:///etc/passwd"])
def test_what_is_not_an_address_is_refused(url):
    with pytest.raises(HapteraError, match="webhook"):
        Webhook(url)


def test_an_unknown_event_is_refused_with_the_nearest():
    with pytest.raises(HapteraError, match="did you mean 'fallback'"):
        Webhook("http://localhost/", events=["falback"])
