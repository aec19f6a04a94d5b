"""The health check asks the admin port and tells by its exit status."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from typing_extensions import override

SCRIPT = Path(__file__).resolve().parents[3] / "docker" / "healthcheck"


class _Admin(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 503)
        self.end_headers()
        self.wfile.write(b"recovering 3 of 7")

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    """An admin port that lives and is not ready."""
    with HTTPServer(("127.0.0.1", 0), _Admin) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def _check(listener: str | None, *words: str) -> tuple[int, str]:
    variables = {name: text for name, text in os.environ.items() if not name.startswith("KAFKA_")}
    if listener is not None:
        variables["KAFKA_ADMIN_LISTENER"] = listener
    ended = subprocess.run(
        [sys.executable, str(SCRIPT), *words],
        check=False,
        capture_output=True,
        text=True,
        env=variables,
    )
    assert ended.stderr == ""
    return ended.returncode, ended.stdout.strip()


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", ""])
def test_a_living_broker_is_healthy(port: int, host: str) -> None:
    """Wherever it listens, it is asked from inside."""
    assert _check(f"{host}:{port}") == (0, "recovering 3 of 7")


def test_a_broker_that_is_not_ready_is_told_apart(port: int) -> None:
    """And what it says is shown by `docker inspect`."""
    assert _check(f"127.0.0.1:{port}", "/readyz") == (1, "recovering 3 of 7")


def test_nobody_there_is_unhealthy(port: int) -> None:
    """Without a traceback."""
    status, said = _check("127.0.0.1:1")
    assert status == 1
    assert "refused" in said


def test_a_switched_off_admin_port_counts_as_healthy() -> None:
    """There is nobody to ask."""
    assert _check("") == (0, "")
