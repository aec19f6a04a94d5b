"""What is found at a start is served, or set aside."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storage.environment.filesystem import DirEntry
from storage.types.topic_partition import TopicPartition
from tests.fakes.storage.failing_disk import FailingDisk
from tests.unit.broker.replicas.logs.node import Member, Node, topic_of


async def test_logs_are_back_after_a_start(node: Node, nodes: Any) -> None:
    """Under their ids, with their settings and records."""
    await node.create("t", 3, retention_ms="1000")
    for index in range(3):
        node.append("t", index)
    again: Node = await nodes()
    assert again.replicas.partition_count == 0
    await again.start()
    assert sorted(again.served) == [TopicPartition("t", index) for index in range(3)]
    assert [again.append("t", index) for index in range(3)] == [1, 1, 1]
    assert again.log("t", 2).config.retention_ms == 1000
    assert again.replicas.names_by_id == {again.log("t").topic_id.bytes: "t"}


async def test_there_are_no_more_threads_than_logs(
    node: Node, nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`num.recovery.threads.per.data.dir` may be any number: what waits for a job takes memory."""
    made: list[int] = []

    def pool(max_workers: int, thread_name_prefix: str) -> ThreadPoolExecutor:
        made.append(max_workers)
        return ThreadPoolExecutor(max_workers, thread_name_prefix)

    monkeypatch.setattr("broker.replicas.logs.log_opening.ThreadPoolExecutor", pool)
    await node.create("t", 3)
    for threads in (1_000, 2):
        again: Node = await nodes()
        await again.lifecycle.load(threads)
    assert made == [3, 2]


async def test_logs_without_a_topic_are_set_aside(node: Node, nodes: Any, tmp_path: Path) -> None:
    """A crash between the deletion's commit and its directories; also of an older namesake."""
    await node.create("gone")
    await node.create("again")
    node.append("again")

    node.has_crashed = True
    await node.delete("gone")
    await node.delete("again")
    await node.create("again")
    second: Node = await nodes()
    await second.start()
    assert second.served == [TopicPartition("again", 0)]
    assert second.append("again") == 0
    aside = {p.name.split(".")[0] for p in (tmp_path / "data").glob("*-stray")}
    assert aside == {"gone-0", "again-0"}


async def test_a_topic_that_is_created_while_a_start_lists_the_folders_is_no_stray(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder was there before its topic was known to who lists: it was set aside."""
    node: Node = await nodes()
    listing, gate = threading.Event(), threading.Event()
    list_directory = FailingDisk.list_directory

    def gated(disk: FailingDisk, path: str) -> list[DirEntry]:
        listing.set()
        assert gate.wait(30)
        return list_directory(disk, path)

    monkeypatch.setattr(FailingDisk, "list_directory", gated)
    start = asyncio.create_task(node.start())
    assert await asyncio.to_thread(listing.wait, 30)
    creation = asyncio.create_task(node.create("t"))
    # As long as it takes to make a folder, if nobody waits for who lists.
    await asyncio.wait([creation], timeout=0.2)
    gate.set()
    await creation
    assert node.append("t") == 0
    await start
    assert node.append("t") == 1
    entries = node.filesystem.list_directory(str(tmp_path / "data"))
    assert [entry.name for entry in entries if entry.is_directory] == ["t-0"]


async def test_what_other_brokers_have_is_deleted_at_a_start(
    member: Member, tmp_path: Path
) -> None:
    """If one of them leads it: else this replica might be the last that is whole."""
    member.images.set(topic_of("t", (1, 2), (1, 2), (1, 2)))
    await member.start()
    for index in (0, 1, 2):
        member.append("t", index)
    member.close()
    again = Member(tmp_path / "data")
    topic = topic_of("t", (1, 2), (2, 3), (2, 3))
    leaderless = replace(topic.partitions[2], leader=-1)
    again.images.set(replace(topic, partitions=(*topic.partitions[:2], leaderless)))
    await again.start()
    assert again.names == ["t-0"]
    assert again.log("t").log_end_offset == 1
    left = {
        (path.name.split(".")[0], path.name.rpartition("-")[2])
        for path in (tmp_path / "data").glob("t-[12]*")
    }
    assert left == {("t-1", "delete"), ("t-2", "stray")}
    again.close()


async def test_a_member_begins_no_leader_epoch_after_a_kill(member: Member, tmp_path: Path) -> None:
    """The controller has begun it: the fake of a controller has no way to."""
    member.images.set(topic_of("t", (1, 2)))
    await member.start()
    member.append("t")
    member.close(clean=False)
    again = Member(tmp_path / "data")
    again.images.set(topic_of("t", (1, 2)))
    await again.start()
    assert (again.names, again.log("t").leader_epochs.latest_epoch) == (["t-0"], 3)
    assert not again.log("t").needs_new_epoch
    again.close()


@pytest.mark.parametrize(("replicas", "end"), [((1, 2), 0), ((1,), 2)])
async def test_only_a_replica_gives_up_what_lies_behind_lost_records(
    member: Member, tmp_path: Path, replicas: tuple[int, ...], end: int
) -> None:
    """A power cut has left the name of its first segment: it is fetched again from there on."""
    member.images.set(topic_of("t", replicas))
    await member.start()
    member.append("t")
    member.log("t").writer.roll()
    member.append("t")
    member.close(clean=False)
    first = tmp_path / "data" / "t-0" / f"{0:020d}.log"
    first.write_bytes(b"")
    again = Member(tmp_path / "data")
    again.images.set(topic_of("t", replicas))
    await again.start()
    assert (again.log("t").log_start_offset, again.log("t").log_end_offset) == (0, end)
    again.close()
