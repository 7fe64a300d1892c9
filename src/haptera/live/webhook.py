"""Webhook: events of a guard as POST requests, sent by a thread of their own, so that no prediction ever waits.

A webhook is a listener: called with a row of the log, it puts it into a bounded queue and returns. What does not fit is
dropped and counted. The body is one JSON object; its `text` is the sentence, which chat services show as it is.
Redirects are not followed. Cost: microseconds for the caller; one thread, and at most `queue` rows in memory.
"""

import json
import logging
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Collection, Mapping
from datetime import datetime
from email.message import Message
from time import monotonic
from typing import IO, Any
from urllib.parse import urlsplit

from haptera.checks import check_number, check_whole_number
from haptera.errors import HapteraError, check_keys, first_line
from haptera.files.json import plain
from haptera.live.record import EVENTS

log = logging.getLogger("haptera")

URGENT = ("alarm", "cleared", "fallback", "return", "fault")
PAUSE = 1.0
"""Seconds before a second attempt; each further one waits twice as long."""


class Webhook:
    """Sends events to a URL; give it to a guard as a listener.

    Args:
        url: `http://` or `https://`, with a host.
        events: which of them are sent.
        model: what the body calls the model.
        timeout: seconds that a receiver may be silent.
        queue: events that may wait; further ones are dropped.
        attempts: how often one event is tried.

    Attributes:
        sent: how many events a receiver has taken.
        failed: how many it has not, after all attempts.
        dropped: how many found the queue full.
    """

    def __init__(
        self,
        url: str,
        *,
        events: Collection[str] = URGENT,
        model: str = "",
        timeout: float = 5.0,
        queue: int = 100,
        attempts: int = 3,
    ) -> None:
        check_url(url)
        check_keys("event", events, EVENTS)
        check_number("timeout", timeout, least=0.001, what="a number of seconds")
        check_whole_number("queue", queue)
        check_whole_number("attempts", attempts)
        self.url, self.events, self.model, self.timeout, self.attempts = (
            url,
            frozenset(events),
            model,
            timeout,
            attempts,
        )
        self.sent = self.failed = self.dropped = 0
        self._most = queue
        self._waiting: deque[Mapping[str, Any]] = deque()
        self._change = threading.Condition()
        self._busy = self._closed = self._complained = False
        self._opener = urllib.request.build_opener(_NoRedirects)
        self._thread = threading.Thread(target=self._work, name="haptera-webhook", daemon=True)
        self._thread.start()

    def __call__(self, row: Mapping[str, Any]) -> None:
        """Take a row of the log; only events that were asked for are sent. Returns at once."""
        if row.get("kind") != "event" or row.get("event") not in self.events:
            return
        with self._change:
            if self._closed or len(self._waiting) >= self._most:
                self.dropped += 1
                return
            self._waiting.append(dict(row))
            self._change.notify_all()

    def close(self, timeout: float = 5.0) -> None:
        """Wait until the queue is empty, for at most `timeout` seconds, and stop; what is left is dropped."""
        end = monotonic() + timeout
        with self._change:
            self._change.wait_for(lambda: not self._waiting and not self._busy, max(end - monotonic(), 0))
            self.dropped += len(self._waiting)
            self._waiting.clear()
            self._closed = True
            self._change.notify_all()
        self._thread.join(max(end - monotonic(), 0))

    def __enter__(self) -> "Webhook":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                row = self._waiting.popleft()
                self._busy = True
            self._deliver(row)
            with self._change:
                self._busy = False
                self._change.notify_all()

    def _deliver(self, row: Mapping[str, Any]) -> None:
        """Try one event as often as allowed; a closed webhook stops trying."""
        request = urllib.request.Request(self.url, body_of(row, self.model), {"Content-Type": "application/json"})
        error: Exception | None = None
        for attempt in range(self.attempts):
            if attempt:
                with self._change:
                    if self._change.wait_for(lambda: self._closed, PAUSE * 2 ** (attempt - 1)):
                        break
            try:
                with self._opener.open(request, timeout=self.timeout):  # by POST, for there is a body
                    self.sent += 1
                    return
            except Exception as problem:  # whatever a receiver does, the next event is tried
                error = problem
                if isinstance(problem, urllib.error.HTTPError):
                    problem.close()
        self.failed += 1
        if not self._complained and error is not None:
            self._complained = True
            log.warning(
                "the webhook %s does not take events (%s); predictions go on", _host(self.url), first_line(error)
            )


def body_of(row: Mapping[str, Any], model: str = "") -> bytes:
    """Return what is sent about an event."""
    time = row.get("time")
    when = (
        datetime.fromtimestamp(time).astimezone().isoformat(timespec="seconds")
        if isinstance(time, int | float)
        else None
    )
    name = f"{model}: " if model else ""
    content = {"text": f"{name}{row.get('sentence', '')}", "model": model, "when": when}
    own = {key: value for key, value in row.items() if key != "kind"}
    return json.dumps(plain(content | own), default=str, allow_nan=False).encode()


def check_url(url: str) -> None:
    """Refuse what is not an address that events can be sent to."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise HapteraError(f"the webhook {url!r} is not an address: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise HapteraError(f"the webhook is {url!r}; http://HOST/... or https://HOST/... was expected")


def _host(url: str) -> str:
    """Return the part of an address that may stand in a log; what comes after it is often a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """What is meant for one address goes to no other."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        raise urllib.error.HTTPError(req.full_url, code, "a redirect, which is not followed", headers, fp)
