"""Parts of answers about groups."""

from collections.abc import Sequence
from typing import Any

from cli.groups.group_answers import by_topic, coordinator_of, sorted_members
from cli.groups.group_description import MemberDescription
from tests.fakes.kafka.library_clients import FakeCluster, FakeGroup


def test_topics_and_partitions_are_in_order() -> None:
    answer: list[dict[str, Any]] = [
        {"name": "b", "partitions": [2, 0]},
        {"name": "a", "partitions": []},
    ]
    found = by_topic(answer, "name")
    assert list(found.items()) == [("a", ()), ("b", (0, 2))]


def test_members_are_sorted_by_client_then_id() -> None:
    members = [
        MemberDescription(name, None, client, "h", {})
        for name, client in (("2", "b"), ("3", "a"), ("1", "b"))
    ]
    assert [m.member_id for m in sorted_members(members)] == ["3", "1", "2"]


def test_the_coordinator_is_who_lists_the_group() -> None:
    cluster = FakeCluster()
    cluster.groups["g"] = FakeGroup()
    assert coordinator_of(cluster.admin(), "g") == "1 (h:9)"
    assert coordinator_of(cluster.admin(), "other") == "none"


def test_a_fenced_broker_is_not_asked_for_groups() -> None:
    """It refuses connections, and coordinates none."""
    cluster = FakeCluster()
    cluster.groups["g"] = FakeGroup()

    class Admin(type(cluster.admin())):  # type: ignore[misc]  # the fake's own class
        def describe_cluster(self) -> dict[str, Any]:
            fenced = {"broker_id": 2, "host": "h", "port": 8, "is_fenced": True}
            return {"brokers": [fenced, *super().describe_cluster()["brokers"]]}

        def list_groups(self, broker_ids: Sequence[int], **_filters: Any) -> list[dict[str, Any]]:
            assert 2 not in broker_ids
            answer: list[dict[str, Any]] = super().list_groups(broker_ids)
            return answer

    assert coordinator_of(Admin(cluster), "g") == "1 (h:9)"
