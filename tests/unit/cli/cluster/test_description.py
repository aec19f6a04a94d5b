"""What is wrong with partitions, now and without a broker."""

import pytest

from cli.cluster.description import PartitionInSync, describe
from tests.unit.cli.cluster.cluster_admin import FakeAdmin, partition


@pytest.mark.parametrize(
    ("leader", "isr", "min_isr", "trouble"),
    [
        (1, (1, 2, 3), 2, None),
        (1, (1, 3), 2, "under-replicated"),
        (1, (1,), 2, "under min ISR"),
        (1, (1,), 1, "under-replicated"),
        (-1, (2,), 1, "offline"),
        (-1, (1, 2, 3), 2, "offline"),
    ],
)
def test_the_worst_trouble_is_named(
    leader: int, isr: tuple[int, ...], min_isr: int, trouble: str | None
) -> None:
    assert PartitionInSync("t", 0, leader, (1, 2, 3), isr, min_isr).trouble == trouble


@pytest.mark.parametrize(
    ("replicas", "isr", "min_isr", "reason"),
    [
        ((1, 2, 3), (1, 2, 3), 2, None),
        ((1, 2, 3), (1, 2), 2, "would have 1 of 2 in-sync replicas"),
        ((1, 2, 3), (2, 3), 2, None),
        ((1, 2, 3), (2,), 2, "would have 1 of 2 in-sync replicas"),
        ((2, 3), (2, 3), 2, None),
        ((1,), (1,), 1, "would have no leader"),
        ((1, 2), (1,), 1, "would have no leader"),
    ],
)
def test_what_a_restart_would_do(
    replicas: tuple[int, ...], isr: tuple[int, ...], min_isr: int, reason: str | None
) -> None:
    """A partition that has no replica on the broker is none of its business."""
    assert PartitionInSync("t", 0, isr[0], replicas, isr, min_isr).without(1) == reason


def test_brokers_are_counted_over_all_partitions() -> None:
    admin = FakeAdmin(
        brokers={1: False, 2: True},
        topics={"b": [partition(0, 1, (1, 2), (1,))], "a": [partition(0, 1, (1,), (1,))]},
        min_isr={"a": 1, "b": 2},
    )
    found = describe(admin)
    assert [p.name for p in found.partitions] == ["a-0", "b-0"]
    first, second = found.brokers
    assert (first.broker, first.fenced, first.leads, first.replicas) == (1, False, 2, 2)
    assert (second.fenced, second.leads, second.replicas, second.not_in_sync) == (True, 0, 1, 1)
    assert [(p.name, trouble) for p, trouble in found.in_trouble()] == [("b-0", "under min ISR")]


def test_a_minimum_above_the_replicas_is_in_no_trouble() -> None:
    """Acks=all is taken there: of one replica, one in sync is all that a broker asks for."""
    admin = FakeAdmin(
        brokers={1: False, 2: False},
        topics={"t": [partition(0, 1, (1,), (1,)), partition(1, 1, (1, 2), (1,))]},
        min_isr={"t": 2},
    )
    found = describe(admin)
    assert [p.min_isr for p in found.partitions] == [1, 2]
    assert [(p.name, trouble) for p, trouble in found.in_trouble()] == [("t-1", "under min ISR")]


def test_an_empty_cluster_is_asked_for_no_configs() -> None:
    admin = FakeAdmin(brokers={1: False}, topics={}, min_isr={})
    assert describe(admin).partitions == ()
    assert admin.asked_configs == []
