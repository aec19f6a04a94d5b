"""The way of raw clients to who is responsible, over real connections that end or say nothing."""

import socket
from collections.abc import Iterator

import pytest

from bench import wire
from bench.cluster import raw_clients
from bench.cluster.raw_clients import Address, NoSuccessError, Route


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def route_to(server: socket.socket, asked: list[Address]) -> Route:
    """Brokers in turn: one that is dead, and one that names itself."""
    host, port = server.getsockname()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = closed.getsockname()[1]

    def find(connection: socket.socket) -> Address:
        asked.append(connection.getpeername())
        return host, port

    return Route([f"{host}:{port}", f"{host}:{dead}"], find)


def test_another_broker_is_asked_when_one_does_not_answer(listening: socket.socket) -> None:
    asked: list[Address] = []
    route = route_to(listening, asked)
    assert route.until_done(lambda connection: connection.getpeername()) == listening.getsockname()
    assert asked == [listening.getsockname()]
    route.close()


def test_an_attempt_that_fails_is_made_again_on_another_connection(
    listening: socket.socket,
) -> None:
    asked: list[Address] = []
    route = route_to(listening, asked)
    used: list[Address] = []

    def attempt(connection: socket.socket) -> int:
        used.append(connection.getsockname())
        if len(used) < 3:
            raise wire.WireError("error 6")
        return len(used)

    assert route.until_done(attempt) == 3
    assert len(set(used)) == 3
    assert route.until_done(attempt) == 4
    assert used[3] == used[2], "what works is kept"
    route.close()


def test_it_gives_up_when_nobody_ever_answers(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_clients, "GAVE_UP_S", 0.0)

    def find(connection: socket.socket) -> Address:
        raise LookupError("no leader")

    host, port = listening.getsockname()
    with pytest.raises(NoSuccessError, match="no leader"):
        Route([f"{host}:{port}"], find).until_done(lambda _: None)
