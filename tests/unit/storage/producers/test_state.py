"""Idempotence and transactions of one partition."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.records.batch import BatchHeader
from storage.errors import (
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    ProducerError,
    TransactionCoordinatorFencedError,
)
from storage.producers.entry import SEQUENCE_MAX, CompletedTxn, DuplicateInfo
from storage.producers.snapshot import offset_of_snapshot
from storage.producers.state import ABORT_MARKER, COMMIT_MARKER, ProducerStateManager
from storage.producers.verification import TransactionTerms
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition
from tests.effort import examples
from tests.fakes.filesystem import FakeFilesystem

TP = TopicPartition("events", 0)
PID = 7


@pytest.fixture
def filesystem() -> FakeFilesystem:
    fake = FakeFilesystem()
    fake.mkdir("/d")
    return fake


@pytest.fixture
def state(filesystem: FakeFilesystem) -> ProducerStateManager:
    return ProducerStateManager(TP, "/d", filesystem)


def snapshots_in(filesystem: FakeFilesystem) -> list[int]:
    """Offsets of the snapshot files there are."""
    found = (offset_of_snapshot(entry.name) for entry in filesystem.list_directory("/d"))
    return sorted(offset for offset in found if offset is not None)


def write(
    state: ProducerStateManager,
    base_sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    pid: int = PID,
    offset: int | None = None,
    timestamp: int = 1_000,
    transactional: bool = False,
) -> DuplicateInfo | None:
    """Check and, unless it is a duplicate, append a batch at the end, as a log does."""
    last_sequence = (base_sequence + count - 1) % (SEQUENCE_MAX + 1)
    first = state.map_end_offset if offset is None else offset
    duplicate = state.check(pid, epoch, base_sequence, last_sequence, transactional)
    if duplicate is None:
        state.append(
            pid,
            epoch,
            base_sequence,
            last_sequence,
            first,
            first + count - 1,
            timestamp,
            transactional,
        )
    return duplicate


def end_transaction(
    state: ProducerStateManager, *, pid: int = PID, commit: bool = True, epoch: int = 0
) -> int | None:
    """Append a marker; returns the last stable offset if a transaction ended."""
    state.check(pid, epoch, -1, -1, True, True, AppendOrigin.COORDINATOR, 0)
    kind = COMMIT_MARKER if commit else ABORT_MARKER
    completed = state.append_control(pid, epoch, kind, 0, state.map_end_offset, 2_000)
    return None if completed is None else state.complete_transaction(completed)


# -- sequences -------------------------------------------------------------------------------


def test_batches_in_sequence_are_accepted(state: ProducerStateManager) -> None:
    """Each batch begins where the one before ended."""
    assert write(state, 0, 3) is None
    assert write(state, 3, 2) is None
    assert write(state, 5) is None
    assert state.map_end_offset == 6


def test_unknown_producer_may_start_anywhere(state: ProducerStateManager) -> None:
    """What it wrote before may have been deleted by retention."""
    assert write(state, 41) is None
    with pytest.raises(OutOfOrderSequenceError):
        write(state, 41 + 2)


@pytest.mark.parametrize("missing", [1, 2, 1000])
def test_gap_is_refused(state: ProducerStateManager, missing: int) -> None:
    """A batch before this one got lost."""
    write(state, 0, 5)
    with pytest.raises(OutOfOrderSequenceError, match="sent sequence"):
        write(state, 5 + missing)


def test_retry_of_the_last_five_gets_its_first_answer(state: ProducerStateManager) -> None:
    """A retry of a remembered batch is recognised by its exact range of sequences."""
    for index in range(6):
        write(state, index * 2, 2, timestamp=1_000 + index)
    for index in range(1, 6):
        assert write(state, index * 2, 2) == DuplicateInfo(index * 2, index * 2 + 1, 1_000 + index)


def test_older_retry_is_out_of_order(state: ProducerStateManager) -> None:
    """The sixth last batch is forgotten."""
    for index in range(6):
        write(state, index)
    with pytest.raises(OutOfOrderSequenceError):
        write(state, 0)


def test_part_of_a_remembered_batch_is_no_retry(state: ProducerStateManager) -> None:
    """Same first sequence, other last one: not the same batch."""
    write(state, 0, 4)
    with pytest.raises(OutOfOrderSequenceError):
        write(state, 0, 3)


def test_sequence_wraps_to_zero(state: ProducerStateManager) -> None:
    """After 2**31 - 1 comes 0, also within a batch."""
    write(state, SEQUENCE_MAX - 1, 2)
    assert write(state, 0) is None
    other = 8
    write(state, SEQUENCE_MAX - 1, 4, pid=other)
    assert write(state, 2, pid=other) is None
    assert write(state, SEQUENCE_MAX - 1, 4, pid=other) == DuplicateInfo(3, 6, 1_000)


def test_new_epoch_starts_at_zero(state: ProducerStateManager) -> None:
    """A bumped epoch resets sequences; any other first sequence is refused."""
    write(state, 0, 5)
    with pytest.raises(OutOfOrderSequenceError, match="starts epoch 1"):
        write(state, 5, epoch=1)
    assert write(state, 0, epoch=1) is None
    assert write(state, 1, epoch=1) is None


def test_old_epoch_is_fenced(state: ProducerStateManager) -> None:
    """A newer producer has taken over, even for what would be a retry."""
    write(state, 0, epoch=3)
    with pytest.raises(InvalidProducerEpochError):
        write(state, 0, epoch=2)


def test_epochs_batches_are_not_retries_of_the_next(state: ProducerStateManager) -> None:
    """The five batches belong to one epoch."""
    write(state, 0, epoch=0)
    write(state, 0, epoch=1)
    entry = state.last_entry(PID)
    assert entry is not None
    assert len(entry.batches) == 1


def test_coordinator_has_no_sequences(state: ProducerStateManager) -> None:
    """Offset commits in a transaction carry -1; only their epoch is checked."""
    write(state, 0, epoch=4)
    origin = AppendOrigin.COORDINATOR
    assert state.check(PID, 4, -1, -1, origin=origin) is None
    with pytest.raises(InvalidProducerEpochError):
        state.check(PID, 3, -1, -1, origin=origin)


def test_replication_is_not_checked(state: ProducerStateManager) -> None:
    """The leader has checked."""
    write(state, 0, 5, epoch=4)
    assert state.check(PID, 2, 77, 78, origin=AppendOrigin.REPLICATION) is None


def test_check_changes_nothing(state: ProducerStateManager) -> None:
    """A write that fails after the check must be possible again."""
    write(state, 0)
    for _ in range(2):
        assert state.check(PID, 0, 1, 1) is None
        assert state.check(PID, 1, 0, 0) is None
    assert state.map_end_offset == 1


# -- transactions ----------------------------------------------------------------------------


def test_open_transaction_holds_the_last_stable_offset(state: ProducerStateManager) -> None:
    """Until its marker is below the high watermark."""
    write(state, 0, pid=1)
    assert state.first_unstable_offset is None
    write(state, 0, transactional=True)
    write(state, 1, transactional=True)
    assert state.first_unstable_offset == 1
    assert end_transaction(state) == 4
    assert state.first_unstable_offset == 1
    assert state.first_undecided_offset is None
    state.on_high_watermark_updated(3)
    assert state.first_unstable_offset == 1
    state.on_high_watermark_updated(4)
    assert state.first_unstable_offset is None


def test_oldest_transaction_counts(state: ProducerStateManager) -> None:
    """LSO goes from one open transaction to the next; the index gets that of the marker."""
    write(state, 0, pid=1, transactional=True)
    write(state, 0, pid=2, transactional=True)
    assert state.first_unstable_offset == 0
    assert end_transaction(state, pid=1, commit=False) == 1
    state.on_high_watermark_updated(3)
    assert state.first_unstable_offset == 1
    assert end_transaction(state, pid=2) == 4
    state.on_high_watermark_updated(4)
    assert state.first_unstable_offset is None


def test_later_transaction_may_end_first(state: ProducerStateManager) -> None:
    """Its marker's last stable offset is still that of the older one."""
    write(state, 0, pid=1, transactional=True)
    write(state, 0, pid=2, transactional=True)
    assert end_transaction(state, pid=2) == 0
    state.on_high_watermark_updated(3)
    assert state.first_unstable_offset == 0


