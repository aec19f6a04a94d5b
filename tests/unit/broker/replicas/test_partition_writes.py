"""A directory's thread writes: who waits for it, and who does not."""

import asyncio
import errno
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.controller.images.partition_image import PartitionImage
from broker.network.read_gate import PAUSED_BY_DISK
from broker.replicas.partition import Partition
from broker.runtime.directory_writer import RESUMED_PER_ITERATION, DirectoryWriter, DirectoryWriters
from config.topic import TopicConfig
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from storage.environment.local_filesystem import LocalFile
from storage.errors import DiskError
from storage.log import directory_pace
from storage.log.directory_pace import NEVER
from storage.log.write_ticket import WriteTicket
from tests.code_path import python_only
from tests.fakes.storage.failing_disk import FailingDisk, FailingFile
from tests.unit.broker.world import World, batch

VERSION = 9


class GatedFile(FailingFile):
    __slots__ = ()

    def write_at(self, data: object, position: int) -> None:
        assert isinstance(self._disk, GatedDisk)
        if self.path.endswith(".log"):
            self._disk.waiting.set()
            assert self._disk.gate.wait(60)
        super().write_at(data, position)  # type: ignore[arg-type]  # as it came


class GatedDisk(FailingDisk):
    """Writes to logs wait until `gate` is set; none is opened with an `open_failure`."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.waiting = threading.Event()
        self.open_failure = 0
        self.refused_opens = 0

    def open(
        self, path: str, *, create: bool = False, readonly: bool = False, spare: bool = False
    ) -> LocalFile:
        if self.open_failure:
            self.refused_opens += 1
            raise DiskError("cannot open", path, self.open_failure)
        plain = super().open(path, create=create, readonly=readonly, spare=spare)
        fd = plain.detach()
        return GatedFile(path, fd, self)


class WritersWorld(World):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.gated = GatedDisk()
        self.filesystem = self.gated
        self.writers = DirectoryWriters(asyncio.get_running_loop(), self.clock, (str(directory),))
        self.replicas._writers = self.writers
        writer = self.writers.of(str(directory))
        assert writer is not None
        self.writer: DirectoryWriter = writer

    def produce(self, *values: bytes, topic: str = "t", acks: int = 1) -> int:
        data = PartitionProduceData(index=0, records=batch(*values))
        return self.send(
            ApiKey.PRODUCE,
            VERSION,
            ProduceRequest(
                acks=acks,
                timeout_ms=30_000,
                topic_data=[TopicProduceData(name=topic, partition_data=[data])],
            ),
        )

    def produced(self) -> tuple[int, int]:
        """(error, base offset) of the oldest answer."""
        answer = self.answer(ApiKey.PRODUCE, VERSION)
        part = answer.responses[0].partition_responses[0]
        return part.error_code, part.base_offset


@pytest.fixture
async def gated(tmp_path: Path) -> AsyncIterator[WritersWorld]:
    world = WritersWorld(tmp_path)
    yield world
    world.gated.gate.set()
    world.writers.close()
    world.disk.close()


async def test_the_producer_is_answered_when_it_is_written(gated: WritersWorld) -> None:
    """And the loop goes on meanwhile."""
    partition = gated.add("t")
    gated.produce(b"a")
    await asyncio.to_thread(gated.gated.waiting.wait, 30)
    assert not gated.has_answer
    assert partition.log.high_watermark == partition.log.log_end_offset == 0
    gated.gated.gate.set()
    await gated.until(lambda: gated.has_answer)
    assert gated.produced() == (0, 0)
    assert partition.log.high_watermark == 1


async def test_requests_of_a_connection_go_on_being_taken(gated: WritersWorld) -> None:
    """An idempotent producer has five under way; they are written together."""
    gated.add("t")
    for value in (b"a", b"b", b"c", b"d", b"e"):
        gated.produce(value)
    gated.gated.gate.set()
    await gated.until(lambda: gated.writer.waiting == 0 and gated.writer.writes > 1)
    assert [gated.produced() for _ in range(5)] == [(0, at) for at in range(5)]
    assert gated.writer.writes == 2


async def test_with_flush_messages_the_flush_comes_after_the_write(gated: WritersWorld) -> None:
    partition = gated.add("t", config=TopicConfig(flush_messages=1))
    gated.produce(b"a")
    gated.gated.gate.set()
    await gated.until(lambda: gated.has_answer)
    assert gated.produced() == (0, 0)
    assert partition.log.recovery_point == 1


async def test_a_deleted_topic_is_not_waited_for_longer_than_its_write(
    gated: WritersWorld,
) -> None:
    """Who waits is answered at once; what the thread has not begun is never written."""
    partition = gated.add("t")
    gated.produce(b"a")
    await asyncio.to_thread(gated.gated.waiting.wait, 30)
    gated.produce(b"b")
    gated.replicas.remove_topic("t")
    await gated.until(lambda: gated.has_answer)
    assert gated.produced()[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    idle = asyncio.create_task(partition.idle())
    await asyncio.sleep(0)
    assert not idle.done()
    gated.gated.gate.set()
    await asyncio.wait_for(idle, 30)
    assert (partition.log.log_end_offset, gated.writer.writes) == (1, 1)
    assert gated.writer.pace.queued_bytes == 0


async def test_who_waits_for_a_write_that_fails_is_told(gated: WritersWorld) -> None:
    partition = gated.add("t")
    failed: list[object] = []
    gated.replicas.on_disk_failure = lambda log, error: failed.append((log, str(error)))
    gated.produce(b"a")
    gated.produce(b"b")
    gated.gated.break_directory(str(gated.directory))
    gated.gated.gate.set()
    await gated.until(lambda: gated.has_answer and bool(failed))
    assert [gated.produced() for _ in range(2)] == [(ErrorCode.KAFKA_STORAGE_ERROR, -1)] * 2
    assert partition.log.failure is not None
    gated.produce(b"c")
    assert gated.produced()[0] == ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_leader_epoch_begins_again_where_the_log_ends_without_what_was_lost(
    gated: WritersWorld,
) -> None:
    """A broker takes over while batches of the last leader are queued, and they find no room."""
    partition = gated.add("t")
    gated.replicas.stop_leading(partition)
    partition.become_follower(2, 4)
    batches = batch(b"a", b"b")
    batches[12:16] = (4).to_bytes(4, "big")
    assert not partition.append_fetched(
        memoryview(batches), fetch_offset=0, settled=lambda _error: None
    )
    await asyncio.to_thread(gated.gated.waiting.wait, 30)
    partition.become_leader(
        PartitionImage(0, 1, 5, 1, replicas=(1, 2), isr=(1,)), now_ms=gated.clock.monotonic_ms()
    )
    leading, log = partition.leading, partition.log
    assert leading is not None
    assert (leading.epoch_start_offset, log.leader_epochs.start_offset_of(5)) == (2, 2)
    gated.gated.code = errno.ENOSPC
    gated.gated.break_directory(str(gated.directory))
    gated.gated.gate.set()
    await gated.until(lambda: log.write_queue is None)
    gated.gated.broken.clear()
    await gated.until(lambda: not log.is_rolling_back)
    assert log.leader_epochs.entries() == [(5, 0)]
    assert (leading.epoch_start_offset, log.latest_leader_epoch, log.log_end_offset) == (0, 5, 0)


@python_only
async def test_a_client_is_read_no_further_while_too_much_waits(
    gated: WritersWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its requests stay in its socket, and it goes on by itself."""
    monkeypatch.setattr(directory_pace, "CONGESTED_BYTES", 200)
    gated.add("t")
    gated.produce(b"x" * 150, acks=0)
    await asyncio.to_thread(gated.gated.waiting.wait, 30)
    assert gated.h.connection._gate.reasons & PAUSED_BY_DISK
    gated.produce(b"y", acks=0)
    gated.gated.gate.set()
    await gated.until(lambda: not gated.h.connection._gate.reasons & PAUSED_BY_DISK)
    gated.produce(b"z", acks=1)
    await gated.until(lambda: gated.has_answer)
    assert gated.produced()[0] == 0


