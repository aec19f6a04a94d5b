"""Markers written together are in the log, and in what is known of it, as one by one."""

import random

import pytest

from config.topic import TopicConfig
from protocol.records.control import ControlType, build_end_transaction_marker
from protocol.records.control import parse_end_transaction_marker as parse
from storage.errors import (
    DiskError,
    InvalidProducerEpochError,
    TransactionCoordinatorFencedError,
)
from storage.log.log import Log
from storage.producers.verification import TransactionTerms
from storage.types.append_origin import AppendOrigin
from storage.types.transaction_marker import TransactionMarker
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.producer_snapshots import encode_snapshot
from tests.unit.storage.log.log_model import (
    NOW_MS,
    append,
    make_batch,
    open_log,
    read_batches,
    small_segments,
)


def begin(log: Log, producer_id: int, epoch: int = 0, sequence: int = 0) -> None:
    """A batch in a transaction, which is open afterwards."""
    append(
        log,
        make_batch(
            b"v" * 60,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=True,
            timestamp_ms=NOW_MS,
        ),
    )


def one_by_one(log: Log, markers: list[TransactionMarker]) -> None:
    """The general way, by which any batch is appended."""
    for marker in markers:
        batch = build_end_transaction_marker(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            commit=marker.commit,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp_ms=NOW_MS,
        )
        log.writer.append_as_leader(
            memoryview(batch),
            leader_epoch=2,
            now_ms=NOW_MS,
            origin=AppendOrigin.COORDINATOR,
            terms=TransactionTerms(version=marker.transaction_version),
        )


def facts(log: Log) -> tuple[object, ...]:
    """All that could differ."""
    state = log.producer_state
    return (
        [bytes(batch) for batch in read_batches(log)],
        [s.base_offset for s in log.segment_facts()],
        [s.transaction_index.entries() for s in log.segment_facts()],
        encode_snapshot(state.active_producers()),
        (state.first_unstable_offset, state.first_undecided_offset, state.map_end_offset),
        (log.log_end_offset, log.high_watermark, log.last_stable_offset),
        log.leader_epochs.entries(),
    )


@pytest.mark.parametrize("timestamps", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("seed", range(5))
def test_together_as_one_by_one(seed: int, timestamps: str) -> None:
    """Commits and aborts, of open transactions and of none, over many segments."""
    config = small_segments(600, message_timestamp_type=timestamps)
    ours, theirs = FakeFilesystem(), FakeFilesystem()
    together, apart = open_log(ours, config), open_log(theirs, config)
    rng = random.Random(seed)
    epochs = dict.fromkeys(range(8), 0)
    for _ in range(30):
        producers = rng.sample(range(8), rng.randint(1, 6))
        for producer_id in producers:
            if rng.random() < 0.7:
                for log in (together, apart):
                    begin(log, producer_id, epochs[producer_id])
            epochs[producer_id] += 1
        markers = [
            TransactionMarker(p, epochs[p], rng.random() < 0.5, 4, 2)
            for p in rng.sample(producers, len(producers))
        ]
        for marker in markers:
            together.producer_state.check_marker(marker)
        first = together.markers.append(markers, leader_epoch=2, now_ms=NOW_MS)
        assert first == together.log_end_offset - len(markers)
        one_by_one(apart, markers)
        if rng.random() < 0.6:
            for log in (together, apart):
                log.update_high_watermark(log.log_end_offset)
    # Where segments end may differ: what is written together is not torn.
    assert len(together.segment_facts()) > 3
    mine, reference = facts(together), facts(apart)
    entries = [[entry for index in found[2] for entry in index] for found in (mine, reference)]  # type: ignore[attr-defined]  # facts differ in type; this one is a list of lists
    assert entries[0] == entries[1]
    assert entries[0]
    assert (mine[0], *mine[3:]) == (reference[0], *reference[3:])
    # And the same when the log is read back after a crash.
    assert facts(open_log(ours, config))[3:] == facts(open_log(theirs, config))[3:]


def test_one_write_for_all() -> None:
    filesystem = FakeFilesystem()
    log = open_log(filesystem, TopicConfig())
    for producer_id in range(5):
        begin(log, producer_id)
    filesystem.events.clear()
    markers = [TransactionMarker(p, 1, p % 2 == 0, 0, 2) for p in range(5)]
    assert log.markers.append(markers, leader_epoch=0, now_ms=NOW_MS) == 5
    writes = [event for event in filesystem.events if event.kind == "write"]
    # The log, and the index of those that were aborted.
    assert len(writes) == 2
    found = [parse(memoryview(batch)) for batch in read_batches(log)[5:]]
    assert [marker is not None and marker.control_type for marker in found] == [
        ControlType.COMMIT if p % 2 == 0 else ControlType.ABORT for p in range(5)
    ]
    log.update_high_watermark(log.log_end_offset)
    assert log.reader.aborted_transactions(0, 10) == [(1, 1), (3, 3)]


def test_more_than_a_segment_holds() -> None:
    """They are written one by one then, and segments are rolled in between."""
    log = open_log(FakeFilesystem(), small_segments(200))
    markers = [TransactionMarker(p, 0, True, 0, 0) for p in range(10)]
    log.markers.append(markers, leader_epoch=0, now_ms=NOW_MS)
    assert log.log_end_offset == 10
    assert len(log.segment_facts()) == 5


def test_a_marker_above_the_limit_of_messages() -> None:
    """It always fits: without it the transaction would never end."""
    log = open_log(FakeFilesystem(), TopicConfig(max_message_bytes=20))
    log.markers.append([TransactionMarker(1, 0, True, 0, 0)], leader_epoch=0, now_ms=NOW_MS)
    assert log.log_end_offset == 1


@pytest.mark.parametrize(
    ("marker", "error"),
    [
        (TransactionMarker(1, 4, True, 3, 0), InvalidProducerEpochError),
        (TransactionMarker(1, 5, True, 2, 0), TransactionCoordinatorFencedError),
        (TransactionMarker(1, 5, True, 3, 2), InvalidProducerEpochError),
        (TransactionMarker(1, 5, True, 3, 1), None),
        (TransactionMarker(1, 6, True, 3, 2), None),
        (TransactionMarker(2, 0, True, 0, 2), None),
    ],
)
def test_what_may_be_written(marker: TransactionMarker, error: type[Exception] | None) -> None:
    """By the epochs that the log has seen of producer 1: its own 5, its coordinator's 3."""
    log = open_log(FakeFilesystem())
    log.markers.append([TransactionMarker(1, 5, True, 3, 2)], leader_epoch=0, now_ms=NOW_MS)
    if error is None:
        log.producer_state.check_marker(marker)
    else:
        with pytest.raises(error):
            log.producer_state.check_marker(marker)


def test_a_disk_that_refuses() -> None:
    """Nothing has changed then, neither in the log nor in what is known of producers."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem)
    begin(log, 1)
    before = facts(log)
    filesystem.fail("write")
    with pytest.raises(DiskError):
        log.markers.append([TransactionMarker(1, 1, True, 0, 2)], leader_epoch=0, now_ms=NOW_MS)
    assert facts(log) == before
