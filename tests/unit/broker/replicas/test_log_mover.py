"""Moves wait for what must not go on meanwhile; the rest is in the scenarios."""

import asyncio
import errno
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

import pytest

from broker.controller.store.metadata_store import StoreError, StoreUnavailableError
from broker.controller.topics.topics import NewPartitions
from broker.replicas.log_mover import CLEANER_RETRY_MS, NOTE_RETRY_MS, LogMover
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from storage.errors import DiskError, LogDirectoryOfflineError
from storage.log.log import Log
from storage.manager.log_copy import unthrottled
from storage.types.topic_partition import TopicPartition
from tests.fakes.broker.controller import open_controller
from tests.fakes.clock import ManualClock
from tests.fakes.timer import ManualTimer
from tests.unit.broker.replicas.logs.node import Member, Node, topic_of

T0 = TopicPartition("t", 0)


class Moving:
    """A node with two directories and one partition in the first, and who moves it."""

    def __init__(self, node: Node, paths: list[str]) -> None:
        self.node = node
        self.here, self.there = paths
        self.clock = ManualClock()
        self.timer = ManualTimer(self.clock)
        self.resigned: list[TopicPartition] = []
        self.mover = LogMover(
            controller=node.controller,
            log_manager=node.logs,
            replicas=node.replicas,
            timer=self.timer,
            resign=self._resign,
            serve=node.lifecycle.serve,
            config_for=node.lifecycle.config_for,
            throttle=unthrottled,
            threads=1,
        )

    def _resign(self, partitions: list[TopicPartition]) -> None:
        self.resigned += partitions
        self.node.roles.close(partitions, ErrorCode.KAFKA_STORAGE_ERROR)

    async def end(self) -> None:
        """Wait until nothing moves."""
        await asyncio.wait(list(self.mover._tasks))


@pytest.fixture
async def moving(tmp_path: Path) -> Moving:
    node = Node([tmp_path / "a", tmp_path / "b"], await open_controller())
    await node.start()
    await node.create("t")
    node.append("t")
    here = node.log("t").directory.removesuffix("/t-0")
    paths = sorted((str(tmp_path / "a"), str(tmp_path / "b")), key=lambda path: path != here)
    return Moving(node, paths)


async def test_the_cleaner_is_waited_for(moving: Moving) -> None:
    """Segments must not change below what was copied; afterwards it may clean again."""
    cleaning = moving.node.logs.cleaning
    cleaning._cleaning[T0] = None  # type: ignore[assignment]  # what runs does not matter here
    moving.mover.move(T0, moving.there)
    for _ in range(3):
        await asyncio.sleep(0)
    assert moving.resigned == []
    del cleaning._cleaning[T0]
    moving.timer.advance(CLEANER_RETRY_MS)
    await moving.end()
    assert moving.node.log("t").directory == f"{moving.there}/t-0"
    assert moving.resigned == [T0]
    assert moving.node.append("t") == 1
    assert T0 not in cleaning._paused
    partition = moving.node.controller.image.topics["t"].partitions[0]
    ids = {d.path: d.id for d in moving.node.logs.directories}
    assert partition.directory_on(1) == ids[moving.there]
    await moving.mover.stop()
    moving.node.close()


async def test_a_member_of_a_cluster_moves_a_log_and_writes_nothing_down(tmp_path: Path) -> None:
    """Its images are another's to change; at the next start the log is where it was found."""
    member = Member(tmp_path / "a", tmp_path / "b")
    member.images.set(topic_of("t", (1, 2)))
    await member.start()
    member.append("t")
    here = member.log("t").directory.removesuffix("/t-0")
    paths = sorted((str(tmp_path / "a"), str(tmp_path / "b")), key=lambda path: path != here)
    moving = Moving(member, paths)
    moving.mover.move(T0, moving.there)
    await moving.end()
    assert member.log("t").directory == f"{moving.there}/t-0"
    assert member.log("t").log_end_offset == 1
    assert member.listener.elected == [T0, T0]
    await moving.mover.stop()
    member.close()


async def test_log_that_is_truncated_meanwhile_stays(moving: Moving) -> None:
    """The copy has records that its leader has taken back: it goes, and nothing has moved."""
    moves = moving.node.logs.moves
    before_take_out = moves.before_take_out

    def truncated(log: Log) -> None:
        before_take_out(log)
        log.truncation.truncate_to(0)

    object.__setattr__(moves, "before_take_out", truncated)
    moving.mover.move(T0, moving.there)
    await moving.end()
    assert moving.resigned == []
    assert moving.node.log("t").directory == f"{moving.here}/t-0"
    assert moving.node.logs.environment.filesystem.exists(moving.there)
    assert not moving.node.logs.environment.filesystem.exists(f"{moving.there}/t-0")
    assert moving.node.append("t") == 0
    await moving.mover.stop()
    moving.node.close()


