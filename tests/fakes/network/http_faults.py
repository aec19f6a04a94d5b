"""A proxy before an HTTP server: it loses answers, repeats requests or answers itself."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import urlsplit

from typing_extensions import override

HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive", "content-length", "host"}

DROPPED = 0
"""Instead of a status: the connection ends without an answer."""


class Fault(NamedTuple):
    """What happens to the next request of a kind.

    Attributes:
        method: GET, POST, ...
        path_end: How its path ends.
        sent: How often the server gets it: 0, 1, or 2 for a request that is repeated on the way.
        status: What is answered; None: the server's last answer; see `DROPPED`.
        times: How many requests.
    """

    method: str
    path_end: str
    sent: int
    status: int | None
    times: int = 1


class FaultyHttp:
    """Where it listens, and what is still to go wrong.

    Attributes:
        dropped_headers: Of requests, in lower case: as by a server that does not know them.
        seen: Method, path and the server's status of each request.
    """

    def __init__(self, url: str, upstream: str) -> None:
        self.url = url
        self.upstream = upstream
        self.faults: list[Fault] = []
        self.dropped_headers: frozenset[str] = frozenset()
        self.seen: list[tuple[str, str, int]] = []
        self._actions: dict[Fault, Callable[[], object]] = {}
        self._lock = threading.Lock()

    def before(self, fault: Fault, action: Callable[[], object]) -> None:
        """Let something happen when such a request has come, and before the server gets it."""
        self.faults.append(fault)
        self._actions[fault] = action

    def action_of(self, fault: Fault) -> Callable[[], object]:
        """What has to happen first, once."""
        return self._actions.pop(fault, lambda: None)

    def fault_of(self, method: str, path: str) -> Fault | None:
        """The first that is meant, which is used up by it."""
        with self._lock:
            for at, fault in enumerate(self.faults):
                if fault.method == method and path.endswith(fault.path_end):
                    if fault.times > 1:
                        self.faults[at] = fault._replace(times=fault.times - 1)
                    else:
                        del self.faults[at]
                    return fault
        return None


@contextmanager
def faulty_http(upstream: str) -> Iterator[FaultyHttp]:
    """Run one before `upstream`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self._body()
            path = urlsplit(self.path).path
            fault = proxy.fault_of(self.command, path) or Fault("", "", 1, None)
            proxy.action_of(fault)()
            status, headers, answer = 503, [("Content-Type", "application/json")], b"{}"
            for _ in range(fault.sent):
                status, headers, answer = self._ask(body)
            proxy.seen.append((self.command, path, status))
            if fault.status == DROPPED:
                self.close_connection = True
                return
            if fault.status is not None:
                status, answer = fault.status, b'{"error": {"message": "a gateway said so"}}'
            self.send_response(status)
            for name, text in headers:
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, text)
            told = [text for name, text in headers if name.lower() == "content-length"]
            # To a HEAD the length is that of what is not sent.
            size = told[0] if self.command == "HEAD" and told else str(len(answer))
            self.send_header("Content-Length", size)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = handle_any  # its names

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return b"".join(chunks)

        def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            connection = HTTPConnection(urlsplit(proxy.upstream).netloc, timeout=60)
            try:
                dropped = HOP_BY_HOP | proxy.dropped_headers
                headers = {n: t for n, t in self.headers.items() if n.lower() not in dropped}
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                return answer.status, answer.getheaders(), answer.read()
            finally:
                connection.close()

        @override
        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy = FaultyHttp(f"http://127.0.0.1:{server.server_address[1]}", upstream)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
