"""`haptera live`: the page of a log, a rehearsal against a real guard, a dashboard; mistakes are one sentence."""

import json
import os
import signal
import socket
import urllib.request

import pytest
from tests.live.recorded_rows import write_log


def test_a_log_becomes_a_summary_and_a_page(haptera, tmp_path):
    write_log(tmp_path / "log")
    done = haptera("live", "log", "--since", "14:00", "--out", "page")
    assert done.returncode == 0, done.stderr
    assert "shift from 14:02 to 16:43" in done.stdout
    assert "shift from 14:02 to 16:43" in (tmp_path / "page" / "report.html").read_text()
    found = json.loads(haptera("live", "--json", "log").stdout)
    assert (found["analysis"], found["alarms"], found["fallbacks"]) == ("live", 1, 1)


def test_a_port_in_use_a_foreign_folder_and_a_time_that_is_none_end_with_2(haptera, tmp_path):
    write_log(tmp_path / "log")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = haptera("live", "log", "--serve", "--port", port)
    assert done.returncode == 2
    assert f"cannot serve at 127.0.0.1:{port}: address already in use" in done.stderr
    assert done.stderr.count("\n") == 1
    wrong = {"not the log of a guard": ["."], "14:00": ["log", "--since", "noon"], "not there": ["none"]}
    for why, arguments in wrong.items():
        done = haptera("live", *arguments)
        assert (done.returncode, why in done.stderr) == (2, True)


@pytest.mark.long
def test_a_page_is_served_until_it_is_interrupted(haptera, tmp_path):
    write_log(tmp_path / "log")
    process = haptera.start("live", "log", "--serve", "--port", "0")
    line = process.stdout.readline()
    url = line.split()[0]
    assert url.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(url, timeout=60) as answer:
        assert b"camera, live" in answer.read()
    os.kill(process.pid, signal.SIGINT)
    assert process.communicate()[1] == "error: stopped\n"
    assert process.returncode == 130


def test_a_rehearsal_against_a_real_guard_writes_a_log(haptera, folder):
    command = ["--model", "net.py:build", "--data", "data.npz", "--batch-size", 4, "--rate", 0, "--labels", 0.5]
    streams = ["--stream", "clean", "--stream", "continual:shifts=contrast,severity=5", "--stream", "clean"]
    done = haptera("live", "simulate", *command, *streams, "--adapter", "batchnorm", "--delay", 2, "--out", "log")
    assert done.returncode == 0, done.stderr
    assert "30 batches in " in done.stdout
    found = json.loads(haptera("live", "log", "--json").stdout)
    assert (found["steps"], found["images"], found["settings"]["adapter"]) == (30, 120, "BatchNorm")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (["--adapter", "tnet"], "did you mean 'tent'"),
        (["--stream", "claen"], "did you mean 'clean'"),
        (["--labels", "2"], "labels is 2"),
        (["--webhook", "ftp://x"], "http://HOST"),
        (["--reference", "missing.safetensors"], "missing.safetensors"),
        (["--model", "net.py:build"], "--model was given 2 times"),
    ],
)
def test_mistakes_in_a_rehearsal_are_one_sentence(haptera, folder, wrong, why):
    done = haptera(
        "live", "simulate", "--model", "net.py:build", "--data", "data.npz", "--rate", 0, "--out", "log", *wrong
    )
    assert done.returncode == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_the_dashboard_is_printed_or_written(haptera, tmp_path):
    assert json.loads(haptera("live", "grafana").stdout)["uid"] == "haptera-live"
    haptera("live", "grafana", "--out", "board.json")
    assert json.loads((tmp_path / "board.json").read_text())["panels"]