async def test_what_is_not_moved_after_all_is_remembered_no_longer(moving: Moving) -> None:
    """Its checkpoints went on to name it, whatever became of it.

    So the log start of a topic that had been deleted was that of the one that was made under its
    name: the next start took its records for deleted ones.
    """
    node, moves = moving.node, moving.node.logs.moves
    before_take_out = moves.before_take_out

    def cancelled(log: Log) -> None:
        before_take_out(log)
        moving.mover._moves[T0].cancel()

    object.__setattr__(moves, "before_take_out", cancelled)
    node.append("t")
    node.log("t").delete_records(2)
    moving.mover.move(T0, moving.there)
    await moving.end()
    assert moving.resigned == []
    node.logs.checkpoints.write()
    await moving.mover.stop()
    await node.delete("t")
    await node.create("t")
    assert node.log("t").directory == f"{moving.here}/t-0"
    assert node.append("t") == 0
    node.close()
    again = Node([Path(moving.here), Path(moving.there)], node.controller)
    await again.start()
    assert (again.log("t").log_start_offset, again.log("t").log_end_offset) == (0, 1)
    again.close()


async def test_a_log_is_served_until_its_new_place_can_be_noted(moving: Moving) -> None:
    """The store is away, then refuses: nothing is taken out for it, and what is written goes on."""
    controller = moving.node.controller
    answers: list[StoreError | set[UUID]] = [StoreUnavailableError("away"), set(), set()]
    asked = 0

    async def assign(places: Mapping[UUID, Mapping[int, UUID]], *, stays: bool) -> set[UUID]:
        nonlocal asked
        asked += 1
        assert not stays
        if not answers:
            return await controller.changes.run(controller.topic_changes.assign_directories(places))
        answer = answers.pop(0)
        if isinstance(answer, StoreError):
            raise answer
        return answer

    controller.assign_by_controller = assign
    moving.mover.move(T0, moving.there)
    for attempt in range(1, 4):
        async with asyncio.timeout(60):
            while asked < attempt or not moving.timer.pending:  # noqa: ASYNC110  it works in threads
                await asyncio.sleep(0.001)
        assert moving.resigned == []
        assert moving.node.log("t").directory == f"{moving.here}/t-0"
        assert moving.node.append("t") == attempt
        moving.timer.advance(NOTE_RETRY_MS)
    await moving.end()
    assert asked == 4
    assert moving.resigned == [T0]
    assert moving.node.log("t").directory == f"{moving.there}/t-0"
    assert moving.node.log("t").log_end_offset == 4
    ids = {d.path: d.id for d in moving.node.logs.directories}
    assert controller.image.topics["t"].partitions[0].directory_on(1) == ids[moving.there]
    await moving.mover.stop()
    moving.node.close()


async def test_what_was_noted_is_taken_back_with_the_move(moving: Moving) -> None:
    """The new disk refuses at the last moment: the log serves where it was, and is said to."""
    moves = moving.node.logs.moves

    def refuse(*_arguments: object) -> Log:
        raise DiskError("refused", moving.there)

    object.__setattr__(moves, "swap", refuse)
    moving.mover.move(T0, moving.there)
    await moving.end()
    assert moving.resigned == [T0]
    assert moving.node.log("t").directory == f"{moving.here}/t-0"
    assert moving.node.append("t") == 1
    partition = moving.node.controller.image.topics["t"].partitions[0]
    ids = {d.path: d.id for d in moving.node.logs.directories}
    assert partition.directory_on(1) == ids[moving.here]
    await moving.mover.stop()
    moving.node.close()


async def test_a_move_flushes_with_the_others(moving: Moving) -> None:
    """One beside it left it the name of the file, and acknowledged what a power cut takes."""
    node = moving.node
    partition = node.replicas.replica_of("t", 0)
    assert partition is not None
    node.filesystem.hold("sync", moving.here)
    moving.mover.move(T0, moving.there)
    await asyncio.to_thread(node.filesystem.held.wait)
    node.append("t")
    began = node.pool.started
    partition.commit.request()
    begun_beside_it = node.pool.started - began
    node.filesystem.release()
    assert not begun_beside_it
    await moving.end()
    assert node.log("t").directory == f"{moving.there}/t-0"
    assert node.log("t").log_end_offset == 2
    await moving.mover.stop()
    node.close()


