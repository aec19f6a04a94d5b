"""What is assigned here and not there is made."""

import errno
from pathlib import Path
from typing import Any

import pytest

from broker.replicas.logs import log_making
from storage.errors import DiskError
from storage.log.log import Log
from storage.manager.log_opener import LogOpener
from storage.types.topic_partition import TopicPartition
from tests.unit.broker.replicas.logs.node import Node


async def test_logs_that_were_never_made_are_made_at_the_start(node: Node, nodes: Any) -> None:
    """A crash between the commit of the metadata and the directories."""
    node.has_crashed = True
    await node.create("t", 2)
    assert node.replicas.replica_of("t", 0) is None
    again: Node = await nodes()
    await again.start()
    assert [again.append("t", index) for index in range(2)] == [0, 0]


async def test_a_directory_that_refuses_does_not_keep_the_others_from_serving(
    nodes: Any, tmp_path: Path
) -> None:
    """The topic is created; what could go elsewhere is elsewhere, the rest is missing."""
    node: Node = await nodes("one", "two")
    await node.start()
    node.filesystem.break_directory(str(tmp_path / "two"))
    await node.create("t", 6)
    await node.create("u", 2)
    served = {tp for tp in node.served if tp.topic == "t"}
    assert len(served) >= 3
    assert [node.append("u", index) for index in range(2)] == [0, 0]
    assert all(str(tmp_path / "one") in node.log("u", index).directory for index in range(2))


async def test_a_log_that_waits_for_room_is_not_taken_for_one_that_is_gone(
    nodes: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was said to start empty in a new leader epoch, and would have been made."""
    node: Node = await nodes()
    await node.start()
    await node.create("t")
    node.append("t")
    again: Node = await nodes()
    open_log, is_full = LogOpener.open, True

    def opened(*arguments: Any, **named: Any) -> Log:
        if is_full:
            raise DiskError("no room", "index", errno.ENOSPC)
        return open_log(*arguments, **named)

    monkeypatch.setattr(LogOpener, "open", opened)
    caplog.clear()
    await again.start()
    assert again.replicas.replica_of("t", 0) is None
    assert again.controller.image.topics["t"].partitions[0].leader_epoch == 0
    assert not [record for record in caplog.records if "log_making" in record.name]
    is_full = False
    again.logs.room.check()
    log = again.logs.get(TopicPartition("t", 0))
    assert log is not None
    assert log.log_end_offset == 1


async def test_many_logs_are_created_in_slices(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop takes over some before the next are made."""
    monkeypatch.setattr(log_making, "CREATED_PER_CALL", 4)
    before = node.pool.started
    await node.create("t", 10)
    assert node.pool.started - before == 3
    assert node.replicas.partition_count == 10