def test_plain_batch_within_a_transaction_is_refused(state: ProducerStateManager) -> None:
    """A producer cannot write outside its own open transaction."""
    write(state, 0, transactional=True)
    with pytest.raises(InvalidTransactionStateError):
        write(state, 1)


def test_marker_without_transaction_moves_only_the_epoch(state: ProducerStateManager) -> None:
    """It fences the old epoch and completes nothing."""
    assert end_transaction(state, epoch=5) is None
    with pytest.raises(InvalidProducerEpochError):
        write(state, 0, epoch=4)
    with pytest.raises(OutOfOrderSequenceError):
        write(state, 1, epoch=5)
    assert write(state, 0, epoch=5) is None


def test_marker_keeps_sequences_of_its_epoch(state: ProducerStateManager) -> None:
    """The next transaction goes on counting."""
    write(state, 0, 3, transactional=True)
    end_transaction(state)
    assert write(state, 3, transactional=True) is None
    assert state.first_undecided_offset == 4


def test_marker_of_an_old_coordinator_is_fenced(state: ProducerStateManager) -> None:
    """A coordinator that was replaced must not end transactions."""
    write(state, 0, transactional=True)
    completed = state.append_control(PID, 0, COMMIT_MARKER, 9, 1, 0)
    assert completed is not None
    state.complete_transaction(completed)
    origin = AppendOrigin.COORDINATOR
    with pytest.raises(TransactionCoordinatorFencedError):
        state.check(PID, 0, -1, -1, True, True, origin, 8)
    assert state.check(PID, 0, -1, -1, True, True, origin, 9) is None


