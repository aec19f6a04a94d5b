"""A broker's admin port, asked by a command."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from cli import admin_port
from cli.admin_port import ask_admin
from cli.connection import CommandError


class Server:
    """Answers what it is told to, and keeps what it was asked."""

    def __init__(self) -> None:
        self.status, self.body = 200, b"{}"
        # Of what `--brokers` has beside: /brokers is on a supervisor's admin port alone.
        self.brokers: bytes | None = None
        self.asked: list[tuple[str, str, str | None]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                outer.asked.append((self.command, self.path, self.headers["Varve-Action"]))
                status, body = outer.status, outer.body
                if self.path == "/brokers" and outer.brokers is not None:
                    status, body = 200, outer.brokers
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = answer

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def test_an_answer_is_a_document(server: Server) -> None:
    """The header that allows actions goes with it."""
    server.body = json.dumps({"a": 1}).encode()
    assert ask_admin(server.address, "POST", "/tier/verify", {"topic": "a b"}) == {"a": 1}
    assert server.asked == [("POST", "/tier/verify?topic=a+b", "1")]


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (400, b'{"error": "topic is missing"}', "refuses: topic is missing"),
        (500, b"see the log\n", "refuses: see the log"),
        (404, b"there is only /metrics", "has no remote storage"),
    ],
)
def test_a_refusal_is_one_line(server: Server, status: int, body: bytes, said: str) -> None:
    """With the broker's own words."""
    server.status, server.body = status, body
    with pytest.raises(CommandError, match=said):
        ask_admin(server.address, "GET", "/tier", {})


@pytest.mark.parametrize(
    ("admin", "said"),
    [("127.0.0.1:4711", r"now 127\.0\.0\.1:4711 \(broker 2\)$"), (None, "none serves")],
)
def test_a_supervisors_port_is_told_from_a_brokers(
    server: Server, admin: str | None, said: str
) -> None:
    """It has the default address, and its brokers may well have remote storage."""
    server.status, server.body = 404, b"there is only /brokers /cluster /metrics"
    server.brokers = json.dumps([{"broker": 2, "admin": admin}]).encode()
    with pytest.raises(CommandError, match=said):
        ask_admin(server.address, "GET", "/tier", {})


def test_nobody_there_is_one_line_too() -> None:
    """With the system's reason, and where to look."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=rf"no admin port at 127.0.0.1:{port}: .*--admin"):
            ask_admin(f"127.0.0.1:{port}", "GET", "/tier", {})


def test_a_broker_that_ends_meanwhile_is_no_mistaken_address() -> None:
    """As one that is killed while it reads a bucket for the command."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=lambda: listening.accept()[0].close())
        thread.start()
        port = listening.getsockname()[1]
        with pytest.raises(CommandError, match="ended the connection before its answer"):
            ask_admin(f"127.0.0.1:{port}", "POST", "/tier/verify", {})
        thread.join()


def test_a_broker_that_does_not_answer_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_port, "TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(CommandError, match=f"at 127.0.0.1:{port} has not answered within 0 s"):
            ask_admin(f"127.0.0.1:{port}", "GET", "/tier", {})
