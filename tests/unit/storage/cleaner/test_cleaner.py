"""Compaction of one log."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.topic import TopicConfig
from protocol.records.batch import BatchHeader, iterate_batches
from protocol.records.builder import build_batch
from protocol.records.control import build_end_transaction_marker
from protocol.records.record import Record, iterate_records
from storage.cleaner.cleaner import Cleaner
from storage.cleaner.cleaning import CleanerStats, CleaningAbortedError, CleansLogs
from storage.cleaner.log_cleaner_manager import measure
from storage.errors import CorruptFileError, DiskError
from storage.index.transaction_index import TransactionIndex
from storage.log.log import Log
from storage.log.recovery.loaded_log import CheckpointedLog
from storage.types.append_origin import AppendOrigin
from storage.types.owner import OnOwner, in_this_thread
from storage.types.topic_partition import TopicPartition
from tests.effort import drawn, examples, swept
from tests.fakes.clock import ManualClock
from tests.fakes.environment import FakeEnvironment
from tests.fakes.filesystem import FakeFilesystem, PowerCut

T = TypeVar("T")
TP = TopicPartition("a", 0)
DIRECTORY = "/d/a-0"
NOW = 1_700_000_000_000
CONFIG = TopicConfig(cleanup_policy=("compact",), segment_bytes=400, delete_retention_ms=1_000)

Rows = list[tuple[bytes | None, bytes | None]]


def make_cleaner(filesystem: FakeFilesystem, map_bytes: int) -> CleansLogs:
    """Another one's tests put theirs here."""
    return Cleaner(filesystem, dedupe_buffer_bytes=map_bytes, read_bytes=256)


@dataclass
class Disk:
    """A compacted log and what was written to it."""

    config: TopicConfig = CONFIG
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW))
    sequences: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.filesystem = FakeFilesystem(self.clock)
        self.filesystem.mkdir("/d")
        self.filesystem.sync_directory("/")
        self.log = self.opened(self.filesystem, clean=True)

    def opened(self, filesystem: FakeFilesystem, *, clean: bool = False) -> Log:
        """The log as a start finds it; the high watermark is its end."""
        log = Log.open(
            DIRECTORY,
            TP,
            topic_id=UUID(int=1),
            config=self.config,
            environment=FakeEnvironment(filesystem=filesystem, clock=self.clock),
            checkpointed=CheckpointedLog(clean_shutdown=clean),
        )
        log.update_high_watermark(log.log_end_offset)
        return log

    def write(
        self, *rows: tuple[bytes | None, bytes | None], pid: int = -1, epoch: int = 0,
        transactional: bool = False, codec: int = 0,
    ) -> None:  # fmt: skip
        """Append one batch and commit it."""
        sequence = self.sequences.get(pid, 0) if pid >= 0 else -1
        batch = build_batch(
            [(key, value, (), self.clock.now_ms()) for key, value in rows],
            producer_id=pid,
            producer_epoch=epoch if pid >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
            codec=codec,
        )
        self.sequences[pid] = sequence + len(rows)
        self.append(batch)

    def end(self, pid: int, *, commit: bool, epoch: int = 0) -> None:
        """Append a transaction marker."""
        self.append(
            build_end_transaction_marker(
                producer_id=pid,
                producer_epoch=epoch,
                commit=commit,
                coordinator_epoch=0,
                timestamp_ms=self.clock.now_ms(),
            ),
            AppendOrigin.COORDINATOR,
        )

    def append(self, batch: bytearray, origin: AppendOrigin = AppendOrigin.CLIENT) -> None:
        self.log.writer.append_as_leader(
            memoryview(batch), leader_epoch=0, now_ms=self.clock.now_ms(), origin=origin
        )
        self.log.update_high_watermark(self.log.log_end_offset)

    def clean(
        self,
        *,
        dirty: int = 0,
        map_bytes: int = 1 << 16,
        check_done: Callable[[], None] = lambda: None,
        on_owner: OnOwner = in_this_thread,
    ) -> CleanerStats:
        """One run from `dirty` to the first uncleanable offset."""
        self.log.flusher.flush()
        chosen = measure(self.log, dirty, self.clock.now_ms())
        cleaner = make_cleaner(self.filesystem, map_bytes)
        return cleaner.clean(
            self.log,
            first_dirty_offset=chosen.first_dirty_offset,
            first_uncleanable_offset=chosen.first_uncleanable_offset,
            now_ms=self.clock.now_ms(),
            check_done=check_done,
            on_owner=on_owner,
        )

    def roll(self) -> None:
        self.log.writer.roll()