async def test_clients_that_were_held_back_go_on_a_few_at_a_time(gated: WritersWorld) -> None:
    resumed: list[int] = []
    for at in range(RESUMED_PER_ITERATION + 1):
        gated.writer.when_uncongested(lambda at=at: resumed.append(at))  # type: ignore[misc]  # a lambda's default
    gated.writer._deliver()
    assert resumed == list(range(RESUMED_PER_ITERATION))
    await asyncio.sleep(0)
    assert resumed == list(range(RESUMED_PER_ITERATION + 1))


async def test_a_large_frame_is_written_from_where_it_lies(gated: WritersWorld) -> None:
    """Its memory comes back, and is charged until then."""
    gated.add("t")
    gated.writer.pace.inline_bytes_max = 1000
    gated.gated.gate.set()
    gated.produce(b"first")
    await gated.until(lambda: gated.has_answer)
    gated.produced()
    gated.gated.gate.clear()
    gated.gated.waiting.clear()
    gated.writer.pace.inline_bytes_max = 1000
    buffers = gated.h.buffers
    data = bytes(range(256)) * 2500
    gated.produce(data)
    await asyncio.to_thread(gated.gated.waiting.wait, 30)
    assert buffers.charged >= len(data)
    assert buffers.idle_bytes == 0
    gated.gated.gate.set()
    await gated.until(lambda: gated.has_answer)
    assert gated.produced() == (0, 1)
    assert buffers.charged == 0
    assert buffers.idle_bytes >= len(data)
    partition = gated.replicas.replica_of("t", 0)
    assert partition is not None
    assert data in Path(partition.log.segment_facts()[0].path).read_bytes()  # noqa: ASYNC240  because nothing else runs


