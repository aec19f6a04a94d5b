"""Writes of the coordinator."""

from collections.abc import Callable
from typing import Any

import pytest

from broker.groups.offsets_log import (
    GATHERED_BYTES_MAX,
    GATHERED_RECORDS_MAX,
    OffsetsLog,
    code_for_clients,
)
from protocol.error_codes import ErrorCode
from protocol.records.batch import read_header
from protocol.records.record import iterate_records
from storage.types.topic_partition import TopicPartition
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
        self.calls: list[Any] = []

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


# -- gathered writes --


class Gathering(Write):
    """A log that gathers, and the loop's turns."""

    def __init__(self) -> None:
        super().__init__()
        self.due: list[Callable[[], None]] = []
        self.log = OffsetsLog(
            TopicPartition("__consumer_offsets", 0),
            appender=self.manager,
            clock=self.timer.clock,
            timer=self.timer,
            timeout_ms=5_000,
            at_turn_end=self.due.append,
        )

    def gather(self, name: str, count: int = 1, size: int = 0) -> None:
        records = [(f"{name}{n}".encode(), b"v" * size) for n in range(count)]
        self.log.gather(
            records,
            lambda offset: self.calls.append((name, offset)),
            lambda code: self.calls.append((name, code.name)),
        )

    def end_turn(self) -> None:
        due, self.due[:] = list(self.due), []
        for callback in due:
            callback()

    @property
    def batches(self) -> list[list[str]]:
        """The keys of each batch."""
        return [
            [(r.key or b"").decode() for r in iterate_records(memoryview(b), max_size=1 << 20)]
            for b in self.manager.batches[0]
        ]


@pytest.fixture
def gathering() -> Gathering:
    return Gathering()


def test_writes_of_a_turn_are_one_batch(gathering: Gathering) -> None:
    gathering.gather("a")
    gathering.gather("b", 2)
    gathering.gather("c")
    assert gathering.batches == []
    assert gathering.calls == []
    assert len(gathering.due) == 1
    gathering.end_turn()
    assert gathering.batches == [["a0", "b0", "b1", "c0"]]
    committed = [call for call in gathering.calls if call[1] != "NONE"]
    assert committed == [("a", 0), ("b", 1), ("c", 3)]
    assert sorted(set(gathering.calls) - set(committed)) == [(n, "NONE") for n in "abc"]
    gathering.gather("d")
    gathering.end_turn()
    assert gathering.batches[1:] == [["d0"]]
    assert gathering.calls[-2:] == [("d", 4), ("d", "NONE")]


def test_other_writes_come_behind_what_was_gathered(gathering: Gathering) -> None:
    gathering.gather("a")
    gathering.append()
    gathering.gather("b")
    assert gathering.batches == [["a0"], ["k1", "k2"]]
    gathering.end_turn()
    assert gathering.batches == [["a0"], ["k1", "k2"], ["b0"]]


def test_somebody_who_must_know_flushes(gathering: Gathering) -> None:
    gathering.gather("a")
    gathering.log.flush()
    gathering.log.flush()
    assert gathering.calls == [("a", 0), ("a", "NONE")]
    gathering.end_turn()
    assert gathering.batches == [["a0"]]


@pytest.mark.parametrize(
    ("count", "size", "first"),
    [(1, 0, GATHERED_RECORDS_MAX), (100, 0, 2), (1, 40 * 1024, 3), (1, GATHERED_BYTES_MAX, 1)],
)
def test_batches_are_bounded(gathering: Gathering, count: int, size: int, first: int) -> None:
    """By records and by bytes; one write is never divided."""
    for number in range(first + 1):
        gathering.gather(f"{number}-", count, size)
    assert [len(batch) for batch in gathering.batches] == [first * count]
    gathering.end_turn()
    assert [len(batch) for batch in gathering.batches] == [first * count, count]


def test_a_failure_is_everybodys(gathering: Gathering) -> None:
    gathering.manager.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    gathering.gather("a")
    gathering.gather("b", 2)
    gathering.end_turn()
    assert gathering.calls == [(n, "COORDINATOR_NOT_AVAILABLE") for n in "ab"]
    assert gathering.timer.pending == 0


def test_time_out_is_everybodys_and_what_is_committed_later_counts(gathering: Gathering) -> None:
    gathering.manager.hold = True
    gathering.gather("a")
    gathering.gather("b")
    gathering.end_turn()
    gathering.timer.advance(5_000)
    assert gathering.calls == [(n, "COORDINATOR_NOT_AVAILABLE") for n in "ab"]
    gathering.calls.clear()
    gathering.manager.commit_held()
    assert gathering.calls == [("a", 0), ("b", 1)]


def test_what_is_too_large_together_is_written_one_by_one(gathering: Gathering) -> None:
    """The topic's `max.message.bytes` may be small; nobody's commit fails for another's size."""
    gathering.manager.batch_size_max = 300
    gathering.gather("a", 1, 100)
    gathering.gather("b", 1, 400)
    gathering.gather("c", 1, 100)
    gathering.end_turn()
    assert gathering.batches == [["a0"], ["c0"]]
    assert gathering.calls == [
        ("a", 0),
        ("a", "NONE"),
        ("b", "UNKNOWN_SERVER_ERROR"),
        ("c", 1),
        ("c", "NONE"),
    ]
    assert gathering.timer.pending == 0