def test_second_version_marker_needs_a_bumped_epoch(state: ProducerStateManager) -> None:
    """With KIP-890 an equal epoch is a late marker."""
    write(state, 0, epoch=3, transactional=True)
    origin = AppendOrigin.COORDINATOR
    with pytest.raises(InvalidProducerEpochError):
        state.check(PID, 3, -1, -1, True, True, origin, 0, TransactionTerms(version=2))
    assert state.check(PID, 4, -1, -1, True, True, origin, 0, TransactionTerms(version=2)) is None
    assert state.check(PID, 3, -1, -1, True, True, origin, 0, TransactionTerms(version=1)) is None


def test_other_control_records_change_nothing(state: ProducerStateManager) -> None:
    """Leader changes and the like are not of a producer."""
    write(state, 0, transactional=True)
    assert state.append_control(PID, 0, 2, 0, 1, 0) is None
    assert state.first_undecided_offset == 0
    assert state.map_end_offset == 2


# -- expiry ----------------------------------------------------------------------------------


def test_idle_producers_expire(filesystem: FakeFilesystem) -> None:
    """After `producer.id.expiration.ms`, by the second look; not in an open transaction."""
    state = ProducerStateManager(TP, "/d", filesystem, producer_id_expiration_ms=500)
    write(state, 0, pid=1, timestamp=1_000)
    write(state, 0, pid=2, timestamp=1_200)
    write(state, 0, pid=3, timestamp=1_000, transactional=True)
    assert state.remove_expired(1_499) == 0
    assert state.remove_expired(1_499) == 0
    assert state.remove_expired(1_500) == 0
    assert state.remove_expired(1_500) == 1
    assert {entry.producer_id for entry in state.active_producers()} == {2, 3}


