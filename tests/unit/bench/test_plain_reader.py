"""What Varve is measured against reads everything, once, and notices when it does not."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from typing_extensions import override

from bench.plain_reader import PlainLoad, PlainReadError, read_plain

OBJECTS = {"/a?signed": b"a" * 1000, "/b?signed": b"b" * 301}


class Shelf(ThreadingHTTPServer):
    """Gives ranges, or what `status` and `missing` make of them."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.status = 206
        self.missing = 0
        self.asked: list[tuple[str, str]] = []
        self.connections = 0

    @override
    def handle_error(self, *_: object) -> None:
        """A reader that gives up resets its connections."""

    def load(self, in_flight: int) -> PlainLoad:
        base = f"http://127.0.0.1:{self.server_address[1]}"
        objects = [(base + path, len(body)) for path, body in OBJECTS.items()]
        return PlainLoad(objects, 100, in_flight)


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Shelf

    @override
    def setup(self) -> None:
        self.server.connections += 1
        super().setup()

    def do_GET(self) -> None:
        asked = self.headers["Range"]
        self.server.asked.append((self.path, asked))
        first, _, last = asked.removeprefix("bytes=").partition("-")
        body = OBJECTS[self.path][int(first) : int(last) + 1]
        body = body[: len(body) - self.server.missing]
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, *_: object) -> None:
        """Nothing: a test's output is not a server's log."""


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    with Shelf() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("in_flight", [1, 4])
def test_every_range_is_read_once_over_kept_connections(shelf: Shelf, in_flight: int) -> None:
    result = read_plain(shelf.load(in_flight))
    assert result.size_bytes == 1301
    wanted = [
        (path, f"bytes={at}-{min(at + 100, len(body)) - 1}")
        for path, body in OBJECTS.items()
        for at in range(0, len(body), 100)
    ]
    assert sorted(shelf.asked) == sorted(wanted)
    assert shelf.connections <= in_flight


@pytest.mark.parametrize(("status", "missing"), [(200, 0), (403, 0), (206, 1)])
def test_anything_but_the_range_is_an_error(shelf: Shelf, status: int, missing: int) -> None:
    shelf.status, shelf.missing = status, missing
    with pytest.raises(PlainReadError):
        read_plain(shelf.load(2))