async def test_a_failed_sync_of_the_log_that_moves_is_final(moving: Moving) -> None:
    """The kernel has told of it: the next sync of the file succeeds, and proves nothing."""
    node = moving.node
    log = node.log("t")
    node.replicas.on_disk_failure = node.logs.fail_log
    node.filesystem.break_directory(moving.here, "sync")
    moving.mover.move(T0, moving.there)
    await moving.end()
    node.filesystem.broken.clear()
    assert [directory.path for directory in node.logs.offline_directories] == [moving.here]
    with pytest.raises(LogDirectoryOfflineError):
        log.check_failure()
    assert log.recovery_point == 0
    await moving.mover.stop()
    node.close()


@pytest.mark.parametrize("kinds", [("sync",), ("sync", "create", "write", "truncate")])
async def test_a_log_whose_directory_fails_while_it_is_out_is_not_served(
    moving: Moving, kinds: tuple[str, ...]
) -> None:
    """It was served again, from the directory that had just gone offline.

    And where it could not be opened there it counted as moved: without that disk the next start
    would have made an empty log in the other directory.
    """
    node = moving.node
    moves = node.logs.moves
    before_take_out = moves.before_take_out

    def breaking(log: Log) -> None:
        before_take_out(log)
        node.filesystem.break_directory(moving.here, *kinds)

    object.__setattr__(moves, "before_take_out", breaking)
    moving.mover.move(T0, moving.there)
    await moving.end()
    node.filesystem.broken.clear()
    assert [directory.path for directory in node.logs.offline_directories] == [moving.here]
    assert node.replicas.replica_of("t", 0) is None
    assert node.logs.get(T0) is None
    partition = node.controller.image.topics["t"].partitions[0]
    ids = {d.path: d.id for d in node.logs.directories}
    assert partition.directory_on(1) == ids[moving.here]
    await moving.mover.stop()
    node.close()


@pytest.mark.parametrize("number", [0, 1])
async def test_a_replica_to_come_is_made_where_it_was_asked_for(
    moving: Moving, number: int
) -> None:
    """Refused, and remembered: a topic and partitions that are created later begin there."""
    node = moving.node
    wanted = (moving.here, moving.there)[number]
    for topic_partition in (TopicPartition("new", 0), TopicPartition("t", 1)):
        with pytest.raises(ApiError) as refused:
            moving.mover.move(topic_partition, wanted)
        assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await node.create("new")
    await node.controller.create_partitions([NewPartitions("t", 2)])
    ids = {directory.path: directory.id for directory in node.logs.directories}
    for name, index in (("new", 0), ("t", 1)):
        assert node.log(name, index).directory == f"{wanted}/{name}-{index}"
        partition = node.controller.image.topics[name].partitions[index]
        assert partition.directory_on(1) == ids[wanted]
    assert len(node.logs.preferred) == 0
    await moving.mover.stop()
    node.close()


async def test_a_replica_that_an_image_brings_is_made_where_it_was_asked_for(
    tmp_path: Path,
) -> None:
    """The partition is known before this broker has a replica of it."""
    member = Member(tmp_path / "a", tmp_path / "b")
    member.images.set(topic_of("t", (2, 3)))
    await member.start()
    first = member.logs.directories[0]
    moving = Moving(member, [first.path, member.logs.directories[1].path])
    with pytest.raises(ApiError) as refused:
        moving.mover.move(T0, moving.there)
    assert refused.value.code is ErrorCode.REPLICA_NOT_AVAILABLE
    member.images.set(topic_of("t", (1, 2)))
    await asyncio.wait(member.lifecycle.under_way)
    assert member.log("t").directory == f"{moving.there}/t-0"
    await moving.mover.stop()
    member.close()


async def test_what_has_a_log_that_does_not_serve_is_not_made_elsewhere(moving: Moving) -> None:
    """Its directory has failed: its records come back with it."""
    node = moving.node
    (failing,) = (one for one in node.logs.directories if one.path == moving.here)
    node.logs.fail(failing, DiskError("broken", moving.here, errno.EIO))
    node.roles.close([T0], ErrorCode.KAFKA_STORAGE_ERROR)
    with pytest.raises(ApiError) as refused:
        moving.mover.move(T0, moving.there)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert len(node.logs.preferred) == 0
    await moving.mover.stop()
    node.close()


async def test_where_it_is_there_is_nothing_to_do(moving: Moving) -> None:
    moving.mover.move(T0, moving.here + "/")
    assert not moving.mover._tasks
    with pytest.raises(ApiError) as refused:
        moving.mover.move(T0, "/nowhere")
    assert refused.value.code is ErrorCode.LOG_DIR_NOT_FOUND
    await moving.mover.stop()
    moving.node.close()
