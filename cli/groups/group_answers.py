"""Parts of answers about groups, as descriptions have them."""

from collections.abc import Iterable
from typing import Any

from cli.groups.group_description import MemberDescription


def sorted_members(members: Iterable[MemberDescription]) -> tuple[MemberDescription, ...]:
    """By client, then by id."""
    return tuple(sorted(members, key=lambda m: (m.client_id, m.host, m.member_id)))


def by_topic(topics: Iterable[dict[str, Any]], name: str) -> dict[str, tuple[int, ...]]:
    """An assignment in order; `name` is the field that has the topic's name."""
    return {
        held[name]: tuple(sorted(held["partitions"]))
        for held in sorted(topics, key=lambda held: str(held[name]))
    }


def coordinator_of(admin: Any, group: str) -> str:
    """Broker id with host and port, or `none`."""
    # A broker lists the groups it coordinates.
    for broker in admin.describe_cluster()["brokers"]:
        if broker.get("is_fenced", False):
            continue
        listed = admin.list_groups(broker_ids=[broker["broker_id"]])
        if any(one["group_id"] == group for one in listed):
            return f"{broker['broker_id']} ({broker['host']}:{broker['port']})"
    return "none"
