"""Proxies between places, on plain sockets: what passes, what stalls, what is refused."""

import contextlib
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.cluster.link_proxy import client_id
from bench.cluster.links import LinkError, Links
from bench.cluster.network import STORE, store_member

SOON_S = 0.3
LONG_S = 10.0


class Listener:
    """A target: accepts, and gives what comes back on request."""

    def __init__(self, port: int = 0) -> None:
        self._socket = socket.create_server(("127.0.0.1", port))
        self._socket.settimeout(LONG_S)
        self.port: int = self._socket.getsockname()[1]

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self.port}"

    def accept(self) -> socket.socket:
        """The next connection that brings or gets something: the proxies' probes do not."""
        while True:
            found, _ = self._socket.accept()
            found.settimeout(SOON_S)
            try:
                is_probe = not found.recv(1, socket.MSG_PEEK)
            except TimeoutError:
                is_probe = False
            except ConnectionResetError:
                is_probe = True
            if not is_probe:
                found.settimeout(LONG_S)
                return found
            found.close()

    def close(self) -> None:
        """Listen no more."""
        self._socket.close()


def request(broker: int | str, text: bytes = b"") -> bytes:
    """The head of a broker's request, and something behind it."""
    name = f"broker-{broker}".encode()
    return struct.pack(">ihhih", 0, 1, 18, 7, len(name)) + name + text


def is_silent(connection: socket.socket) -> bool:
    """Whether nothing comes for a while."""
    connection.settimeout(SOON_S)
    try:
        return connection.recv(4096) is None
    except TimeoutError:
        return True
    finally:
        connection.settimeout(LONG_S)


def receive(connection: socket.socket, size: int) -> bytes:
    """So many bytes."""
    found = b""
    while len(found) < size:
        more = connection.recv(size - len(found))
        assert more, f"ended after {found!r}"
        found += more
    return found


class Ground:
    """Brokers 1 and 2 and a store of two members, as listeners behind proxies."""

    def __init__(self, directory: Path) -> None:
        self.links = Links(directory / "links.log")
        self.targets = {1: Listener(), 2: Listener()}
        self.store = [Listener(), Listener()]
        self._open = contextlib.ExitStack()
        self.broker = {
            node_id: self.links.add(None, node_id, target.address)
            for node_id, target in self.targets.items()
        }
        self.member = [
            self.links.add(1, store_member(number), one.address)
            for number, one in enumerate(self.store)
        ]
        self.links.start()

    def connect(self, address: str) -> socket.socket:
        """To a proxy, which listens once it has seen its target; closed at the end."""
        host, _, port = address.rpartition(":")
        deadline = time.monotonic() + LONG_S
        while True:
            try:
                found = socket.create_connection((host, int(port)), timeout=LONG_S)
            except ConnectionRefusedError:
                assert time.monotonic() < deadline
                time.sleep(0.01)
                continue
            return self._open.enter_context(found)

    def accept(self, target: Listener) -> socket.socket:
        """What comes out of a proxy; closed at the end."""
        return self._open.enter_context(target.accept())

    def close(self) -> None:
        """End all."""
        self.links.stop()
        self._open.close()
        for one in (*self.targets.values(), *self.store):
            one.close()

    def connected(self, source: int, target: int) -> tuple[socket.socket, socket.socket]:
        """Both ends of a connection of one broker to another, which is known to the proxy."""
        near = self.connect(self.broker[target])
        hello = request(source)
        near.sendall(hello)
        far = self.accept(self.targets[target])
        assert receive(far, len(hello)) == hello
        return near, far


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    """Everything runs, and ends."""
    ground = Ground(tmp_path)
    yield ground
    ground.close()


def test_bytes_pass_both_ways_and_ends_too(ground: Ground) -> None:
    near, far = ground.connected(1, 2)
    far.sendall(b"answer")
    assert receive(near, 6) == b"answer"
    near.close()
    assert far.recv(1) == b""
    counts = ground.links.counts()
    assert counts == {"1>2": len(request(1)), "2>1": 6}