async def test_an_error_nobody_expected_takes_the_log_out_of_service(
    gated: WritersWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rather than leave its producers waiting for ever."""
    partition = gated.add("t")

    def broken(_ticket: WriteTicket) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("storage.log.write_ticket.AppendTicket.run", broken)
    gated.produce(b"a")
    await gated.until(lambda: gated.has_answer)
    assert gated.produced() == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    assert "a fault of ours" in str(partition.log.failure)


async def test_quick_directories_are_written_to_at_once(gated: WritersWorld) -> None:
    gated.add("t")
    gated.gated.gate.set()
    gated.writer.pace.inline_bytes_max = NEVER
    gated.produce(b"a")
    await gated.until(lambda: gated.has_answer)
    assert gated.produced() == (0, 0)
    gated.produce(b"b")
    assert gated.produced() == (0, 1)
    assert gated.writer.writes == 0


async def put_off(gated: WritersWorld) -> Partition:
    """A partition whose write found no room, and whose producers no descriptor was left for."""
    partition = gated.add("t")
    gated.produce(b"a")
    await asyncio.to_thread(gated.gated.waiting.wait, 30)
    gated.gated.code = errno.ENOSPC
    gated.gated.break_directory(str(gated.directory), "write")
    gated.gated.open_failure = errno.EMFILE
    gated.gated.open_files.evict(100)
    gated.gated.gate.set()
    await gated.until(lambda: gated.gated.refused_opens > 0 and gated.writer.waiting == 0)
    gated.gated.broken.clear()
    assert gated.produced()[0] == ErrorCode.KAFKA_STORAGE_ERROR
    assert partition.log.is_rolling_back
    assert partition.log.failure is None
    return partition


async def test_what_a_descriptor_is_wanted_for_is_tried_again_at_intervals(
    gated: WritersWorld,
) -> None:
    """Not in a circle; no directory goes offline, and the log takes records when it is done."""
    failed: list[DiskError] = []
    gated.replicas.on_disk_failure = lambda _log, error: failed.append(error)
    partition = await put_off(gated)
    assert [error.is_disk_failure for error in failed] == [False, False]
    opens = gated.gated.refused_opens
    partition.pump()
    await asyncio.wait_for(partition.idle(), 30)
    assert (gated.writer.waiting, gated.gated.refused_opens) == (0, opens)
    gated.writer.sample()
    await gated.until(lambda: gated.gated.refused_opens > opens and gated.writer.waiting == 0)
    gated.gated.open_failure = 0
    gated.writer.sample()
    await gated.until(lambda: not partition.log.is_rolling_back)
    gated.produce(b"b")
    await gated.until(lambda: gated.has_answer)
    assert gated.produced() == (0, 0)


async def test_nothing_is_tried_again_in_a_log_that_a_thread_has(gated: WritersWorld) -> None:
    """It is truncated, or closed: what is put off waits until there is a role again."""
    partition = await put_off(gated)
    gated.gated.open_failure = 0
    partition.resign(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    gated.writer.sample()
    assert (gated.writer.waiting, partition.log.is_rolling_back) == (0, True)
    partition.become_follower(2, 4)
    await gated.until(lambda: not partition.log.is_rolling_back)