def batches(log: Log, filesystem: FakeFilesystem) -> list[tuple[BatchHeader, list[Record]]]:
    """All batches of a log, by reading it as a consumer would."""
    found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        part = log.reader.read(
            offset, max_bytes=1 << 20, end_offset=log.log_end_offset, min_one_batch=True
        )
        if part is None:
            break
        data = memoryview(part.file.read_at(part.length, part.position))
        for position, header in iterate_batches(data):
            if header.last_offset < offset:
                continue
            records = list(iterate_records(data[position:], max_size=1 << 20))
            found.append((header, records))
            offset = header.next_offset
    return found


def records(log: Log, filesystem: FakeFilesystem) -> list[Record]:
    """All data records of a log."""
    return [
        record
        for header, batch in batches(log, filesystem)
        if not header.is_control
        for record in batch
    ]


def contents(disk: Disk) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(r.offset, r.key, r.value) for r in records(disk.log, disk.filesystem)]


# -- keys ------------------------------------------------------------------------------------


def test_last_record_of_every_key_stays() -> None:
    """With its offset; those before it go."""
    disk = Disk()
    for index in range(30):
        disk.write((b"k%d" % (index % 3), b"v%d" % index))
    disk.roll()
    stats = disk.clean()
    assert contents(disk) == [(27, b"k0", b"v27"), (28, b"k1", b"v28"), (29, b"k2", b"v29")]
    assert stats.end_offset == 30
    assert stats.records_kept == 3
    assert disk.log.log_end_offset == 30


def test_active_segment_is_left_alone() -> None:
    """Its records count for nobody's compaction, either."""
    disk = Disk()
    disk.write((b"a", b"1"))
    disk.write((b"b", b"1"))
    disk.roll()
    disk.write((b"a", b"2"))
    disk.clean()
    assert contents(disk) == [(0, b"a", b"1"), (1, b"b", b"1"), (2, b"a", b"2")]


