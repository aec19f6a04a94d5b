"""What compaction leaves of a batch: the fast ways leave the same bytes as the plain one."""

from dataclasses import asdict
from random import Random
from typing import Any

import pytest

from config.topic import TopicConfig
from protocol.records.batch import HEADER_SIZE, LOG_OVERHEAD, update_crc
from protocol.records.builder import build_batch
from protocol.records.varint import encode_varint
from storage.cleaner import cleaner
from storage.cleaner.cleaner import Cleaner
from storage.cleaner.cleaning import CleanerStats
from storage.cleaner.log_cleaner_manager import measure
from storage.records import walks
from storage.records.compiled_walks import CompiledWalks
from storage.types.append_origin import AppendOrigin
from tests.unit.storage.cleaner.plain_cleaner import PlainBatchFilter, PlainDirtyPart, PlainMap
from tests.unit.storage.cleaner.test_cleaner import DIRECTORY, Disk
from tests.unit.storage.records.compiled import COMPILED

HOUR_MS = 3_600_000
ONE_OF_SIX = [tuple(at == chosen for at in range(6)) for chosen in range(6)]


def wide(value: int) -> bytes:
    """A varint with a byte more than it needs."""
    data = bytearray(encode_varint(value))
    data[-1] |= 0x80
    return bytes(data) + b"\0"


def unusual_batch(rng: Random, rows: list[tuple[bytes | None, bytes | None]]) -> bytearray:
    """An uncompressed batch whose records are valid, and are not written as we write them."""
    batch = build_batch([(key, value, (), 1_000) for key, value in rows])
    block = bytearray()
    # One field of all records, or attributes, or nothing.
    at_length, at_time, at_offset, at_key, at_value, at_headers = (
        wide if chosen else encode_varint for chosen in rng.choice([*ONE_OF_SIX, (False,) * 6])
    )
    attributes = rng.choice((0, 0, 7))
    for delta, (key, value) in enumerate(rows):
        body = bytearray([attributes]) + at_time(0) + at_offset(delta)
        body += at_key(-1 if key is None else len(key)) + (key or b"")
        body += at_value(-1 if value is None else len(value)) + (value or b"")
        body += at_headers(0)
        block += at_length(len(body)) + body
    batch[HEADER_SIZE:] = block
    batch[8:12] = (len(batch) - LOG_OVERHEAD).to_bytes(4, "big")
    update_crc(memoryview(batch), 0, len(batch))
    return batch


class History:
    """Writes to a log by chance: every shape of batch that producers and brokers make."""

    def __init__(self, disk: Disk, rng: Random) -> None:
        self.disk = disk
        self.rng = rng
        self.keys = rng.choice((3, 12, 60, 400))
        self.key_bytes = rng.choice((0, 0, 0, 127, 128, 200))
        self.keyless = rng.random() < 0.3
        self.tombstones = rng.choice((0.0, 0.0, 0.02, 0.4))
        self.append_time = rng.random() < 0.2
        self.open: set[int] = set()
        self.sequences: dict[int, int] = {}

    def step(self) -> None:
        rng = self.rng
        if self.open and rng.random() < 0.3:
            pid = self.open.pop()
            self.disk.end(pid, commit=rng.random() < 0.5)
            return
        rows = self.rows()
        if rng.random() < 0.15:
            pairs = [(key, value) for key, value, _, _ in rows]
            self.disk.append(unusual_batch(rng, pairs))
            return
        pid = rng.choice((-1, -1, -1, 1, 2, 3))
        transactional = pid == 3
        if transactional:
            self.open.add(pid)
        sequence = self.sequences.get(pid, 0) if pid >= 0 else -1
        self.sequences[pid] = sequence + len(rows)
        batch = build_batch(
            rows,
            producer_id=pid,
            producer_epoch=0 if pid >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
            codec=rng.choice((0, 0, 0, 1, 2, 3, 4)),
        )
        self.disk.append(batch, AppendOrigin.CLIENT)

    def rows(self) -> list[Any]:
        rng = self.rng
        count = rng.choice((1, 1, 2, 7, 8, 9, 40, 70, 200))
        alike = rng.random() < 0.6
        size = rng.choice((0, 5, 60, 70, 100))
        pace = rng.choice((0, 0, 1, 5, 3_000, -7, 10**7))
        header = rng.choice(((), (), (), (("trace", b"x" * 20),), (("ä", None), ("b", b"y" * 70))))
        time = self.disk.clock.now_ms()
        rows = []
        for index in range(count):
            key: bytes | None = b"%0*d" % (self.key_bytes or 5, rng.randrange(self.keys))
            if not alike:
                key = b"k%d" % rng.randrange(self.keys) + b"x" * self.key_bytes
            if self.keyless and rng.random() < 0.05:
                key = None
            value: bytes | None = rng.randbytes(size if alike else rng.randrange(2 * size + 1))
            if rng.random() < self.tombstones:
                value = None
            rows.append((key, value, header, max(time + index * pace, 0)))
        return rows


