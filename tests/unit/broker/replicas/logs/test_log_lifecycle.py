"""Logs follow the newest image, in its turn; what takes long comes later."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from broker.controller.images.metadata_records import ResourceType
from broker.controller.topics.topics import NewPartitions
from storage.manager.log_opener import LogOpener
from storage.types.topic_partition import TopicPartition
from tests.unit.broker.replicas.logs.node import Member, Node, topic_of


async def test_a_created_topic_can_be_written_when_it_is_answered(node: Node) -> None:
    """And whoever wants to know of partitions that serve is told."""
    await node.create("t", 2)
    assert [node.append("t", index) for index in (0, 1)] == [0, 0]
    assert node.served == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert node.log("t").topic_id == node.controller.image.topics["t"].topic_id


async def test_more_partitions_leave_the_others_alone(node: Node) -> None:
    await node.create("t", 1)
    before = node.replicas.replica_of("t", 0)
    await node.controller.create_partitions([NewPartitions("t", 3)])
    assert node.replicas.replica_of("t", 0) is before
    assert [node.append("t", index) for index in range(3)] == [0, 0, 0]
    assert len(node.served) == 3


async def test_settings_reach_the_logs_of_their_topic(node: Node) -> None:
    """All its partitions; other topics keep the very same object."""
    await node.create("t", 2, retention_ms="1000")
    await node.create("other")
    other = node.log("other").config
    assert node.log("t").config.retention_ms == 1000
    await node.alter(ResourceType.TOPIC, "t", retention_ms="2000")
    assert [node.log("t", index).config.retention_ms for index in (0, 1)] == [2000, 2000]
    assert node.log("other").config is other


async def test_defaults_of_the_broker_reach_all_that_have_no_own(node: Node) -> None:
    await node.create("own", retention_ms="1000")
    await node.create("none")
    await node.alter(ResourceType.BROKER, "", log_retention_ms="5000", min_insync_replicas="1")
    assert node.log("own").config.retention_ms == 1000
    assert node.log("none").config.retention_ms == 5000
    await node.create("new")
    assert node.log("new").config.retention_ms == 5000


async def test_a_member_has_only_what_is_assigned_to_it(member: Member) -> None:
    """At its start, and with every image; what another leads has no leader epoch in its log."""
    member.images.set(topic_of("t", (1, 2), (2, 3)))
    await member.start()
    assert member.names == ["t-0"]
    assert member.listener.events == [("elected", TopicPartition("t", 0))]
    member.images.set(topic_of("u", (2, 1), (3, 2), (1,), number=2))
    await member.settle()
    assert member.names == ["t-0", "u-0", "u-2"]
    latest = {name: member.log(*name).leader_epochs.latest_epoch for name in (("u", 0), ("u", 2))}
    assert latest == {("u", 0): None, ("u", 2): 3}


async def test_an_image_ends_what_is_gone_in_its_turn(member: Member) -> None:
    """No task of the loop has run: what is deleted, or another's now, is not answered from."""
    member.images.set(topic_of("t", (1, 2)), topic_of("u", (1, 2), (1, 3), number=2))
    await member.start()
    member.images.set(topic_of("u", (3, 2), (1, 3), number=2), gone=("t",))
    assert member.names == ["u-1"]
    assert member.replicas.leader_of("u", 0) is None


async def test_settings_come_before_roles(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    """A larger least ISR must hold when the ISR becomes smaller than it (KIP-966)."""
    member.images.set(topic_of("t", (1, 2)))
    await member.start()
    seen = []

    def look(_old: object, _new: object) -> None:
        seen.append(member.log("t").config.min_insync_replicas)

    monkeypatch.setattr(member.roles, "apply", look)
    member.images.set(topic_of("t", (1, 2), min_insync_replicas="2"))
    assert seen == [2]


async def test_a_smaller_least_isr_commits_what_it_held_up(member: Member) -> None:
    member.images.set(topic_of("t", (1, 2), min_insync_replicas="2"))
    await member.start()
    alone = replace(member.images.image.topics["t"].partitions[0], isr=(1,), partition_epoch=1)
    topic = replace(member.images.image.topics["t"], partitions=(alone,))
    member.images.set(topic)
    member.append("t")
    assert member.log("t").high_watermark == 0
    member.images.set(replace(topic, overrides={"min.insync.replicas": "1"}))
    assert member.log("t").high_watermark == 1


async def test_a_log_that_waits_for_room_is_not_lost(tmp_path: Path) -> None:
    """All of it is there: the broker is not to count as one that came back without its disk."""
    topic = topic_of("t", (1, 2))
    member = Member(tmp_path / "a")
    member.images.set(topic)
    await member.start()
    member.append("t")
    member.close(clean=False)
    again = Member(tmp_path / "a")
    again.images.set(topic)
    again.filesystem.code = errno.ENOSPC
    again.filesystem.break_directory(str(tmp_path / "a" / "t-0"))
    await again.start()
    assert again.logs.is_loading(TopicPartition("t", 0))
    assert not again.lifecycle.has_lost_logs
    again.close(clean=False)


@pytest.mark.parametrize("isr", [(1, 2), (2,)])
async def test_a_log_that_cannot_be_opened_is_lost_where_the_cluster_counts_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isr: tuple[int, ...]
) -> None:
    """Else the first broker that is back is elected for it, and nobody can lead it."""
    led = topic_of("t", (2, 1))
    topic = replace(led, partitions=(replace(led.partitions[0], isr=isr),))
    member = Member(tmp_path / "a")
    member.images.set(topic)
    await member.start()
    member.close()

    def fail(*_of_a_log: object, **_options: object) -> None:
        raise IndexError("nobody has thought of this")

    monkeypatch.setattr(LogOpener, "open", fail)
    again = Member(tmp_path / "a")
    again.images.set(topic)
    await again.start()
    assert again.logs.is_given_up(TopicPartition("t", 0))
    assert again.lifecycle.has_lost_logs == (1 in isr)
    again.close()


async def test_a_log_without_its_end_is_lost_where_the_cluster_counts_on_it(
    member: Member,
) -> None:
    await member.start()
    member.images.set(topic_of("t", (1, 2)))
    await member.settle()
    assert not member.lifecycle.has_lost_logs
    member.log("t").is_short = True
    assert member.lifecycle.has_lost_logs
    led = topic_of("t", (2, 1))
    member.images.set(replace(led, partitions=(replace(led.partitions[0], isr=(2,)),)))
    await member.settle()
    assert not member.lifecycle.has_lost_logs
