"""Writes of the coordinator."""

import pytest

from broker.groups.offsets_log import OffsetsLog, code_for_clients
from protocol.error_codes import ErrorCode
from protocol.records.batch import read_header
from protocol.records.record import iterate_records
from storage.topic_partition import TopicPartition
from tests.fakes.clock import ManualClock
from tests.fakes.offsets_partition import FakeReplicaManager
from tests.fakes.timer import ManualTimer

RECORDS = [(b"k1", b"v1"), (b"k2", None)]


class Write:
    """One append and what it called."""

    def __init__(self) -> None:
        self.manager = FakeReplicaManager()
        clock = ManualClock()
        self.timer = ManualTimer(clock)
        self.log = OffsetsLog(
            TopicPartition("__consumer_offsets", 0),
            appender=self.manager,
            clock=clock,
            timer=self.timer,
            timeout_ms=5_000,
        )
        self.calls: list[object] = []

    def append(self) -> None:
        self.log.append(RECORDS, self.calls.append, lambda code: self.calls.append(code.name))


@pytest.fixture
def write() -> Write:
    return Write()


def test_records_are_one_batch(write: Write) -> None:
    """Keys and values as given, times of the broker."""
    write.append()
    (batch,) = write.manager.batches[0]
    assert read_header(memoryview(batch)).codec == 0
    records = list(iterate_records(memoryview(batch), max_size=1_000))
    assert [(r.key, r.value) for r in records] == RECORDS
    assert records[0].timestamp == 1_700_000_000_000


def test_committed_comes_before_the_answer(write: Write) -> None:
    write.append()
    write.append()
    assert write.calls == [0, "NONE", 2, "NONE"]
    assert write.timer.pending == 0


def test_failure_is_translated_for_the_client(write: Write) -> None:
    write.manager.fail_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    write.append()
    assert write.calls == ["NOT_COORDINATOR"]


def test_time_out_is_answered_once(write: Write) -> None:
    """And what is committed afterwards is still taken in."""
    write.manager.hold = True
    write.append()
    write.timer.advance(5_000)
    assert write.calls == ["COORDINATOR_NOT_AVAILABLE"]
    write.manager.commit_held()
    assert write.calls == ["COORDINATOR_NOT_AVAILABLE", 0]


def test_commit_in_time_stops_the_timer(write: Write) -> None:
    write.manager.hold = True
    write.append()
    write.manager.commit_held()
    assert write.calls == [0, "NONE"]
    assert write.timer.pending == 0


def test_other_errors_reach_the_client_as_they_are() -> None:
    assert code_for_clients(ErrorCode.CORRUPT_MESSAGE) is ErrorCode.CORRUPT_MESSAGE
    assert code_for_clients(ErrorCode.REQUEST_TIMED_OUT) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_closed_log_takes_nothing(write: Write) -> None:
    """Another shard speaks for the partition now: what this one thinks is old."""
    write.manager.hold = True
    write.append()
    write.log.close()
    write.append()
    assert write.calls == ["NOT_COORDINATOR"]
    write.manager.commit_held()
    assert write.calls == ["NOT_COORDINATOR", 0, "NONE"]
    assert write.manager.ends[0] == 2
