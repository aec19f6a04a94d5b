"""What the image names as gone leaves."""

import asyncio
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from storage.types.topic_partition import TopicPartition
from tests.unit.broker.replicas.logs.node import Member, Node, topic_of


async def test_a_deleted_topic_leaves_the_directory(node: Node, tmp_path: Path) -> None:
    await node.create("t", 2)
    await node.create("kept")
    await node.delete("t")
    assert node.replicas.replica_of("t", 0) is None
    assert node.logs.get(TopicPartition("t", 0)) is None
    names = {path.name.split(".")[0] for path in (tmp_path / "data").glob("*-[0-9]*")}
    assert names == {"t-0", "t-1", "kept-0"}
    assert all(path.name.endswith("-delete") for path in (tmp_path / "data").glob("t-*"))
    await node.create("t")
    assert node.append("t") == 0


async def test_a_topic_whose_logs_cannot_be_deleted_does_not_keep_the_others(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All are deleted in the metadata: the names of the others are free."""
    for name in ("bad", "good"):
        await node.create(name)
    delete_all = node.logs.deletion.delete_all

    def refuse(partitions: list[TopicPartition]) -> int:
        if partitions[0].topic == "bad":
            raise TimeoutError("it does not stop")
        return delete_all(partitions)

    monkeypatch.setattr(node.logs.deletion, "delete_all", refuse)
    topics = node.controller.image.topics
    await node.controller.delete_topics([topics[name].topic_id for name in ("bad", "good")])
    assert node.logs.get(TopicPartition("good", 0)) is None
    await node.create("good")
    assert node.append("good") == 0


def folders(tmp_path: Path) -> dict[str, int]:
    """How many folders there are of each state and partition."""
    names = [path.name for path in (tmp_path / "data").iterdir() if "-0" in path.name]
    return Counter(f"{name.split('.')[0]} {name.rpartition('-')[2]}" for name in names)


async def test_a_replica_that_is_assigned_elsewhere_leaves(member: Member, tmp_path: Path) -> None:
    """It is renamed now, and removed like the log of a deleted topic; assigned anew it is empty."""
    member.images.set(topic_of("t", (1, 2)))
    await member.start()
    member.append("t")
    member.images.set(topic_of("t", (2, 3)))
    await member.settle()
    assert (member.names, member.logs.get(TopicPartition("t", 0))) == ([], None)
    assert folders(tmp_path) == {"t-0 delete": 1}
    member.images.set(topic_of("t", (1, 2)))
    await member.settle()
    assert member.log("t").log_end_offset == 0
    assert folders(tmp_path) == {"t-0 delete": 1, "t-0 0": 1}


async def test_a_topic_made_again_waits_for_the_old_log_and_others_do_not(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never gets the log of its namesake, however slow that is to leave."""
    member.images.set(topic_of("t", (1, 2)))
    await member.start()
    member.append("t")
    old = member.replicas.replica_of("t", 0)
    assert old is not None
    free = asyncio.Event()
    monkeypatch.setattr(type(old), "idle", lambda _partition: free.wait())
    again = topic_of("t", (1, 2), number=2)
    member.images.set(again, topic_of("other", (1, 2), number=3))
    await asyncio.wait(member.lifecycle.under_way, return_when=asyncio.FIRST_COMPLETED)
    assert member.names == ["other-0"]
    free.set()
    await member.settle()
    assert member.log("t").topic_id == again.topic_id
    assert member.log("t").log_end_offset == 0


async def test_what_is_deleted_while_it_is_made_leaves_too(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that makes it cannot be stopped; its log is served at no time."""
    await member.start()
    making, free = threading.Event(), threading.Event()
    create_all = member.logs.creation.create_all

    def slow(*args: Any, **kwargs: Any) -> Any:
        making.set()
        assert free.wait(30)
        return create_all(*args, **kwargs)

    monkeypatch.setattr(member.logs.creation, "create_all", slow)
    member.images.set(topic_of("t", (1, 2)))
    assert await asyncio.to_thread(making.wait, 30)
    member.images.set(gone=("t",))
    again = topic_of("t", (1, 2), number=2)
    member.images.set(again)
    free.set()
    await member.settle()
    assert member.log("t").topic_id == again.topic_id
    assert member.listener.elected == [TopicPartition("t", 0)]
