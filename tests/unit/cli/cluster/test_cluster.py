"""`varve cluster` on a fake cluster."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from cli.cluster import cluster
from tests.unit.cli.cluster.cluster_admin import FakeAdmin, partition
from tests.unit.cli.commands import Shell

REPLICAS = (1, 2, 3)


def shell_of(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(cluster, lambda **_settings: admin, capsys)


@pytest.fixture
def whole(capsys: pytest.CaptureFixture[str]) -> Shell:
    admin = FakeAdmin(
        brokers={1: False, 2: False, 3: False},
        topics={"t": [partition(n, n + 1, REPLICAS, REPLICAS) for n in range(3)]},
        min_isr={"t": 2},
        controller=3,
    )
    return shell_of(admin, capsys)


@pytest.fixture
def broken(capsys: pytest.CaptureFixture[str]) -> Shell:
    """Broker 3 is fenced."""
    admin = FakeAdmin(
        brokers={1: False, 2: False, 3: True},
        topics={
            "t": [partition(0, 1, REPLICAS, (1, 2)), partition(1, -1, (3,), (3,))],
            "u": [partition(0, 1, (1, 2), (1, 2))],
        },
        min_isr={"t": 2, "u": 1},
    )
    return shell_of(admin, capsys)


def test_a_whole_cluster_is_three_lines_more_than_its_brokers(whole: Shell) -> None:
    shown = whole("describe")
    assert shown.status == 0
    lines = shown.out.splitlines()
    assert lines[0] == "cluster an-id, controller 3, 3 of 3 brokers up"
    assert lines[3].split() == ["1", "h:9001", "-", "up", "1", "3", "0"]
    assert lines[-1] == "3 partitions, all in sync"


def test_partitions_in_trouble_are_listed(broken: Shell) -> None:
    shown = broken("describe")
    assert "2 of 3 brokers up" in shown.out
    assert "3 partitions: 1 under-replicated, 1 offline" in shown.out
    assert ["t-0", "under-replicated", "1", "1,2", "3", "2"] in shown.cells
    assert ["t-1", "offline", "-", "3", "-", "1"] in shown.cells


def test_json_has_all_of_it(broken: Shell) -> None:
    document = broken("describe", "--json").document
    assert document["controller"] == 1
    assert [one["fenced"] for one in document["brokers"]] == [False, False, True]
    assert document["partitions"] == 3
    assert [one["trouble"] for one in document["in_trouble"]] == ["under-replicated", "offline"]


def test_the_admin_port_adds_epochs_and_reasons(broken: Shell) -> None:
    page = {
        "node_id": 2,
        "broker_epoch": 14,
        "lease_left_ms": 2345,
        "controller_epoch": 9,
        "image_revision": 77,
        "brokers": [
            {"broker": 2, "epoch": 14, "last_run": "clean", "draining": True, "why": ""},
            {"broker": 3, "epoch": 15, "last_run": "unknown", "draining": False, "why": "lease"},
        ],
    }
    asked: list[tuple[str, str, str]] = []

    def ask(address: str, method: str, path: str, _query: Mapping[str, str]) -> Any:
        asked.append((address, method, path))
        return page

    shown = broken("describe", "--admin", "h:9644", ask=ask)
    assert asked == [("h:9644", "GET", "/cluster")]
    lines = [line.split() for line in shown.out.splitlines()]
    assert ["1", "h:9001", "-", "up", "2", "2", "0", "-", "-", "-"] in lines
    assert ["2", "h:9002", "-", "draining", "0", "2", "0", "14", "clean", "-"] in lines
    assert ["3", "h:9003", "-", "fenced", "0", "2", "1", "15", "unknown", "lease"] in lines
    assert "broker 2: lease valid for 2345 ms more, image of revision 77" in shown.out
    assert broken("describe", "--admin", "h:9644", "--json", ask=ask).document["membership"] == page


def test_a_broker_that_all_can_do_without(whole: Shell) -> None:
    assert whole("can-restart", "1").status == 0
    assert whole("can-restart", "1", "--json").document == {
        "broker": 1,
        "can_restart": True,
        "reasons": [],
    }


def test_a_broker_that_partitions_need(broken: Shell) -> None:
    shown = broken("can-restart", "2")
    assert shown.status == 1
    assert shown.out.splitlines() == [
        "broker 2 should stay: 1 partition would suffer",
        "  t-0 would have 1 of 2 in-sync replicas",
    ]
    assert broken("can-restart", "2", "--json").document["reasons"] == [
        {"partition": "t-0", "reason": "would have 1 of 2 in-sync replicas"}
    ]


def test_no_broker_can_be_restarted_without_a_controller(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All partitions are in sync, and none would be written once one broker is away."""
    admin = FakeAdmin(
        brokers={1: False, 2: False, 3: False},
        topics={"t": [partition(0, 1, REPLICAS, REPLICAS)]},
        min_isr={"t": 2},
        controller=-1,
    )
    shown = shell_of(admin, capsys)("can-restart", "1")
    assert (shown.status, shown.out) == (1, "")
    assert shown.err.startswith("varve: broker 1 should stay: no controller could have others lead")