def test_one_that_is_too_large_alone_fails_once(gathering: Gathering) -> None:
    gathering.manager.batch_size_max = 300
    gathering.gather("a", 1, 400)
    gathering.end_turn()
    assert gathering.calls == [("a", "UNKNOWN_SERVER_ERROR")]


def test_closing_writes_what_was_gathered(gathering: Gathering) -> None:
    """Before another shard reads the log; later ones are refused."""
    gathering.gather("a")
    gathering.log.close()
    assert gathering.calls == [("a", 0), ("a", "NONE")]
    gathering.gather("b")
    assert gathering.calls[2:] == [("b", "NOT_COORDINATOR")]
    gathering.end_turn()
    assert gathering.batches == [["a0"]]


def test_who_hears_of_the_last_writes_writes_nothing_behind_them(gathering: Gathering) -> None:
    gathering.log.gather([(b"a", b"")], lambda _: None, lambda _: gathering.gather("b"))
    gathering.log.close()
    assert gathering.calls == [("b", "NOT_COORDINATOR")]
    gathering.end_turn()
    assert gathering.batches == [["a"]]


def test_what_is_gathered_by_who_hears_of_a_full_batch_is_not_lost(gathering: Gathering) -> None:
    gathering.log.gather([(b"a", b"")], lambda _: None, lambda _: gathering.gather("b"))
    gathering.gather("c", GATHERED_RECORDS_MAX - 1)
    gathering.gather("d")
    gathering.end_turn()
    assert gathering.batches[1:] == [["b0", "d0"]]


def test_a_callback_that_fails_keeps_nobody_from_being_answered(
    gathering: Gathering, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no")

    gathering.log.gather([(b"a", b"")], fail, fail)
    gathering.gather("b")
    gathering.end_turn()
    assert gathering.calls == [("b", 1), ("b", "NONE")]
    assert gathering.timer.pending == 0
    gathering.log.gather([(b"c", b"")], fail, gathering.calls.append)
    gathering.append()
    assert gathering.calls[2:] == [ErrorCode.UNKNOWN_SERVER_ERROR, 3, "NONE"]
    assert "a gathered write cannot be taken in offset=0" in caplog.text
    assert "a gathered write cannot be answered code=NONE" in caplog.text


@pytest.mark.parametrize("names", ["a", "ab"])
def test_a_log_that_breaks_answers_those_whose_writes_were_gathered(
    gathering: Gathering,
    names: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And whoever flushes asked for something else, and gets it."""

    def fail(*_: object) -> None:
        raise MemoryError

    for name in names:
        gathering.gather(name)
    with monkeypatch.context() as broken:
        broken.setattr(gathering.manager, "append_internal", fail)
        gathering.log.flush()
    assert gathering.calls == [(name, "UNKNOWN_SERVER_ERROR") for name in names]
    assert "gathered records not written partition=__consumer_offsets-0" in caplog.text
    gathering.gather("c")
    gathering.end_turn()
    assert gathering.batches == [["c0"]]


@pytest.mark.parametrize(("size_max", "codec"), [(10_000, 0), (1_000, 4)])
def test_whole_change_is_compressed_where_it_would_not_fit(
    write: Write, size_max: int, codec: int
) -> None:
    write.manager.batch_size_max = size_max
    records = [(b"k%d" % number, bytes(20)) for number in range(100)]
    assert write.log.append_whole(records, write.calls.append, write.calls.append, refused=_never)
    (batch,) = write.manager.batches[0]
    assert read_header(memoryview(batch)).codec == codec
    assert len(list(iterate_records(memoryview(batch), max_size=10_000))) == 100
    assert write.calls == [0, ErrorCode.NONE]


def test_whole_change_that_fits_nowhere_leaves_nothing(write: Write) -> None:
    write.manager.batch_size_max = 50
    assert not write.log.append_whole(
        RECORDS, write.calls.append, write.calls.append, refused=_never
    )
    assert not write.manager.batches[0]
    assert not write.calls
    assert write.timer.pending == 0


def test_batch_built_elsewhere_is_appended_behind_what_was_gathered(gathering: Gathering) -> None:
    log = gathering.log
    batch = log.batch_of([(b"b0", b"")])
    gathering.gather("a")
    codes: list[ErrorCode] = []
    log.append_batch(batch, lambda _: None, codes.append, refused=_never)
    assert gathering.batches == [["a0"], ["b0"]]
    assert codes == [ErrorCode.NONE]


def test_closed_log_takes_no_large_change_either(write: Write) -> None:
    write.log.close()
    batch = write.log.batch_of(RECORDS)
    write.log.append_batch(batch, write.calls.append, write.calls.append, refused=_never)
    assert write.log.append_whole(RECORDS, write.calls.append, write.calls.append, refused=_never)
    assert write.calls == [ErrorCode.NOT_COORDINATOR] * 2
    assert not write.manager.batches[0]


def _never() -> None:
    raise AssertionError("refused")