def test_records_of_one_batch_are_compacted_singly() -> None:
    """The batch keeps base offset, last offset and codec; the others' offsets stay."""
    for codec in range(5):
        disk = Disk()
        disk.write(
            (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"), (b"c", b"2"), codec=codec
        )
        disk.roll()
        disk.clean()
        assert contents(disk) == [(1, b"b", b"1"), (2, b"a", b"2"), (4, b"c", b"2")]
        [(header, _)] = batches(disk.log, disk.filesystem)
        assert (header.base_offset, header.last_offset, header.codec) == (0, 4, codec)
        assert header.records_count == 3


def test_untouched_batches_are_copied_as_they_are() -> None:
    """Byte for byte."""
    disk = Disk()
    disk.write((b"a", b"1"), (b"b", b"2"), codec=4)
    before = disk.filesystem.peek(f"{DIRECTORY}/00000000000000000000.log")
    disk.roll()
    disk.clean()
    assert disk.filesystem.peek(f"{DIRECTORY}/00000000000000000000.log") == before


def test_records_without_key_go() -> None:
    """A topic that was not compacted before may have some."""
    disk = Disk(config=TopicConfig(segment_bytes=400))
    disk.write((None, b"1"), (b"a", b"2"))
    disk.roll()
    stats = disk.clean()
    assert contents(disk) == [(1, b"a", b"2")]
    assert stats.records_without_key == 1


def test_last_batch_of_the_range_stays_empty() -> None:
    """Else the log would seem to end earlier than it does."""
    disk = Disk(config=TopicConfig(segment_bytes=400))
    disk.write((b"a", b"1"))
    disk.write((None, b"x"))
    disk.roll()
    disk.clean()
    [(_, first), (last, nothing)] = batches(disk.log, disk.filesystem)
    assert [record.key for record in first] == [b"a"]
    assert (last.base_offset, last.records_count, nothing) == (1, 0, [])
    assert disk.opened(disk.filesystem).log_end_offset == 2


def test_small_segments_become_one() -> None:
    """As many as fit `segment.bytes`."""
    disk = Disk()
    for index in range(60):
        disk.write((b"k%d" % (index % 2), b"v"))
    disk.roll()
    assert len(disk.log.segment_facts()) > 8
    disk.clean()
    disk.write((b"k0", b"v"))
    disk.roll()
    disk.clean(dirty=60)
    sizes = [segment.size for segment in disk.log.segment_facts()]
    assert len(sizes) < 8
    assert max(sizes) <= 400


def test_full_map_stops_in_time_and_goes_on_next_time() -> None:
    """Whatever the memory, every run moves on, and in the end nothing is left over."""
    disk = Disk()
    rng = Random(3)
    expected: dict[bytes, tuple[int, bytes]] = {}
    for offset in range(0, 120, 3):
        rows = [(b"k%d" % rng.randrange(20), b"v%d" % (offset + i)) for i in range(3)]
        disk.write(*rows)
        for delta, (key, value) in enumerate(rows):
            expected[key] = (offset + delta, value)
    disk.roll()
    dirty = runs = 0
    while dirty < 120:
        stats = disk.clean(dirty=dirty, map_bytes=24 * 8)
        assert stats.end_offset > dirty
        dirty = stats.end_offset
        runs += 1
    assert runs > 3
    got = {key: (offset, value) for offset, key, value in contents(disk)}
    assert got == expected


# -- tombstones ------------------------------------------------------------------------------


def test_tombstone_outlives_its_key_by_the_retention() -> None:
    """First run: the horizon is set. Later, before it: it stays. After it: it goes (KIP-534)."""
    disk = Disk()
    disk.write((b"a", b"1"), (b"b", b"1"))
    disk.write((b"a", None))
    disk.roll()
    disk.clean()
    assert contents(disk) == [(1, b"b", b"1"), (2, b"a", None)]
    horizons = [header.delete_horizon_ms for header, _ in batches(disk.log, disk.filesystem)]
    assert horizons == [None, NOW + 1_000]
    stamp = records(disk.log, disk.filesystem)[1].timestamp
    disk.clock.advance(999)
    disk.write((b"c", b"1"))
    disk.roll()
    disk.clean(dirty=3)
    assert contents(disk)[1] == (2, b"a", None)
    assert records(disk.log, disk.filesystem)[1].timestamp == stamp
    disk.clock.advance(1)
    disk.write((b"d", b"1"))
    disk.roll()
    disk.clean(dirty=4)
    assert [key for _, key, _ in contents(disk)] == [b"b", b"c", b"d"]


def test_newer_value_beats_the_tombstone_at_once() -> None:
    """It is just an older record then."""
    disk = Disk()
    disk.write((b"a", None))
    disk.write((b"a", b"2"))
    disk.roll()
    disk.clean()
    assert contents(disk) == [(1, b"a", b"2")]


# -- producers and transactions --------------------------------------------------------------


def test_last_sequence_of_a_producer_survives() -> None:
    """As an empty batch: a restart must not accept its retry as new (KIP-98)."""
    disk = Disk()
    disk.write((b"a", b"1"), pid=5)
    disk.write((b"a", b"2"), pid=5)
    disk.write((b"a", b"3"))
    disk.roll()
    disk.clean()
    kept = [
        (h.base_offset, h.producer_id, h.records_count)
        for h, _ in batches(disk.log, disk.filesystem)
    ]
    assert kept == [(1, 5, 0), (2, -1, 1)]
    recovered = disk.opened(disk.filesystem)
    entry = recovered.producer_state.last_entry(5)
    assert entry is not None
    assert (entry.last_sequence, entry.last_data_offset) == (1, 1)


def test_expired_producer_leaves_nothing() -> None:
    """Nobody remembers it, nothing needs to be kept."""
    disk = Disk()
    disk.write((b"a", b"1"), pid=5)
    disk.write((b"a", b"3"))
    disk.roll()
    for _ in range(2):
        disk.log.producer_state.remove_expired(NOW + 10**12)
    disk.clean()
    assert [h.base_offset for h, _ in batches(disk.log, disk.filesystem)] == [1]


def test_aborted_records_neither_stay_nor_count() -> None:
    """A value that was aborted does not drive out a committed one."""
    disk = Disk()
    disk.write((b"a", b"committed"))
    disk.write((b"a", b"aborted"), (b"x", b"aborted"), pid=5, transactional=True)
    disk.end(5, commit=False)
    disk.write((b"b", b"1"))
    disk.roll()
    disk.clean()
    assert contents(disk) == [(0, b"a", b"committed"), (4, b"b", b"1")]


def test_committed_records_count() -> None:
    """And their marker stays as long as they do."""
    disk = Disk()
    disk.write((b"a", b"old"))
    disk.write((b"a", b"new"), pid=5, transactional=True)
    disk.end(5, commit=True)
    disk.roll()
    for _ in range(3):
        disk.clean()
        disk.clock.advance(2_000)
    assert contents(disk) == [(1, b"a", b"new")]
    assert [h.is_control for h, _ in batches(disk.log, disk.filesystem)] == [False, True]


def test_open_transaction_is_uncleanable() -> None:
    """Its outcome is not known: nothing from the last stable offset's segment on is touched."""
    disk = Disk()
    disk.write((b"a", b"1"))
    disk.write((b"a", b"2"))
    disk.roll()
    disk.write((b"a", b"3"), pid=5, transactional=True)
    disk.roll()
    disk.write((b"a", b"4"))
    disk.roll()
    stats = disk.clean()
    assert stats.end_offset == 2
    assert [offset for offset, _, _ in contents(disk)] == [1, 2, 3]


def test_abort_marker_goes_after_its_data_and_the_retention() -> None:
    """Data first; then the marker gets a horizon; then it goes, with its index entry."""
    disk = Disk()
    index = TransactionIndex(f"{DIRECTORY}/00000000000000000000.txnindex", disk.filesystem)
    disk.write((b"x", b"aborted"), pid=5, transactional=True)
    disk.end(5, commit=False)
    disk.write((b"b", b"1"))
    disk.roll()
    for _ in range(2):
        disk.log.producer_state.remove_expired(NOW + 10**12)

    def markers() -> list[tuple[int, int | None]]:
        return [
            (h.base_offset, h.delete_horizon_ms)
            for h, _ in batches(disk.log, disk.filesystem)
            if h.is_control
        ]

    disk.clean()
    assert markers() == [(1, None)]
    assert disk.log.reader.aborted_transactions(0, 3) == [(5, 0)]
    disk.clean()
    assert markers() == [(1, NOW + 1_000)]
    assert index.entries() == []
    assert disk.log.reader.aborted_transactions(0, 3) == []
    disk.clock.advance(1_000)
    disk.clean()
    assert markers() == []
    assert contents(disk) == [(2, b"b", b"1")]


def test_marker_with_a_producers_last_epoch_stays() -> None:
    """It fences older epochs after a restart, also when all data of the producer is gone."""
    disk = Disk()
    disk.write((b"x", b"aborted"), pid=5, transactional=True)
    disk.end(5, commit=False, epoch=3)
    disk.write((b"b", b"1"))
    disk.roll()
    for _ in range(3):
        disk.clean()
        disk.clock.advance(2_000)
    kept = [(h.base_offset, h.producer_epoch) for h, _ in batches(disk.log, disk.filesystem)]
    assert (1, 3) in kept
    entry = disk.opened(disk.filesystem).producer_state.last_entry(5)
    assert entry is not None
    assert entry.epoch == 3


# -- what goes wrong -------------------------------------------------------------------------


def test_stopped_run_changes_nothing() -> None:
    """Neither the log nor the directory."""
    disk = Disk()
    for index in range(20):
        disk.write((b"a", b"%d" % index))
    disk.roll()
    before = contents(disk)
    names = sorted(entry.name for entry in disk.filesystem.list_directory(DIRECTORY))
    calls = 0

    def stop() -> None:
        nonlocal calls
        calls += 1
        if calls == 25:
            raise CleaningAbortedError("stop")

    with pytest.raises(CleaningAbortedError):
        disk.clean(check_done=stop)
    assert contents(disk) == before
    assert sorted(entry.name for entry in disk.filesystem.list_directory(DIRECTORY)) == names


@pytest.mark.parametrize("at", [9, 30, 65])
def test_damaged_batch_is_not_laundered(at: int) -> None:
    """Length, attributes or payload: compaction must not give it a valid sum."""
    disk = Disk()
    for index in range(8):
        disk.write((b"a", b"%d" % index))
    disk.roll()
    path = f"{DIRECTORY}/00000000000000000000.log"
    data = bytearray(disk.filesystem.peek(path))
    data[at] ^= 0x40
    disk.filesystem.poke(path, bytes(data))
    with pytest.raises(CorruptFileError):
        disk.clean()
    assert disk.filesystem.peek(path) == bytes(data)
    assert not disk.filesystem.exists(path + ".cleaned")


def test_full_disk_leaves_the_log_as_it_was() -> None:
    """And no remains."""
    disk = Disk()
    for index in range(20):
        disk.write((b"a", b"%d" % index))
    disk.roll()
    before = contents(disk)
    disk.filesystem.fail("write", path=".cleaned")
    with pytest.raises(DiskError):
        disk.clean()
    assert contents(disk) == before
    assert not any(e.name.endswith(".cleaned") for e in disk.filesystem.list_directory(DIRECTORY))


def test_crash_at_every_step_loses_nothing() -> None:
    """After every change of the disk, whatever survived: all keys have their last value.

    And a record that is there is one that was written, at its own offset.
    """
    points = 0
    for seed in swept(range(2), 2):
        disk = Disk()
        rng = Random(seed)
        written: dict[int, tuple[bytes | None, bytes | None]] = {}
        expected: dict[bytes, bytes] = {}
        for index in range(36):
            key, value = b"k%d" % rng.randrange(5), b"v%d" % index
            disk.write((key, value), pid=rng.choice([-1, 5]))
            written[index] = (key, value)
            expected[key] = value
        disk.roll()
        ticket = disk.log.flusher.begin_flush()
        assert ticket is not None
        ticket.run()
        disk.log.flusher.finish_flush(ticket)
        disk.filesystem.sync_directory("/d")

        def observe(
            _event: object,
            disk: Disk = disk,
            written: dict[int, tuple[bytes | None, bytes | None]] = written,
            expected: dict[bytes, bytes] = expected,
        ) -> None:
            nonlocal points
            for keep in (None, "all", Random(points), Random(points + 1)):
                points += 1
                found = disk.filesystem.after_crash(keep)
                log = disk.opened(found)
                assert log.log_end_offset == 36
                values: dict[bytes, bytes] = {}
                for record in records(log, found):
                    assert (record.key, record.value) == written[record.offset]
                    assert record.key is not None
                    assert record.value is not None
                    values[record.key] = record.value
                assert values == expected
                entry = log.producer_state.last_entry(5)
                assert entry is not None
                assert entry.last_sequence == disk.sequences[5] - 1

        disk.filesystem.observer = observe
        disk.clean()
        disk.filesystem.observer = None
    assert points > drawn(200, 2)


def test_the_owner_of_the_log_only_renames() -> None:
    """Everything that waits for the disk is done where the cleaner runs."""
    disk = Disk()
    for index in range(24):
        disk.write((b"k%d" % (index % 3), b"v%d" % index))
    disk.roll()
    kinds: set[str] = set()

    def on_owner(act: Callable[[], T]) -> T:
        before = len(disk.filesystem.events)
        disk.filesystem.fail("sync", times=1)
        disk.filesystem.fail("sync_directory", times=1)
        disk.filesystem.fail("read", times=1)
        disk.filesystem.fail("open", times=1)
        try:
            return act()
        finally:
            disk.filesystem.heal()
            kinds.update(event.kind for event in disk.filesystem.events[before:])

    disk.clean(on_owner=on_owner)
    assert kinds == {"rename"}
    assert [value for _, _, value in contents(disk)] == [b"v21", b"v22", b"v23"]


def test_a_log_that_leaves_while_its_replacement_waits_keeps_nothing_of_it() -> None:
    """What would be put in place at the next start is removed."""
    disk = Disk()
    for index in range(24):
        disk.write((b"k%d" % (index % 3), b"v%d" % index))
    disk.roll()
    before = contents(disk)

    def on_owner(_act: Callable[[], T]) -> T:
        raise CleaningAbortedError("stopped")

    with pytest.raises(CleaningAbortedError):
        disk.clean(on_owner=on_owner)
    assert contents(disk) == before
    names = [entry.name for entry in disk.filesystem.list_directory(DIRECTORY)]
    assert not [name for name in names if name.endswith((".swap", ".cleaned"))]


def test_power_cut_during_cleaning_is_survived_by_the_next_run() -> None:
    """Remains of the first run do not disturb the second."""
    for stop_after in range(3, 60, 4):
        disk = Disk()
        for index in range(24):
            disk.write((b"k%d" % (index % 3), b"v%d" % index))
        disk.roll()
        disk.filesystem.stop_after = disk.filesystem.changes + stop_after
        with suppress(PowerCut):
            disk.clean()
        disk.filesystem.crash("all")
        disk.log = disk.opened(disk.filesystem)
        disk.clean()
        assert [value for _, _, value in contents(disk)] == [b"v21", b"v22", b"v23"]


# -- against a model -------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("write"),
            st.lists(
                st.tuples(st.integers(0, 5), st.one_of(st.none(), st.integers(0, 99))),
                min_size=1,
                max_size=4,
            ),
            st.sampled_from([-1, -1, 1, 2]),
            st.sampled_from([0, 0, 1, 3, 4]),
        ),
        st.tuples(st.just("clean"), st.integers(0, 1_500)),
        st.just(("roll",)),
        st.just(("restart",)),
    ),
    max_size=40,
)


