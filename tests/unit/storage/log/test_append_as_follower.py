"""A follower's log becomes its leader's, byte for byte, or stays as it was."""

import contextlib
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from protocol.records.batch import crc32c, read_header
from protocol.records.control import build_end_transaction_marker
from storage.errors import (
    CorruptBatchError,
    DiskError,
    FollowerOffsetError,
    InvalidRecordError,
    LogDirectoryFullError,
    ProducerError,
)
from storage.log.directory_pace import DirectoryPace
from storage.log.log import Log
from storage.types.append_origin import AppendOrigin
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import KEEP_ALL, FakeFilesystem
from tests.unit.storage.log.log_model import (
    NOW_MS,
    Opened,
    append,
    make_batch,
    open_log,
    read_batches,
    small_segments,
)


def fetched(*batches: bytes) -> memoryview:
    return memoryview(b"".join(batches))


def leader_with(*epochs: int) -> tuple[Log, list[bytes]]:
    """A leader with a batch of two records in each of these epochs."""
    leader = open_log(FakeFilesystem(), small_segments(9999))
    for epoch in epochs:
        append(leader, make_batch(b"a", b"b"), leader_epoch=epoch)
    return leader, read_batches(leader)


def follower() -> Log:
    return open_log(FakeFilesystem(), small_segments(9999))


def state_of(log: Log) -> tuple[object, ...]:
    return (
        read_batches(log, has_gaps=True),
        log.log_end_offset,
        log.leader_epochs.entries(),
        producers_of(log),
    )


def producers_of(log: Log) -> dict[int, tuple[object, ...]]:
    """Of each producer what a snapshot keeps: of its batches the last one."""
    return {
        entry.producer_id: (
            entry.epoch,
            entry.coordinator_epoch,
            entry.last_timestamp,
            entry.txn_first_offset,
            entry.batches[-1:],
        )
        for entry in log.producer_state.active_producers()
    }


def test_batches_stay_as_the_leader_gave_them() -> None:
    """Offsets, epochs and sums; the epochs' starts are learnt from them."""
    _, batches = leader_with(0, 0, 3, 5)
    log = follower()
    info = log.follower.append(fetched(*batches), fetch_offset=0, leader_epoch=5)
    assert info is not None
    assert (info.first_offset, info.last_offset) == (0, 7)
    assert read_batches(log) == batches
    assert log.leader_epochs.entries() == [(0, 0), (3, 4), (5, 6)]
    assert log.latest_leader_epoch == 5


def test_batches_of_one_epoch_are_one_write() -> None:
    """However many there are."""
    _, batches = leader_with(1, 1, 1, 1)
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(9999))
    log.follower.append(fetched(batches[0]), fetch_offset=0)
    filesystem.events.clear()
    log.follower.append(fetched(*batches[1:]), fetch_offset=2)
    assert [event.kind for event in filesystem.events] == ["write"]


@given(cut=st.integers(0, 400))
def test_cut_off_batch_is_left_for_the_next_fetch(cut: int) -> None:
    """A Fetch is limited in bytes: what is whole is appended."""
    _, batches = leader_with(0, 0, 0)
    data = b"".join(batches)[:cut]
    log = follower()
    info = log.follower.append(memoryview(data), fetch_offset=0)
    whole = [n for n in range(4) if sum(map(len, batches[:n])) <= len(data)][-1]
    assert (info is None) == (whole == 0)
    assert read_batches(log) == batches[:whole]


@given(at=st.integers(16, 10_000), bit=st.integers(0, 7), before=st.integers(0, 2))
def test_damaged_batch_is_never_appended(at: int, bit: int, before: int) -> None:
    """Nor what came with it: any bit behind the partition's own fields, in any batch."""
    _, batches = leader_with(0, 0, 0)
    bad = bytearray(batches[before])
    # Of the first 16 bytes only length and magic concern the batch as it was produced.
    bad[16 + (at - 16) % (len(bad) - 16)] ^= 1 << bit
    log = follower()
    was = state_of(log)
    with pytest.raises(CorruptBatchError):
        log.follower.append(fetched(*batches[:before], bytes(bad)), fetch_offset=0)
    assert state_of(log) == was


@given(data=st.binary(max_size=300))
def test_any_bytes_are_refused_or_left(data: bytes) -> None:
    """A leader may send anything."""
    log = follower()
    with_nothing = state_of(log)
    with contextlib.suppress(CorruptBatchError, InvalidRecordError, FollowerOffsetError):
        assert log.follower.append(memoryview(data), fetch_offset=0) is None
    assert state_of(log) == with_nothing


