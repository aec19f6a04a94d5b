"""Appends of a shard: gathered, split, held, given up; when memory changes."""

from collections.abc import Callable
from typing import Any

import pytest

from broker.coordinator.outcome import KeyValue, code_for_clients
from broker.coordinator.shard_log import (
    HELD_BYTES_MAX,
    HELD_MAX,
    ApplyAt,
    AtIterationEnd,
    ShardLog,
)
from broker.coordinator.writes import GATHERED_BYTES_MAX, GATHERED_RECORDS_MAX
from protocol.error_codes import ErrorCode
from protocol.records.batch import read_header
from protocol.records.record import iterate_records
from storage.types.topic_partition import TopicPartition
from tests.fakes.broker.coordinator_log import TOPIC, CoordinatorLog
from tests.fakes.environment import FakeEnvironment
from tests.fakes.timer import ManualTimer

RECORDS = [(b"k1", b"v1"), (b"k2", None)]


class Write:
    """One append and what it called."""

    def __init__(self) -> None:
        self.manager = CoordinatorLog()
        self.timer = ManualTimer()
        self.failures: list[ErrorCode | None] = []
        self.holding: list[int] = []
        self.log = self.new()
        self.calls: list[Any] = []

    def new(
        self, at_iteration_end: AtIterationEnd | None = None, answer_within_ms: float | None = None
    ) -> ShardLog:
        return ShardLog(
            TopicPartition(TOPIC, 0),
            appender=self.manager,
            environment=FakeEnvironment(timer=self.timer),
            timeout_ms=1_234,
            on_failed=self.failures.append,
            answer_within_ms=answer_within_ms,
            at_iteration_end=at_iteration_end,
            hold=self.hold,
        )

    def hold(self, log: ShardLog, refusals: int) -> None:
        assert log is self.log
        self.holding.append(refusals)

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


def test_who_asks_whether_all_is_committed_waits_for_the_last_write(write: Write) -> None:
    codes: list[ErrorCode] = []
    write.log.when_committed(codes.append)
    assert codes == [ErrorCode.NONE]
    write.manager.hold = True
    write.append()
    write.append()
    write.log.when_committed(codes.append)
    # Refused, it is nothing to wait for, and nothing that others wait for less because of it.
    write.manager.fail_next = [ErrorCode.NOT_ENOUGH_REPLICAS]
    write.append()
    write.log.when_committed(codes.append)
    assert codes == [ErrorCode.NONE]
    write.manager.commit_held()
    assert codes == [ErrorCode.NONE] * 3


def test_who_asks_whether_all_is_committed_hears_that_nobody_knows(write: Write) -> None:
    codes: list[ErrorCode] = []
    write.manager.hold = True
    write.append()
    write.log.when_committed(codes.append)
    write.manager.fail_held(ErrorCode.REQUEST_TIMED_OUT)
    write.log.when_committed(codes.append)
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR]


def test_failure_is_translated_for_the_client(write: Write) -> None:
    write.manager.fail_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    write.append()
    assert write.calls == ["NOT_COORDINATOR"]


@pytest.mark.parametrize("code", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR])
def test_an_outcome_that_nobody_knows_gives_the_log_up(write: Write, code: ErrorCode) -> None:
    """What is in memory may not be what the log says, either way."""
    write.manager.hold = True
    write.append()
    write.append()
    write.manager.fail_held(code)
    assert write.calls == [code_for_clients(code).name, "NOT_COORDINATOR"]
    assert write.failures == [code]
    assert write.log.is_closed
    assert write.manager.timeouts_ms == [1_234, 1_234]
    write.append()
    assert write.calls[2:] == ["NOT_COORDINATOR"]


@pytest.fixture
def timed() -> Write:
    """A log that answers in time, whatever becomes of the append."""
    write = Write()
    write.timer = ManualTimer()
    write.log = write.new(answer_within_ms=100)
    return write


def test_time_out_is_answered_once(timed: Write) -> None:
    """And what is committed afterwards is still taken in."""
    timed.manager.hold = True
    timed.append()
    timed.timer.advance(99)
    assert timed.calls == []
    timed.timer.advance(1)
    assert timed.calls == ["COORDINATOR_NOT_AVAILABLE"]
    timed.manager.commit_held()
    assert timed.calls == ["COORDINATOR_NOT_AVAILABLE", 0]
    assert not timed.failures


def test_commit_in_time_stops_the_timer(timed: Write) -> None:
    timed.manager.hold = True
    timed.append()
    timed.manager.commit_held()
    timed.manager.hold = False
    timed.append()
    assert timed.calls == [0, "NONE", 2, "NONE"]
    assert timed.timer.pending == 0


@pytest.mark.parametrize("code", [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.REQUEST_TIMED_OUT])
def test_a_failure_stops_the_timer(timed: Write, code: ErrorCode) -> None:
    timed.manager.hold = True
    timed.append()
    timed.manager.fail_held(code)
    timed.manager.fail_with = code
    timed.append()
    assert len(timed.calls) == 2
    assert timed.timer.pending == 0