@examples(60)
@given(STEPS)
def test_any_history_keeps_the_last_values(steps: list[tuple[object, ...]]) -> None:
    """Writes, compactions, rolls and restarts in any order.

    Every record found is one that was written, where it was written. Every key reads its last
    value; a deleted key reads nothing or a tombstone. Sequences go on.
    """
    disk = Disk()
    written: dict[int, tuple[bytes, bytes | None, int]] = {}
    last: dict[bytes, bytes | None] = {}
    dirty = 0
    for step in steps:
        if step[0] == "write":
            rows = [
                (b"k%d" % key, None if value is None else b"v%d" % value)
                for key, value in step[1]  # type: ignore[attr-defined]  # by the strategy
            ]
            offset = disk.log.log_end_offset
            disk.write(*rows, pid=step[2], codec=step[3])  # type: ignore[arg-type]  # likewise
            for delta, (key, content) in enumerate(rows):
                written[offset + delta] = (key, content, disk.clock.now_ms())
                last[key] = content
        elif step[0] == "clean":
            disk.clock.advance(step[1])  # type: ignore[arg-type]  # likewise
            dirty = disk.clean(dirty=dirty).end_offset
        elif step[0] == "roll":
            disk.roll()
        else:
            disk.filesystem.crash("all")
            disk.log = disk.opened(disk.filesystem)
        assert disk.log.log_end_offset == len(written)
        seen: dict[bytes, bytes | None] = {}
        previous = -1
        for record in records(disk.log, disk.filesystem):
            assert record.offset > previous
            previous = record.offset
            assert (record.key, record.value, record.timestamp) == written[record.offset]
            assert record.key is not None
            seen[record.key] = record.value
        assert {k: v for k, v in seen.items() if v is not None} == {
            k: v for k, v in last.items() if v is not None
        }
        for pid, sequence in disk.sequences.items():
            entry = disk.log.producer_state.last_entry(pid)
            if pid >= 0:
                assert entry is not None
                assert entry.last_sequence == sequence - 1
