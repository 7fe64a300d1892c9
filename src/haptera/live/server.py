"""The page of a run, served while new data arrives: a small server of the standard library, on loopback by default.

It answers GET and HEAD for a handful of names and nothing else: `/`, its three scripts, `/data.json` (what may have
changed; 304 while nothing has), and `/metrics`. Nothing is taken from a request but its path and an ETag. Scripts come
from this server alone (Content-Security-Policy), and on loopback a request that names another host is refused, so that
no page of the web can read it by pointing a name of its own here.
Cost: the log is read on when somebody asks, at most once a second, and of it only what is new.
"""

import logging
import socket
import threading
from collections.abc import Callable
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from typing import Any

from haptera.errors import HapteraError
from haptera.live.metrics import PrometheusMetrics
from haptera.live.reader import LogReader
from haptera.report.page import SERVED_POLICY
from haptera.report.scripts import page_scripts

log = logging.getLogger("haptera")

PERIOD = 1.0
"""Seconds between two looks at the log."""
PATIENCE = 30.0
"""Seconds that a connection may be silent."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
PORT = 8642
HEADERS = {
    "Content-Security-Policy": f"{SERVED_POLICY}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
HTML, SCRIPT, JSON = "text/html; charset=utf-8", "text/javascript; charset=utf-8", "application/json"
METRICS = "text/plain; version=0.0.4; charset=utf-8"


class LivePage:
    """The page of a log and what is new on it; asked by several threads, it reads the log for one at a time."""

    def __init__(self, folder: Path, since: float | None = None) -> None:
        self.folder, self._reader, self._lock = folder, LogReader(folder, since), threading.Lock()
        self._looked = -PERIOD
        self._metrics = _metrics(self._reader)
        self._data, self._tag = b"", ""
        self._seen: tuple[int, ...] = ()
        self.scripts = {f"/{name}": text.encode() for name, text in page_scripts(served=True).items()}
        self._look()

    def page(self) -> bytes:
        """Return the page as it is now."""
        with self._lock:
            self._look()
            return self._reader.run().page(served=True).encode("utf-8", errors="replace")

    def data(self) -> tuple[bytes, str]:
        """Return what may have changed, and a tag that changes with it."""
        with self._lock:
            self._look()
            history = self._reader.history
            seen = (id(history), history.steps, sum(history.counts.values()), self._reader.damaged)
            if seen != self._seen:
                self._data = self._reader.run().page_data().encode()
                self._tag = f'"{blake2b(self._data, digest_size=12).hexdigest()}"'
                self._seen = seen
            return self._data, self._tag

    def metrics(self) -> bytes | None:
        """Return what Prometheus scrapes; None where its client is not installed."""
        with self._lock:
            self._look()
            return None if self._metrics is None else self._metrics.text()

    def _look(self) -> None:
        """Read on, unless that was done a moment ago."""
        if monotonic() - self._looked < PERIOD:
            return
        begun = self._looked >= 0
        rows = self._reader.read_on()
        self._looked = monotonic()
        # Counts are of what arrives while this serves; of what was there before, the last step and the alarms are told.
        for row in rows if begun else [*(row for row in rows if row.get("event") in ("alarm", "cleared")), *rows[-1:]]:
            if self._metrics is not None:
                self._metrics(row)


def _metrics(reader: LogReader) -> PrometheusMetrics | None:
    try:
        return PrometheusMetrics(reader.run().model)
    except HapteraError as error:
        log.info("no /metrics: %s", error)
        return None


class LiveServer:
    """A server of one page.

    Args:
        folder: of the log.
        host: the address to listen at; loopback unless others are meant to read it.
        port: 0 for any that is free.
        since: Unix seconds; what was before is left out.
    """

    def __init__(self, folder: Path, host: str = LOOPBACK[0], port: int = PORT, since: float | None = None) -> None:
        self.content = LivePage(folder, since)
        handler = type("Handler", (_Handler,), {"content": self.content, "names": LOOPBACK if host in LOOPBACK else ()})
        kind = type("Server", (_Server,), {"address_family": socket.AF_INET6 if ":" in host else socket.AF_INET})
        try:
            self._server = kind((host, port), handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            advice = "--port with another number, or 0 for any that is free, was expected"
            raise HapteraError(f"cannot serve at {host}:{port}: {str(why).lower()}; {advice}") from error
        self.host, self.port = host, int(self._server.server_address[1])
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Return the address of the page."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}/"

    def serve(self) -> None:
        """Answer until interrupted."""
        try:
            self._server.serve_forever(poll_interval=0.1)
        finally:
            self._server.server_close()

    def start(self) -> "LiveServer":
        """Answer from a thread."""
        self._thread = threading.Thread(target=self.serve, name="haptera-live", daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop answering."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._thread = None
        else:
            self._server.server_close()

    def __enter__(self) -> "LiveServer":
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away in the middle is nothing to print."""
        log.debug("a request of %s was not finished", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    content: LivePage
    names: tuple[str, ...]
    timeout = PATIENCE
    protocol_version = "HTTP/1.1"
    server_version = "haptera"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with one of a handful of things."""
        host = self.headers.get("Host", "")
        if self.names and host.rpartition(":")[0].strip("[]") not in self.names and host.strip("[]") not in self.names:
            return self._send(403, "text/plain", b"this page is for this machine alone\n")
        path = self.path.partition("?")[0]
        known: dict[str, Callable[[], None]] = {"/": self._page, "/data.json": self._data, "/metrics": self._meters}
        try:
            if path in self.content.scripts:
                self._send(200, SCRIPT, self.content.scripts[path])
            elif path in known:
                known[path]()
            else:
                self._send(404, "text/plain", b"there is no such page\n")
        except HapteraError as error:
            self._send(500, "text/plain; charset=utf-8", f"{error}\n".encode())
        except ConnectionError:  # whoever asked has gone
            self.close_connection = True
        except Exception:  # a log that nobody thought of must not end the server
            log.exception("the page of %s could not be made", self.content.folder)
            self._send(500, "text/plain", b"the page could not be made; the log of the server says why\n")

    do_HEAD = do_GET  # noqa: N815

    def _page(self) -> None:
        self._send(200, HTML, self.content.page())

    def _data(self) -> None:
        data, tag = self.content.data()
        if self.headers.get("If-None-Match") == tag:
            self._send(304, JSON, b"", ETag=tag)
        else:
            self._send(200, JSON, data, ETag=tag)

    def _meters(self) -> None:
        text = self.content.metrics()
        if text is None:
            self._send(404, "text/plain", b"metrics need prometheus-client: pip install 'haptera[live]'\n")
        else:
            self._send(200, METRICS, text)

    def _send(self, code: int, kind: str, body: bytes, **more: str) -> None:
        self.send_response(code)
        length = {} if code == 304 else {"Content-Type": kind, "Content-Length": str(len(body))}
        for name, value in (HEADERS | {"Cache-Control": "no-store"} | length | more).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD" and code != 304:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not worth a line."""
