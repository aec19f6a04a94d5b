"""What a job's REST catalog does without a server: test_rest_catalog.py of interop has one."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pipeline.lake.app.locations import open_catalog
from pipeline.lake.errors import TableUnavailableError
from pipeline.lake.settings.config import parse_job
from pipeline.lake.sinks import rest_catalog

SECRET = "hush-hush"


@contextmanager
def silent_server() -> Iterator[int]:
    """Takes connections and says nothing; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held: list[socket.socket] = []

        def take() -> None:
            while True:
                try:
                    held.append(listener.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for one in held:
                one.close()


def opened(port: int) -> None:
    catalog = f"{{type: rest, uri: 'http://127.0.0.1:{port}', token: {SECRET}}}"
    open_catalog(
        parse_job(
            "source: {location: /b, topic: t}\n"
            f"sink: {{type: iceberg, table: lake.orders, catalog: {catalog}}}"
        )
    )


def test_a_catalog_that_says_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """And does not hold the job for ever."""
    monkeypatch.setattr(rest_catalog, "READ_TIMEOUT_S", 0.2)
    with silent_server() as port, pytest.raises(TableUnavailableError, match="imed out") as told:
        opened(port)
    assert SECRET not in str(told.value)


def test_a_catalog_that_is_not_there_is_told() -> None:
    with pytest.raises(TableUnavailableError, match="refused") as told:
        opened(9)
    assert SECRET not in str(told.value)