@pytest.mark.parametrize(
    "timestamp", [1_000, 1_500_000], ids=["old records", "a clock that is set"]
)
def test_a_producer_that_writes_is_not_forgotten_whatever_the_times_say(
    filesystem: FakeFilesystem, timestamp: int
) -> None:
    """Its last batch, sent again as the answer was lost, must be known as one that is there."""
    state = ProducerStateManager(TP, "/d", filesystem, producer_id_expiration_ms=500)
    for number in range(3):
        write(state, number, timestamp=timestamp)
        assert state.remove_expired(10**12) == 0
        assert state.last_entry(PID) is not None
    assert state.remove_expired(10**12) == 1


# -- snapshots -------------------------------------------------------------------------------


def test_snapshot_brings_back_batches_and_transaction(
    state: ProducerStateManager, filesystem: FakeFilesystem
) -> None:
    """Sequences go on after a restart; what was written last is known when it is sent again."""
    write(state, 0, 3)
    write(state, 3, 2, transactional=True)
    assert state.take_snapshot()
    reloaded = ProducerStateManager(TP, "/d", filesystem)
    reloaded.truncate_and_reload(0, 5, 2_000)
    assert reloaded.map_end_offset == 5
    assert reloaded.first_unstable_offset == 3
    assert reloaded.check(PID, 0, 3, 4, True) == DuplicateInfo(3, 4, 1_000)
    assert reloaded.check(PID, 0, 0, 2, False) == DuplicateInfo(0, 2, 1_000)
    assert write(reloaded, 5, transactional=True) is None
    with pytest.raises(OutOfOrderSequenceError):
        reloaded.check(PID, 0, 1, 2, True)


def test_snapshot_is_written_once_per_offset(
    state: ProducerStateManager, filesystem: FakeFilesystem
) -> None:
    """Nothing new, nothing written."""
    assert not state.take_snapshot(0)
    write(state, 0)
    assert state.take_snapshot(1)
    assert not state.take_snapshot(1)
    assert filesystem.exists("/d/00000000000000000001.snapshot")
    assert state.snapshots.latest_offset == 1


def test_damaged_snapshot_falls_back_to_the_one_before(
    state: ProducerStateManager, filesystem: FakeFilesystem
) -> None:
    """The damaged file is deleted; the caller replays from the older one."""
    write(state, 0)
    state.take_snapshot()
    write(state, 1)
    state.take_snapshot()
    damaged = bytearray(filesystem.peek("/d/00000000000000000002.snapshot"))
    damaged[20] ^= 1
    filesystem.poke("/d/00000000000000000002.snapshot", bytes(damaged))
    reloaded = ProducerStateManager(TP, "/d", filesystem)
    reloaded.truncate_and_reload(0, 2, 2_000)
    assert reloaded.map_end_offset == 1
    assert reloaded.check(PID, 0, 1, 1) is None
    assert not filesystem.exists("/d/00000000000000000002.snapshot")


def test_snapshots_outside_the_log_are_deleted(
    state: ProducerStateManager, filesystem: FakeFilesystem
) -> None:
    """Those at or below the log start, and those above the log end."""
    for index in range(4):
        write(state, index)
        state.take_snapshot()
    state.truncate_and_reload(1, 3, 2_000)
    assert snapshots_in(filesystem) == [2, 3]
    assert state.map_end_offset == 3
    entry = state.last_entry(PID)
    assert entry is not None
    assert entry.last_sequence == 2


def test_reload_at_the_same_end_keeps_all_five(state: ProducerStateManager) -> None:
    """Nothing was truncated: memory is better than a snapshot."""
    for index in range(5):
        write(state, index)
    state.take_snapshot()
    state.truncate_and_reload(0, 5, 2_000)
    assert state.check(PID, 0, 0, 0) == DuplicateInfo(0, 0, 1_000)


