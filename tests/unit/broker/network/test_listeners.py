"""Listeners that come and go while the broker runs."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from broker.network.acceptor import Acceptor
from broker.network.listeners import PROCESSORS_MAX, Listeners
from broker.network.network import Listening
from broker.network.processor import Processor
from config.listeners import Listener
from storage.environment.alerts import AlertKind, Alerts


class FakeAcceptor:
    def __init__(self, port: int, processors: Sequence[Processor]) -> None:
        self.port = port
        self.processors = processors
        self.started = 0
        self.closed = False

    def start(self) -> None:
        self.started += 1

    def close(self) -> None:
        self.closed = True


class FakeConnection:
    def __init__(self) -> None:
        self.reason: str | None = None

    def close(self, reason: str | None) -> None:
        self.reason = reason


class FakeProcessor:
    def __init__(self, index: int) -> None:
        self.index = index
        self.connections: dict[FakeConnection, None] = {}


class World:
    """Addresses that are free but for `taken`; a bound socket is its port."""

    def __init__(self) -> None:
        self.taken: set[int] = set()
        self.acceptors: list[FakeAcceptor] = []
        self.alerts = Alerts()
        self.listeners = Listeners(
            bind=self.bind,
            make_processor=lambda _name, index: cast("Processor", FakeProcessor(index)),
            make_acceptor=self.accept,
            alerts=self.alerts,
        )

    def bind(self, listener: Listener) -> Listening:
        if listener.port in self.taken:
            raise OSError(98, f"{listener.host}:{listener.port}: Address already in use")
        return cast("Listening", listener.port)

    def accept(self, _name: str, bound: Listening, processors: Sequence[Processor]) -> Acceptor:
        self.acceptors.append(FakeAcceptor(cast("int", bound), processors))
        return cast("Acceptor", self.acceptors[-1])

    def connect(self, acceptor: int, processor: int) -> FakeConnection:
        connection = FakeConnection()
        taker = cast("Any", self.acceptors[acceptor].processors[processor])
        taker.connections[connection] = None
        return connection


A, B = Listener("A", "h", 1), Listener("B", "h", 2)


def test_a_very_large_number_of_processors_is_made_a_bearable_one() -> None:
    """As many as were asked for would have taken all memory, at a start and by AlterConfigs."""
    w = World()
    w.listeners.open_all([A], 2**31 - 1)
    assert len(w.acceptors[0].processors) == PROCESSORS_MAX
    w.listeners.apply([A], 2)
    w.listeners.apply([A], 2**31 - 1)
    assert len(w.acceptors[0].processors) == PROCESSORS_MAX


def test_one_that_comes_does_not_touch_those_there_are() -> None:
    w = World()
    w.listeners.open_all([A], 2)
    client = w.connect(0, 0)
    w.listeners.apply([A, B], 2)
    assert w.listeners.addresses == [("A", "h", 1), ("B", "h", 2)]
    assert [acceptor.started for acceptor in w.acceptors] == [1, 1]
    assert not w.acceptors[0].closed
    assert client.reason is None


def test_one_that_goes_takes_its_connections_along() -> None:
    w = World()
    w.listeners.open_all([A, B], 1)
    stays, goes = w.connect(0, 0), w.connect(1, 0)
    w.listeners.apply([A], 1)
    assert w.listeners.addresses == [("A", "h", 1)]
    assert w.acceptors[1].closed
    assert (stays.reason, goes.reason) == (None, "its listener was taken away")
    assert len(list(w.listeners.processors())) == 1


def test_one_with_another_address_keeps_its_connections() -> None:
    w = World()
    w.listeners.open_all([A], 1)
    client = w.connect(0, 0)
    w.listeners.apply([Listener("A", "h", 3)], 1)
    assert w.listeners.addresses == [("A", "h", 3)]
    assert [acceptor.closed for acceptor in w.acceptors] == [True, False]
    assert client.reason is None
    assert w.acceptors[1].processors is not None
    assert list(w.acceptors[1].processors) == list(w.listeners.processors())


@pytest.mark.parametrize("wanted", [[A, B], [Listener("A", "h", 2)]])
def test_an_address_that_is_taken_leaves_what_there_is(wanted: list[Listener]) -> None:
    """And is said until it is mended."""
    w = World()
    w.listeners.open_all([A], 1)
    w.taken.add(2)
    w.listeners.apply(wanted, 1)
    assert w.listeners.addresses == [("A", "h", 1)]
    assert not w.acceptors[0].closed
    (alert,) = w.alerts.all()
    assert alert.kind is AlertKind.LISTENER_NOT_BOUND
    assert "cannot listen on" in alert.text
    w.taken.clear()
    w.listeners.apply(wanted, 1)
    assert w.alerts.all() == []
    assert ("h", 2) in [(host, port) for _, host, port in w.listeners.addresses]


def test_an_alert_goes_with_its_listener() -> None:
    w = World()
    w.listeners.open_all([A], 1)
    w.taken.add(2)
    w.listeners.apply([A, B], 1)
    w.listeners.apply([A], 1)
    assert w.alerts.all() == []


def test_a_start_that_cannot_have_all_has_none() -> None:
    w = World()
    w.taken.add(2)
    with pytest.raises(OSError, match="Address already in use"):
        w.listeners.open_all([A, B], 1)
    assert [(acceptor.started, acceptor.closed) for acceptor in w.acceptors] == [(0, True)]


def test_fewer_processors_keep_the_connections_there_are() -> None:
    w = World()
    w.listeners.open_all([A], 3)
    client = w.connect(0, 2)
    w.listeners.apply([A], 1)
    assert [p.index for p in w.acceptors[0].processors] == [0]
    assert [p.index for p in w.listeners.processors()] == [0, 2]
    assert client.reason is None
    w.listeners.apply([A], 3)
    assert [p.index for p in w.acceptors[0].processors] == [0, 1, 2]
    assert client in cast("Any", w.acceptors[0].processors[2]).connections


def test_a_processor_too_many_goes_with_its_last_connection() -> None:
    w = World()
    w.listeners.open_all([A], 2)
    client = w.connect(0, 1)
    retired = cast("Any", w.acceptors[0].processors[1])
    w.listeners.apply([A], 1)
    del retired.connections[client]
    assert [p.index for p in w.listeners.processors()] == [0]
