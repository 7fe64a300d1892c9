"""The server answers a handful of names on loopback, says what is new, and runs no script but its own."""

import http.client
import json
import socket

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.conftest import wait_until
from tests.live.recorded_rows import append, rows, write_log

from haptera.errors import HapteraError
from haptera.live import server as module
from haptera.live.server import LiveServer

ROWS = rows()


@pytest.fixture
def served(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PERIOD", 0.0)
    with LiveServer(write_log(tmp_path / "log", ROWS[:100]), port=0) as server:
        yield server


def ask(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection(server.host, server.port, timeout=30)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def test_the_page_has_a_strict_policy_and_loads_from_this_server_alone(served):
    status, headers, body = ask(served, "/")
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    text = body.decode()
    assert "http-equiv" in text
    assert "https://" not in text.replace("https://www.w3.org", "")
    for script in ("early.js", "plotly.js", "page.js"):
        assert f'<script src="{script}"></script>' in text
        assert ask(served, f"/{script}")[0] == 200


def test_data_is_sent_again_only_when_there_is_something_new(served):
    status, headers, body = ask(served, "/data.json")
    content = json.loads(body)
    assert (status, "shift since 14:02" in content["answers"][0][1]) == (200, True)
    tag = headers["ETag"]
    assert ask(served, "/data.json", **{"If-None-Match": tag})[::2] == (304, b"")
    append(served.content.folder, ROWS[100:])
    status, headers, body = ask(served, "/data.json", **{"If-None-Match": tag})
    assert (status, headers["ETag"] != tag) == (200, True)
    again = json.loads(body)
    assert "shift from 14:02 to 16:43" in again["answers"][0][1]
    assert again["data"].keys() == content["data"].keys()


def test_metrics_tell_the_last_step_and_count_what_arrives(served):
    def samples():
        text = ask(served, "/metrics")[2].decode()
        found = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return {(sample.name, sample.labels.get("event")): sample.value for sample in found}

    before = samples()
    assert before["haptera_shift_active", None] == 1
    assert before["haptera_accuracy", None] == pytest.approx(0.71)
    append(served.content.folder, ROWS[100:])
    after = samples()
    arrived = sum(row["kind"] == "step" for row in ROWS[100:])
    assert after["haptera_steps_total", None] - before["haptera_steps_total", None] == arrived
    assert after["haptera_events_total", "fallback"] == 1
    assert after["haptera_shift_active", None] == 0


@pytest.mark.parametrize("path", ["/live.json", "/../live.json", "/current.jsonl", "//etc/passwd", "/x.js"])
def test_nothing_else_is_answered(served, path):
    assert ask(served, path)[0] == 404


def test_only_get_and_head_are_answered(served):
    assert ask(served, "/", "POST")[0] == 501
    status, headers, body = ask(served, "/", "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 10_000


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example:1"])
def test_a_name_of_the_web_that_points_here_is_refused(served, host):
    assert ask(served, "/data.json", Host=host)[0] == 403


def test_a_port_in_use_is_one_sentence(tmp_path):
    folder = write_log(tmp_path / "log", ROWS[:3])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HapteraError, match=rf"cannot serve at 127\.0\.0\.1:{port}: address already in use; --port"):
            LiveServer(folder, port=port)


def test_a_log_that_breaks_while_it_is_served_does_not_end_the_server(served):
    part = served.content.folder / "part-000001.parquet"
    part.write_bytes(b"nonsense")
    status, _, body = ask(served, "/data.json")
    assert (status, b"cannot read" in body) == (500, True)
    part.unlink()
    assert ask(served, "/data.json")[0] == 200


def test_a_reader_that_hangs_up_or_says_nothing_does_not_hold_up_others(served):
    with (
        socket.create_connection((served.host, served.port)),
        socket.create_connection((served.host, served.port)) as half,
    ):
        half.sendall(b"GET / HTTP/1.1\r\nHost:")
        assert ask(served, "/data.json")[0] == 200
    wait_until(lambda: ask(served, "/metrics")[0] == 200)
