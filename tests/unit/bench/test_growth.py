"""Growth is a multiple of the smallest size, and a request goes to the next partition in turn."""

import resource
import socket
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench import wire
from bench.growth import Point, _Client, connections_allowed, plot, table, times_the_first
from bench.node import VarveNode

POINTS = [
    Point("connections", 1000, 30.0, 110.0),
    Point("connections", 10, 20.0, 100.0),
    Point("partitions", 10, 10.0, 50.0),
    Point("partitions", 1000, 9.0, 70.0),
]


def test_a_series_is_compared_with_its_smallest() -> None:
    assert times_the_first(POINTS) == {
        ("connections", 10): (1.0, 1.0),
        ("connections", 1000): (1.5, pytest.approx(1.1)),
        ("partitions", 10): (1.0, 1.0),
        ("partitions", 1000): (0.9, 1.4),
    }


def test_the_table_marks_what_is_not_flat() -> None:
    lines = table(POINTS).splitlines()[2:]
    assert lines[0] == "| connections | 1,000 | 30.0 | 1.50 | 110.0 | 1.10 | yes |"
    assert lines[3] == "| partitions | 1,000 | 9.0 | 0.90 | 70.0 | 1.40 | **no** |"


def test_where_nothing_is_counted_cpu_says_what_is_flat(tmp_path: Path) -> None:
    points = [Point("connections", 10, 20.0, None), Point("connections", 1000, 30.0, None)]
    lines = table(points).splitlines()[2:]
    assert lines[0] == "| connections | 10 | 20.0 | 1.00 |  |  | yes |"
    assert lines[1] == "| connections | 1,000 | 30.0 | 1.50 |  |  | **no** |"
    plot(points, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_is_written(tmp_path: Path) -> None:
    plot(POINTS, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


def test_requests_go_to_the_next_connection_and_partition(tmp_path: Path) -> None:
    """25 requests over 4 connections and 3 partitions, and each has its answer."""
    listener = socket.create_server(("127.0.0.1", 0))
    seen: list[tuple[int, int]] = []

    def serve(place: int, one: socket.socket) -> None:
        with one:
            while True:
                try:
                    request = wire.receive(one)
                except (wire.WireError, OSError):
                    return
                # acks, timeout, one topic "t", one partition: then its index
                seen.append((place, request[request.index(b"\x02t\x02") + 6]))
                one.sendall(b"\0\0\0\x2e".ljust(50, b"\0")[:9] + b"\x02\x02t\x02" + bytes(37))

    node = VarveNode(tmp_path)
    node.port, node.pid = listener.getsockname()[1], 1

    def accept() -> None:
        for place in range(4):
            one, _ = listener.accept()
            threading.Thread(target=serve, args=(place, one), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    batch = wire.record_batch([b"x"])
    frames = [wire.produce_frame("t", index, batch) for index in range(3)]
    with listener, ExitStack() as stack:
        _Client(node, 4, stack).send(frames, 25)
    assert sorted(seen) == sorted((number % 4, number % 3) for number in range(25))


def test_no_more_connections_than_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of what is not reserved, where the limit cannot be raised."""

    def refuse(*_: object) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 11_200))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert connections_allowed(1_000) == 1_000
    assert connections_allowed(10_000) == 5_000
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    assert connections_allowed(10_000) == 10_000
