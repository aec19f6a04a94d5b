"""What leaves a log by itself or on request: retention, DeleteRecords, compaction."""

import asyncio
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from broker.replicas import background
from protocol.error_codes import ErrorCode
from storage.environment.filesystem import Buffer
from storage.environment.local_filesystem import LocalFile
from storage.log.replacement import SegmentReplacement
from tests.fakes.network.client import EARLIEST, Client, RefusedError
from tests.fakes.storage.failing_disk import FailingDisk, FailingFile
from tests.system.conftest import Node, StartNode, until

HOUR_MS = 3_600_000
SEGMENT_MS = 1000
"""`segment.ms` here: a batch more than this after the segment's first begins a new segment."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def starts_at(client: Client, offset: int) -> bool:
    return await client.offset("t", EARLIEST) == offset


async def test_old_segments_go_and_the_young_stay(node: Node, tmp_path: Path) -> None:
    """`retention.ms`, by the records' time: 2 h old, 1.5 h old, now (in the active segment)."""
    client = await node.client()
    await client.create_topic("t", retention_ms=-1, segment_ms=SEGMENT_MS)
    for age_ms in (2 * HOUR_MS, HOUR_MS + HOUR_MS // 2, 0):
        await client.produce("t", b"v", timestamp_ms=now_ms() - age_ms)
    await client.alter_topic("t", retention_ms=HOUR_MS + HOUR_MS * 3 // 4)
    await until(lambda: starts_at(client, 1))
    await client.alter_topic("t", retention_ms=HOUR_MS)
    await until(lambda: starts_at(client, 2))
    assert [r.offset for r in await client.read_all("t")] == [2]
    with pytest.raises(RefusedError, match="OFFSET_OUT_OF_RANGE"):
        await _read(client, 1)
    metrics = await node.metrics()
    assert metrics.of("kafka_log_log_logstartoffset", topic="t", partition="0") == 2
    assert metrics.of("kafka_log_log_numlogsegments", topic="t", partition="0") == 1


async def _read(client: Client, offset: int) -> None:
    read = await client.fetch("t", offset)
    if read.error:
        raise RefusedError(read.error, None)


async def test_expired_active_segment_is_closed_first(node: Node) -> None:
    """Kafka rolls it, so that the log goes on where it was, with nothing in it."""
    client = await node.client()
    await client.create_topic("t", retention_ms=HOUR_MS)
    await client.produce("t", b"a", b"b", timestamp_ms=now_ms() - 2 * HOUR_MS)
    await until(lambda: starts_at(client, 2))
    assert await client.read_all("t") == []
    assert await client.produce("t", b"c") == 2
    assert [(r.offset, r.value) for r in await client.read_all("t")] == [(2, b"c")]


async def test_size_retention_keeps_at_least_so_much(node: Node) -> None:
    """`retention.bytes`: the oldest segments go while what remains is no less."""
    client = await node.client()
    await client.create_topic("t", retention_ms=-1, segment_ms=SEGMENT_MS)
    begin = now_ms() - HOUR_MS
    for number in range(6):
        await client.produce("t", b"x" * 1000, timestamp_ms=begin + number * 2 * SEGMENT_MS)
    batch_size = int((await node.metrics()).of("kafka_log_log_size", topic="t", partition="0") / 6)
    await client.alter_topic("t", retention_bytes=3 * batch_size - 1)
    await until(lambda: starts_at(client, 3))
    await client.alter_topic("t", retention_bytes=batch_size)
    await until(lambda: starts_at(client, 5))
    assert [r.offset for r in await client.read_all("t")] == [5]
    # As in Kafka, 0 empties the log: the active segment is closed first.
    await client.alter_topic("t", retention_bytes=0)
    await until(lambda: starts_at(client, 6))
    assert await client.produce("t", b"next") == 6


async def test_delete_records_cuts_at_an_offset(node: Node, start_node: StartNode) -> None:
    """Within a batch too; -1 is the high watermark; beyond it is refused; a restart keeps it."""
    client = await node.client()
    await client.create_topic("t")
    await client.produce("t", *(b"%d" % n for n in range(10)))
    assert await client.delete_records("t", 4) == 4
    assert [r.offset for r in await client.read_all("t")] == list(range(4, 10))
    assert (await client.fetch("t", 3)).error is ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(RefusedError, match="OFFSET_OUT_OF_RANGE"):
        await client.delete_records("t", 11)
    assert await client.delete_records("t", 2) == 4, "it never moves back"
    await node.stop()
    again = await (await start_node()).client()
    assert await again.offset("t", EARLIEST) == 4
    assert await again.delete_records("t", -1) == 10
    assert await again.read_all("t") == []
    assert await again.produce("t", b"next") == 10


async def write_versions(client: Client, topic: str, count: int, *, begin: int) -> dict[bytes, Any]:
    """`count` batches of three keys, a segment each; returns every key's latest (offset, value)."""
    latest: dict[bytes, Any] = {}
    for number in range(count):
        records = [
            (b"always", b"%d" % number),
            (b"key-%d" % (number % 3), b"%d" % number),
            (b"once-%d" % number, b"kept"),
        ]
        answer = await client.try_produce(
            topic, records, timestamp_ms=begin + number * 2 * SEGMENT_MS
        )
        assert answer.error_code == 0
        for at, (key, value) in enumerate(records):
            latest[key] = (answer.base_offset + at, value)
    return latest


async def test_compaction_keeps_the_latest_of_every_key(
    node: Node, start_node: StartNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its offset and in order, while producers and consumers go on, and after a restart."""
    threads = set()
    original = SegmentReplacement.put

    def put(replacement: SegmentReplacement, *arguments: Any) -> None:
        threads.add(threading.get_ident())
        original(replacement, *arguments)

    monkeypatch.setattr(SegmentReplacement, "put", put)
    client = await node.client()
    await client.create_topic(
        "t", cleanup_policy="compact", segment_ms=SEGMENT_MS, min_cleanable_dirty_ratio=0.01
    )
    latest = await write_versions(client, "t", 10, begin=now_ms() - HOUR_MS)

    async def compacted() -> bool:
        found = await client.read_all("t")
        assert [r.offset for r in found] == sorted({r.offset for r in found})
        # At any moment of the compaction, what is newest is there.
        now = {r.key: (r.offset, r.value) for r in found}
        assert latest.items() <= now.items()
        # The active segment, the last batch, is never compacted.
        return len(found) <= len(latest) + 2

    await until(compacted)
    found = await client.read_all("t")
    assert await client.offset("t") == 30
    # A reader whose offset has been compacted away gets what follows it.
    assert (await client.fetch("t", 0)).records[-1].offset >= 2
    assert threads == {threading.get_ident()}, "a log that serves is changed by the loop alone"
    await node.stop()
    again = await (await start_node(log_cleaner_enable=False)).client()
    assert await again.read_all("t") == found


async def test_tombstones_go_after_their_time(node: Node) -> None:
    """First the value goes, the tombstone stays for `delete.retention.ms`, then it goes too."""
    client = await node.client()
    await client.create_topic(
        "t",
        cleanup_policy="compact",
        segment_ms=SEGMENT_MS,
        min_cleanable_dirty_ratio=0.01,
        delete_retention_ms=HOUR_MS,
    )
    begin = now_ms() - HOUR_MS

    clock = iter(range(begin, begin + HOUR_MS, 2 * SEGMENT_MS))

    async def write(key: bytes, value: bytes | None) -> None:
        answer = await client.try_produce("t", [(key, value)], timestamp_ms=next(clock))
        assert answer.error_code == 0

    await write(b"k", b"value")
    await write(b"other", b"stays")
    await write(b"k", None)
    await write(b"filler", b"1")

    async def values_of(key: bytes) -> list[bytes | None]:
        return [r.value for r in await client.read_all("t") if r.key == key]

    async def is_gone() -> bool:
        return await values_of(b"k") == []

    async def is_tombstone() -> bool:
        return await values_of(b"k") == [None]

    await until(is_tombstone)
    await client.alter_topic("t", delete_retention_ms=0)
    # Its horizon was set by the first pass with the old setting; the next passes need new input.
    stays = await values_of(b"k")
    assert stays == [None]
    await write(b"k", b"again")
    await write(b"filler", b"2")
    await write(b"k", None)
    await write(b"filler", b"3")
    for number in range(200):
        await write(b"filler", b"%d" % number)
        await asyncio.sleep(0.03)
        if await is_gone():
            break
    assert await values_of(b"k") == []
    assert await values_of(b"other") == [b"stays"]


async def test_compact_and_delete(node: Node) -> None:
    """Both policies at once: what is too old goes whatever its key."""
    client = await node.client()
    await client.create_topic(
        "t", cleanup_policy="compact,delete", segment_ms=SEGMENT_MS, retention_ms=HOUR_MS
    )

    async def write(key: bytes, age_ms: int) -> None:
        answer = await client.try_produce("t", [(key, b"v")], timestamp_ms=now_ms() - age_ms)
        assert answer.error_code == 0

    await write(b"old", 3 * HOUR_MS)
    await write(b"young", 1000)
    # A third one would close the second's segment, and compaction could join the first two: what
    # they have together is as young as its youngest record.
    await until(lambda: starts_at(client, 1))
    await write(b"active", -4000)
    assert [r.key for r in await client.read_all("t")] == [b"young", b"active"]


async def test_files_of_compacted_segments_go(
    start_node: StartNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`file.delete.delay.ms` after; the directory has no leftovers."""
    monkeypatch.setattr(background, "REMOVE_DELETED_MS", 20.0)
    node = await start_node()
    client = await node.client()
    await client.create_topic(
        "t",
        cleanup_policy="compact",
        segment_ms=SEGMENT_MS,
        min_cleanable_dirty_ratio=0.01,
        file_delete_delay_ms=0,
    )
    await write_versions(client, "t", 10, begin=now_ms() - HOUR_MS)

    def suffixes() -> set[str]:
        return {path.suffix for path in (tmp_path / "data" / "t-0").iterdir()}

    async def is_compacted() -> bool:
        return len(await client.read_all("t")) <= 18

    await until(is_compacted)
    await until(lambda: suffixes().isdisjoint({".deleted", ".cleaned", ".swap"}))
    assert len(await client.read_all("t")) <= 18


class _CleanedFile(FailingFile):
    """What compaction writes waits for the gate."""

    __slots__ = ()

    def write_at(self, data: Buffer | Sequence[Buffer], position: int) -> None:
        assert isinstance(self._disk, CompactionGate)
        if self.path.endswith(".cleaned"):
            self._disk.compacting.set()
            assert self._disk.gate.wait(60)
        super().write_at(data, position)


class CompactionGate(FailingDisk):
    """Compaction stops at its first write until `gate` is set; `compacting` tells that it has."""

    __slots__ = ("compacting", "gate")

    def __init__(self) -> None:
        super().__init__()
        self.compacting = threading.Event()
        self.gate = threading.Event()

    def open(
        self, path: str, *, create: bool = False, readonly: bool = False, spare: bool = False
    ) -> LocalFile:
        plain = super().open(path, create=create, readonly=readonly, spare=spare)
        fd = plain.detach()
        return _CleanedFile(path, fd, self)


@pytest.mark.parametrize("ending", ["delete", "stop"])
async def test_deletion_and_stop_in_the_middle_of_a_compaction(
    start_node: StartNode, tmp_path: Path, ending: str
) -> None:
    """It gives up; the loop serves meanwhile; nothing half made is left."""
    disk = CompactionGate()
    node = await start_node(filesystem=disk)
    client = await node.client()
    settings: dict[str, Any] = {
        "cleanup_policy": "compact",
        "segment_ms": SEGMENT_MS,
        "min_cleanable_dirty_ratio": 0.01,
    }
    await client.create_topic("other")
    await client.create_topic("t", **settings)
    latest = await write_versions(client, "t", 10, begin=now_ms() - HOUR_MS)
    await until(disk.compacting.is_set)
    ended: asyncio.Task[None]
    if ending == "delete":
        ended = asyncio.create_task((await node.client()).delete_topic("t"))
        # Others are served: it is a thread that waits.
        assert await client.produce("other", b"v") == 0
    else:
        ended = asyncio.create_task(node.stop())
    await asyncio.sleep(0.05)
    assert not ended.done()
    disk.gate.set()
    await asyncio.wait_for(ended, 10)
    names = {path.suffix for path in (tmp_path / "data").glob("t-0/*")}
    assert names.isdisjoint({".cleaned", ".swap"})
    if ending == "delete":
        await client.create_topic("t", **settings)
        assert (await client.try_produce("t", [(b"k", b"v")])).base_offset == 0
    else:
        again = await (await start_node(log_cleaner_enable=False)).client()
        found = {r.key: (r.offset, r.value) for r in await again.read_all("t")}
        assert latest.items() <= found.items()
