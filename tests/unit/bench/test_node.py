"""Ports for brokers to come."""

import socket
from pathlib import Path

import pytest

from bench import node
from bench.node import VarveBrokersNode, free_ports


def test_ports_are_not_given_away_twice() -> None:
    """Nor those that the kernel gives to whoever asks for any."""
    first, second = free_ports(8), free_ports(8)
    assert len({*first, *second}) == 16
    lowest = int(node._EPHEMERAL_PORTS.read_text().split()[0])
    assert lowest < 12_000 or max(first) < lowest


def test_a_port_that_is_listened_on_is_passed_over() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        assert not node._reserve(server.getsockname()[1])


def test_a_reserved_port_is_passed_over_until_many_later() -> None:
    (port,) = free_ports(1)
    assert not node._reserve(port)
    free_ports(node._RESERVATIONS_MAX)
    assert node._reserve(port)
    assert len(node._reservations) == node._RESERVATIONS_MAX


def test_where_the_kernel_gives_away_nearly_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is asked for some, which are different at least."""
    path = tmp_path / "range"
    path.write_text("1024\t65535\n")
    monkeypatch.setattr(node, "_EPHEMERAL_PORTS", path)
    assert len(set(free_ports(10))) == 10


def test_brokers_of_one_supervisor_have_ports_in_a_row(tmp_path: Path) -> None:
    """Its admin ports too: one more than brokers."""
    two = VarveBrokersNode(tmp_path, {"num.partitions": "2"})
    assert two.command()[1:4] == ["serve", "--brokers", "2"]
    assert "num.partitions=2" in two.command()
    taken = {*range(two.port, two.port + 2), *range(two.second_port, two.second_port + 3)}
    assert len(taken) == 5
    assert not any(map(node._reserve, taken))