def test_nothing_is_appended_over_a_gap() -> None:
    """What was fetched from another offset than the log's end is late, or from another log."""
    _, batches = leader_with(0, 0, 0)
    log = follower()
    log.follower.append(fetched(batches[0]), fetch_offset=0)
    for offset in (0, 1, 4):
        with pytest.raises(FollowerOffsetError):
            log.follower.append(fetched(batches[2]), fetch_offset=offset)
    assert read_batches(log) == batches[:1]


def test_gaps_of_a_compacted_leader_are_taken_over() -> None:
    """Fetched from the log's end, the first batch there is may lie behind it, and others too."""
    _, batches = leader_with(0, 0, 0, 1, 1)
    log = follower()
    log.follower.append(fetched(batches[1], batches[4]), fetch_offset=0)
    assert read_batches(log, has_gaps=True) == [batches[1], batches[4]]
    assert log.log_end_offset == 10
    assert log.leader_epochs.entries() == [(0, 2), (1, 8)]


def test_batch_that_reaches_below_the_log_end_is_named() -> None:
    """Of an empty log its end may lie in a batch: the caller then starts the log there."""
    _, batches = leader_with(0, 0)
    log = follower()
    log.truncation.truncate_fully_and_start_at(1)
    with pytest.raises(FollowerOffsetError) as raised:
        log.follower.append(fetched(*batches), fetch_offset=1)
    assert (raised.value.first_offset, raised.value.last_offset) == (0, 1)
    assert raised.value.log_end_offset == 1
    log.truncation.truncate_fully_and_start_at(raised.value.first_offset)
    log.follower.append(fetched(*batches), fetch_offset=0)
    assert read_batches(log) == batches


@pytest.mark.parametrize("order", [(1, 0), (0, 2, 1)])
def test_offsets_that_go_back_within_an_answer_are_refused(order: tuple[int, ...]) -> None:
    """Nothing of it is appended."""
    _, batches = leader_with(0, 0, 0)
    log = follower()
    with pytest.raises(InvalidRecordError):
        log.follower.append(fetched(*(batches[n] for n in order)), fetch_offset=0)
    assert log.log_end_offset == 0


def test_epochs_neither_go_back_nor_beyond_the_leader_s() -> None:
    """Each would make the epochs' starts lie, by which logs are truncated."""
    _, batches = leader_with(2, 3)
    log = follower()
    with pytest.raises(InvalidRecordError, match="leader epoch 3"):
        log.follower.append(fetched(*batches), fetch_offset=0, leader_epoch=2)
    assert log.log_end_offset == 0
    log.leader_epochs.assign(4, 0)
    log.load_latest_epoch()
    with pytest.raises(InvalidRecordError, match="leader epoch 2"):
        log.follower.append(fetched(*batches), fetch_offset=0)


def test_offset_too_far_from_the_base_rolls() -> None:
    """An index entry holds 31 bits of distance; the gap lies within the new segment."""
    log = follower()
    append(log, make_batch(b"x"))
    far = make_batch(b"y")
    far[0:8] = (2**31).to_bytes(8, "big")
    far[12:16] = bytes(4)
    log.follower.append(far, fetch_offset=1)
    assert [segment.base_offset for segment in log.segment_facts()] == [0, 1]
    assert log.log_end_offset == 2**31 + 1


def test_full_disk_refuses_until_there_is_room() -> None:
    """And the batch is not half there."""
    _, batches = leader_with(0, 0)
    filesystem = FakeFilesystem()
    filesystem.tear_failed_writes = True
    log = open_log(filesystem, small_segments(9999))
    log.follower.append(fetched(batches[0]), fetch_offset=0)
    filesystem.fail("write", 28, path=".log")
    with pytest.raises(DiskError):
        log.follower.append(fetched(batches[1]), fetch_offset=2)
    log.refuse_appends(DiskError("no room", "/data", 28))
    with pytest.raises(LogDirectoryFullError):
        log.follower.append(fetched(batches[1]), fetch_offset=2)
    assert log.accept_appends()
    log.follower.append(fetched(batches[1]), fetch_offset=2)
    assert read_batches(log) == batches


def test_control_batch_that_compaction_emptied_is_kept() -> None:
    """It fences the producer's older epochs, and has no record to read."""
    log = follower()
    marker = build_end_transaction_marker(
        producer_id=9, producer_epoch=3, commit=True, coordinator_epoch=0, timestamp_ms=NOW_MS
    )
    emptied = bytearray(marker[:61])
    emptied[8:12] = (61 - 12).to_bytes(4, "big")
    emptied[57:61] = bytes(4)
    emptied[17:21] = crc32c(memoryview(emptied)[21:]).to_bytes(4, "big")
    log.follower.append(memoryview(emptied), fetch_offset=0)
    entry = log.producer_state.last_entry(9)
    assert entry is not None
    assert entry.epoch == 3


