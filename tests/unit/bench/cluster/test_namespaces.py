"""Namespaces joined by a bridge: what passes, what is lost, and that it comes later."""

import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

from bench.cluster import namespaces
from bench.cluster.namespaces import NamespaceError, Namespaces, enter, why_not
from bench.cluster.network import CLIENTS
from bench.node import REPOSITORY

MODULE = "tests.unit.bench.cluster.test_namespaces"
PORT = 9092
SOON_S = 0.3
LATER_S = 20.0

ECHO = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("listens", flush=True)
while True:
    connection, _ = listener.accept()
    while found := connection.recv(100):
        connection.sendall(found)
"""


def test_outside_of_a_namespace_there_is_no_bridge() -> None:
    assert not namespaces.is_entered()
    with pytest.raises(NamespaceError, match="enter"):
        Namespaces()


def test_packets_are_lost_and_come_later() -> None:
    """This module as a program, in a namespace of its own: `main` below."""
    if reason := why_not():
        pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, "-m", MODULE],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def is_lost(connection: socket.socket, text: bytes) -> bool:
    """Whether no answer comes to what is sent."""
    connection.settimeout(SOON_S)
    connection.sendall(text)
    try:
        return not connection.recv(100)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(LATER_S)


def main() -> None:
    """An echo server at place 1, a client at `CLIENTS`, each kind of cut between them."""
    enter(MODULE, ())
    net = Namespaces()
    host = net.add(1)
    net.add(2)
    server = subprocess.Popen(
        [*host.prefix, sys.executable, "-c", ECHO, host.address, str(PORT)], stdout=subprocess.PIPE
    )
    try:
        assert server.stdout is not None
        server.stdout.readline()
        connection = socket.create_connection((host.address, PORT), timeout=LATER_S)
        connection.sendall(b"a")
        assert connection.recv(100) == b"a"
        cuts: list[Callable[[], None]] = [
            lambda: net.cut(1, CLIENTS),
            lambda: net.cut_one_way(CLIENTS, 1),
            lambda: net.cut_one_way(1, CLIENTS),
            lambda: net.unplug(1),
        ]
        for cut in cuts:
            cut()
            assert not net.is_whole
            assert is_lost(connection, b"b")
            net.heal()
            assert net.is_whole
            assert connection.recv(100) == b"b"
        # Others do not matter.
        net.cut(1, 2)
        assert not is_lost(connection, b"c")
        net.heal()
        net.isolate(1)
        assert not is_lost(connection, b"d")
    finally:
        server.kill()
        server.wait()
        net.close()
    again = Namespaces()
    again.add(1)
    again.close()


if __name__ == "__main__":
    main()