def test_a_cut_stalls_bytes_and_ends_and_heals(ground: Ground) -> None:
    """Of these two places alone; what was sent meanwhile arrives afterwards, in order."""
    near, far = ground.connected(1, 2)
    other, other_far = ground.connected(2, 1)
    ground.links.cut_one_way(1, 2)
    near.sendall(b"first ")
    near.sendall(b"second")
    far.sendall(b"back")
    assert receive(near, 4) == b"back"
    assert is_silent(far)
    other_far.sendall(b"stalls: it is from 1 to 2")
    assert is_silent(other)
    other.sendall(b"passes")
    assert receive(other_far, 6) == b"passes"
    near.close()
    assert is_silent(far)
    assert not ground.links.is_whole
    ground.links.heal()
    assert ground.links.is_whole
    assert receive(far, 12) == b"first second"
    assert far.recv(1) == b""
    assert receive(other, 6) == b"stalls"


def test_who_connects_through_a_cut_is_accepted_and_silent(ground: Ground) -> None:
    """Others still get through, once they have said who they are."""
    ground.links.cut(1, 2)
    stalled = ground.connect(ground.broker[2])
    stalled.sendall(request(1))
    passing = ground.connect(ground.broker[2])
    passing.sendall(request(3))
    far = ground.accept(ground.targets[2])
    assert receive(far, len(request(3))) == request(3)
    assert is_silent(stalled)
    ground.links.heal()
    late = ground.accept(ground.targets[2])
    assert receive(late, len(request(1))) == request(1)


def test_a_target_that_is_gone_refuses(ground: Ground) -> None:
    """Its connections end, connects are refused, and its return shows."""
    near, far = ground.connected(1, 2)
    target = ground.targets[2]
    target.close()
    far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    far.close()
    with contextlib.suppress(ConnectionResetError):
        assert near.recv(1) == b""
    near.close()
    host, _, port = ground.broker[2].rpartition(":")
    deadline = time.monotonic() + LONG_S
    while True:
        assert time.monotonic() < deadline
        try:
            socket.create_connection((host, int(port)), timeout=LONG_S).close()
        except ConnectionRefusedError:
            break
        except ConnectionResetError:
            continue  # Taken just before the proxy found out.
    ground.targets[2] = Listener(target.port)
    near, far = ground.connected(1, 2)


def test_resets_end_connections_of_two_places(ground: Ground) -> None:
    near, far = ground.connected(1, 2)
    spared, spared_far = ground.connected(3, 2)
    ground.links.reset(1, 2)
    for one in (near, far):
        with pytest.raises(ConnectionResetError):
            one.recv(1)
    spared.sendall(b"lives")
    assert receive(spared_far, 5) == b"lives"


def test_a_delay_is_each_way_and_keeps_the_order(ground: Ground) -> None:
    near, far = ground.connected(1, 2)
    ground.links.delay(1, 2, 100.0)
    begin = time.monotonic()
    near.sendall(b"there")
    near.sendall(b" and")
    assert receive(far, 9) == b"there and"
    far.sendall(b"back")
    assert receive(near, 4) == b"back"
    assert time.monotonic() - begin >= 0.19


def test_the_store_is_all_of_its_members(ground: Ground) -> None:
    near = [ground.connect(address) for address in ground.member]
    far = [ground.accept(one) for one in ground.store]
    ground.links.cut(1, store_member(0))
    for one in near:
        one.sendall(b"asks")
    assert is_silent(far[0])
    assert receive(far[1], 4) == b"asks"
    ground.links.cut_one_way(STORE, 1)
    far[1].sendall(b"says")
    assert is_silent(near[1])
    ground.links.heal()
    assert receive(far[0], 4) == b"asks"
    assert receive(near[1], 4) == b"says"


def test_an_isolated_broker_is_cut_off_from_all(ground: Ground) -> None:
    near, far = ground.connected(2, 1)
    store = ground.connect(ground.member[1])
    member = ground.accept(ground.store[1])
    ground.links.isolate(1)
    for sender, receiver in ((near, far), (far, near), (store, member), (member, store)):
        sender.sendall(b"lost for now")
        assert is_silent(receiver)


def test_places_without_a_proxy_between_them_are_a_mistake(ground: Ground) -> None:
    with pytest.raises(LinkError, match="no proxy between 1 and clients"):
        ground.links.cut(1, "clients")


def test_who_connects_is_read_from_the_first_request() -> None:
    """It may come in pieces."""
    for name in (17, "17-12345"):
        head = request(name, b"more")
        sources = {client_id(head[:size]) for size in range(len(head))}
        assert sources - {None} == {"17"}