def test_a_refusal_changes_nothing(write: Write) -> None:
    for code in (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE):
        write.manager.fail_with = code
        write.append()
    assert write.calls == ["COORDINATOR_NOT_AVAILABLE", "UNKNOWN_SERVER_ERROR"]
    assert not write.failures


def test_refused_is_called_before_the_answer(write: Write) -> None:
    """Who has changed memory already gives the log up."""
    write.manager.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS

    def refused() -> None:
        write.calls.append("refused")
        write.log.fail(ErrorCode.NOT_ENOUGH_REPLICAS)

    write.log.append(RECORDS, write.calls.append, write.calls.append, refused=refused)
    assert write.calls == ["refused", ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert write.failures == [ErrorCode.NOT_ENOUGH_REPLICAS]
    write.log.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert len(write.failures) == 1


# -- when memory changes --


def test_at_append_memory_changes_when_the_log_has_the_records(write: Write) -> None:
    """Before whoever is told asks for it, also where the log calls back before it returns."""
    for hold in (False, True):
        write.manager.hold = hold
        write.calls.clear()
        write.log.append(RECORDS, write.calls.append, write.calls.append, apply_at=ApplyAt.APPEND)
        offset = 2 if hold else 0
        assert write.calls == [offset] if hold else [offset, ErrorCode.NONE]
    write.manager.commit_held()
    assert write.calls == [2, ErrorCode.NONE]


def test_at_append_a_refusal_changes_nothing(write: Write) -> None:
    write.manager.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    write.log.append(RECORDS, write.calls.append, write.calls.append, apply_at=ApplyAt.APPEND)
    assert write.calls == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert not write.failures


def test_at_append_any_failure_afterwards_gives_the_log_up(write: Write) -> None:
    """Memory has gone ahead of what is committed."""
    write.manager.hold = True
    write.log.append(RECORDS, write.calls.append, write.calls.append, apply_at=ApplyAt.APPEND)
    write.manager.fail_held(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert write.calls == [0, ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert write.failures == [ErrorCode.NOT_ENOUGH_REPLICAS]


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
        self.log = self.new(self.due.append)

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


def test_an_unknown_outcome_is_everybodys(gathering: Gathering) -> None:
    gathering.manager.hold = True
    gathering.gather("a")
    gathering.gather("b")
    gathering.end_turn()
    gathering.manager.fail_held(ErrorCode.REQUEST_TIMED_OUT)
    assert gathering.calls == [(n, "COORDINATOR_NOT_AVAILABLE") for n in "ab"]
    assert gathering.failures == [ErrorCode.REQUEST_TIMED_OUT]


def test_what_is_gathered_behind_a_full_batch_that_is_lost_is_refused(gathering: Gathering) -> None:
    gathering.manager.time_out = True
    gathering.gather("a", GATHERED_RECORDS_MAX)
    gathering.gather("b")
    assert gathering.calls == [("a", "COORDINATOR_NOT_AVAILABLE"), ("b", "NOT_COORDINATOR")]
    gathering.end_turn()
    assert len(gathering.batches) == 1


def test_what_is_too_large_together_is_written_one_by_one(gathering: Gathering) -> None:
    """The topic's `max.message.bytes` may be small; nobody's commit fails for another's size."""
    gathering.manager.size_max = 300
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


def test_one_that_is_too_large_alone_fails_once(gathering: Gathering) -> None:
    gathering.manager.size_max = 300
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
    gathering.log.gather([(b"c", b"")], fail, gathering.calls.append)
    gathering.append()
    assert gathering.calls[2:] == [ErrorCode.UNKNOWN_SERVER_ERROR, 3, "NONE"]
    assert "appended record could not be applied offset=0" in caplog.text
    assert "caller of an append could not be answered code=NONE" in caplog.text


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
        broken.setattr(gathering.manager, "append_coordinated", fail)
        gathering.log.flush()
    assert gathering.calls == [(name, "UNKNOWN_SERVER_ERROR") for name in names]
    assert "append of gathered records failed partition=__harness-0" in caplog.text
    gathering.gather("c")
    gathering.end_turn()
    assert gathering.batches == [["c0"]]


@pytest.mark.parametrize(("size_max", "codec"), [(10_000, 0), (1_000, 4)])
def test_whole_change_is_compressed_where_it_would_not_fit(
    write: Write, size_max: int, codec: int
) -> None:
    write.manager.size_max = size_max
    records = [(b"k%d" % number, bytes(20)) for number in range(100)]
    assert write.log.append_whole(records, write.calls.append, write.calls.append, refused=_never)
    (batch,) = write.manager.batches[0]
    assert read_header(memoryview(batch)).codec == codec
    assert len(list(iterate_records(memoryview(batch), max_size=10_000))) == 100
    assert write.calls == [0, ErrorCode.NONE]


def test_whole_change_that_fits_nowhere_leaves_nothing(write: Write) -> None:
    write.manager.size_max = 50
    assert not write.log.append_whole(
        RECORDS, write.calls.append, write.calls.append, refused=_never
    )
    assert not write.manager.batches[0]
    assert not write.calls


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


# -- held records --


def record(name: str, size: int = 0) -> KeyValue:
    return name.encode(), bytes(size)


def test_held_records_go_before_the_next_one_in_its_batch(gathering: Gathering) -> None:
    gathering.log.append_later(record("h1"))
    gathering.log.append_later(record("h2"))
    assert gathering.batches == []
    assert gathering.holding == [0]
    gathering.append()
    assert gathering.batches == [["h1", "h2", "k1", "k2"]]
    assert gathering.calls == [2, "NONE"], "the offset of its own first record"
    gathering.log.write_held()
    assert len(gathering.batches) == 1


def test_held_records_go_before_what_is_gathered(gathering: Gathering) -> None:
    gathering.log.append_later(record("h"))
    gathering.gather("a")
    gathering.gather("b")
    gathering.end_turn()
    assert gathering.batches == [["h", "a0", "b0"]]
    assert [call for call in gathering.calls if call[1] != "NONE"] == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("apply_at", ApplyAt)
def test_held_records_at_either_apply_point(gathering: Gathering, apply_at: ApplyAt) -> None:
    gathering.log.append_later(record("h"))
    gathering.log.append([record("a")], gathering.calls.append, _ignore, apply_at=apply_at)
    assert gathering.calls == [1]


def test_held_records_are_written_when_their_time_is_up_or_they_are_many(
    gathering: Gathering,
) -> None:
    gathering.log.append_later(record("h"))
    gathering.log.write_held()
    assert gathering.batches == [["h"]]
    for number in range(HELD_MAX):
        gathering.log.append_later(record(f"{number}"))
    assert len(gathering.batches[1]) == HELD_MAX
    gathering.log.append_later(record("large", HELD_BYTES_MAX))
    assert gathering.batches[2] == ["large"]


def test_held_records_that_are_refused_are_held_again_and_not_overtaken(
    gathering: Gathering,
) -> None:
    gathering.log.append_later(record("h"))
    gathering.manager.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    gathering.append()
    assert gathering.calls == ["COORDINATOR_NOT_AVAILABLE"]
    assert gathering.holding == [0, 1]
    gathering.manager.fail_with = None
    gathering.append()
    assert gathering.batches == [["h", "k1", "k2"]]
    assert not gathering.failures


def test_refusals_are_logged_once_until_records_are_written(
    gathering: Gathering, caplog: pytest.LogCaptureFixture
) -> None:
    """A topic may lack replicas for hours."""
    caplog.set_level("INFO")
    for turn in (1, 2):
        gathering.log.append_later(record("h"))
        gathering.manager.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
        for _ in range(3):
            gathering.log.write_held()
        assert gathering.holding == [0, 1, 2, 3] * turn
        assert caplog.text.count("records are kept until they can be appended") == turn
        gathering.manager.fail_with = None
        gathering.log.write_held()
        assert gathering.batches == [["h"]] * turn
        assert caplog.text.count("records that were kept are appended") == turn
        assert caplog.text.count("refused=3") == turn


@pytest.mark.parametrize("apply_at", ApplyAt)
def test_held_records_that_make_a_batch_too_large_are_written_apart(
    gathering: Gathering, apply_at: ApplyAt
) -> None:
    gathering.manager.size_max = 300
    gathering.log.append_later(record("h1", 100))
    gathering.log.append_later(record("h2", 100))
    gathering.log.append([record("a", 100)], gathering.calls.append, _ignore, apply_at=apply_at)
    assert gathering.batches == [["h1"], ["h2"], ["a"]] or gathering.batches == [
        ["h1", "h2"],
        ["a"],
    ]
    assert gathering.calls == [2]


def test_a_held_record_that_fits_nowhere_holds_back_what_comes_behind_it(
    gathering: Gathering,
) -> None:
    gathering.manager.size_max = 300
    gathering.log.append_later(record("h", 400))
    gathering.append()
    assert gathering.calls == ["UNKNOWN_SERVER_ERROR"]
    assert gathering.batches == []


def test_a_gathered_batch_behind_held_records_is_split_behind_them(gathering: Gathering) -> None:
    gathering.manager.size_max = 300
    gathering.log.append_later(record("h", 100))
    gathering.gather("a", 1, 150)
    gathering.gather("b", 1, 150)
    gathering.end_turn()
    assert gathering.batches == [["h"], ["a0"], ["b0"]]
    assert gathering.calls == [("a", 1), ("a", "NONE"), ("b", 2), ("b", "NONE")]


def test_a_closed_log_drops_what_is_held(gathering: Gathering) -> None:
    """It follows from what was written before, and the next shard comes to it."""
    gathering.log.append_later(record("h"))
    gathering.log.close()
    gathering.log.append_later(record("i"))
    gathering.log.write_held()
    assert gathering.batches == []


def _ignore(_: object) -> None:
    return