def files(disk: Disk) -> dict[str, bytes]:
    """Of the log, but for names of the two runs that differ."""
    return {
        entry.name: bytes(disk.filesystem.peek(f"{DIRECTORY}/{entry.name}"))
        for entry in disk.filesystem.list_directory(DIRECTORY)
        if not entry.name.endswith(".deleted")
    }


def run(disk: Disk, dirty: int, map_bytes: int) -> CleanerStats:
    chosen = measure(disk.log, dirty, disk.clock.now_ms())
    return Cleaner(disk.filesystem, dedupe_buffer_bytes=map_bytes, read_bytes=4096).clean(
        disk.log,
        first_dirty_offset=chosen.first_dirty_offset,
        first_uncleanable_offset=chosen.first_uncleanable_offset,
        now_ms=disk.clock.now_ms(),
    )


def compare(
    seed: int, monkeypatch: pytest.MonkeyPatch, compiled: CompiledWalks | None = None
) -> None:
    """One history in two logs, compacted now and then, by both ways."""
    rng = Random(seed)
    config = TopicConfig(
        segment_bytes=rng.choice((100_000, 300_000)),
        delete_retention_ms=HOUR_MS,
        message_timestamp_type=rng.choice(("CreateTime", "CreateTime", "LogAppendTime")),
        message_timestamp_before_max_ms=2**62,
        message_timestamp_after_max_ms=2**62,
    )
    plain, fast = Disk(config=config), Disk(config=config)
    steps = Random(seed + 1), Random(seed + 1)
    histories = History(plain, steps[0]), History(fast, steps[1])
    map_bytes = rng.choice((24 * 40, 24 * 400, 1 << 14, 1 << 18))
    dirty = 0
    for _ in range(4):
        for _ in range(rng.randrange(30)):
            for history in histories:
                history.step()
        for disk in (plain, fast):
            disk.roll()
        with monkeypatch.context() as patch:
            patch.setattr(cleaner, "compiled_walks", lambda: None)
            patch.setattr(cleaner, "DirtyPart", PlainDirtyPart)
            patch.setattr(cleaner, "BatchFilter", PlainBatchFilter)
            patch.setattr(cleaner, "OffsetMap", PlainMap)
            expected = run(plain, dirty, map_bytes)
        with monkeypatch.context() as patch:
            for module in (cleaner, walks):
                patch.setattr(module, "compiled_walks", lambda: compiled)
            stats = run(fast, dirty, map_bytes)
        assert asdict(stats) == asdict(expected)
        assert files(fast) == files(plain)
        # The checkpoint may be lost.
        dirty = rng.choice((stats.end_offset, stats.end_offset, 0))
        step_ms = rng.choice((0, 1, HOUR_MS))
        for disk in (plain, fast):
            disk.clock.advance(step_ms)


@pytest.mark.parametrize("seed", range(0, 400, 10))
def test_the_fast_ways_leave_what_the_plain_one_leaves(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files byte for byte, and all counts: after each of several runs."""
    compare(seed, monkeypatch)


@pytest.mark.skipif(COMPILED is None, reason="it is not compiled")
@pytest.mark.parametrize("seed", range(0, 400, 10))
def test_c_leaves_what_the_plain_way_leaves(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As before."""
    compare(seed, monkeypatch, COMPILED)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10_000, 30_000, 1_000))
def test_many_histories(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As before, for longer."""
    for offset in range(25):
        compare(seed + 10 * offset, monkeypatch)
        compare(seed + 10 * offset, monkeypatch, COMPILED)