def test_expired_producers_are_not_loaded(filesystem: FakeFilesystem) -> None:
    """Idle ones stay away after a restart."""
    state = ProducerStateManager(TP, "/d", filesystem, producer_id_expiration_ms=500)
    write(state, 0, timestamp=1_000)
    state.take_snapshot()
    reloaded = ProducerStateManager(TP, "/d", filesystem, producer_id_expiration_ms=500)
    reloaded.truncate_and_reload(0, 1, 1_500)
    assert reloaded.is_empty


def test_truncate_fully_forgets_everything(
    state: ProducerStateManager, filesystem: FakeFilesystem
) -> None:
    """The log starts over at an offset."""
    write(state, 0, transactional=True)
    state.take_snapshot()
    state.truncate_fully_and_start_at(100)
    assert state.is_empty
    assert state.first_unstable_offset is None
    assert state.map_end_offset == 100
    assert filesystem.list_directory("/d") == []


def test_listing_waits_until_needed(filesystem: FakeFilesystem) -> None:
    """Opening thousands of partitions must not list their directories twice."""
    filesystem.fail("list", times=100)
    state = ProducerStateManager(TP, "/d", filesystem, snapshot_offsets=[])
    state.truncate_and_reload(0, 0, 0)
    assert state.snapshots.latest_offset is None


def test_last_records_names_what_the_cleaner_keeps(state: ProducerStateManager) -> None:
    """Last data offset, or -1 when only a marker is known."""
    write(state, 0, 3, pid=1)
    end_transaction(state, pid=2, epoch=6)
    assert state.last_records() == {1: (2, 0), 2: (-1, 6)}


# -- replay ----------------------------------------------------------------------------------


def header(
    base_offset: int,
    *,
    count: int = 1,
    pid: int = PID,
    epoch: int = 0,
    sequence: int = -1,
    attributes: int = 0,
) -> BatchHeader:
    return BatchHeader(
        base_offset, 49, 0, 2, 0, attributes, count - 1, 0, 1_000, pid, epoch, sequence, count
    )


def test_replay_rebuilds_what_appending_built(state: ProducerStateManager) -> None:
    """Data, marker, plain batches: state follows from the log alone."""
    assert state.replay(header(0, pid=-1, epoch=-1)) is None
    assert state.replay(header(1, count=2, sequence=0, attributes=0x10)) is None
    assert state.first_unstable_offset == 1
    completed = state.replay(header(3, attributes=0x30), (ABORT_MARKER, 4))
    assert completed == CompletedTxn(PID, 1, 3, is_aborted=True)
    assert state.complete_transaction(completed) == 4
    assert state.map_end_offset == 4
    assert state.check(PID, 0, 2, 2) is None


def test_emptied_marker_only_fences(state: ProducerStateManager) -> None:
    """Compaction has removed its transaction; the epoch it carried is still the producer's."""
    emptied = header(0, epoch=4, attributes=0x30)._replace(records_count=0)
    assert state.replay(emptied, None) is None
    assert state.first_undecided_offset is None
    with pytest.raises(InvalidProducerEpochError):
        write(state, 0, epoch=3)
    write(state, 0, epoch=4, transactional=True)
    assert state.replay(emptied._replace(base_offset=2), None) is None
    assert state.first_undecided_offset == 1


# -- against a model -------------------------------------------------------------------------


class Model:
    """Kafka's rules for one client without transactions, said as plainly as possible."""

    def __init__(self) -> None:
        self.epoch: int | None = None
        self.batches: deque[tuple[int, int, int]] = deque(maxlen=5)

    def write(self, epoch: int, first: int, count: int, offset: int) -> str:
        space = SEQUENCE_MAX + 1
        last = (first + count - 1) % space
        if self.epoch is not None and epoch == self.epoch:
            for known_first, known_last, known_offset in self.batches:
                if (known_first, known_last) == (first, last):
                    return f"duplicate {known_offset}"
            if self.batches and first != (self.batches[-1][1] + 1) % space:
                return "out of order"
        elif self.epoch is not None and epoch < self.epoch:
            return "fenced"
        elif self.epoch is not None and first != 0:
            return "out of order"
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch
        self.batches.append((first, last, offset))
        return "written"


