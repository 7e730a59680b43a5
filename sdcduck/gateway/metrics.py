"""How the gateway fares, in numbers that Prometheus reads: a page of its own, on a port of its own.

It has no data, no questions and no names of users or tables; the seconds of all questions are put together.

Source: https://prometheus.io/docs/instrumenting/exposition_formats
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socket import AF_INET, AF_INET6, SHUT_RDWR, socket

from sdcduck.errors import SDCError

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_NOT_OVER = "begun"
_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PATIENCE = 5.0
"""Seconds that a reader gets altogether."""


class Counts:
    """What is counted; any thread may.

    >>> counts = Counts()
    >>> counts.login("flight", succeeded=False)
    >>> counts.question("SDC040", 0.02, 0)
    >>> counts.question("answered", 0.002, 3)
    >>> for line in counts.page().splitlines():
    ...     if line.startswith("sdcduck") and "_bucket" not in line:
    ...         print(line)
    sdcduck_logins_total{door="flight",result="failed"} 1
    sdcduck_questions_total{verdict="SDC040"} 1
    sdcduck_questions_total{verdict="answered"} 1
    sdcduck_question_seconds_sum 0.022000
    sdcduck_question_seconds_count 2
    sdcduck_rows_total 3
    """

    def __init__(self) -> None:
        self._alone = threading.Lock()
        self._logins: Counter[tuple[str, bool]] = Counter()
        self._verdicts: Counter[str] = Counter()
        self._buckets = [0] * (len(_SECONDS) + 1)
        self._seconds, self._rows = 0.0, 0
        self._now: dict[str, Callable[[], int]] = {}

    def login(self, door: str, *, succeeded: bool) -> None:
        """Somebody gave a password."""
        with self._alone:
            self._logins[door, succeeded] += 1

    def question(self, verdict: str, seconds: float, rows: int) -> None:
        """A question was answered, refused or given up, as the audit log has it."""
        if verdict == _NOT_OVER:
            return
        with self._alone:
            self._verdicts[verdict] += 1
            self._buckets[bisect_left(_SECONDS, seconds)] += 1
            self._seconds += seconds
            self._rows += rows

    def watch(self, name: str, door: str, count: Callable[[], int]) -> None:
        """Something that can be counted whenever somebody wants to know."""
        self._now[f'sdcduck_{name}{{door="{door}"}}'] = count

    def page(self) -> str:
        """All of it, as Prometheus reads it."""
        with self._alone:
            lines = list(self._lines())
        for place, (name, count) in enumerate(sorted(self._now.items())):
            kind = f"# TYPE {name.partition('{')[0]} gauge"
            lines += [kind] if place == 0 or kind not in lines else []
            lines.append(f"{name} {count()}")
        memory = _resident()
        if memory is not None:
            lines += ["# TYPE process_resident_memory_bytes gauge", f"process_resident_memory_bytes {memory}"]
        return "\n".join(lines) + "\n"

    def _lines(self) -> Iterator[str]:
        yield "# TYPE sdcduck_logins_total counter"
        for (door, succeeded), count in sorted(self._logins.items()):
            result = "succeeded" if succeeded else "failed"
            yield f'sdcduck_logins_total{{door="{door}",result="{result}"}} {count}'
        yield "# TYPE sdcduck_questions_total counter"
        for verdict, count in sorted(self._verdicts.items()):
            yield f'sdcduck_questions_total{{verdict="{verdict}"}} {count}'
        yield "# TYPE sdcduck_question_seconds histogram"
        below = 0
        for bound, count in zip((*map(str, _SECONDS), "+Inf"), self._buckets, strict=True):
            below += count
            yield f'sdcduck_question_seconds_bucket{{le="{bound}"}} {below}'
        yield f"sdcduck_question_seconds_sum {self._seconds:.6f}"
        yield f"sdcduck_question_seconds_count {below}"
        yield "# TYPE sdcduck_rows_total counter"
        yield f"sdcduck_rows_total {self._rows}"


def _resident() -> int | None:
    """Bytes of memory that the process uses; None: the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def _send_away(reader: socket) -> None:
    with suppress(OSError):
        reader.shutdown(SHUT_RDWR)


class MetricsPage:
    """Shows the counts at ``/metrics``: to one reader at a time, who gets a few seconds.

    Raises:
        SDCError: the address cannot be listened on.
    """

    def __init__(self, counts: Counts, host: str, port: int) -> None:
        class Page(BaseHTTPRequestHandler):
            server_version, sys_version = "sdcduck", ""

            def do_GET(self) -> None:
                if self.path.partition("?")[0] != "/metrics":
                    self.send_error(404)
                    return
                body = counts.page().encode()
                self.send_response(200)
                self.send_header("Content-Type", _TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                """Nobody is told who reads the page."""

        class Server(HTTPServer):
            address_family = AF_INET6 if ":" in host else AF_INET

            def finish_request(self, request: object, client_address: object) -> None:
                assert isinstance(request, socket)
                # For all of it: a limit for each byte would let those who send one at a time stay for ever.
                patience = threading.Timer(_PATIENCE, _send_away, [request])
                patience.start()
                try:
                    super().finish_request(request, client_address)
                finally:
                    patience.cancel()

            def handle_error(self, request: object, client_address: object) -> None:
                """A reader who behaves badly costs nobody a line."""

        try:
            self._server = Server((host, port), Page)
        except OSError as problem:
            raise SDCError(f"cannot listen on {host}:{port} for metrics: {problem.strerror or problem}") from None
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="sdcduck-metrics", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Show nothing more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