def test_a_broker_that_is_not_there(whole: Shell) -> None:
    shown = whole("can-restart", "9")
    assert (shown.status, shown.err) == (1, "varve: the cluster has no broker 9\n")
    assert whole("can-restart", "x").status == 2


def test_mistaken_address_of_the_admin_port(whole: Shell) -> None:
    assert whole("describe", "--admin", "nowhere").status == 2


@pytest.fixture
def moved(capsys: pytest.CaptureFixture[str]) -> tuple[FakeAdmin, Shell]:
    """Partitions t-1 and u-0 are led by others than their first replicas."""
    admin = FakeAdmin(
        brokers={1: False, 2: False, 3: False},
        topics={
            "t": [partition(0, 1, REPLICAS, REPLICAS), partition(1, 1, (2, 1), (2, 1))],
            "u": [partition(0, 3, (1, 3), (1, 3))],
        },
        min_isr={"t": 1, "u": 1},
    )
    return admin, shell_of(admin, capsys)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ((), [{"t": [1], "u": [0]}]),
        (("t",), [{"t": [1]}]),
        (("t:0",), []),
        (("t:0,1", "u"), [{"t": [1], "u": [0]}]),
    ],
)
def test_only_what_is_led_elsewhere_is_elected(
    moved: tuple[FakeAdmin, Shell], words: tuple[str, ...], asked: list[dict[str, list[int]]]
) -> None:
    admin, shell = moved
    assert shell("elect-leaders", *words).status == 0
    assert admin.elections == asked


def test_refused_elections_are_named(moved: tuple[FakeAdmin, Shell]) -> None:
    """One that was not needed any more is none of them."""
    admin, shell = moved
    results = [
        SimpleNamespace(partition_id=1, error_code=80, error_message=None),
        SimpleNamespace(partition_id=0, error_code=84, error_message=None),
    ]
    admin.election_answer = SimpleNamespace(
        error_code=0,
        replica_election_results=[SimpleNamespace(topic="t", partition_result=results)],
    )
    shown = shell("elect-leaders")
    assert shown.status == 1
    assert shown.out == "1 partition led by the preferred replica again\n"
    assert shown.err.startswith("varve: t-1: ")
    assert "PREFERRED_LEADER_NOT_AVAILABLE" in shown.err
    assert shell("elect-leaders", "--json").document["elected"] == 1


@pytest.mark.parametrize("word", ["x", "t:7"])
def test_partitions_that_are_not_there(moved: tuple[FakeAdmin, Shell], word: str) -> None:
    admin, shell = moved
    shown = shell("elect-leaders", word)
    assert shown.status == 1
    assert "does not exist" in shown.err
    assert admin.elections == []