@examples(150)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.one_of(st.just(None), st.integers(0, 12), st.just(SEQUENCE_MAX)),
            st.integers(1, 3),
        ),
        max_size=40,
    )
)
def test_sequences_follow_the_model(steps: list[tuple[int, int | None, int]]) -> None:
    """Any mix of retries, gaps, bumps and wraps is judged as Kafka judges it."""
    state = ProducerStateManager(TP, "/d", FakeFilesystem(), snapshot_offsets=[])
    model = Model()
    for epoch, wanted, count in steps:
        first = wanted
        if first is None:  # the next one in order
            first = (model.batches[-1][1] + 1) % (SEQUENCE_MAX + 1) if model.batches else 0
        offset = state.map_end_offset
        expected = model.write(epoch, first, count, offset)
        try:
            duplicate = write(state, first, count, epoch=epoch)
        except InvalidProducerEpochError:
            got = "fenced"
        except OutOfOrderSequenceError:
            got = "out of order"
        else:
            got = "written" if duplicate is None else f"duplicate {duplicate.first_offset}"
        assert got == expected


@examples(100)
@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from(["data", "commit", "abort", "hw"])),
        max_size=40,
    )
)
def test_unstable_offset_follows_the_model(steps: list[tuple[int, str]]) -> None:
    """The first unstable offset is the least start of all open and unreplicated transactions."""
    state = ProducerStateManager(TP, "/d", FakeFilesystem(), snapshot_offsets=[])
    sequences = dict.fromkeys(range(4), 0)
    open_since: dict[int, int] = {}
    unreplicated: list[tuple[int, int]] = []
    for pid, act in steps:
        offset = state.map_end_offset
        if act == "data":
            write(state, sequences[pid], pid=pid, transactional=True)
            sequences[pid] += 1
            open_since.setdefault(pid, offset)
        elif act == "hw":
            high_watermark = max(offset - pid + 1, 0)
            state.on_high_watermark_updated(high_watermark)
            unreplicated = [txn for txn in unreplicated if txn[1] >= high_watermark]
        else:
            stable = end_transaction(state, pid=pid, commit=act == "commit")
            first = open_since.pop(pid, None)
            if first is not None:
                unreplicated.append((first, offset))
                assert stable == min(open_since.values(), default=offset + 1)
        starts = [*open_since.values(), *(first for first, _ in unreplicated)]
        assert state.first_unstable_offset == min(starts, default=None)
        assert state.first_undecided_offset == min(open_since.values(), default=None)


def test_errors_are_producer_errors() -> None:
    """The broker turns them into codes in one place."""
    for error in (
        OutOfOrderSequenceError,
        InvalidProducerEpochError,
        InvalidTransactionStateError,
        TransactionCoordinatorFencedError,
    ):
        assert issubclass(error, ProducerError)


@pytest.mark.parametrize("commit", [False, True])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_sequence_of_an_ended_transaction_is_no_retry(
    state: ProducerStateManager, commit: bool, is_open: bool
) -> None:
    """Its producer has waited for all answers before the end, or has given the batch up."""
    assert write(state, 0, transactional=True) is None
    assert write(state, 1, transactional=True) is None
    assert write(state, 1, transactional=True) == DuplicateInfo(1, 1, 1_000)
    end_transaction(state, commit=commit)
    if is_open:
        assert write(state, 2, transactional=True) is None
        assert write(state, 2, transactional=True) == DuplicateInfo(3, 3, 1_000)
    end = state.map_end_offset
    for sequence in (0, 1):
        with pytest.raises(OutOfOrderSequenceError, match="again, after the transaction had ended"):
            write(state, sequence, transactional=True)
    assert state.map_end_offset == end
    assert write(state, 3 if is_open else 2, transactional=True) is None