class ReplicaMachine(RuleBasedStateMachine):
    """A leader that writes, rolls, changes epochs; a follower that fetches, is cut, restarts.

    Whatever happens the follower's log is the leader's, as far as it goes; and so is everything
    that follows from it: epochs, producers, aborted transactions.
    """

    def __init__(self) -> None:
        super().__init__()
        self.random = Random(1)
        self.leader = open_log(FakeFilesystem(), small_segments(700))
        self.filesystem = FakeFilesystem()
        self.filesystem.mkdir("/data")
        self.filesystem.sync_directory("/")
        self.clock = ManualClock(NOW_MS)
        self.epoch = 0
        self.sequences = dict.fromkeys((1, 2, 3), 0)
        self.behind = False
        self._open(Opened())

    def _open(self, opened: Opened) -> None:
        self.log = open_log(self.filesystem, small_segments(500), clock=self.clock, opened=opened)
        self._set_pace()

    def _set_pace(self) -> None:
        if self.behind:
            clock = self.clock
            self.log.disk_work.leave_to(DirectoryPace(clock.monotonic_ms, clock.monotonic_s))

    @rule(producer=st.sampled_from([0, 1, 2, 3]), count=st.integers(1, 4))
    def produce(self, producer: int, count: int) -> None:
        values = [b"v" * self.random.randint(0, 60) for _ in range(count)]
        if producer == 0:
            append(self.leader, make_batch(*values), leader_epoch=self.epoch)
            return
        batch = make_batch(
            *values,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=self.sequences[producer],
            transactional=producer > 1,
        )
        append(self.leader, batch, leader_epoch=self.epoch)
        self.sequences[producer] += count

    @rule(producer=st.sampled_from([2, 3]), commit=st.booleans())
    def end_transaction(self, producer: int, commit: bool) -> None:
        marker = build_end_transaction_marker(
            producer_id=producer,
            producer_epoch=0,
            commit=commit,
            coordinator_epoch=0,
            timestamp_ms=NOW_MS,
        )
        try:
            append(
                self.leader,
                memoryview(marker),
                leader_epoch=self.epoch,
                origin=AppendOrigin.COORDINATOR,
            )
        except ProducerError:
            return

    @rule()
    def change_epoch(self) -> None:
        self.epoch += 2

    @rule(max_bytes=st.integers(1, 2000), extra=st.integers(0, 80))
    def fetch(self, max_bytes: int, extra: int) -> None:
        """As a leader answers: whole batches, and perhaps a part of the next one."""
        offset = self.log.log_end_offset
        if offset >= self.leader.log_end_offset:
            return
        found = self.leader.reader.read(
            offset,
            max_bytes=max_bytes,
            end_offset=self.leader.log_end_offset,
            min_one_batch=True,
        )
        assert found is not None
        length = min(found.length + extra, found.file.size() - found.position)
        data = memoryview(found.file.read_at(length, found.position))
        self.log.follower.append(data, fetch_offset=offset, leader_epoch=self.epoch)
        while (ticket := self.log.disk_work.begin()) is not None:
            ticket.run()
            self.log.disk_work.finish(ticket)
        self.log.update_high_watermark(self.log.log_end_offset)

    @precondition(lambda self: self.log.log_end_offset > 0)
    @rule(part=st.floats(0, 1))
    def truncate(self, part: float) -> None:
        self.log.truncation.truncate_to(int(part * self.log.log_end_offset))

    @rule(behind=st.booleans())
    def restart(self, behind: bool) -> None:
        """After a clean stop, by a thread or in place from then on."""
        self.behind = behind
        self.log.close()
        self._open(Opened(recovery_point=self.log.recovery_point, clean_shutdown=True))

    @rule()
    def kill(self) -> None:
        """The process dies; what was written is in the page cache."""
        recovery_point = self.log.recovery_point
        self.filesystem.crash(KEEP_ALL)
        self._open(Opened(recovery_point=recovery_point))

    @invariant()
    def is_the_leaders_log(self) -> None:
        end = self.log.log_end_offset
        expected = [
            batch
            for batch in read_batches(self.leader)
            if read_header(memoryview(batch)).base_offset < end
        ]
        assert read_batches(self.log) == expected
        assert self.log.leader_epochs.entries() == [
            entry for entry in self.leader.leader_epochs.entries() if entry[1] < end
        ]
        if end == self.leader.log_end_offset:
            assert producers_of(self.log) == producers_of(self.leader)
            self.log.update_high_watermark(end)
            assert self.log.last_stable_offset == self.leader.last_stable_offset
            assert self.log.reader.aborted_transactions(
                0, end
            ) == self.leader.reader.aborted_transactions(0, end)


TestReplicaMachine = ReplicaMachine.TestCase
